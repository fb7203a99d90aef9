/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A few transfers at a time from one block of zeros: what it takes does not
 * grow with the component.
 */
#include "engine/vdisk/log/make.h"

#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

#define DEPTH 4
#define ZEROS MIB

enum step { BLANK, BLANKED, ZERO, ZEROED, FRONT, LABELLED, MADE };

struct maker {
	struct reactor *r;
	struct bdev *bdev;
	void (*done)(struct maker *m, int result, void *arg);
	void *arg;
	enum step step;
	uint8_t *front, *zeros;
	uint32_t zeros_len;
	uint64_t at, end; /* still to be zeroed */
	struct io io[DEPTH];
	bool busy[DEPTH];
	unsigned out;
	int result;
	bool over;   /* done() was called */
	bool orphan; /* nobody's any more */
	struct timer timer;
};

void seat_place(struct fmt_seat *seat, const struct vdisk_slot *slot)
{
	if (!slot->domain[0])
		return;
	memcpy(seat->domain, slot->domain, sizeof(seat->domain));
	memcpy(seat->drive, slot->drive, sizeof(seat->drive));
	memcpy(seat->component, slot->component, sizeof(seat->component));
}

void front_fill(uint8_t *front, const struct fmt_label *label, unsigned comp,
		const struct fmt_content *content)
{
	static const uint32_t place[] = { FMT_LABEL_A, FMT_LABEL_B };
	struct fmt_label l = *label;
	struct fmt_super s = { .serial = 1, .content.area = 1 };

	memset(front, 0, FMT_FRONT_BYTES);
	memcpy(l.comp_uuid, l.member[comp].uuid, 16);
	for (unsigned i = 0; i < array_len(place); i++) {
		memcpy(front + place[i], &l, sizeof(l));
		fmt_seal(front + place[i], FMT_LABEL, l.head.vdisk, comp,
			 place[i], 0, sizeof(l));
	}
	if (content)
		s.content = *content;
	memcpy(front + FMT_SUPER(0), &s, sizeof(s));
	fmt_seal(front + FMT_SUPER(0), FMT_SUPERBLOCK, l.head.vdisk, comp,
		 FMT_SUPER(0), 0, sizeof(s));
}

static void maker_release(struct maker *m)
{
	timer_cancel(m->r, &m->timer);
	if (m->front)
		reactor_buf_free(m->r, m->front, FMT_FRONT_BYTES);
	if (m->zeros)
		reactor_buf_free(m->r, m->zeros, m->zeros_len);
	free(m);
}

void maker_free(struct maker *m, bool dead)
{
	if (!m)
		return;
	timer_cancel(m->r, &m->timer);
	m->over = m->orphan = true;
	if (!m->out || dead)
		maker_release(m);
}

static void maker_end(struct maker *m, int result)
{
	timer_cancel(m->r, &m->timer);
	m->over = true;
	m->done(m, result, m->arg); /* may free it */
}

static void maker_late(struct timer *timer)
{
	struct maker *m = container_of(timer, struct maker, timer);

	maker_end(m, -ETIMEDOUT);
}

static void maker_go(struct maker *m);

static void maker_io_done(struct io *io)
{
	struct maker *m = io->arg;

	m->busy[io - m->io] = false;
	m->out--;
	if (io->result && !m->result)
		m->result = io->result;
	if (m->orphan) {
		if (!m->out)
			maker_release(m);
		return;
	}
	if (!m->over)
		maker_go(m);
}

static void submit(struct maker *m, enum bdev_op op, uint64_t off, void *buf,
		   uint32_t len)
{
	unsigned i = 0;

	while (m->busy[i])
		i++;
	m->busy[i] = true;
	m->out++;
	m->io[i] = (struct io) { .op = (uint8_t)op,
				 .off = off,
				 .buf = buf,
				 .len = len,
				 .done = maker_io_done,
				 .arg = m };
	bdev_submit(m->bdev, &m->io[i]);
}

static void zeros_submit(struct maker *m)
{
	while (m->at < m->end && m->out < DEPTH) {
		const uint64_t left = m->end - m->at;
		const uint32_t len =
			left < m->zeros_len ? (uint32_t)left : m->zeros_len;

		submit(m, BDEV_WRITE, m->at, m->zeros, len);
		m->at += len;
	}
}

static void step_begin(struct maker *m)
{
	switch (m->step) {
	case BLANK:
		submit(m, BDEV_WRITE, 0, m->zeros, FMT_FRONT_BYTES);
		break;
	case ZERO:
		zeros_submit(m);
		break;
	case FRONT:
		submit(m, BDEV_WRITE, 0, m->front, FMT_FRONT_BYTES);
		break;
	default:
		submit(m, BDEV_FLUSH, 0, NULL, 0);
		break;
	}
}

static void maker_go(struct maker *m)
{
	if (m->result) {
		if (!m->out)
			maker_end(m, m->result);
		return;
	}
	timer_arm_lived(m->r, &m->timer, IO_TIMEOUT_NS);
	if (m->step == ZERO && m->at < m->end) {
		zeros_submit(m);
		return;
	}
	if (m->out)
		return;
	if (++m->step == MADE)
		maker_end(m, 0);
	else
		step_begin(m);
}

static uint32_t zeros_bytes(const struct bdev *bdev)
{
	const uint32_t max = bdev->limits.io_max_bytes / FMT_BLOCK * FMT_BLOCK;

	return max && max < ZEROS ? max : ZEROS;
}

struct maker *maker_new(struct reactor *r, struct bdev *bdev,
			const struct fmt_label *label, const uint8_t *front,
			void (*done)(struct maker *m, int result, void *arg),
			void *arg)
{
	struct maker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->r = r;
	m->bdev = bdev;
	m->done = done;
	m->arg = arg;
	m->at = FMT_LOG_OFF;
	m->end = label->off_data;
	m->zeros_len = zeros_bytes(bdev);
	m->zeros = reactor_buf_alloc(r, m->zeros_len);
	m->front = reactor_buf_alloc(r, FMT_FRONT_BYTES);
	if (!m->zeros || !m->front) {
		maker_release(m);
		return NULL;
	}
	memset(m->zeros, 0, m->zeros_len);
	memcpy(m->front, front, FMT_FRONT_BYTES);
	m->timer.fn = maker_late;
	timer_arm_lived(r, &m->timer, IO_TIMEOUT_NS);
	step_begin(m);
	return m;
}
