/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A slot that was freed and stays free for a whole round is trimmed. While it
 * is, it counts as used, so nothing can be written there. What becomes free is
 * free by records that are durable, as for a slot that is written again: no
 * recovery can come to a state that still needs it.
 *
 * Which slots are due is of this run alone: what a crash leaves is trimmed once
 * it has been used and freed again.
 */
#include "engine/vdisk/log/punch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/vdisk/log/impl.h"

#define ROUND_MS 10000u
#define PAUSE_NS (20 * MSEC_NS) /* between two */

struct punch {
	struct vlog *v;
	struct timer timer;
	struct batch batch;
	bool busy, held;
	unsigned member;
	uint32_t slot;
	uint64_t round_ns;
	struct {
		uint64_t *freed, *due; /* this round; before it */
		uint32_t slots, at;
	} of[FMT_COMPS_MAX];
};

/* Grows with its slots: at the opening, and when a component has grown. */
int punch_fit(struct vlog *v, unsigned i)
{
	struct punch *p = v->punch;
	const uint32_t slots = v->member[i].slots;
	const size_t was = (p->of[i].slots + 63) / 64;
	const size_t words = (slots + 63) / 64;
	uint64_t *freed, *due;

	if (p->of[i].slots >= slots)
		return 0;
	freed = realloc(p->of[i].freed, words * 8);
	if (freed)
		p->of[i].freed = freed;
	due = realloc(p->of[i].due, words * 8);
	if (due)
		p->of[i].due = due;
	if (!freed || !due)
		return -ENOMEM;
	memset(freed + was, 0, (words - was) * 8);
	memset(due + was, 0, (words - was) * 8);
	p->of[i].slots = slots;
	return 0;
}

int punch_init(struct vlog *v)
{
	int rc = 0;

	v->punch = calloc(1, sizeof(*v->punch));
	if (!v->punch)
		return -ENOMEM;
	v->punch->v = v;
	batch_begin(&v->punch->batch, NULL);
	v->punch->batch.out = 0;
	for (unsigned i = 0; i < v->n && !rc; i++)
		rc = punch_fit(v, i);
	return rc;
}

void punch_fini(struct vlog *v)
{
	if (!v->punch)
		return;
	timer_cancel(v->r, &v->punch->timer);
	for (unsigned i = 0; i < FMT_COMPS_MAX; i++) {
		free(v->punch->of[i].freed);
		free(v->punch->of[i].due);
	}
	free(v->punch);
	v->punch = NULL;
}

static uint64_t round_ns(const struct vlog *v)
{
	return (v->pace.punch_ms ? v->pace.punch_ms : ROUND_MS) * MSEC_NS;
}

static void fired(struct timer *t);

static void look_at(struct vlog *v, uint64_t ns)
{
	struct punch *p = v->punch;

	if (timer_armed(&p->timer))
		return;
	p->timer.fn = fired;
	timer_arm(v->r, &p->timer, ns);
}

/* ---- what is due --------------------------------------------------- */

void punch_freed(struct vlog *v, unsigned i, uint32_t slot)
{
	const struct bdev *bdev = v->member[i].bdev;
	struct punch *p = v->punch;

	if (!bdev || !bdev->limits.can_trim || v->state != VLOG_SERVING)
		return;
	bit_set(p->of[i].freed, slot);
	if (!timer_armed(&p->timer) && !p->busy) {
		p->round_ns = reactor_turn_now(v->r) + round_ns(v);
		look_at(v, p->round_ns);
	}
}

void punch_taken(struct vlog *v, unsigned i, uint32_t slot)
{
	struct punch *p = v->punch;

	if (slot >= p->of[i].slots || MUT(PUNCH_EARLY))
		return;
	bit_clear(p->of[i].freed, slot);
	bit_clear(p->of[i].due, slot);
}

/* True: something is due, or will be. */
static bool round_end(struct vlog *v)
{
	struct punch *p = v->punch;
	uint64_t any = 0;

	for (unsigned i = 0; i < v->n; i++)
		for (uint32_t w = 0; w < (p->of[i].slots + 63) / 64; w++) {
			p->of[i].due[w] |= p->of[i].freed[w];
			p->of[i].freed[w] = 0;
			any |= p->of[i].due[w];
		}
	p->round_ns = reactor_turn_now(v->r) + round_ns(v);
	return any;
}

/* ---- one ----------------------------------------------------------- */

static bool slot_ok(const struct vlog *v, unsigned i, uint32_t slot)
{
	return bit_get(v->punch->of[i].due, slot) &&
	       (!bit_get(v->member[i].slot_used, slot) || MUT(PUNCH_EARLY));
}

static void slot_punch(struct vlog *v, unsigned i, uint32_t slot)
{
	const uint64_t chunk = (uint64_t)v->label.unit_bytes * v->label.stripes;
	struct punch *p = v->punch;
	struct member *m = &v->member[i];

	bit_clear(p->of[i].due, slot);
	p->busy = true;
	p->member = i;
	p->slot = slot;
	p->held = !bit_get(m->slot_used, slot);
	if (p->held) {
		bit_set(m->slot_used, slot);
		m->slots_free--;
	}
	v->stat.punched_bytes += chunk;
	batch_begin(&p->batch, NULL);
	batch_io(v, &p->batch, i, BDEV_TRIM, 0,
		 v->label.off_data + slot * chunk, NULL, 0, (uint32_t)chunk);
	batch_end(v, &p->batch);
}

/* Of each member in turn. False: there is none. */
static bool punch_next(struct vlog *v)
{
	struct punch *p = v->punch;

	for (unsigned n = 1; n <= v->n; n++) {
		const unsigned i = (p->member + n) % v->n;

		if (!v->member[i].alive)
			continue;
		for (uint32_t s = 0; s < p->of[i].slots; s++) {
			const uint32_t at = (p->of[i].at + s) % p->of[i].slots;

			if (!slot_ok(v, i, at))
				continue;
			p->of[i].at = at;
			slot_punch(v, i, at);
			return true;
		}
	}
	return false;
}

static void fired(struct timer *t)
{
	struct punch *p = container_of(t, struct punch, timer);
	struct vlog *v = p->v;
	const uint64_t now = reactor_turn_now(v->r);
	bool more = true;

	if (v->state != VLOG_SERVING || p->busy)
		return;
	if (now >= p->round_ns)
		more = round_end(v);
	/* Not what is about to be needed. */
	if (!seg_space_low(v) && punch_next(v))
		return;
	if (more)
		look_at(v, p->round_ns);
}

bool punch_step(struct vlog *v)
{
	struct punch *p = v->punch;
	struct member *m = &v->member[p->member];

	if (!p->busy || !batch_over(&p->batch))
		return false;
	p->busy = false;
	if (p->held) {
		bit_clear(m->slot_used, p->slot);
		m->slots_free++;
	}
	look_at(v, reactor_turn_now(v->r) + PAUSE_NS);
	return true;
}

unsigned punch_holds(const struct vlog *v, unsigned member)
{
	return v->punch->busy && v->punch->held && v->punch->member == member;
}
