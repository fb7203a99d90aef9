/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a disk is and who uses it: /sys/block and mountinfo first, then the
 * device itself, which is opened to be read and never to be held, so that
 * nobody who wants it alone finds us in the way.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/agent/host_disk.h"
#include "backend/agent/host_read.h"
#include "backend/agent/nvme.h"
#include "engine/drive.h"

#define SECTOR 512
#define LIST_MAX 16 /* holders or mounts that are named */
#define MOUNTINFO_BYTES (256 * 1024)
#define SERIAL_END 6 /* characters that tell one from another */

/* ---- words -------------------------------------------------------------- */

void host_scheduler_parse(const char *text, char *name, size_t size)
{
	const char *open = strchr(text, '[');
	const char *from = open ? open + 1 : text;
	const size_t len = strcspn(from, open ? "]\n" : " \n");

	snprintf(name, size, "%.*s", len < size ? (int)len : (int)size - 1,
		 from);
}

/* A backslash and three octal digits for what would end a word. */
static void octal_undo(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		unsigned v = 0;
		int n = 0;

		while (*at == '\\' && n < 3 && at[n + 1] >= '0' &&
		       at[n + 1] <= '7')
			v = v * 8 + (unsigned)(at[++n] - '0');
		*to++ = n == 3 && v && v < 256 ? (char)v : *at;
		at += n == 3 && v && v < 256 ? 4 : 1;
	}
	*to = '\0';
}

/* 36 35 98:0 /root /point options - fstype source options */
bool host_mount_parse(const char *line, const char *number, const char *path,
		      char *point, size_t size)
{
	char is_number[32], where[512], source[256] = "";
	const char *rest;

	if (sscanf(line, "%*s %*s %31s %*s %511s", is_number, where) != 2)
		return false;
	rest = strstr(line, " - ");
	if (rest)
		sscanf(rest + 3, "%*s %255s", source);
	/* btrfs mounts under numbers of its own */
	if (strcmp(is_number, number) != 0 && strcmp(source, path) != 0)
		return false;
	octal_undo(where);
	snprintf(point, size, "%s", where);
	return true;
}

/* ---- who uses it -------------------------------------------------------- */

struct look {
	const char *root, *disk;
	const char *mountinfo;
	json_t *holders, *mounts;
	char dir[PATH_MAX]; /* of the device looked at */
};

static void list_add(json_t *list, const char *text)
{
	json_t *one = json_object();

	if (json_array_size(list) < LIST_MAX) {
		host_add_text(one, "", text);
		if (json_object_get(one, ""))
			json_array_append(list, json_object_get(one, ""));
	}
	json_decref(one);
}

static bool holder_add(const char *name, void *arg)
{
	struct look *l = arg;

	list_add(l->holders, name);
	return true;
}

static void mounts_add(struct look *l, const char *name)
{
	char number[32], path[HOST_DISK_NAME + 8], point[512];
	const char *line = l->mountinfo, *end;

	if (!host_line(number, sizeof(number), l->root, "%s/dev", l->dir))
		return;
	snprintf(path, sizeof(path), "/dev/%.31s", name);
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		char one[2048];

		if ((size_t)(end - line) >= sizeof(one))
			continue;
		memcpy(one, line, (size_t)(end - line));
		one[end - line] = '\0';
		if (host_mount_parse(one, number, path, point, sizeof(point)))
			list_add(l->mounts, point);
	}
}

static void device_look(struct look *l, const char *name)
{
	char holders[PATH_MAX + 16];

	snprintf(holders, sizeof(holders), "%s/holders", l->dir);
	host_dir(l->root, holders, holder_add, l);
	mounts_add(l, name);
}

static bool partition_look(const char *name, void *arg)
{
	struct look *l = arg;

	if (strncmp(name, l->disk, strlen(l->disk)) != 0 ||
	    strlen(name) >= HOST_DISK_NAME ||
	    !host_there(l->root, "/sys/block/%s/%s/partition", l->disk, name))
		return true;
	snprintf(l->dir, sizeof(l->dir), "/sys/block/%s/%s", l->disk, name);
	device_look(l, name);
	return true;
}

