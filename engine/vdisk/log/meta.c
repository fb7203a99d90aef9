/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The metadata group: the first 2m + 1 components, each an acceptor with two
 * superblock slots and two snapshot areas of its own. m is the group's own: it
 * follows the policy's one content later.
 *
 *   promised  the highest epoch an owner has claimed here; decides nothing but
 *             the epoch of the next claim
 *   content   what was accepted here: (epoch, seq) orders contents; it names
 *             this member's own area with its own copy of the snapshot
 *
 * A claim writes promised and leaves each member's own content as it is. A
 * commit writes the snapshot to the inactive area of m + 1 members, flushes
 * it, then writes their superblocks to the slot that is not the newest. Once
 * m + 1 have it the content is what every recovery finds; if fewer, it is
 * tried again with a higher seq on others.
 *
 * A content says who the members are, so a change of them is a content like any
 * other. What keeps two owners from going on with different members:
 *
 *   replacement  The old member is out of the group from the first content that
 *                names the new one, and the new one is in it (`admitted`) only
 *                once such a content is committed on m + 1 others. Any m + 1
 *                that could serve the old members hold one of those.
 *   another m    The content that says so counts on quorums of both groups, and
 *                it names both, so that whoever finds it asks for both too; the
 *                next names the new one alone. Who comes in by it votes without
 *                a content: it may stand on the old group alone.
 *
 * One change at a time: the next begins when the content of the one before is
 * committed. A recovery that finds a content does not know whether it was; its
 * own first content is then the one that must be.
 */
#include "engine/vdisk/log/impl.h"

#include <string.h>

/* Shares of zone slots in use: checkpoints begin from.. to, end by. */
#define FILL_START 0.50
#define FILL_LAST 0.75
#define FILL_END 0.90

/* ---- learning ------------------------------------------------------ */

/*
 * What could not be read may be newer than what could. So it has no vote, and
 * is written only when a content of this owner stands on enough others; what
 * is written then is newer than either, should it ever be read again.
 */
static void super_unread(struct member *m)
{
	m->super.content = (struct fmt_content) { .area = 1 };
	m->super.serial += FMT_SERIAL_UNREAD;
}

/* unread: bits of slots */
static void super_take(struct vlog *v, unsigned i, unsigned unread)
{
	struct member *m = &v->member[i];
	const void *const block[2] = { v->meta.learn_buf[i][0]->data,
				       v->meta.learn_buf[i][1]->data };

	for (unsigned slot = 0; slot < 2; slot++)
		if (unread & 1u << slot)
			memset(v->meta.learn_buf[i][slot]->data, 0, FMT_BLOCK);
	if (fmt_super_newest(block, v->uuid, i, &m->super, &m->super_slot)) {
		memset(&m->super, 0, sizeof(m->super));
		m->super.content.area = 1;
		m->super_slot = 1;
	}
	if (unread)
		super_unread(m);
	m->learned = true;
}

/* One that comes back with neither has not come back. */
static bool slots_suffice(const struct vlog *v, unsigned unread)
{
	return unread != 3 || v->state == VLOG_OPENING;
}

static void learned(struct vlog *v)
{
	struct meta *meta = &v->meta;

	if (!batch_over(&meta->learn[0]) || !batch_over(&meta->learn[1]))
		return;
	for (unsigned i = 0; i < v->n; i++) {
		unsigned unread;

		if (!(meta->learn_mask & 1u << i))
			continue;
		unread = (meta->learn[0].failed >> i & 1) |
			 (meta->learn[1].failed >> i & 1) << 1;
		if (slots_suffice(v, unread) && v->member[i].bdev &&
		    !(MUT(TRUST_FAILED) && v->member[i].learned))
			super_take(v, i, unread);
		lbuf_put(meta->learn_buf[i][0]);
		lbuf_put(meta->learn_buf[i][1]);
	}
	meta->learn_mask = 0;
	meta->learned(v, meta->learned_arg);
}

