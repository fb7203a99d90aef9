/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a killed agent may leave. The kernel kills its exporters with it; should
 * one live on all the same, it is found by a mark: its pid, when that process
 * began, and the boot in which it did. Nobody else has all three.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/agent/export_priv.h"

#define MARK "pid-"
#define WAIT_MS 2000 /* for a killed process to end */

static void mark_name(const char *name, char *mark, size_t len)
{
	snprintf(mark, len, MARK "%s", name);
}

void left_mark(const struct exports *x, const char *name, pid_t pid)
{
	char mark[32];
	int fd;

	mark_name(name, mark, sizeof(mark));
	fd = openat(x->dirfd, mark,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return; /* a full disk: the kernel's way remains */
	if (dprintf(fd, "%ld %" PRIu64 " %s\n", (long)pid, child_began(pid),
		    x->boot) < 0)
		unlinkat(x->dirfd, mark, 0);
	close(fd);
}

void left_unmark(const struct exports *x, const char *name)
{
	char mark[32];

	mark_name(name, mark, sizeof(mark));
	unlinkat(x->dirfd, mark, 0);
}

/* The descriptor is taken before it is looked at once more: what it names then
 * is what is killed. */
static void process_end(const struct exports *x, pid_t pid, uint64_t began)
{
	const int pidfd = child_pidfd(pid);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	char text[96];

	if (pidfd < 0)
		return;
	if (child_began(pid) == began && !child_kill(pidfd)) {
		snprintf(text, sizeof(text),
			 "an exporter that a killed agent had left, pid %ld, "
			 "was ended",
			 (long)pid);
		x->opts.say("warn", text, x->opts.arg);
		poll(&end, 1, WAIT_MS);
	}
	close(pidfd);
}

static void mark_follow(const struct exports *x, const char *mark)
{
	char text[128], boot[40];
	uint64_t began = 0;
	long pid = 0;
	ssize_t n;
	int fd = openat(x->dirfd, mark, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%ld %" SCNu64 " %39s", &pid, &began, boot) == 3 &&
	    pid > 1 && began && !strcmp(boot, x->boot))
		process_end(x, (pid_t)pid, began);
}

void left_end(const struct exports *x)
{
	const int fd = openat(x->dirfd, ".", O_RDONLY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (!strncmp(entry->d_name, MARK, strlen(MARK)))
			mark_follow(x, entry->d_name);
		unlinkat(x->dirfd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}
