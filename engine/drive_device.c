/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A device (or an image in a file) as a drive: two copies of a header with the
 * table of components, then the components in whole MiB.
 *
 *	0          512 KiB     1 MiB
 *	| copy 0   | copy 1    | component | free | component ...
 *
 * A change goes to copy 0, is made durable, then to copy 1. A write that is
 * torn spoils one copy, and the other has the table of before or after. The
 * valid copy of the higher generation counts, and heals the other at open.
 *
 * On disk all numbers are little-endian; the checksum (CRC-32C) covers the
 * whole copy with its own field as zero.
 */
#include "engine/drive_impl.h"

#include <endian.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (128 * KIB)
#define COPY_OFF(i) ((uint64_t)(i)*512 * KIB)
#define DATA_OFF (1 * MIB)
#define VERSION 1u
#define ENTRIES_MAX 1024u

struct disk_entry {
	char id[64];
	uint64_t off_bytes, size_bytes;
};

struct disk_header {
	char magic[16]; /* "iodeck drive\n" */
	uint32_t version;
	uint32_t crc;
	uint64_t generation;
	uint64_t size_bytes; /* of the device when it was claimed */
	char cluster[64];
	uint32_t entries;
	uint32_t zero[5];
	uint64_t pad[8];
	struct disk_entry entry[ENTRIES_MAX];
};
_Static_assert(sizeof(struct disk_header) <= COPY_BYTES,
	       "a header fits its copy");
_Static_assert(sizeof(struct disk_entry) == 80, "no padding");

static const char magic[16] = "iodeck drive\n";

/* In memory, in the CPU's own byte order, sorted by offset. */
struct drive_table {
	uint64_t generation, size_bytes;
	char cluster[64];
	uint32_t entries;
	struct disk_entry entry[ENTRIES_MAX];
};

/* ---- a copy on disk ----------------------------------------------------- */

static uint32_t copy_crc(uint8_t *copy)
{
	struct disk_header *h = (struct disk_header *)copy;
	const uint32_t was = h->crc;
	uint32_t crc;

	h->crc = 0;
	crc = crc32_iscsi(copy, (int)COPY_BYTES, ~0u);
	h->crc = was;
	return crc;
}

static void copy_encode(const struct drive_table *table, uint8_t *copy)
{
	struct disk_header *h = (struct disk_header *)copy;

	memset(copy, 0, COPY_BYTES);
	memcpy(h->magic, magic, sizeof(magic));
	h->version = htole32(VERSION);
	h->generation = htole64(table->generation);
	h->size_bytes = htole64(table->size_bytes);
	memcpy(h->cluster, table->cluster, sizeof(h->cluster));
	h->entries = htole32(table->entries);
	for (uint32_t i = 0; i < table->entries; i++) {
		memcpy(h->entry[i].id, table->entry[i].id, 64);
		h->entry[i].off_bytes = htole64(table->entry[i].off_bytes);
		h->entry[i].size_bytes = htole64(table->entry[i].size_bytes);
	}
	h->crc = htole32(copy_crc(copy));
}

/* Components stand in order, apart, and on the device. */
static bool table_sane(const struct drive_table *table)
{
	uint64_t end = DATA_OFF;

	if (!table->cluster[0] || table->cluster[63])
		return false;
	for (uint32_t i = 0; i < table->entries; i++) {
		const struct disk_entry *e = &table->entry[i];

		if (!e->id[0] || e->id[63] || !e->size_bytes ||
		    e->off_bytes < end || e->off_bytes > table->size_bytes ||
		    e->size_bytes > table->size_bytes - e->off_bytes)
			return false;
		end = e->off_bytes + e->size_bytes;
	}
	return true;
}

static bool copy_decode(uint8_t *copy, struct drive_table *table)
{
	const struct disk_header *h = (const struct disk_header *)copy;

	if (memcmp(h->magic, magic, sizeof(magic)) != 0 ||
	    le32toh(h->version) != VERSION ||
	    le32toh(h->crc) != copy_crc(copy) ||
	    le32toh(h->entries) > ENTRIES_MAX)
		return false;
	memset(table, 0, sizeof(*table));
	table->generation = le64toh(h->generation);
	table->size_bytes = le64toh(h->size_bytes);
	memcpy(table->cluster, h->cluster, sizeof(table->cluster));
	table->entries = le32toh(h->entries);
	for (uint32_t i = 0; i < table->entries; i++) {
		memcpy(table->entry[i].id, h->entry[i].id, 64);
		table->entry[i].off_bytes = le64toh(h->entry[i].off_bytes);
		table->entry[i].size_bytes = le64toh(h->entry[i].size_bytes);
	}
	return table_sane(table);
}