static void learned_0(struct batch *b)
{
	learned(container_of(b, struct vlog, meta.learn[0]));
}

static void learned_1(struct batch *b)
{
	learned(container_of(b, struct vlog, meta.learn[1]));
}

/* done() may run from inside. */
void meta_learn(struct vlog *v, uint32_t mask,
		void (*done)(struct vlog *v, void *arg), void *arg)
{
	struct meta *meta = &v->meta;

	id_assert(!meta->learn_mask);
	meta->learned = done;
	meta->learned_arg = arg;
	meta->learn_mask = mask;
	batch_begin(&meta->learn[0], learned_0);
	batch_begin(&meta->learn[1], learned_1);
	for (unsigned i = 0; i < v->n; i++) {
		if (!(meta->learn_mask & 1u << i))
			continue;
		for (unsigned slot = 0; slot < 2; slot++) {
			struct lbuf *buf = lbuf_get(&v->page_pool);

			id_assert(buf);
			meta->learn_buf[i][slot] = buf;
			batch_io(v, &meta->learn[slot], i, BDEV_READ, 0,
				 FMT_SUPER(slot), buf, 0, FMT_BLOCK);
		}
	}
	batch_end(v, &meta->learn[0]);
	batch_end(v, &meta->learn[1]);
}

/* ---- writing superblocks ------------------------------------------- */

static void super_put(struct vlog *v, struct batch *b, unsigned i,
		      const struct fmt_content *content)
{
	struct member *m = &v->member[i];
	const unsigned slot =
		MUT(GLOBAL_SLOT) ? v->meta.seq & 1 : 1 - m->super_slot;
	struct lbuf *buf = lbuf_get(&v->page_pool);
	/* One that came back may have promised more to an owner that came to
	 * nothing. */
	struct fmt_super s = { .promised = m->super.promised > v->epoch
						   ? m->super.promised
						   : v->epoch,
			       .serial = m->super.serial + 1,
			       .content = *content };

	id_assert(buf && m->learned);
	memset(buf->data, 0, FMT_BLOCK);
	memcpy(buf->data, &s, sizeof(s));
	fmt_seal(buf->data, FMT_SUPERBLOCK, v->uuid, i, FMT_SUPER(slot),
		 v->epoch, sizeof(s));
	v->meta.super[i] = buf;
	batch_io(v, b, i, BDEV_WRITE, BDEV_FUA, FMT_SUPER(slot), buf, 0,
		 FMT_BLOCK);
	v->stat.snap_bytes += FMT_BLOCK;
}

/* What is known of each that was written; returns those that hold it. One that
 * was lost meanwhile may be back, and read, or another in its place. */
static uint32_t super_settle(struct vlog *v, uint32_t mask,
			     const struct batch *b)
{
	uint32_t held = 0;

	for (unsigned i = 0; i < meta_group(v); i++) {
		struct member *m = &v->member[i];

		if (!(mask & 1u << i))
			continue;
		if (!((b->failed | v->meta.gone) & 1u << i)) {
			memcpy(&m->super, v->meta.super[i]->data,
			       sizeof(m->super));
			m->super_slot = MUT(GLOBAL_SLOT) ? v->meta.seq & 1
							 : 1 - m->super_slot;
			held |= 1u << i;
		}
		lbuf_put(v->meta.super[i]);
		v->meta.super[i] = NULL;
	}
	return held;
}

/* ---- claim --------------------------------------------------------- */

static uint32_t group_usable(const struct vlog *v)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < meta_group(v); i++)
		if (v->member[i].alive && v->member[i].learned &&
		    (v->member[i].admitted || MUT(BLANK_VOTES)))
			mask |= 1u << i;
	return mask;
}

