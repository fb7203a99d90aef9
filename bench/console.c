/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the console costs: the made-up session on a pseudo-terminal that reads
 * everything, W x H, an event every so many milliseconds, for some seconds;
 * then the CPU time of the whole process as the kernel counts it.
 *
 *   bench_console CONSOLE [W [H [EVERY_MS [SECONDS]]]]
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static pid_t start(const char *console, int w, int h, const char *every,
		   int *master)
{
	struct winsize ws = { .ws_col = (unsigned short)w,
			      .ws_row = (unsigned short)h };
	pid_t pid = forkpty(master, NULL, NULL, &ws);

	if (pid)
		return pid;
	setenv("TERM", "xterm-256color", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("XDG_STATE_HOME", "/nonexistent", 1);
	execl(console, console, "150", every, (char *)NULL);
	_exit(127);
}

/* Reads for so long; returns bytes, counts wakes. */
static size_t drain(int fd, double seconds, size_t *reads)
{
	double end = now_s() + seconds;
	char buf[65536];
	size_t bytes = 0;

	while (now_s() < end) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, 50) <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		bytes += (size_t)n;
		(*reads)++;
	}
	return bytes;
}

static double cpu_s(void)
{
	struct rusage ru;

	getrusage(RUSAGE_CHILDREN, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* CPU of a console that lives for so long. */
static double life(char **argv, int w, int h, const char *every, double seconds,
		   size_t *bytes)
{
	double before = cpu_s();
	size_t reads = 0;
	int fd, status;
	pid_t pid = start(argv[1], w, h, every, &fd);

	if (pid < 0) {
		perror("forkpty");
		exit(1);
	}
	*bytes = drain(fd, seconds, &reads);
	kill(pid, SIGTERM);
	drain(fd, 0.3, &reads);
	waitpid(pid, &status, 0);
	close(fd);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "the console failed\n");
		exit(1);
	}
	return cpu_s() - before;
}

int main(int argc, char **argv)
{
	int w = argc > 2 ? atoi(argv[2]) : 200;
	int h = argc > 3 ? atoi(argv[3]) : 60;
	const char *every = argc > 4 ? argv[4] : "100";
	double seconds = argc > 5 ? atof(argv[5]) : 10, born, cpu;
	size_t bytes_born, bytes;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_console CONSOLE [W [H [EVERY_MS "
				"[SECONDS]]]]\n");
		return 2;
	}
	/* starting (reading the session) is not what is asked for */
	born = life(argv, w, h, every, 1, &bytes_born);
	cpu = life(argv, w, h, every, seconds + 1, &bytes) - born;
	printf("%dx%d, an event every %s ms: %.2f %% of a core, %.1f KB/s, "
	       "%.2f ms of CPU and %.1f KB a frame\n",
	       w, h, every, cpu / seconds * 100,
	       (double)(bytes - bytes_born) / seconds / 1e3,
	       cpu / seconds * 100,
	       (double)(bytes - bytes_born) / seconds / 1e4);
	return 0;
}
