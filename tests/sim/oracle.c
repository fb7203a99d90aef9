/* SPDX-License-Identifier: GPL-3.0-or-later */
/* See oracle.h. */
#include "tests/sim/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 24
#define READ_ALL_BYTES (64u << 10)

struct candidate {
	uint64_t version;
	uint64_t began, ended; /* ended 0: in flight */
	uint64_t replaced;     /* 0: may be read now */
	uint64_t gone;         /* 0: a crash may bring it back */
	bool zero;             /* reads as zeros */
	bool cut;              /* stood there at the last power cut */
};

struct sector {
	struct candidate *c;
	uint8_t count, room;
	uint16_t readers;
};

struct oracle {
	struct sim *sim;
	struct sector *sector;
	uint64_t sectors, clock, version;
	uint64_t volatile_since; /* a write ended, not flushed since; 0: none */
	unsigned inflight, writing;
	struct user_io *ios;
};

struct user_io {
	struct io io;
	void *buf; /* its own: a READ may be lent another */
	struct oracle *o;
	struct user_io *next;
	uint64_t off; /* as the oracle counts: without what lies between */
	uint64_t began, version;
	bool lost; /* a crash came between: nothing is known of it */
};

/* ---- contents ------------------------------------------------------------ */

struct stamp {
	uint64_t version, sector, seed, check;
};

static uint64_t stamp_check(const struct stamp *s)
{
	return (s->version * 0x9e3779b97f4a7c15ull) ^
	       (s->sector * 0xc2b2ae3d27d4eb4full) ^ ~s->seed;
}

/* A third compresses well, a third somewhat, a third not at all. */
static void content(const struct oracle *o, uint8_t *buf, uint64_t sector,
		    uint64_t version)
{
	const unsigned kind = (unsigned)(version % 3);
	struct stamp s = { version, sector, o->sim->seed, 0 };
	uint64_t word;

	s.check = word = stamp_check(&s);
	memset(buf, 0, SIM_SECTOR);
	memcpy(buf, &s, sizeof(s));
	for (size_t i = sizeof(s); i < SIM_SECTOR; i += 8) {
		word ^= word << 13;
		word ^= word >> 7;
		word ^= word << 17;
		if (kind == 2 || (kind == 1 && i < SIM_SECTOR / 2))
			memcpy(buf + i, &word, 8);
	}
}

static bool is_zero(const uint8_t *buf)
{
	static const uint8_t zeros[SIM_SECTOR];

	return !memcmp(buf, zeros, SIM_SECTOR);
}

/* The write a sector is of; 0: zeros. Fails on what never was written. */
static uint64_t version_of(const struct oracle *o, const uint8_t *buf,
			   uint64_t sector)
{
	uint8_t want[SIM_SECTOR];
	struct stamp s;

	if (is_zero(buf))
		return 0;
	memcpy(&s, buf, sizeof(s));
	if (s.check == stamp_check(&s) && s.sector != sector)
		sim_violation(o->sim,
			      "sector %llu holds version %llu of "
			      "sector %llu",
			      (unsigned long long)sector,
			      (unsigned long long)s.version,
			      (unsigned long long)s.sector);
	content(o, want, sector, s.version);
	if (memcmp(buf, want, SIM_SECTOR) != 0)
		sim_violation(o->sim,
			      "sector %llu holds what was never "
			      "written (stamp %llx %llx)",
			      (unsigned long long)sector,
			      (unsigned long long)s.version,
			      (unsigned long long)s.sector);
	return s.version;
}

/* ---- candidates ---------------------------------------------------------- */

static struct candidate *candidate_add(struct sector *s)
{
	if (s->count == s->room) {
		s->room = (uint8_t)(s->room ? 2 * s->room : 2);
		s->c = realloc(s->c, s->room * sizeof(*s->c));
		id_assert(s->c);
	}
	s->c[s->count] = (struct candidate) { 0 };
	return &s->c[s->count++];
}

static void sector_purge(struct sector *s)
{
	uint8_t keep = 0;

	if (s->readers)
		return; /* they may still see what was there when they began */
	for (uint8_t i = 0; i < s->count; i++)
		if (!s->c[i].gone)
			s->c[keep++] = s->c[i];
	s->count = keep;
}

static void candidate_replace(struct oracle *o, struct candidate *c,
			      bool durable)
{
	if (!c->replaced)
		c->replaced = o->clock;
	if (durable && !c->gone)
		c->gone = o->clock;
}

