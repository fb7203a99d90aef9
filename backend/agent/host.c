/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/agent/host_read.h"
#include "backend/event.h"

/* "model name	: AMD EPYC" of /proc/cpuinfo, or "" (not all machines say). */
static void cpu_model(const char *root, char *model, size_t size)
{
	char text[8192], *at, *end;

	host_read(root, "/proc/cpuinfo", text, sizeof(text));
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

#define SOCKETS_MAX 64

struct sockets {
	const char *root;
	int64_t id[SOCKETS_MAX];
	int count;
};

/* "cpu12", which is in socket 1. */
static bool socket_add(const char *cpu, void *arg)
{
	struct sockets *s = arg;
	int64_t id;
	int k = 0;

	if (strncmp(cpu, "cpu", 3) != 0 || cpu[3] < '0' || cpu[3] > '9')
		return true;
	id = host_number(s->root,
			 "/sys/devices/system/cpu/%.16s/topology/"
			 "physical_package_id",
			 cpu);
	while (k < s->count && s->id[k] != id)
		k++;
	if (id >= 0 && k == s->count && k < SOCKETS_MAX)
		s->id[s->count++] = id;
	return true;
}

static int64_t sockets(const char *root)
{
	struct sockets s = { .root = root };

	host_dir(root, "/sys/devices/system/cpu", socket_add, &s);
	return s.count ? s.count : -1;
}

/* NAME=value or NAME="value", at a line's beginning. */
static bool release_value(const char *text, const char *key, char *value,
			  size_t size)
{
	const size_t len = strlen(key);
	const char *at = text;
	char raw[256];
	size_t n;

	while (at && (strncmp(at, key, len) != 0 || at[len] != '=')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	at += len + 1;
	at += *at == '"' || *at == '\'';
	n = strcspn(at, "\"'\n");
	snprintf(raw, sizeof(raw), "%.*s", n < sizeof(raw) ? (int)n : 255, at);
	event_text(value, size, raw);
	return *value != '\0';
}

void host_distribution_parse(const char *text, char *name, size_t size)
{
	*name = '\0';
	if (!release_value(text, "PRETTY_NAME", name, size))
		release_value(text, "NAME", name, size);
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
	if (!at || sscanf(at + len + 1, "%" SCNd64, &kib) != 1 || kib < 0 ||
	    kib > INT64_MAX / 1024)
		return -1;
	return kib * 1024;
}

/* "max" is no limit. */
static uint64_t limit_read(const char *dir)
{
	char path[PATH_MAX], text[32];
	uint64_t bytes;

	snprintf(path, sizeof(path), "%s/memory.max", dir);
	host_read("", path, text, sizeof(text));
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

	host_read("", "/proc/meminfo", mem, sizeof(mem));
	host_read("", "/proc/self/cgroup", group, sizeof(group));
	total = host_mem_parse(mem, "MemTotal");
	return total < 0 ? 0
			 : host_cgroup_limit("/sys/fs/cgroup", group,
					     (uint64_t)total);
}

/* What counts the time, and whether anything holds it to the world's. */
static json_t *clock_facts(const char *root)
{
	struct timex tx = { 0 };
	const int state = adjtimex(&tx);
	json_t *clock = json_object();
	char source[64];

	if (!clock)
		return NULL;
	host_line(source, sizeof(source), root,
		  "/sys/devices/system/clocksource/clocksource0/"
		  "current_clocksource");
	host_add_text(clock, "source", source);
	if (state < 0) /* forbidden in some containers */
		return clock;
	json_object_set_new(
		clock, "synced",
		json_boolean(state != TIME_ERROR && !(tx.status & STA_UNSYNC)));
	if (!(tx.status & STA_UNSYNC))
		host_add_int(clock, "error_us", tx.maxerror);
	return clock;
}

static void cpu_facts(const char *root, json_t *facts)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	char model[128], stat[512];
	struct host_cpu cpu;

	cpu_model(root, model, sizeof(model));
	host_add_text(facts, "cpu", model);
	host_add_int(facts, "sockets", sockets(root));
	if (cores > 0)
		host_add_int(facts, "cores", cores);
	host_read(root, "/proc/stat", stat, sizeof(stat));
	if (!host_cpu_parse(stat, &cpu))
		json_object_set_new(facts, "steal_known",
				    json_boolean(cpu.steal_known));
}

json_t *host_facts(const char *root)
{
	json_t *facts = json_object();
	char text[4096], name[128];
	struct utsname uts;

	if (!facts)
		return NULL;
	if (!uname(&uts)) {
		host_add_text(facts, "name", uts.nodename);
		host_add_text(facts, "kernel", uts.release);
	}
	host_read(root, "/etc/os-release", text, sizeof(text));
	host_distribution_parse(text, name, sizeof(name));
	host_add_text(facts, "distribution", name);
	cpu_facts(root, facts);
	host_read(root, "/proc/meminfo", text, sizeof(text));
	host_add_int(facts, "mem_bytes", host_mem_parse(text, "MemTotal"));
	json_object_set_new(facts, "clock", clock_facts(root));
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
		.steal_known = n == 8,
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

void host_usage_add(const char *root, struct host_cpu *last, json_t *usage)
{
	struct host_cpu cpu;
	int64_t total, left;
	char text[4096];

	host_read(root, "/proc/stat", text, sizeof(text));
	if (!host_cpu_parse(text, &cpu)) {
		/* idle and iowait may go back by a jiffy */
		if (last->total && cpu.total > last->total &&
		    cpu.busy >= last->busy && cpu.steal >= last->steal) {
			share_add(usage, "cpu_busy", cpu.busy - last->busy,
				  cpu.total - last->total);
			if (cpu.steal_known)
				share_add(usage, "cpu_steal",
					  cpu.steal - last->steal,
					  cpu.total - last->total);
		}
		*last = cpu;
	}
	host_read(root, "/proc/meminfo", text, sizeof(text));
	total = host_mem_parse(text, "MemTotal");
	left = host_mem_parse(text, "MemAvailable");
	if (total >= 0 && left >= 0)
		host_add_int(usage, "mem_used_bytes", total - left);
}
