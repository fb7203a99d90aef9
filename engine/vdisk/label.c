/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Labels: the record's byte format (little-endian, CRC-32C over all of it)
 * and its I/O on one component.
 */
#include "engine/vdisk/label.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include "engine/vdisk/mutation.h"
#include "engine/vdisk/priv.h"

#define LABEL_MAGIC "iodeckVD"
#define LABEL_VERSION 1u
#define LABEL_CRC_OFF 12u

/* ---- the record --------------------------------------------------------- */

struct cursor {
	uint8_t *at;
};

static void put(struct cursor *c, const void *from, size_t len)
{
	memcpy(c->at, from, len);
	c->at += len;
}

static void put_uint(struct cursor *c, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*c->at++ = (uint8_t)(value >> 8 * i);
}

static void get(struct cursor *c, void *to, size_t len)
{
	memcpy(to, c->at, len);
	c->at += len;
}

static uint64_t get_uint(struct cursor *c, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)*c->at++ << 8 * i;
	return value;
}

/* A string field: always ends in NUL, whatever stood there. */
static void get_text(struct cursor *c, char *to, size_t len)
{
	get(c, to, len);
	to[len - 1] = '\0';
}

static uint32_t crc32c(const uint8_t *buf, size_t len)
{
	/* crc32_iscsi() neither inverts nor takes const. */
	return ~crc32_iscsi((unsigned char *)(uintptr_t)buf, (int)len, ~0u);
}

static uint32_t label_crc(const uint8_t record[LABEL_BYTES])
{
	uint8_t copy[LABEL_BYTES];

	memcpy(copy, record, LABEL_BYTES);
	memset(copy + LABEL_CRC_OFF, 0, 4);
	return crc32c(copy, LABEL_BYTES);
}

static void member_put(struct cursor *c, const struct label_member *m)
{
	put(c, m->uuid, 16);
	put(c, m->domain, sizeof(m->domain));
	put(c, m->drive, sizeof(m->drive));
	put(c, m->component, sizeof(m->component));
	put_uint(c, m->role, 1);
	put_uint(c, m->state, 1);
	put_uint(c, m->mark_rows, 8);
}

static void member_get(struct cursor *c, struct label_member *m)
{
	get(c, m->uuid, 16);
	get_text(c, m->domain, sizeof(m->domain));
	get_text(c, m->drive, sizeof(m->drive));
	get_text(c, m->component, sizeof(m->component));
	m->role = (uint8_t)get_uint(c, 1);
	m->state = (uint8_t)get_uint(c, 1);
	m->mark_rows = get_uint(c, 8);
}

void label_encode(const struct label *label, uint8_t record[LABEL_BYTES])
{
	struct cursor c = { record };

	memset(record, 0, LABEL_BYTES);
	put(&c, LABEL_MAGIC, 8);
	put_uint(&c, LABEL_VERSION, 4);
	put_uint(&c, 0, 4); /* the checksum's place */
	put(&c, label->cluster, sizeof(label->cluster));
	put(&c, label->name, sizeof(label->name));
	put(&c, label->vdisk, 16);
	put(&c, label->set, 16);
	put(&c, label->peer, 16);
	put(&c, label->self, 16);
	put_uint(&c, (uint64_t)label->policy.raid, 1);
	put_uint(&c, label->policy.k, 1);
	put_uint(&c, label->policy.m, 1);
	put_uint(&c, label->policy.stripe_unit_bytes, 4);
	put_uint(&c, label->size_bytes, 8);
	put_uint(&c, label->promised, 8);
	put_uint(&c, label->claim, 8);
	put_uint(&c, label->epoch, 8);
	put_uint(&c, label->serial, 8);
	put_uint(&c, label->set_state, 1);
	put_uint(&c, label->clean, 1);
	put_uint(&c, label->resync_rows, 8);
	put_uint(&c, label->copy_bytes, 8);
	put_uint(&c, label->slots, 1);
	put_uint(&c, label->targets, 1);
	for (unsigned i = 0; i < label->slots; i++)
		member_put(&c, &label->member[i]);
	for (unsigned i = 0; i < label->targets; i++)
		member_put(&c, &label->target[i]);
	id_assert(c.at <= record + LABEL_BYTES);
	c.at = record + LABEL_CRC_OFF;
	put_uint(&c, label_crc(record), 4);
}