static void claimed(struct batch *b)
{
	struct meta *meta = container_of(b, struct meta, batch);
	struct vlog *v = container_of(meta, struct vlog, meta);
	const uint32_t held = super_settle(v, meta->members, b);

	meta->claimed(v, fmt_group_quorum(&v->conf, held) ? 0 : -EAGAIN);
}

/* done() may run from inside. */
void meta_claim(struct vlog *v, void (*done)(struct vlog *v, int result))
{
	struct meta *meta = &v->meta;
	const struct fmt_content nothing = { .area = 1 };

	meta->claimed = done;
	meta->members = group_usable(v);
	meta->gone = 0;
	for (unsigned i = 0; i < meta_group(v); i++)
		if (meta->members & 1u << i &&
		    v->member[i].super.promised > v->epoch)
			v->epoch = v->member[i].super.promised;
	v->epoch++;
	if (MUT(NO_CLAIM)) {
		done(v, 0);
		return;
	}
	batch_begin(&meta->batch, claimed);
	for (unsigned i = 0; i < meta_group(v); i++)
		if (meta->members & 1u << i)
			super_put(v, &meta->batch, i,
				  MUT(BLIND_CLAIM)
					  ? &nothing
					  : &v->member[i].super.content);
	batch_end(v, &meta->batch);
}

/* ---- commit -------------------------------------------------------- */

static unsigned copies_wanted(const struct vlog *v)
{
	const unsigned m = meta_group(v) / 2;

	return MUT(SNAP_M) && m ? m : m + 1;
}

/* A content on these counts. */
static bool copies_suffice(const struct vlog *v, uint32_t mask)
{
	if (MUT(SNAP_M) && v->m)
		return (unsigned)__builtin_popcount(mask) >= copies_wanted(v);
	return fmt_group_quorum(&v->conf, mask);
}

/* Adds of the first `group` members until `want` are chosen of them. */
static void members_add(struct vlog *v, unsigned group, unsigned want)
{
	struct meta *meta = &v->meta;
	const uint32_t usable = group_usable(v);
	const unsigned turn = (unsigned)rng_below(reactor_rng(v->r), group);
	unsigned have = (unsigned)__builtin_popcount(meta->members &
						     ((1u << group) - 1));

	/* Twice round: first those it would do good. */
	for (unsigned i = 0; i < 2 * group && have < want; i++) {
		const unsigned c = (i + turn) % group;

		if (!(usable & ~meta->members & 1u << c) ||
		    (i < group && !(meta->prefer & 1u << c)))
			continue;
		meta->members |= 1u << c;
		meta->area[c] = 1 - v->member[c].super.content.area;
		if (MUT(GLOBAL_AREA))
			meta->area[c] = meta->seq & 1;
		have++;
	}
}

/* m + 1 of the group, from a random place on; of both if there are two, of
 * which the smaller is a part of the larger. */
static bool members_choose(struct vlog *v)
{
	const struct fmt_content *c = &v->conf;
	const unsigned small =
		c->group_m < c->group_was ? c->group_m : c->group_was;

	v->meta.members = v->meta.gone = 0;
	if (c->group_m != c->group_was)
		members_add(v, 2 * small + 1, small + 1);
	members_add(v, meta_group(v), copies_wanted(v));
	return copies_suffice(v, v->meta.members);
}

static bool piece_get(struct vlog *v, struct piece *p)
{
	const unsigned copies = (unsigned)__builtin_popcount(v->meta.members);

	for (unsigned i = 0; i < copies; i++) {
		p->buf[i] = lbuf_get(&v->piece_pool);
		if (p->buf[i])
			continue;
		while (i--) {
			lbuf_put(p->buf[i]);
			p->buf[i] = NULL;
		}
		return false;
	}
	return true;
}

static void piece_put(struct piece *p)
{
	for (unsigned i = 0; i < FMT_COPIES_MAX; i++) {
		lbuf_put(p->buf[i]);
		p->buf[i] = NULL;
	}
}