/* ---- both copies -------------------------------------------------------- */

static int copy_store(int fd, uint8_t *copy, int i)
{
	int rc = drive_write(fd, copy, COPY_BYTES, COPY_OFF(i));

	if (!rc && fdatasync(fd))
		rc = -errno;
	return rc;
}

static int table_store(int fd, const struct drive_table *table)
{
	uint8_t *copy = aligned_alloc(4096, COPY_BYTES);
	int rc = 0;

	if (!copy)
		return -ENOMEM;
	copy_encode(table, copy);
	for (int i = 0; i < 2 && !rc; i++)
		rc = copy_store(fd, copy, i);
	free(copy);
	return rc;
}

/*
 * The valid copy of the higher generation. whole: both were valid and agree.
 * Returns 1, 0 when neither is valid, or a negative errno.
 */
static int table_load(int fd, struct drive_table *table, bool *whole)
{
	uint8_t *copy = aligned_alloc(4096, COPY_BYTES);
	struct drive_table *other = calloc(1, sizeof(*other));
	int found = 0, rc = 0;

	if (!copy || !other)
		rc = -ENOMEM;
	*whole = false;
	for (int i = 0; i < 2 && !rc; i++) {
		/* What cannot be read is as good as torn. */
		if (drive_read(fd, copy, COPY_BYTES, COPY_OFF(i)) ||
		    !copy_decode(copy, other))
			continue;
		*whole = found && other->generation == table->generation;
		if (!found || other->generation > table->generation)
			*table = *other;
		found = 1;
	}
	free(copy);
	free(other);
	return rc ? rc : found;
}

int drive_device_header_read(int fd, char *cluster, size_t len)
{
	struct drive_table *table = calloc(1, sizeof(*table));
	bool whole;
	int rc;

	if (!table)
		return -ENOMEM;
	rc = table_load(fd, table, &whole);
	if (rc == 1)
		snprintf(cluster, len, "%s", table->cluster);
	free(table);
	return rc;
}

/* ---- the device --------------------------------------------------------- */

static int device_take(const char *path, int *fd, struct err *err)
{
	struct stat st;

	*fd = -1;
	if (stat(path, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	*fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY |
				 (S_ISBLK(st.st_mode) ? O_EXCL : 0));
	if (*fd < 0)
		return err_set(err, -errno, "%s %s", path,
			       errno == EBUSY
				       ? "is in use: by an iodeck-agent, "
					 "which `agent stop` ends, or "
					 "another program"
				       : strerror(errno));
	return drive_lock(*fd, path, 0, DATA_OFF, err);
}

static int device_size(int fd, uint64_t *size_bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*size_bytes = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, size_bytes))
		return -errno;
	*size_bytes = *size_bytes / MIB * MIB;
	return 0;
}

static int device_claim(const char *path, const char *cluster, struct err *err)
{
	struct drive_table *table = calloc(1, sizeof(*table));
	int fd = -1, rc;

	if (!table)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	rc = device_take(path, &fd, err);
	if (rc)
		goto out;
	rc = device_size(fd, &table->size_bytes);
	if (!rc)
		rc = drive_wipe(fd, table->size_bytes);
	table->generation = 1;
	snprintf(table->cluster, sizeof(table->cluster), "%s", cluster);
	if (!rc)
		rc = table_store(fd, table);
	if (rc)
		err_set(err, rc, "%s: cannot be claimed: %s", path,
			strerror(-rc));
out:
	if (fd >= 0)
		close(fd);
	free(table);
	return rc;
}