static void label_head_get(struct cursor *c, struct label *label)
{
	get_text(c, label->cluster, sizeof(label->cluster));
	get_text(c, label->name, sizeof(label->name));
	get(c, label->vdisk, 16);
	get(c, label->set, 16);
	get(c, label->peer, 16);
	get(c, label->self, 16);
	label->policy.raid = (enum raid_level)get_uint(c, 1);
	label->policy.k = (uint8_t)get_uint(c, 1);
	label->policy.m = (uint8_t)get_uint(c, 1);
	label->policy.stripe_unit_bytes = (uint32_t)get_uint(c, 4);
	label->size_bytes = get_uint(c, 8);
	label->promised = get_uint(c, 8);
	label->claim = get_uint(c, 8);
	label->epoch = get_uint(c, 8);
	label->serial = get_uint(c, 8);
	label->set_state = (uint8_t)get_uint(c, 1);
	label->clean = get_uint(c, 1) != 0;
	label->resync_rows = get_uint(c, 8);
	label->copy_bytes = get_uint(c, 8);
	label->slots = (uint8_t)get_uint(c, 1);
	label->targets = (uint8_t)get_uint(c, 1);
}

/* A right checksum is no proof of sense: labels come from foreign drives. */
static bool label_sane(const struct label *label)
{
	if (vdisk_policy_check(&label->policy, NULL) ||
	    label->slots != vdisk_policy_slots(&label->policy))
		return false;
	if (!label->size_bytes || label->size_bytes % 4096 ||
	    label->size_bytes > INT64_MAX / 2 || label->set_state > SET_MOVED)
		return false;
	if (label->set_state != SET_ACTIVE &&
	    !memcmp(label->set, label->peer, 16))
		return false; /* moves to itself */
	for (unsigned i = 0; i < label->slots; i++)
		if (label->member[i].role > MEMBER_WITNESS ||
		    label->member[i].state > MEMBER_REBUILDING ||
		    label_member_find(label, label->member[i].uuid) != (int)i)
			return false; /* also two members that are one */
	return label_member_find(label, label->self) >= 0;
}

int label_decode(const uint8_t record[LABEL_BYTES], struct label *label)
{
	struct cursor c = { (uint8_t *)(uintptr_t)record + 8 };
	uint64_t version, crc;

	if (memcmp(record, LABEL_MAGIC, 8) != 0)
		return -ENOENT;
	version = get_uint(&c, 4);
	crc = get_uint(&c, 4);
	if (crc != label_crc(record))
		return -EBADMSG;
	if (version != LABEL_VERSION)
		return -ENOTSUP;
	memset(label, 0, sizeof(*label));
	label_head_get(&c, label);
	if (label->slots > VDISK_MEMBERS_MAX ||
	    label->targets > VDISK_MEMBERS_MAX)
		return -EBADMSG;
	for (unsigned i = 0; i < label->slots; i++)
		member_get(&c, &label->member[i]);
	for (unsigned i = 0; i < label->targets; i++)
		member_get(&c, &label->target[i]);
	return label_sane(label) ? 0 : -EBADMSG;
}

int label_compare(const struct label *a, const struct label *b)
{
	if (a->claim != b->claim)
		return a->claim < b->claim ? -1 : 1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return 0;
}

int label_member_find(const struct label *label, const uint8_t uuid[16])
{
	for (unsigned i = 0; i < label->slots; i++)
		if (!memcmp(label->member[i].uuid, uuid, 16))
			return (int)i;
	return -1;
}

/* ---- I/O on one component ----------------------------------------------- */