/* Members away that neither metadata nor anything live would miss. */
static unsigned tolerates(const struct vlog *v)
{
	const struct fmt_content *conf = &v->conf;
	unsigned least = conf->m;

	if (conf->group_m < least)
		least = conf->group_m;
	if (conf->group_was < least)
		least = conf->group_was;
	for (const struct zone *z = v->zones; z; z = z->next)
		if (z->copies <= least)
			least = z->copies - 1u;
	for (uint32_t i = 0; i < v->segs; i++)
		if (v->seg[i].state != SEG_FREE && v->seg[i].m < least)
			least = v->seg[i].m;
	return least;
}

/* How many are in flight; those that have ended say which members failed. */
static unsigned pieces_out(struct vlog *v)
{
	struct meta *meta = &v->meta;
	unsigned out = 0;

	for (unsigned i = 0; i < PIECES; i++) {
		struct piece *p = &meta->piece[i];

		if (!batch_over(&p->batch)) {
			out++;
			continue;
		}
		meta->members &= ~p->batch.failed;
		piece_put(p);
	}
	return out;
}

static void content_fill(struct vlog *v, struct fmt_content *c)
{
	*c = v->conf;
	c->epoch = v->epoch;
	c->seq = ++v->meta.seq;
	c->log_epoch = v->log_epoch;
	c->lsn = v->durable;
	c->log_zone = log_start(v, v->durable);
	c->clean = v->meta.clean;
	c->tolerates = (uint8_t)tolerates(v);
	c->seg_next = v->seg_counter;
	v->meta.config = v->conf_changes;
}

static bool commit_begin(struct vlog *v)
{
	struct meta *meta = &v->meta;

	if (pieces_out(v) || !members_choose(v))
		return false;
	for (unsigned i = 0; i < PIECES; i++) /* who failed the last time */
		meta->piece[i].batch = (struct batch) { 0 };
	meta->wanted = false;
	/* Clean: there is no log to read after it. */
	meta->clean = meta->clean_wanted && v->next_lsn == v->durable + 1;
	zones_checkpoint(v);
	content_fill(v, &meta->content);
	snap_begin(v);
	meta->pieces = 0;
	meta->pieces_all = (uint32_t)(snap_bytes(v) / FMT_PIECE + 1);
	meta->fill_start = log_fill(v);
	meta->phase = META_PIECE;
	return true;
}

static void commit_abort(struct vlog *v)
{
	struct meta *meta = &v->meta;

	snap_end(v);
	meta->phase = META_IDLE;
	meta->wanted = true;
}

static void supers_write(struct vlog *v, struct batch *b)
{
	struct meta *meta = &v->meta;

	meta->content.snap_len = (uint64_t)meta->pieces * FMT_PIECE;
	meta->content.snap_crc = v->snap.crc;
	for (unsigned i = 0; i < meta_group(v); i++) {
		if (!(meta->members & 1u << i))
			continue;
		meta->content.area = meta->area[i];
		super_put(v, b, i, &meta->content);
	}
}

static void piece_send(struct vlog *v, struct piece *p, unsigned copy,
		       unsigned member, uint32_t used)
{
	struct meta *meta = &v->meta;
	uint8_t *data = p->buf[copy]->data;
	const uint64_t off = v->label.off_snap[meta->area[member]] +
			     (uint64_t)meta->pieces * FMT_PIECE;
	const uint32_t len = (uint32_t)sizeof(struct fmt_piece) + used;
	const uint32_t whole = (len + FMT_BLOCK - 1) / FMT_BLOCK * FMT_BLOCK;
	struct fmt_piece h = { .seq = meta->content.seq,
			       .index = meta->pieces,
			       .used = used };

	id_assert((meta->pieces + 1ull) * FMT_PIECE <= v->label.snap_bytes);
	if (copy)
		memcpy(data + sizeof(h), p->buf[0]->data + sizeof(h), used);
	memcpy(data, &h, sizeof(h));
	memset(data + len, 0, whole - len);
	fmt_seal(data, FMT_SNAP, v->uuid, member, off, meta->content.epoch,
		 len);
	batch_io(v, &p->batch, member, BDEV_WRITE, 0, off, p->buf[copy], 0,
		 whole);
	v->stat.snap_bytes += whole;
}