static int device_open(struct drive *drive, struct err *err)
{
	uint64_t size_bytes = 0;
	bool whole;
	int rc;

	drive->table = calloc(1, sizeof(*drive->table));
	if (!drive->table)
		return err_set(err, -ENOMEM, "%s: no memory", drive->path);
	rc = device_take(drive->path, &drive->fd, err);
	if (rc)
		return rc;
	rc = table_load(drive->fd, drive->table, &whole);
	if (!rc)
		return err_set(err, -ENOENT,
			       "%s is no drive of iodeck: claim it first",
			       drive->path);
	if (rc > 0)
		rc = device_size(drive->fd, &size_bytes);
	if (!rc && size_bytes < drive->table->size_bytes)
		return err_set(
			err, -EINVAL, "%s has shrunk from %llu to %llu MiB",
			drive->path,
			(unsigned long long)(drive->table->size_bytes / MIB),
			(unsigned long long)(size_bytes / MIB));
	if (!rc && !whole)
		rc = table_store(drive->fd, drive->table);
	if (rc)
		return err_set(err, rc, "%s: %s", drive->path, strerror(-rc));
	snprintf(drive->cluster, sizeof(drive->cluster), "%s",
		 drive->table->cluster);
	return 0;
}

static void device_close(struct drive *drive)
{
	free(drive->table);
}

static int device_release(struct drive *drive, struct err *err)
{
	uint8_t *zero = calloc(1, COPY_BYTES);
	int rc = zero ? 0 : -ENOMEM;

	for (int i = 0; i < 2 && !rc; i++)
		rc = copy_store(drive->fd, zero, i);
	free(zero);
	if (rc)
		err_set(err, rc, "%s: cannot be released: %s", drive->path,
			strerror(-rc));
	return rc;
}

/* ---- components --------------------------------------------------------- */

static uint64_t entry_end(const struct disk_entry *e)
{
	return (e->off_bytes + e->size_bytes + MIB - 1) / MIB * MIB;
}

/*
 * The first gap of at least `size_bytes`: its place in the table and its
 * offset. largest: of all gaps.
 */
static bool gap_find(const struct drive_table *table, uint64_t size_bytes,
		     uint32_t *place, uint64_t *off_bytes, uint64_t *largest)
{
	uint64_t from = DATA_OFF;
	bool found = false;

	*largest = 0;
	for (uint32_t i = 0; i <= table->entries; i++) {
		const uint64_t to = i < table->entries
					    ? table->entry[i].off_bytes
					    : table->size_bytes;
		const uint64_t gap = to > from ? to - from : 0;

		if (gap > *largest)
			*largest = gap;
		if (!found && gap >= size_bytes) {
			found = true;
			*place = i;
			*off_bytes = from;
		}
		if (i < table->entries)
			from = entry_end(&table->entry[i]);
	}
	return found;
}

/* A component is one piece, so the largest gap is what there is. */
static void device_space(struct drive *drive, uint64_t *size_bytes,
			 uint64_t *free_bytes)
{
	uint64_t off;
	uint32_t place;

	*size_bytes = drive->table->size_bytes;
	gap_find(drive->table, UINT64_MAX, &place, &off, free_bytes);
}

static struct disk_entry *entry_find(struct drive *drive, const char *id)
{
	struct drive_table *table = drive->table;

	for (uint32_t i = 0; i < table->entries; i++)
		if (!strcmp(table->entry[i].id, id))
			return &table->entry[i];
	return NULL;
}

/* A new component reads as zeros. Where the device cannot forget, zeros are
 * written, which takes its time. */
static int range_zero(int fd, uint64_t off, uint64_t len)
{
	static const int mode[] = {
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
	};
	uint8_t *zero;
	int rc = 0;

	for (size_t i = 0; i < array_len(mode); i++)
		if (!fallocate(fd, mode[i], (off_t)off, (off_t)len))
			return fdatasync(fd) ? -errno : 0;
	zero = calloc(1, MIB);
	if (!zero)
		return -ENOMEM;
	while (len && !rc) {
		const uint64_t part = len < MIB ? len : MIB;

		rc = drive_write(fd, zero, part, off);
		off += part;
		len -= part;
	}
	free(zero);
	return rc ? rc : fdatasync(fd) ? -errno : 0;
}

/* Stores the changed table, or takes the change back. */
static int table_commit(struct drive *drive, struct drive_table *before)
{
	int rc;

	drive->table->generation++;
	rc = table_store(drive->fd, drive->table);
	if (rc)
		*drive->table = *before;
	free(before);
	return rc;
}

