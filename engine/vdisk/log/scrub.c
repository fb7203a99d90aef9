/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Scrub: everything that is there is read and held against what it should be,
 * before it is needed.
 *
 *   all segments, oldest first (scrub_seg.c) -> labels, superblocks, the
 *   snapshot, the log (scrub_meta.c)
 *
 * In the background one segment at a time, so that a pass takes PASS_NS, below
 * a cap in bytes a second. On demand without either.
 */
#include "engine/vdisk/log/scrub.h"

#include <stdlib.h>

#define PASS_DAYS 30u
#define RATE_BYTES_S (32ull * MIB)

int scrub_init(struct vlog *v)
{
	struct scrub *sc = calloc(1, sizeof(*sc));
	int rc;

	if (!sc)
		return -ENOMEM;
	v->scrub = sc;
	sc->v = v;
	sc->seg = SEG_NONE;
	sc->entry = calloc((size_t)FMT_COMPS_MAX * unit_grans(v),
			   sizeof(*sc->entry));
	if (!sc->entry)
		return -ENOMEM;
	/* Twice: a stuck drive may hold on to some for a while. */
	rc = bufpool_init(&sc->units, v->r, v->label.unit_bytes,
			  4 * FMT_COMPS_MAX);
	if (!rc)
		rc = bufpool_init(&sc->windows, v->r, FMT_RECORD_MAX, 3);
	return rc;
}

void scrub_fini(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (!sc)
		return;
	timer_cancel(v->r, &sc->timer);
	bufpool_fini(&sc->units);
	bufpool_fini(&sc->windows);
	free(sc->entry);
	free(sc);
	v->scrub = NULL;
}

void scrub_wrong(struct vlog *v)
{
	v->stat.scrub_found++;
	vlog_changed(v);
}

/* ---- the next ------------------------------------------------------ */

static uint32_t oldest_after(const struct vlog *v, uint64_t id)
{
	uint32_t best = SEG_NONE;

	for (uint32_t i = 0; i < v->segs; i++) {
		const struct seg *s = &v->seg[i];

		if (s->state == SEG_FREE || !s->committed || !s->live ||
		    s->id <= id)
			continue;
		if (best == SEG_NONE || s->id < v->seg[best].id)
			best = i;
	}
	return best;
}

static bool seg_begin(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->seg = oldest_after(v, sc->after_id);
	if (sc->seg == SEG_NONE)
		return false;
	seg_pin(v, sc->seg);
	sc->after_id = v->seg[sc->seg].id;
	sc->todo = v->seg[sc->seg].stripes;
	return true;
}

static void seg_end(struct vlog *v)
{
	struct scrub *sc = v->scrub;
	const uint32_t seg = sc->seg;

	sc->seg = SEG_NONE;
	sc->segs_done++;
	v->stat.scrub_segs++;
	seg_unpin(v, seg);
}

/* ---- a pass -------------------------------------------------------- */

static void scrub_fired(struct timer *t)
{
	struct scrub *sc = container_of(t, struct scrub, timer);

	vlog_kick(sc->v);
}

static void wait_ns(struct vlog *v, uint64_t ns)
{
	v->scrub->timer.fn = scrub_fired;
	timer_arm(v->r, &v->scrub->timer, reactor_turn_now(v->r) + ns);
}

static uint64_t pass_ns(const struct vlog *v)
{
	const uint64_t ms = v->pace.scrub_ms;

	return (ms ? ms : PASS_DAYS * 24 * 3600 * 1000) * MSEC_NS;
}

static void pass_begin(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->after_id = 0;
	sc->segs_done = 0;
	sc->segs = 0;
	for (uint32_t i = 0; i < v->segs; i++)
		sc->segs += v->seg[i].state != SEG_FREE && v->seg[i].live;
	sc->phase = SCRUB_SEG;
}

/* The rest between two segments, or two stripes of one. */
static void rest(struct vlog *v, bool seg)
{
	struct scrub *sc = v->scrub;
	const uint64_t rate =
		v->pace.scrub_bytes_s ? v->pace.scrub_bytes_s : RATE_BYTES_S;
	const uint64_t bytes = (uint64_t)v->n * v->label.unit_bytes;

	if (sc->verify)
		return;
	if (seg)
		wait_ns(v, pass_ns(v) / (sc->segs + 1));
	else
		wait_ns(v, bytes * SEC_NS / rate);
}

