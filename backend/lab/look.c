/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How labs stand: what a state file says, beside what the kernel has. */
#include "backend/lab/lab_impl.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIDS_MAX 1024

int lab_begin(struct lab *lab, const char *root, const char *name,
	      struct err *err)
{
	int r = lab_name_check(name, err);

	memset(lab, 0, sizeof(*lab));
	if (!r)
		r = lab_root_check(root, err);
	if (r)
		return r;
	snprintf(lab->root, sizeof(lab->root), "%s", root);
	snprintf(lab->name, sizeof(lab->name), "%s", name);
	return 0;
}

int lab_look(const char *root, const char *name, struct lab *lab,
	     struct lab_look *look, struct err *err)
{
	int r = lab_begin(lab, root, name, err), i, pid[PIDS_MAX], n;
	char ns[LAB_WORD];
	uint64_t up = 0;

	if (!r)
		r = lab_root_user("status", err);
	if (!r)
		r = lab_state_load(lab, err);
	if (!r && lab_net_there(name, LAB_SWITCH))
		r = lab_net_carriers(lab, &up, err);
	for (i = 0; !r && i < lab->nodes; i++) {
		look[i] = (struct lab_look) {
			.there = lab_net_there(name, i),
			.carrier = up >> i & 1,
		};
		if (!look[i].there)
			continue;
		n = lab_net_pids(lab_netns(name, i, ns), pid, PIDS_MAX, err);
		r = n < 0 ? n : 0;
		look[i].processes = n;
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_read(DIR *dir, char ***names)
{
	char **list = calloc(1, sizeof(*list)), **more;
	struct dirent *entry;
	size_t n = 0;

	while (dir && list && (entry = readdir(dir))) {
		if (lab_name_check(entry->d_name, NULL))
			continue;
		more = realloc(list, (n + 2) * sizeof(*list));
		if (!more)
			break;
		list = more;
		list[n] = strdup(entry->d_name);
		if (list[n])
			n++;
		list[n] = NULL;
	}
	if (n)
		qsort(list, n, sizeof(*list), by_name);
	*names = list;
	return list ? 0 : -ENOMEM;
}

int lab_names(const char *root, char ***names, struct err *err)
{
	int r = lab_root_check(root, err);
	DIR *dir;

	if (r)
		return r;
	dir = opendir(root);
	if (!dir && errno == EACCES)
		return err_set(
			err, -EACCES,
			"%s: only root sees labs: sudo iodeck lab status",
			root);
	if (!dir && errno != ENOENT)
		return err_set(err, -errno, "%s: %s", root, strerror(errno));
	r = names_read(dir, names);
	if (dir)
		closedir(dir);
	return r ? err_set(err, r, "out of memory") : 0;
}