/* A write ended well: what ended before it began is no longer there. */
static void sector_written(struct oracle *o, struct sector *s,
			   const struct user_io *u)
{
	const bool durable =
		o->sim->client->promise.durable_ack || (u->io.flags & BDEV_FUA);

	for (uint8_t i = 0; i < s->count; i++) {
		struct candidate *c = &s->c[i];

		if (c->version == u->version)
			c->ended = o->clock;
		else if (c->ended && c->ended < u->began)
			candidate_replace(o, c, durable);
	}
	sector_purge(s);
}

static bool candidate_is(const struct candidate *c, uint64_t version)
{
	return version ? c->version == version && !c->zero : c->zero;
}

/* With nothing else going on, what was read stands there and stays. */
static void sector_settle(struct oracle *o, struct sector *s,
			  const struct user_io *u, uint64_t version)
{
	const struct candidate *seen = NULL;

	for (uint8_t i = 0; i < s->count; i++) {
		const struct candidate *c = &s->c[i];

		if (!c->ended || c->ended >= u->began)
			return;
		if (candidate_is(c, version) && !c->replaced)
			seen = c;
	}
	if (!seen)
		return;
	for (uint8_t i = 0; i < s->count; i++) {
		struct candidate *c = &s->c[i];

		if (!candidate_is(c, version))
			candidate_replace(o, c,
					  o->sim->client->promise.durable_ack ||
						  (c->cut && seen->cut));
	}
}

static void candidates_print(const struct sector *s)
{
	for (uint8_t i = 0; i < s->count; i++) {
		const struct candidate *c = &s->c[i];

		printf("  version %llu%s: began %llu ended %llu replaced %llu "
		       "gone %llu%s\n",
		       (unsigned long long)c->version,
		       c->zero ? " (zeros)" : "", (unsigned long long)c->began,
		       (unsigned long long)c->ended,
		       (unsigned long long)c->replaced,
		       (unsigned long long)c->gone, c->cut ? " cut" : "");
	}
}

static void sector_was_read(struct oracle *o, const struct user_io *u,
			    uint64_t n, uint64_t version)
{
	struct sector *s = &o->sector[n];

	for (uint8_t i = 0; i < s->count; i++)
		if (candidate_is(&s->c[i], version) &&
		    (!s->c[i].replaced || s->c[i].replaced > u->began)) {
			sector_settle(o, s, u, version);
			return;
		}
	candidates_print(s);
	sim_violation(o->sim,
		      "sector %llu reads as version %llu (read began "
		      "%llu)",
		      (unsigned long long)n, (unsigned long long)version,
		      (unsigned long long)u->began);
}

/* ---- I/O ----------------------------------------------------------------- */

static uint64_t io_first(const struct user_io *u)
{
	return u->off / SIM_SECTOR;
}

static uint64_t io_end(const struct user_io *u)
{
	return (u->off + u->io.len) / SIM_SECTOR;
}

static void read_ended(struct oracle *o, const struct user_io *u)
{
	const uint64_t per = SIM_BLOCK / SIM_SECTOR;
	const uint8_t *buf = u->io.buf;
	uint64_t whole = 0;

	for (uint64_t n = io_first(u); n < io_end(u); n++) {
		const uint64_t version =
			version_of(o, buf + (n - io_first(u)) * SIM_SECTOR, n);

		o->sector[n].readers--;
		sector_was_read(o, u, n, version);
		sector_purge(&o->sector[n]);
		if (n % per == 0)
			whole = version;
		if (o->sim->client->promise.atomic && version != whole)
			sim_violation(o->sim,
				      "block %llu is torn: versions "
				      "%llu and %llu",
				      (unsigned long long)(n / per),
				      (unsigned long long)whole,
				      (unsigned long long)version);
	}
}

static void write_ended(struct oracle *o, const struct user_io *u)
{
	for (uint64_t n = io_first(u); n < io_end(u); n++)
		sector_written(o, &o->sector[n], u);
	o->writing--;
	if (!(u->io.flags & BDEV_FUA) && !o->sim->client->promise.durable_ack)
		o->volatile_since = o->clock;
}

static void flush_ended(struct oracle *o, const struct user_io *u)
{
	o->sim->flushing = false;
	for (uint64_t n = 0; n < o->sectors; n++) {
		struct sector *s = &o->sector[n];

		for (uint8_t i = 0; i < s->count; i++)
			if (s->c[i].replaced && s->c[i].replaced < u->began)
				candidate_replace(o, &s->c[i], true);
		sector_purge(s);
	}
	if (o->volatile_since < u->began)
		o->volatile_since = 0;
}

