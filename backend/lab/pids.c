/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What runs in a namespace, and its end. Killing goes by pidfd: a pid that was
 * found, ended and was given to somebody else is looked at again first. And a
 * name that stands for the host's own network kills nobody.
 */
#include "backend/lab/lab_impl.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIDS_MAX 4096
#define ROUNDS 500
#define NAP_NS (10 * 1000 * 1000)

int lab_net_pids(const char *netns, int *pid, int max, struct err *err)
{
	char *out = NULL, *p, *end;
	int n = 0, r;
	long v;

	r = lab_ask_tool(&out, err, "ip", "netns", "pids", netns);
	if (r)
		return r;
	for (p = out; n < max; p = end) {
		v = strtol(p, &end, 10);
		if (end == p)
			break;
		if (v > 1 && v <= INT_MAX)
			pid[n++] = (int)v;
	}
	free(out);
	return n;
}

static int netns_of(const char *path, struct stat *st)
{
	return stat(path, st) ? -errno : 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Neither the host's, nor the one we stand in. */
static int check_not_ours(const char *netns, struct stat *lab, struct err *err)
{
	char path[64];
	struct stat other;
	int r;

	snprintf(path, sizeof(path), LAB_NETNS_DIR "/%s", netns);
	r = netns_of(path, lab);
	if (r)
		return r;
	if (!netns_of("/proc/1/ns/net", &other) && same(lab, &other))
		return err_set(err, -EBUSY,
			       LAB_NETNS_DIR
			       "/%s is the host's own network and "
			       "none of a lab: remove that name "
			       "with \"ip netns del %s\"",
			       netns, netns);
	if (!netns_of("/proc/self/ns/net", &other) && same(lab, &other))
		return err_set(
			err, -EBUSY,
			"this iodeck runs in %s itself: leave that shell "
			"first",
			netns);
	return 0;
}

static void kill_one(int pid, const struct stat *lab)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[64];
	struct stat its;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (!netns_of(path, &its) && same(&its, lab))
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	close(fd);
}

int lab_net_kill(const char *netns, struct err *err)
{
	struct timespec nap = { .tv_nsec = NAP_NS };
	int pid[PIDS_MAX] = { 0 }, n, i, round, r;
	struct stat lab;

	r = check_not_ours(netns, &lab, err);
	if (r)
		return r == -ENOENT ? 0 : r;
	for (round = 0; round < ROUNDS; round++) {
		n = lab_net_pids(netns, pid, PIDS_MAX, err);
		if (n <= 0)
			return n;
		for (i = 0; i < n; i++)
			kill_one(pid[i], &lab);
		nanosleep(&nap, NULL);
	}
	return err_set(err, -EBUSY,
		       "%d processes of %s do not end, such as pid %d: they "
		       "wait for a device; try again once it answers",
		       n, netns, pid[0]);
}
