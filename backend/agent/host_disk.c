/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/agent/host_read.h"

#define SECTOR 512

/* ---- names -------------------------------------------------------------- */

struct names_look {
	const char *root;
	struct host_disk_names *names;
};

static bool name_add(const char *name, void *arg)
{
	struct names_look *l = arg;

	if (l->names->count == HOST_DISKS_MAX)
		return false;
	/* memory that plays a disk, and loops without a file */
	if (strlen(name) >= HOST_DISK_NAME || !strncmp(name, "ram", 3) ||
	    host_number(l->root, "/sys/block/%s/size", name) <= 0)
		return true;
	snprintf(l->names->name[l->names->count++], HOST_DISK_NAME, "%s", name);
	return true;
}

void host_disk_names_read(const char *root, struct host_disk_names *names)
{
	struct names_look l = { root, names };

	names->count = 0;
	host_dir(root, "/sys/block", name_add, &l);
}

static bool name_known(const struct host_disk_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

/* ---- counters ----------------------------------------------------------- */

/* major minor name, then 11 figures and in newer kernels more. */
static bool line_parse(const char *line, struct host_disk *d)
{
	uint64_t v[11];
	int n;

	*d = (struct host_disk) { 0 };
	n = sscanf(line,
		   " %*u %*u %31s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   d->name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		   &v[7], &v[8], &v[9], &v[10]);
	if (n != 12)
		return false;
	d->reads = v[0];
	d->read_bytes = v[2] * SECTOR;
	d->writes = v[4];
	d->write_bytes = v[6] * SECTOR;
	d->wait_ms = v[3] + v[7];
	d->busy_ms = v[9];
	d->queue_ms = v[10];
	return true;
}

void host_disks_parse(const char *text, const struct host_disk_names *names,
		      struct host_disks *disks)
{
	const char *end;

	disks->count = 0;
	/* a last line without an end was cut */
	for (; (end = strchr(text, '\n')); text = end + 1) {
		char line[512];

		if (disks->count == HOST_DISKS_MAX)
			return;
		if ((size_t)(end - text) >= sizeof(line))
			continue;
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		if (line_parse(line, &disks->disk[disks->count]))
			disks->count += name_known(
				names, disks->disk[disks->count].name);
	}
}

static const struct host_disk *disk_find(const struct host_disks *disks,
					 const char *name)
{
	for (size_t i = 0; i < disks->count; i++)
		if (!strcmp(disks->disk[i].name, name))
			return &disks->disk[i];
	return NULL;
}

/* ---- figures ------------------------------------------------------------ */

static bool went_back(const struct host_disk *was, const struct host_disk *is)
{
	return is->reads < was->reads || is->writes < was->writes ||
	       is->read_bytes < was->read_bytes ||
	       is->write_bytes < was->write_bytes ||
	       is->wait_ms < was->wait_ms || is->busy_ms < was->busy_ms ||
	       is->queue_ms < was->queue_ms;
}

static json_t *disk_usage(double len_s, const struct host_disk *was,
			  const struct host_disk *is)
{
	const double ios =
		(double)(is->reads - was->reads + is->writes - was->writes);
	const double ms = len_s * 1000;
	const double busy = (double)(is->busy_ms - was->busy_ms) / ms;
	json_t *j;

	if (went_back(was, is))
		return NULL;
	j = json_object();
	host_add_text(j, "name", is->name);
	host_add_rate(j, "read_iops", (double)(is->reads - was->reads) / len_s);
	host_add_rate(j, "write_iops",
		      (double)(is->writes - was->writes) / len_s);
	host_add_rate(j, "read_bytes_s",
		      (double)(is->read_bytes - was->read_bytes) / len_s);
	host_add_rate(j, "write_bytes_s",
		      (double)(is->write_bytes - was->write_bytes) / len_s);
	/* the kernel's clock and ours do not tick together */
	host_add_rate(j, "busy", busy < 1 ? busy : 1);
	host_add_rate(j, "queue", (double)(is->queue_ms - was->queue_ms) / ms);
	if (ios > 0)
		host_add_rate(j, "latency_us",
			      (double)(is->wait_ms - was->wait_ms) * 1000 /
				      ios);
	return j;
}

void host_disks_usage(const char *root, const struct host_disk_names *names,
		      double len_s, struct host_disks *last, json_t *usage)
{
	json_t *list = json_array();
	struct host_disks disks;
	char text[65536];

	host_read(root, "/proc/diskstats", text, sizeof(text));
	host_disks_parse(text, names, &disks);
	for (size_t i = 0; list && len_s > 0 && i < disks.count; i++) {
		const struct host_disk *is = &disks.disk[i];
		const struct host_disk *was = disk_find(last, is->name);
		json_t *j = NULL;

		/* of one that was never used there is nothing to say */
		if (was && (is->reads || is->writes))
			j = disk_usage(len_s, was, is);

		if (j)
			json_array_append_new(list, j);
	}
	if (json_array_size(list))
		json_object_set(usage, "disks", list);
	json_decref(list);
	*last = disks;
}
