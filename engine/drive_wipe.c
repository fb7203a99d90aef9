/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What others have written on a device. libblkid knows hundreds of formats;
 * bytes that are not zero at the beginning or the end are somebody's data
 * even where it knows none, and where the build has no libblkid.
 */
#include "engine/drive_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_BLKID
#include <blkid.h>
#endif

#define EDGE_BYTES (1 * MIB)

#ifdef HAVE_BLKID

static blkid_probe probe_new(int fd)
{
	blkid_probe pr = blkid_new_probe();

	if (!pr)
		return NULL;
	if (blkid_probe_set_device(pr, fd, 0, 0)) {
		blkid_free_probe(pr);
		return NULL;
	}
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE |
						      BLKID_SUBLKS_LABEL |
						      BLKID_SUBLKS_MAGIC);
	blkid_probe_enable_partitions(pr, 1);
	blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC);
	return pr;
}

static const char *value(blkid_probe pr, const char *name)
{
	const char *text = NULL;

	return blkid_probe_lookup_value(pr, name, &text, NULL) ? NULL : text;
}

static const char *article(const char *word)
{
	return strchr("aeiou", word[0]) ? "an" : "a";
}

static int known_format(int fd, char *fstype, size_t fstype_len, char *reason,
			size_t reason_len)
{
	blkid_probe pr = probe_new(fd);
	const char *type, *label, *parts;
	int rc;

	if (!pr)
		return 0;
	rc = blkid_do_safeprobe(pr);
	type = rc ? NULL : value(pr, "TYPE");
	label = rc ? NULL : value(pr, "LABEL");
	parts = rc ? NULL : value(pr, "PTTYPE");
	if (rc == -2) {
		snprintf(fstype, fstype_len, "several");
		snprintf(reason, reason_len,
			 "has signatures of several "
			 "formats");
	} else if (type) {
		snprintf(fstype, fstype_len, "%s", type);
		snprintf(reason, reason_len, "has %s %s signature%s%.64s%s",
			 article(type), type, label ? " (label " : "",
			 label ? label : "", label ? ")" : "");
	} else if (parts) {
		snprintf(fstype, fstype_len, "%s", parts);
		snprintf(reason, reason_len, "has a partition table (%s)",
			 parts);
	}
	blkid_free_probe(pr);
	return type || parts || rc == -2;
}

static void known_format_wipe(int fd)
{
	blkid_probe pr = probe_new(fd);

	if (!pr)
		return;
	while (blkid_do_probe(pr) == 0)
		if (blkid_do_wipe(pr, 0))
			break;
	blkid_free_probe(pr);
}

#else

static int known_format(int fd, char *fstype, size_t fstype_len, char *reason,
			size_t reason_len)
{
	(void)fd;
	(void)fstype;
	(void)fstype_len;
	(void)reason;
	(void)reason_len;
	return 0;
}

static void known_format_wipe(int fd)
{
	(void)fd;
}

#endif

/* The offset of the last edge: nothing when the device is smaller than two. */
static uint64_t edge_off(uint64_t size_bytes, int i)
{
	return i && size_bytes > EDGE_BYTES ? size_bytes - EDGE_BYTES : 0;
}

/* 1: some byte is not zero; negative errno. */
static int edge_used(int fd, uint64_t off, uint64_t len, uint8_t *buf)
{
	const int rc = drive_read(fd, buf, len, off);

	if (rc)
		return rc;
	return buf[0] || memcmp(buf, buf + 1, len - 1) != 0;
}

static uint64_t edge_len(uint64_t size_bytes)
{
	return size_bytes < EDGE_BYTES ? size_bytes : EDGE_BYTES;
}

int drive_signature(int fd, uint64_t size_bytes, char *fstype,
		    size_t fstype_len, char *reason, size_t reason_len)
{
	uint8_t *buf;
	int used = 0;

	if (known_format(fd, fstype, fstype_len, reason, reason_len))
		return 1;
	buf = malloc(EDGE_BYTES);
	if (!buf)
		return -ENOMEM;
	for (int i = 0; i < 2 && !used && size_bytes; i++)
		used = edge_used(fd, edge_off(size_bytes, i),
				 edge_len(size_bytes), buf);
	free(buf);
	if (used < 0)
		snprintf(reason, reason_len, "cannot be read: %s",
			 strerror(-used));
	else if (used)
		snprintf(reason, reason_len,
			 "has data of an unknown format on it");
	return used ? 1 : 0;
}

int drive_wipe(int fd, uint64_t size_bytes)
{
	uint8_t *zero = calloc(1, EDGE_BYTES);
	int rc = zero ? 0 : -ENOMEM;

	known_format_wipe(fd);
	for (int i = 0; i < 2 && !rc; i++)
		rc = drive_write(fd, zero, edge_len(size_bytes),
				 edge_off(size_bytes, i));
	free(zero);
	if (!rc && fdatasync(fd))
		rc = -errno;
	return rc;
}