int label_io_init(struct label_io *lio, struct bdev *bdev)
{
	memset(lio, 0, sizeof(*lio));
	lio->bdev = bdev;
	lio->buf = reactor_buf_alloc(bdev->reactor,
				     (size_t)LABEL_BYTES * LABEL_COPIES);
	return lio->buf ? 0 : -ENOMEM;
}

void label_io_fini(struct label_io *lio, struct reactor *r)
{
	if (lio->buf)
		reactor_buf_free(r, lio->buf,
				 (size_t)LABEL_BYTES * LABEL_COPIES);
	lio->buf = NULL;
}

static bool label_empty(const struct label_io *lio)
{
	for (size_t i = 0; i < (size_t)LABEL_BYTES * LABEL_COPIES; i++)
		if (lio->buf[i])
			return false;
	return true;
}

static void label_read_done(struct io *io)
{
	struct label_io *lio = io->arg;
	struct label other;

	lio->result = io->result;
	lio->found = false;
	lio->copy = 0;
	if (!io->result && !label_decode(lio->buf, &lio->label))
		lio->found = true;
	if (!io->result && !label_decode(lio->buf + LABEL_BYTES, &other) &&
	    (!lio->found || other.serial > lio->label.serial)) {
		lio->found = true;
		lio->copy = 1;
		lio->label = other;
	}
	lio->damaged = !io->result && !lio->found && !label_empty(lio);
	lio->done(lio);
}

void label_io_read(struct label_io *lio)
{
	lio->io = (struct io) {
		.op = BDEV_READ,
		.len = LABEL_BYTES * LABEL_COPIES,
		.buf = lio->buf,
		.done = label_read_done,
		.arg = lio,
	};
	bdev_submit(lio->bdev, &lio->io);
}

static void label_ended(struct label_io *lio, int result)
{
	lio->result = result;
	lio->durable = lio->durable || !result;
	lio->done(lio);
}

static void label_flush_done(struct io *io)
{
	label_ended(io->arg, io->result);
}

static void label_flush(struct label_io *lio, void (*done)(struct io *io))
{
	lio->io = (struct io) { .op = BDEV_FLUSH, .done = done, .arg = lio };
	bdev_submit(lio->bdev, &lio->io);
}

static void label_write_done(struct io *io)
{
	struct label_io *lio = io->arg;
	const struct bdev_limits *limits = &lio->bdev->limits;

	if (!io->result && lio->bdev->closing)
		io->result = -ENODEV; /* failed meanwhile */
	if (io->result || limits->can_fua || !limits->can_flush)
		label_ended(lio, io->result);
	else
		label_flush(lio, label_flush_done);
}

static void label_write(struct label_io *lio)
{
	const size_t off = (size_t)lio->writing * LABEL_BYTES;

	lio->io = (struct io) {
		.op = BDEV_WRITE,
		.flags = lio->bdev->limits.can_fua ? BDEV_FUA : 0,
		.off = off,
		.len = LABEL_BYTES,
		.buf = lio->buf + off,
		.done = label_write_done,
		.arg = lio,
	};
	bdev_submit(lio->bdev, &lio->io);
}

static void label_old_flushed(struct io *io)
{
	struct label_io *lio = io->arg;

	if (!io->result && lio->bdev->closing)
		io->result = -ENODEV; /* failed meanwhile */
	if (io->result)
		label_ended(lio, io->result);
	else
		label_write(lio);
}

void label_io_write(struct label_io *lio, const struct label *label)
{
	const struct bdev_limits *limits = &lio->bdev->limits;
	struct label stamped = *label;

	lio->writing =
		lio->found ? (lio->copy + !MUTATION(label_in_place)) & 1 : 0;
	stamped.serial = lio->found ? lio->label.serial + 1 : 1;
	label_encode(&stamped, lio->buf + (size_t)lio->writing * LABEL_BYTES);
	if (lio->found && !lio->durable && limits->can_flush &&
	    !MUTATION(label_unflushed))
		label_flush(lio, label_old_flushed);
	else
		label_write(lio);
}