static void users_add(const char *root, const char *disk, const char *mountinfo,
		      json_t *to)
{
	struct look l = {
		.root = root,
		.disk = disk,
		.mountinfo = mountinfo,
		.holders = json_array(),
		.mounts = json_array(),
	};
	char dir[64];

	snprintf(dir, sizeof(dir), "/sys/block/%s", disk);
	snprintf(l.dir, sizeof(l.dir), "%s", dir);
	device_look(&l, disk);
	host_dir(root, dir, partition_look, &l);
	if (json_array_size(l.holders))
		json_object_set(to, "holders", l.holders);
	if (json_array_size(l.mounts))
		json_object_set(to, "mounts", l.mounts);
	json_decref(l.holders);
	json_decref(l.mounts);
}

/* ---- what it is --------------------------------------------------------- */

static const char *media(const char *root, const char *disk)
{
	if (!strncmp(disk, "nvme", 4))
		return "nvme";
	if (!strncmp(disk, "loop", 4))
		return "file";
	if (!strncmp(disk, "dm-", 3) || !strncmp(disk, "md", 2))
		return "mapped";
	switch (host_number(root, "/sys/block/%s/queue/rotational", disk)) {
	case 0:
		return "ssd";
	case 1:
		return "rotational";
	default:
		return "";
	}
}

/* Its end: enough to find it in a rack, and no inventory of the house. */
static void serial_add(const char *root, const char *disk, json_t *to)
{
	char serial[128];
	size_t len;

	if (!host_line(serial, sizeof(serial), root,
		       "/sys/block/%s/device/serial", disk) &&
	    !host_line(serial, sizeof(serial), root, "/sys/block/%s/serial",
		       disk))
		return;
	len = strlen(serial);
	host_add_text(to, "serial",
		      serial + (len > SERIAL_END ? len - SERIAL_END : 0));
}

static void sys_add(const char *root, const char *disk, json_t *to)
{
	const int64_t sectors = host_number(root, "/sys/block/%s/size", disk);
	char text[256], name[64];

	host_add_text(to, "name", disk);
	if (sectors >= 0 && sectors < INT64_MAX / SECTOR)
		host_add_int(to, "size_bytes", sectors * SECTOR);
	if (host_line(text, sizeof(text), root, "/sys/block/%s/device/model",
		      disk))
		host_add_text(to, "model", text);
	serial_add(root, disk, to);
	host_add_text(to, "media", media(root, disk));
	if (host_line(text, sizeof(text), root, "/sys/block/%s/queue/scheduler",
		      disk)) {
		host_scheduler_parse(text, name, sizeof(name));
		host_add_text(to, "scheduler", name);
	}
	if (host_number(root, "/sys/block/%s/removable", disk) == 1)
		json_object_set_new(to, "removable", json_true());
	if (host_number(root, "/sys/block/%s/ro", disk) == 1)
		json_object_set_new(to, "read_only", json_true());
}

static void smart_add(const char *path, json_t *to)
{
	struct nvme_smart s;

	if (nvme_smart_read(path, &s))
		return;
	host_add_int(to, "used_percent", s.used_percent);
	host_add_int(to, "spare_percent", s.spare_percent);
	host_add_int(to, "temperature_c", s.temperature_c);
	host_add_int(to, "warning", s.warning);
	host_add_int(to, "written_bytes", s.written_bytes);
	host_add_int(to, "power_on_hours", s.power_on_hours);
	host_add_int(to, "media_errors", s.media_errors);
}

/* The device itself; of a root of a test there is none. */
static void device_add(const char *disk, json_t *to)
{
	char path[HOST_DISK_NAME + 8], what[64], cluster[64];

	snprintf(path, sizeof(path), "/dev/%s", disk);
	/* sysfs writes cciss/c0d0 so */
	for (char *c = path; *c; c++)
		*c = *c == '!' ? '/' : *c;
	if (!drive_content(path, what, sizeof(what), cluster,
			   sizeof(cluster))) {
		host_add_text(to, "content", what);
		host_add_text(to, "cluster", cluster);
	}
	if (!strncmp(disk, "nvme", 4))
		smart_add(path, to);
}

json_t *host_disks_facts(const char *root, const struct host_disk_names *names)
{
	char *mountinfo = malloc(MOUNTINFO_BYTES);
	json_t *list = json_array();

	if (mountinfo)
		host_read(root, "/proc/self/mountinfo", mountinfo,
			  MOUNTINFO_BYTES);
	for (size_t i = 0; list && i < names->count; i++) {
		json_t *disk = json_object();

		sys_add(root, names->name[i], disk);
		users_add(root, names->name[i], mountinfo, disk);
		if (!*root)
			device_add(names->name[i], disk);
		json_array_append_new(list, disk);
	}
	free(mountinfo);
	return list;
}