static void user_free(struct user_io *u)
{
	struct user_io **at = &u->o->ios;

	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	free(u->buf);
	free(u);
}

static const char *const op_name[] = { "read", "write", "flush", "trim" };

static bool may_fail(const struct oracle *o, const struct io *io)
{
	return o->sim->forgive ||
	       (io->result == -ENOSPC && o->sim->client->full &&
		io->op == BDEV_WRITE);
}

/* It may have happened, all of it or in part. */
static void user_failed(struct oracle *o, const struct user_io *u)
{
	if (!may_fail(o, &u->io))
		sim_violation(o->sim, "%s of %llu+%u failed: %s",
			      op_name[u->io.op], (unsigned long long)u->io.off,
			      u->io.len, strerror(-u->io.result));
	o->sim->stats.failed++;
	o->sim->stats.full += u->io.result == -ENOSPC;
	o->writing -= u->io.op == BDEV_WRITE || u->io.op == BDEV_TRIM;
	if (u->io.op == BDEV_FLUSH)
		o->sim->flushing = false;
	for (uint64_t n = io_first(u); n < io_end(u); n++) {
		struct sector *s = &o->sector[n];

		s->readers -= u->io.op == BDEV_READ;
		for (uint8_t i = 0; i < s->count; i++)
			if (s->c[i].version == u->version && !s->c[i].ended)
				s->c[i].ended = o->clock;
		sector_purge(s);
	}
}

static void user_done(struct io *io)
{
	struct user_io *u = io->arg;
	struct oracle *o = u->o;

	if (u->lost) {
		user_free(u);
		return;
	}
	o->clock++;
	sim_note(o->sim, "%s %llu ended at %llu: %d", op_name[io->op],
		 (unsigned long long)u->version, (unsigned long long)o->clock,
		 io->result);
	o->inflight--;
	if (io->result)
		user_failed(o, u);
	else if (io->op == BDEV_READ)
		read_ended(o, u);
	else if (io->op == BDEV_FLUSH)
		flush_ended(o, u);
	else
		write_ended(o, u);
	user_free(u);
}

static uint64_t place_of(const struct oracle *o, uint64_t off)
{
	const uint64_t chunk = o->sim->client->chunk_bytes;

	if (!chunk)
		return off;
	return off / chunk * o->sim->client->stride_bytes + off % chunk;
}

static struct user_io *user_new(struct oracle *o, enum bdev_op op, uint64_t off,
				uint32_t len)
{
	struct user_io *u = calloc(1, sizeof(*u));

	id_assert(u);
	u->o = o;
	u->began = ++o->clock;
	u->io.op = (uint8_t)op;
	u->off = off;
	u->io.off = place_of(o, off);
	u->io.len = len;
	u->io.done = user_done;
	u->io.arg = u;
	if (op == BDEV_READ || op == BDEV_WRITE) {
		u->io.buf =
			aligned_alloc(SIM_BLOCK, (len + SIM_BLOCK - 1) /
							 SIM_BLOCK * SIM_BLOCK);
		id_assert(u->io.buf);
	}
	u->buf = u->io.buf;
	u->next = o->ios;
	o->ios = u;
	o->inflight++;
	return u;
}

static bool room(const struct oracle *o, uint64_t off, uint32_t len)
{
	for (uint64_t n = off / SIM_SECTOR; n < (off + len) / SIM_SECTOR; n++)
		if (o->sector[n].count >= CANDIDATES_MAX)
			return false;
	return true;
}

static void user_write(struct oracle *o, enum bdev_op op, uint64_t off,
		       uint32_t len, unsigned flags, bool zero)
{
	struct user_io *u = user_new(o, op, off, len);

	u->version = ++o->version;
	u->io.flags = (uint8_t)flags;
	for (uint64_t n = io_first(u); n < io_end(u); n++) {
		struct candidate *c = candidate_add(&o->sector[n]);
		uint8_t *buf = u->io.buf;

		c->version = u->version;
		c->began = u->began;
		c->zero = zero;
		if (buf)
			buf += (n - io_first(u)) * SIM_SECTOR;
		if (buf && zero)
			memset(buf, 0, SIM_SECTOR);
		else if (buf)
			content(o, buf, n, u->version);
	}
	o->writing++;
	o->sim->stats.writes++;
	sim_note(o->sim, "%s %llu of sectors %llu+%llu%s%s", op_name[op],
		 (unsigned long long)u->version,
		 (unsigned long long)io_first(u),
		 (unsigned long long)(len / SIM_SECTOR), flags ? ", FUA" : "",
		 zero ? ", zeros" : "");
	bdev_submit(o->sim->vdisk, &u->io);
}

