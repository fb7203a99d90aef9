/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The disks of this machine: block devices as the kernel has them, partitions
 * left out, whoever uses them. (A drive is what iodeck was given of them.)
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_HOST_DISK_H
#define BACKEND_AGENT_HOST_DISK_H

#include <jansson.h>

#include "engine/base.h"

#define HOST_DISKS_MAX 128
#define HOST_DISK_NAME 32

/* Those of /sys/block that have a size. */
struct host_disk_names {
	char name[HOST_DISKS_MAX][HOST_DISK_NAME];
	size_t count;
};

/* Counters since boot. */
struct host_disk {
	char name[HOST_DISK_NAME];
	uint64_t reads, writes, read_bytes, write_bytes;
	uint64_t wait_ms;  /* sum of what each I/O took */
	uint64_t busy_ms;  /* with at least one in flight */
	uint64_t queue_ms; /* sum of time in flight */
};

struct host_disks {
	struct host_disk disk[HOST_DISKS_MAX];
	size_t count;
};

/* The text of /proc/diskstats: what is among `names`. */
void host_disks_parse(const char *text, const struct host_disk_names *names,
		      struct host_disks *disks);
void host_disk_names_read(const char *root, struct host_disk_names *names);
/*
 * Whether a line of /proc/self/mountinfo is a mount of a device, which has
 * number "8:1" and path "/dev/sda1"; where, with \040 and its like undone.
 */
bool host_mount_parse(const char *line, const char *number, const char *path,
		      char *point, size_t size);
/* The word in brackets of "[none] mq-deadline", or the only one; "". */
void host_scheduler_parse(const char *text, char *name, size_t size);

/*
 * name, size_bytes, model, serial (its end), media, scheduler, removable,
 * read_only, holders, mounts, content, cluster, and of NVMe used_percent,
 * spare_percent, temperature_c, warning, media_errors; a new array. Blocks:
 * devices are opened and read.
 */
json_t *host_disks_facts(const char *root, const struct host_disk_names *names);
/*
 * Adds disks [ {name, read_iops, write_iops, read_bytes_s, write_bytes_s,
 * busy, queue, latency_us} ] to `usage`: of the time since the last call,
 * which was len_s ago.
 */
void host_disks_usage(const char *root, const struct host_disk_names *names,
		      double len_s, struct host_disks *last, json_t *usage);

#endif
