/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Labels come from foreign drives. The input is up to three records, a piece
 * each, whose magic, version and checksum are put right, so that what is
 * behind them is reached. A record that is taken is written as it was read,
 * and the vDisk that all of them together make opens, or is refused with a
 * sentence.
 */
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include "engine/bdev/mem.h"
#include "engine/vdisk/label.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMPONENTS 3
#define COMPONENT_BYTES (2 * MIB)

static void record_mend(uint8_t record[LABEL_BYTES])
{
	uint32_t crc;

	memcpy(record, "iodeckVD\1\0\0\0\0\0\0\0", 16);
	crc = ~crc32_iscsi(record, LABEL_BYTES, ~0u);
	for (unsigned i = 0; i < 4; i++)
		record[12 + i] = (uint8_t)(crc >> 8 * i);
}

static void record_check(const uint8_t record[LABEL_BYTES])
{
	uint8_t once[LABEL_BYTES], twice[LABEL_BYTES];
	struct label label, again;

	if (label_decode(record, &label))
		return;
	label_encode(&label, once);
	id_assert(!label_decode(once, &again));
	label_encode(&again, twice);
	id_assert(!memcmp(once, twice, LABEL_BYTES));
}

/* ---- all of them as a vDisk --------------------------------------------- */

struct opened {
	bool done, closed;
	struct bdev *vdisk;
};

static void on_opened(int result, const struct err *err, struct bdev *vdisk,
		      void *arg)
{
	struct opened *o = arg;

	id_assert(!result == !!vdisk);
	id_assert(!result || err->text[0]);
	o->done = true;
	o->vdisk = vdisk;
}

static void on_closed(void *arg)
{
	((struct opened *)arg)->closed = true;
}

static void on_written(struct io *io)
{
	*(bool *)io->arg = true;
}

static void component_write(struct reactor *r, struct bdev *bdev,
			    const uint8_t record[LABEL_BYTES])
{
	uint8_t *buf = reactor_buf_alloc(r, LABEL_BYTES);
	bool done = false;
	struct io io = { .op = BDEV_WRITE,
			 .len = LABEL_BYTES,
			 .buf = buf,
			 .done = on_written,
			 .arg = &done };

	memcpy(buf, record, LABEL_BYTES);
	bdev_submit(bdev, &io);
	while (!done)
		reactor_run_once(r, SEC_NS);
	reactor_buf_free(r, buf, LABEL_BYTES);
}

static void vdisk_try(struct reactor *r, uint8_t record[][LABEL_BYTES],
		      unsigned count)
{
	struct vdisk_slot slot[COMPONENTS];
	struct vdisk_spec spec = { .slot = slot, .slots = count };
	struct opened o = { 0 };
	struct label first;

	memset(slot, 0, sizeof(slot));
	if (!label_decode(record[0], &first))
		spec.cluster = first.cluster;
	for (unsigned i = 0; i < count; i++) {
		id_assert(!bdev_mem_open(r, "c", COMPONENT_BYTES, 512,
					 &slot[i].bdev, NULL));
		component_write(r, slot[i].bdev, record[i]);
	}
	vdisk_open(r, &spec, on_opened, &o);
	while (!o.done)
		reactor_run_once(r, SEC_NS);
	if (o.vdisk) {
		for (unsigned i = 0; i < 50; i++) /* its background work */
			reactor_run_once(r, MSEC_NS);
		bdev_close(o.vdisk, on_closed, &o);
		while (!o.closed)
			reactor_run_once(r, SEC_NS);
	} else {
		for (unsigned i = 0; i < count; i++)
			bdev_close_sync(slot[i].bdev);
	}
	for (unsigned i = 0; i < 4; i++) /* what it did not need closes too */
		reactor_run_once(r, MSEC_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct reactor_opts opts = { .kind = REACTOR_SIM };
	static uint8_t record[COMPONENTS][LABEL_BYTES];
	const size_t piece = size / COMPONENTS;
	struct reactor *r;

	if (!piece || piece > LABEL_BYTES || reactor_new(&opts, &r, NULL))
		return 0;
	for (unsigned i = 0; i < COMPONENTS; i++) {
		memset(record[i], 0, LABEL_BYTES);
		memcpy(record[i], data + i * piece, piece);
		record_mend(record[i]);
		record_check(record[i]);
	}
	vdisk_try(r, record, COMPONENTS);
	reactor_free(r);
	return 0;
}
