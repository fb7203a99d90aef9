/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this machine is and how busy it is: names, CPU, memory, clock. Its
 * network is host_nic.h's, its disks are host_disk.h's. What cannot be read is
 * left out, never made up. `root` is as in host_read.h.
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_HOST_H
#define BACKEND_AGENT_HOST_H

#include <jansson.h>

#include "engine/base.h"

/* name, kernel, distribution, cpu, sockets, cores, steal_known, mem_bytes,
 * clock; a new object or NULL. */
json_t *host_facts(const char *root);

/* Jiffies since boot, of all cores. */
struct host_cpu {
	uint64_t busy, steal, total;
	bool steal_known; /* old kernels do not say */
};
/* Parses the first line of /proc/stat. -EINVAL. */
int host_cpu_parse(const char *text, struct host_cpu *cpu);
/* "MemAvailable" of /proc/meminfo's text, in bytes; -1: not there. */
int64_t host_mem_parse(const char *text, const char *key);
/* PRETTY_NAME of /etc/os-release's text, else NAME; "". */
void host_distribution_parse(const char *text, char *name, size_t size);

/* What this process may use at most: the machine's memory, or less where its
 * control group says so. 0: not known. */
uint64_t host_mem_bytes(void);
/* The smallest "memory.max" from /proc/self/cgroup's path up to the root,
 * below `root` ("/sys/fs/cgroup"); `of` when there is none. */
uint64_t host_cgroup_limit(const char *root, const char *cgroup, uint64_t of);

/*
 * Adds cpu_busy, cpu_steal (shares of the time since the last call; not on
 * the first) and mem_used_bytes to `usage`.
 */
void host_usage_add(const char *root, struct host_cpu *last, json_t *usage);

#endif