static void piece_write(struct vlog *v, struct piece *p)
{
	struct meta *meta = &v->meta;
	uint8_t *payload = p->buf[0]->data + sizeof(struct fmt_piece);
	uint32_t used;
	unsigned copy = 0;

	used = snap_fill(v, payload, FMT_PIECE - sizeof(struct fmt_piece));
	v->snap.crc = codec_crc_add(v->snap.crc, payload, used);
	batch_begin(&p->batch, NULL);
	for (unsigned i = 0; i < meta_group(v); i++)
		if (meta->members & 1u << i)
			piece_send(v, p, copy++, i, used);
	meta->pieces++;
	batch_end(v, &p->batch);
}

/*
 * One at a time leaves users their drives; more where the log fills faster
 * than the checkpoint gets on: it is to be through by FILL_END.
 */
static unsigned pieces_wanted(const struct vlog *v)
{
	const struct meta *meta = &v->meta;
	const double room = FILL_END - meta->fill_start;
	const double used = log_fill(v) - meta->fill_start;

	/* No users, or none yet. */
	if (v->state != VLOG_SERVING || room <= 0 ||
	    (double)meta->pieces * room < (double)meta->pieces_all * used)
		return PIECES;
	return 1;
}

static bool pieces_write(struct vlog *v, unsigned out)
{
	struct meta *meta = &v->meta;
	bool moved = false;

	for (unsigned i = 0;
	     i < PIECES && v->snap.phase != SNAP_OVER && out < pieces_wanted(v);
	     i++) {
		struct piece *p = &meta->piece[i];

		if (!batch_over(&p->batch))
			continue;
		if (!piece_get(v, p))
			break;
		piece_write(v, p);
		out++;
		moved = true;
	}
	return moved;
}

static void flush_write(struct vlog *v)
{
	struct meta *meta = &v->meta;

	batch_begin(&meta->batch, NULL);
	for (unsigned i = 0; i < meta_group(v) && !MUT(NO_FLUSH); i++)
		if (meta->members & 1u << i)
			batch_io(v, &meta->batch, i, BDEV_FLUSH, 0, 0, NULL, 0,
				 0);
	batch_end(v, &meta->batch);
	meta->phase = META_FLUSH;
}

/* What the content says of members and groups holds from now on. */
static void config_committed(struct vlog *v)
{
	v->meta.config_committed = v->meta.config;
	if (v->meta.config != v->conf_changes)
		return; /* it was about the ones before */
	for (unsigned i = 0; i < v->n; i++)
		v->member[i].admitted |= v->member[i].learned;
	if (v->conf.group_was == v->conf.group_m)
		return;
	v->conf.group_was = v->conf.group_m;
	v->conf_changes++;
	v->meta.wanted = true;
}

static void committed(struct vlog *v)
{
	struct meta *meta = &v->meta;

	if (meta->prefer & meta->members)
		vlog_changed(v); /* it was mute */
	meta->prefer &= ~meta->members;
	v->lsn_snapshot = meta->content.lsn;
	v->log_zone = meta->content.log_zone;
	log_trim(v, v->log_zone);
	snap_end(v);
	meta->phase = META_IDLE;
	v->stat.checkpoints++;
	meta->committed = meta->content.seq;
	config_committed(v);
	recover_content_committed(v);
	vlog_kick(v);
}

bool meta_votes(const struct vlog *v, unsigned i)
{
	const struct member *m = &v->member[i];
	const struct fmt_content *c = &m->super.content;

	return m->alive && m->learned && c->seq && i < c->comps &&
	       !memcmp(c->seat[i].uuid, v->conf.seat[i].uuid, 16);
}