bool oracle_write(struct oracle *o, uint64_t off, uint32_t len, unsigned flags)
{
	if (!room(o, off, len))
		return false;
	user_write(o, BDEV_WRITE, off, len, flags, sim_below(o->sim, 16) == 0);
	return true;
}

bool oracle_trim(struct oracle *o, uint64_t off, uint32_t len)
{
	if (!room(o, off, len))
		return false;
	o->sim->stats.trims++;
	user_write(o, BDEV_TRIM, off, len, 0, true);
	return true;
}

void oracle_read(struct oracle *o, uint64_t off, uint32_t len)
{
	struct user_io *u = user_new(o, BDEV_READ, off, len);

	for (uint64_t n = io_first(u); n < io_end(u); n++)
		o->sector[n].readers++;
	memset(u->io.buf, 0xa5, len);
	/* Every other one, where that is to be had. */
	if (o->sim->vdisk->limits.can_lend && u->began & 1)
		u->io.flags = BDEV_LEND;
	o->sim->stats.reads++;
	bdev_submit(o->sim->vdisk, &u->io);
}

void oracle_read_all(struct oracle *o)
{
	const uint64_t bytes = o->sectors * SIM_SECTOR;
	const uint64_t chunk = o->sim->client->chunk_bytes;
	const uint64_t step =
		chunk && chunk < READ_ALL_BYTES ? chunk : READ_ALL_BYTES;

	for (uint64_t off = 0; off < bytes; off += step)
		oracle_read(
			o, off,
			(uint32_t)(bytes - off < step ? bytes - off : step));
}

void oracle_flush(struct oracle *o)
{
	struct user_io *u = user_new(o, BDEV_FLUSH, 0, 0);

	o->sim->stats.flushes++;
	sim_note(o->sim, "flush at %llu", (unsigned long long)u->began);
	bdev_submit(o->sim->vdisk, &u->io);
}

/* ---- life ---------------------------------------------------------------- */

uint64_t oracle_clock(const struct oracle *o)
{
	return o->clock;
}

uint64_t oracle_oldest(const struct oracle *o)
{
	uint64_t oldest = o->clock + 1;

	for (const struct user_io *u = o->ios; u; u = u->next)
		if (!u->lost && u->began < oldest)
			oldest = u->began;
	return oldest;
}

unsigned oracle_inflight(const struct oracle *o)
{
	return o->inflight;
}

bool oracle_durable(const struct oracle *o)
{
	return !o->writing && !o->volatile_since;
}

static void sector_crash(struct oracle *o, struct sector *s, bool power)
{
	s->readers = 0;
	sector_purge(s);
	for (uint8_t i = 0; i < s->count; i++) {
		struct candidate *c = &s->c[i];

		if (!c->ended)
			c->ended = o->clock;
		if (!power)
			continue;
		c->replaced = 0;
		c->cut = true;
	}
}

void oracle_crash(struct oracle *o, bool power)
{
	o->clock++;
	for (struct user_io *u = o->ios; u; u = u->next)
		u->lost = true;
	for (uint64_t n = 0; n < o->sectors; n++)
		sector_crash(o, &o->sector[n], power);
	if (power)
		o->volatile_since = 0;
	else if (o->writing)
		o->volatile_since = o->clock;
	o->inflight = o->writing = 0;
}

struct oracle *oracle_new(struct sim *sim)
{
	struct oracle *o = calloc(1, sizeof(*o));

	id_assert(o);
	o->sim = sim;
	o->clock = 1;
	o->sectors = sim->client->bytes / SIM_SECTOR;
	o->sector = calloc(o->sectors, sizeof(*o->sector));
	id_assert(o->sector);
	for (uint64_t n = 0; n < o->sectors; n++) {
		struct candidate *c = candidate_add(&o->sector[n]);

		c->zero = c->cut = true;
		c->began = c->ended = 1;
	}
	return o;
}

void oracle_free(struct oracle *o)
{
	if (!o)
		return;
	id_assert(!o->ios);
	for (uint64_t n = 0; n < o->sectors; n++)
		free(o->sector[n].c);
	free(o->sector);
	free(o);
}
