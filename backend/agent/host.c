/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/event.h"

/* The beginning of a small file, as text; "" when it cannot be read. */
static void text_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	n = n > 0 ? n : 0;
	memset(text + n, 0, size - (size_t)n);
	if (fd >= 0)
		close(fd);
}

/* "model name	: AMD EPYC" of /proc/cpuinfo, or "" (not all machines say). */
static void cpu_model(char *model, size_t size)
{
	char text[8192], *at, *end;

	text_read("/proc/cpuinfo", text, sizeof(text));
	*model = '\0';
	at = strstr(text, "model name");
	if (at)
		at = strchr(at, ':');
	if (!at)
		return;
	at += strspn(at, ": \t");
	end = strchrnul(at, '\n');
	*end = '\0';
	event_text(model, size, at);
}

int64_t host_mem_parse(const char *text, const char *key)
{
	const char *at = text;
	size_t len = strlen(key);
	int64_t kib = -1;

	while (at && (strncmp(at, key, len) != 0 || at[len] != ':')) {
		at = strchr(at, '\n');
		if (at)
			at++;
	}
	if (!at || sscanf(at + len + 1, "%" SCNd64, &kib) != 1 || kib < 0)
		return -1;
	return kib * 1024;
}

/* "max" is no limit. */
static uint64_t limit_read(const char *dir)
{
	char path[PATH_MAX], text[32];
	uint64_t bytes;

	snprintf(path, sizeof(path), "%s/memory.max", dir);
	text_read(path, text, sizeof(text));
	return sscanf(text, "%" SCNu64, &bytes) == 1 ? bytes : UINT64_MAX;
}

/* A group is held by those above it too. */
uint64_t host_cgroup_limit(const char *root, const char *cgroup, uint64_t of)
{
	char dir[PATH_MAX - 16];
	const char *at = strstr(cgroup, "0::");
	const size_t least = strlen(root);
	char *slash;

	if (!at)
		return of;
	at += 3;
	snprintf(dir, sizeof(dir), "%s%.*s", root, (int)strcspn(at, "\n"), at);
	do {
		const uint64_t limit = limit_read(dir);

		if (limit < of)
			of = limit;
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
	} while (slash && strlen(dir) >= least);
	return of;
}

uint64_t host_mem_bytes(void)
{
	char mem[4096], group[4096];
	int64_t total;

	text_read("/proc/meminfo", mem, sizeof(mem));
	text_read("/proc/self/cgroup", group, sizeof(group));
	total = host_mem_parse(mem, "MemTotal");
	return total < 0 ? 0
			 : host_cgroup_limit("/sys/fs/cgroup", group,
					     (uint64_t)total);
}

static void mem_add(json_t *to, const char *name, int64_t bytes)
{
	if (bytes >= 0)
		json_object_set_new(to, name, json_integer(bytes));
}

static void text_add(json_t *to, const char *name, const char *text)
{
	char clean[256];

	event_text(clean, sizeof(clean), text);
	if (*clean)
		json_object_set_new(to, name, json_string(clean));
}

json_t *host_facts(void)
{
	json_t *facts = json_object();
	char mem[4096], model[128];
	struct utsname uts;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (!facts)
		return NULL;
	if (!uname(&uts)) {
		text_add(facts, "name", uts.nodename);
		text_add(facts, "kernel", uts.release);
	}
	cpu_model(model, sizeof(model));
	text_add(facts, "cpu", model);
	if (cores > 0)
		json_object_set_new(facts, "cores", json_integer(cores));
	text_read("/proc/meminfo", mem, sizeof(mem));
	mem_add(facts, "mem_bytes", host_mem_parse(mem, "MemTotal"));
	return facts;
}

/* user nice system idle iowait irq softirq steal: guest time is in user's. */
int host_cpu_parse(const char *text, struct host_cpu *cpu)
{
	uint64_t v[8] = { 0 };
	int n;

	n = sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
	if (n < 4)
		return -EINVAL;
	*cpu = (struct host_cpu) {
		.busy = v[0] + v[1] + v[2] + v[5] + v[6],
		.steal = v[7],
	};
	cpu->total = cpu->busy + cpu->steal + v[3] + v[4];
	return 0;
}

static void share_add(json_t *usage, const char *name, uint64_t part,
		      uint64_t whole)
{
	json_object_set_new(usage, name,
			    json_real((double)part / (double)whole));
}

void host_usage_add(struct host_cpu *last, json_t *usage)
{
	struct host_cpu cpu;
	int64_t total, left;
	char text[4096];

	text_read("/proc/stat", text, sizeof(text));
	if (!host_cpu_parse(text, &cpu)) {
		/* idle and iowait may go back by a jiffy */
		if (last->total && cpu.total > last->total &&
		    cpu.busy >= last->busy && cpu.steal >= last->steal) {
			share_add(usage, "cpu_busy", cpu.busy - last->busy,
				  cpu.total - last->total);
			share_add(usage, "cpu_steal", cpu.steal - last->steal,
				  cpu.total - last->total);
		}
		*last = cpu;
	}
	text_read("/proc/meminfo", text, sizeof(text));
	total = host_mem_parse(text, "MemTotal");
	left = host_mem_parse(text, "MemAvailable");
	if (total >= 0 && left >= 0)
		mem_add(usage, "mem_used_bytes", total - left);
}