uint32_t meta_mute(const struct vlog *v)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < meta_group(v); i++)
		if (v->member[i].alive && !meta_votes(v, i))
			mask |= 1u << i;
	return mask;
}

/* One that has no vote may be missed when the next that has one goes. */
static void mute_look(struct vlog *v)
{
	const uint32_t mute = meta_mute(v) & group_usable(v);

	if (v->state != VLOG_SERVING || !mute)
		return;
	v->meta.prefer |= mute;
	v->meta.wanted = true;
}

/* Too few members, or a stuck drive holds on to buffers: later. */
static bool commit_start(struct vlog *v)
{
	mute_look(v);
	return v->meta.wanted && v->state != VLOG_STOPPED && commit_begin(v);
}

static bool meta_super_over(struct vlog *v)
{
	struct meta *meta = &v->meta;

	if (copies_suffice(v, super_settle(v, meta->members, &meta->batch)))
		committed(v);
	else
		commit_abort(v);
	return true;
}

/* Too few members are left for it. */
static bool commit_lost(struct vlog *v)
{
	struct meta *meta = &v->meta;

	meta->members &= ~meta->gone;
	return !copies_suffice(v, meta->members);
}

static bool pieces_step(struct vlog *v)
{
	struct meta *meta = &v->meta;
	const unsigned out = pieces_out(v);

	if (v->state == VLOG_STOPPED || commit_lost(v)) {
		if (out)
			return false;
		commit_abort(v);
		return v->state != VLOG_STOPPED;
	}
	if (pieces_write(v, out))
		return true;
	if (v->snap.phase != SNAP_OVER)
		return false;
	if (MUT(SB_EARLY)) {
		batch_begin(&meta->batch, NULL);
		supers_write(v, &meta->batch);
		batch_end(v, &meta->batch);
		meta->phase = META_SUPER;
		return true;
	}
	if (out)
		return false;
	flush_write(v);
	return true;
}

bool meta_step(struct vlog *v)
{
	struct meta *meta = &v->meta;

	if (meta->phase == META_IDLE)
		return commit_start(v);
	if (meta->phase == META_PIECE)
		return pieces_step(v);
	if (!batch_over(&meta->batch))
		return false;
	if (v->state == VLOG_STOPPED) {
		commit_abort(v);
		return false;
	}
	if (meta->phase == META_SUPER)
		return meta_super_over(v);
	meta->members &= ~meta->batch.failed;
	if (commit_lost(v)) {
		commit_abort(v);
		return true;
	}
	batch_begin(&meta->batch, NULL);
	supers_write(v, &meta->batch);
	batch_end(v, &meta->batch);
	meta->phase = META_SUPER;
	return true;
}

/*
 * As late as it can still be through by FILL_END with no more bytes than the
 * log takes meanwhile: what a checkpoint costs is spread over all that it
 * frees.
 */
double meta_start(const struct vlog *v)
{
	const double log = (double)v->label.zones * v->label.zone_bytes *
			   (double)member_alive_count(v);
	const double start =
		FILL_END - (double)snap_bytes(v) * (v->m + 1) / log;

	return start < FILL_START  ? FILL_START
	       : start < FILL_LAST ? start
				   : FILL_LAST;
}

/* What is wanted cannot be with the members there are. */
bool meta_stuck(const struct vlog *v)
{
	return v->meta.phase == META_IDLE && v->meta.wanted &&
	       !copies_suffice(v, group_usable(v));
}

void meta_commit(struct vlog *v, bool clean)
{
	v->meta.wanted = true;
	v->meta.clean_wanted = clean;
	vlog_kick(v);
}

bool meta_idle(const struct vlog *v)
{
	return v->meta.phase == META_IDLE && !v->meta.learn_mask;
}