static void verify_end(struct vlog *v, int result)
{
	struct scrub *sc = v->scrub;
	vdisk_done_fn *done = sc->done;

	sc->verify = false;
	sc->done = NULL;
	*sc->mismatches = v->stat.scrub_found - sc->found_was;
	if (result)
		err_set(&sc->err, result, "%s: closed while it was verified",
			v->bdev.name);
	done(result, result ? &sc->err : NULL, &v->bdev, sc->arg);
}

static bool stripe_next(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (sc->again) {
		sc->again = false;
		if (sc->seg != SEG_NONE)
			seg_unpin(v, sc->seg);
		sc->seg = SEG_NONE;
		pass_begin(v);
	}
	if (sc->seg == SEG_NONE && !seg_begin(v)) {
		scrub_meta_begin(v);
		return true;
	}
	if (!sc->todo || !v->seg[sc->seg].live) {
		seg_end(v);
		rest(v, true);
		return true;
	}
	sc->stripe = (unsigned)__builtin_ctz(sc->todo);
	if (!scrub_stripe_read(v))
		return false;
	sc->todo &= sc->todo - 1;
	return true;
}

static bool segs_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (sc->phase == SCRUB_SEG)
		return stripe_next(v);
	if (sc->phase == SCRUB_READ)
		rest(v, false);
	return scrub_stripe_step(v);
}

static void pass_end(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	sc->phase = SCRUB_IDLE;
	if (sc->again) {
		sc->again = false;
		return;
	}
	v->stat.scrub_passes++;
	sc->passes++;
	if (sc->verify)
		verify_end(v, 0);
	wait_ns(v, pass_ns(v) / (sc->segs + 1));
}

static bool busy(const struct scrub *sc)
{
	return !batch_over(&sc->batch) ||
	       (sc->phase == SCRUB_FETCH && !sc->fetched_over);
}

/* The vDisk closes or has stopped. */
static bool wind_up(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	timer_cancel(v->r, &sc->timer);
	if (sc->phase == SCRUB_IDLE || busy(sc))
		return false;
	scrub_bufs_put(sc);
	lbuf_put(sc->window);
	sc->window = NULL;
	if (sc->seg != SEG_NONE)
		seg_unpin(v, sc->seg);
	sc->seg = SEG_NONE;
	sc->phase = SCRUB_IDLE;
	if (sc->verify)
		verify_end(v, -ECANCELED);
	return true;
}

bool scrub_step(struct vlog *v)
{
	struct scrub *sc = v->scrub;

	if (v->state == VLOG_OPENING)
		return false;
	if (v->state != VLOG_SERVING)
		return wind_up(v);
	if (busy(sc))
		return false;
	if (!sc->verify && timer_armed(&sc->timer))
		return false;
	if (sc->phase == SCRUB_IDLE) {
		/* The first begins a while after the opening. */
		if (!sc->verify && !sc->passes++) {
			wait_ns(v, pass_ns(v) / (v->segs_used + 1));
			return false;
		}
		pass_begin(v);
	}
	if (sc->phase == SCRUB_OVER) {
		if (v->stat.checkpoints < sc->mended_by && !meta_stuck(v))
			return false;
		pass_end(v);
		return true;
	}
	return segs_step(v) || scrub_meta_step(v);
}

bool scrub_idle(const struct vlog *v)
{
	return v->scrub->phase == SCRUB_IDLE;
}

double scrub_progress(const struct vlog *v)
{
	const struct scrub *sc = v->scrub;

	if (sc->phase == SCRUB_IDLE)
		return 0;
	return (double)sc->segs_done / (double)(sc->segs + 1);
}

int vlog_verify(struct bdev *vdisk, uint64_t *mismatches, vdisk_done_fn *done,
		void *arg)
{
	struct vlog *v = container_of(vdisk, struct vlog, bdev);
	struct scrub *sc = v->scrub;

	if (v->state != VLOG_SERVING)
		return -EIO;
	if (sc->verify)
		return -EBUSY;
	sc->verify = true;
	sc->mismatches = mismatches;
	sc->found_was = v->stat.scrub_found;
	sc->done = done;
	sc->arg = arg;
	timer_cancel(v->r, &sc->timer);
	sc->again = sc->phase != SCRUB_IDLE;
	vlog_kick(v);
	return 0;
}