static struct drive_table *table_copy(const struct drive *drive)
{
	struct drive_table *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *drive->table;
	return copy;
}

static int entry_insert(struct drive *drive, uint32_t place, const char *id,
			uint64_t off_bytes, uint64_t size_bytes)
{
	struct drive_table *table = drive->table, *before = table_copy(drive);
	struct disk_entry *e = &table->entry[place];

	if (!before)
		return -ENOMEM;
	memmove(e + 1, e, (table->entries - place) * sizeof(*e));
	memset(e, 0, sizeof(*e));
	snprintf(e->id, sizeof(e->id), "%s", id);
	e->off_bytes = off_bytes;
	e->size_bytes = size_bytes;
	table->entries++;
	return table_commit(drive, before);
}

static int device_create(struct drive *drive, const char *id,
			 uint64_t size_bytes, struct err *err)
{
	uint64_t off = 0, largest;
	uint32_t place = 0;
	int rc;

	if (entry_find(drive, id))
		return err_set(err, -EEXIST, "%s has a component %s already",
			       drive->name, id);
	if (drive->table->entries == ENTRIES_MAX)
		return err_set(err, -ENOSPC,
			       "%s has %u components, no more "
			       "fit its table",
			       drive->name, ENTRIES_MAX);
	if (!gap_find(drive->table, size_bytes, &place, &off, &largest))
		return err_set(err, -ENOSPC,
			       "%s has %llu MiB in one piece, not %llu",
			       drive->name, (unsigned long long)(largest / MIB),
			       (unsigned long long)(size_bytes / MIB));
	rc = range_zero(drive->fd, off, size_bytes);
	if (!rc)
		rc = entry_insert(drive, place, id, off, size_bytes);
	if (rc)
		err_set(err, rc, "%s: cannot make component %s: %s",
			drive->name, id, strerror(-rc));
	return rc;
}

static bool entry_open_somewhere(const struct drive *drive,
				 const struct disk_entry *e)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)e->off_bytes,
		.l_len = (off_t)e->size_bytes,
	};

	return fcntl(drive->fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static int device_delete(struct drive *drive, const char *id, struct err *err)
{
	struct drive_table *table = drive->table, *before;
	struct disk_entry *e = entry_find(drive, id);
	int rc;

	if (!e)
		return err_set(err, -ENOENT, "%s has no component %s",
			       drive->name, id);
	if (entry_open_somewhere(drive, e))
		return err_set(err, -EBUSY, "%s: component %s is open",
			       drive->name, id);
	before = table_copy(drive);
	if (!before)
		return err_set(err, -ENOMEM, "%s: no memory", drive->name);
	memmove(e, e + 1,
		(size_t)(table->entry + table->entries - e - 1) * sizeof(*e));
	table->entries--;
	rc = table_commit(drive, before);
	if (rc)
		err_set(err, rc, "%s: cannot delete component %s: %s",
			drive->name, id, strerror(-rc));
	return rc;
}

static int device_list(struct drive *drive, struct drive_component **list,
		       size_t *count, struct err *err)
{
	const struct drive_table *table = drive->table;

	*count = 0;
	*list = calloc(table->entries + 1, sizeof(**list));
	if (!*list)
		return err_set(err, -ENOMEM, "%s: no memory", drive->name);
	for (uint32_t i = 0; i < table->entries; i++) {
		memcpy((*list)[i].id, table->entry[i].id, 64);
		(*list)[i].size_bytes = table->entry[i].size_bytes;
	}
	*count = table->entries;
	return 0;
}

static int device_component(struct drive *drive, const char *id,
			    struct bdev_file_opts *opts, char *path, size_t len,
			    struct err *err)
{
	const struct disk_entry *e = entry_find(drive, id);

	if (!e)
		return err_set(err, -ENOENT, "%s has no component %s",
			       drive->name, id);
	snprintf(path, len, "%s", drive->path);
	opts->off_bytes = e->off_bytes;
	opts->len_bytes = e->size_bytes;
	opts->shared = true;
	return 0;
}

const struct drive_kind_ops drive_device_ops = {
	.open = device_open,
	.close = device_close,
	.claim = device_claim,
	.release = device_release,
	.space = device_space,
	.list = device_list,
	.create = device_create,
	.delete = device_delete,
	.component = device_component,
};
