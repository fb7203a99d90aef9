/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reads of a recovery. Its steps ask for one range after another and see
 * each as if it were the only one; what they will ask for next they say too,
 * and it is read meanwhile, so that drives always have READERS reads to do. A
 * guess that was wrong costs its read: what is asked for and was not guessed
 * drops all guesses.
 */
#include "engine/vdisk/log/recover.h"

int recover_readers_init(struct vlog *v)
{
	struct recovery *rv = v->recovery;
	const uint32_t zone = v->label.zone_bytes - FMT_BLOCK;
	int rc;

	rv->window = zone < WINDOW_MAX ? zone : WINDOW_MAX;
	/* Freed with the vDisk: a stuck drive may hold on to some. */
	rc = bufpool_init(&v->window_pool, v->r, CARRY + rv->window,
			  READERS + meta_group(v) / 2 + 1);
	v->window_pool.raw = true;
	return rc;
}

void recover_readers_free(struct recovery *rv)
{
	for (unsigned i = 0; i < READERS; i++)
		lbuf_put(rv->reader[i].buf);
}

bool recover_readers_idle(const struct recovery *rv)
{
	for (unsigned i = 0; i < READERS; i++)
		if (!batch_over(&rv->reader[i].batch))
			return false;
	return true;
}

void recover_ahead_drop(struct recovery *rv)
{
	for (unsigned i = 0; i < READERS; i++)
		rv->reader[i].ahead = false;
}

/* False: stuck drives hold all buffers; they may still write to them. */
static bool reader_start(struct vlog *v, struct reader *rd, unsigned member,
			 uint64_t off, uint32_t buf_off, uint32_t len)
{
	if (rd->buf && rd->buf->refs > 1) {
		lbuf_put(rd->buf);
		rd->buf = NULL;
	}
	if (!rd->buf)
		rd->buf = lbuf_get(&v->window_pool);
	if (!rd->buf)
		return false;
	rd->member = member;
	rd->off = off;
	rd->buf_off = buf_off;
	rd->len = len;
	batch_begin(&rd->batch, NULL);
	batch_io(v, &rd->batch, member, BDEV_READ, 0, off, rd->buf, buf_off,
		 len);
	batch_end(v, &rd->batch);
	return true;
}

static struct reader *reader_ahead(struct recovery *rv, unsigned member,
				   uint64_t off, uint32_t buf_off, uint32_t len)
{
	for (unsigned i = 0; i < READERS; i++) {
		struct reader *rd = &rv->reader[i];

		if (rd->ahead && rd->member == member && rd->off == off &&
		    rd->buf_off == buf_off && rd->len == len)
			return rd;
	}
	return NULL;
}

void recover_read(struct vlog *v, unsigned member, uint64_t off,
		  uint32_t buf_off, uint32_t len)
{
	struct recovery *rv = v->recovery;
	struct reader *rd = reader_ahead(rv, member, off, buf_off, len);

	rv->waiting = true;
	if (rd) {
		rd->ahead = false;
		rv->now = rd;
		return;
	}
	recover_ahead_drop(rv);
	if (!reader_start(v, rv->now, member, off, buf_off, len)) {
		err_set(&rv->err, -EAGAIN, "%s: drives are stuck",
			v->label.name);
		recover_fail(v, -EAGAIN);
	}
}

bool recover_ahead(struct vlog *v, unsigned member, uint64_t off,
		   uint32_t buf_off, uint32_t len)
{
	struct recovery *rv = v->recovery;

	if (reader_ahead(rv, member, off, buf_off, len))
		return true;
	for (unsigned i = 0; i < READERS; i++) {
		struct reader *rd = &rv->reader[i];

		if (rd == rv->now || rd->ahead || !batch_over(&rd->batch))
			continue;
		rd->ahead = reader_start(v, rd, member, off, buf_off, len);
		return rd->ahead;
	}
	return false;
}
