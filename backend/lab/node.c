/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A node's inside. A child enters the node's network, leaves the host's mounts,
 * host name and process table, and its child, the first process of the node,
 * sets up what the node sees and becomes sshd:
 *
 *   /proc, /sys, /run   its own          home, /tmp   directories of the lab
 *   /etc/hosts, /etc/hostname, /etc/shadow            files of the lab
 *   lab_dir             empty but for the node's own directory
 *
 * When that first process is killed the kernel kills all others of the node.
 */
#include "backend/lab/lab_impl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/paths.h"

#define START_MS 10000
#define ANSWER_MS 30000
#define BANNER_MS 5000 /* on a host that is busy otherwise */
#define NAP_NS (20 * 1000 * 1000)

/* All paths are made before the fork. */
struct inside {
	char netns[PATH_MAX], host[LAB_WORD];
	char root[PATH_MAX], dir[PATH_MAX]; /* lab_dir, and the node's in it */
	char below[PATH_MAX];               /* ROOT/NAME, between the two */
	char sshd[PATH_MAX], conf[PATH_MAX], log[PATH_MAX];
	char home[PATH_MAX]; /* the user's, by the host's table */
	int say;             /* errors go there; it closes when sshd runs */
};

static void fill(struct inside *in, const struct lab *lab, int node)
{
	char below[64], ns[LAB_WORD], name[LAB_WORD];
	const struct passwd *pw = getpwuid(0);

	lab_node_name(node, name);
	snprintf(in->netns, sizeof(in->netns), LAB_NETNS_DIR "/%s",
		 lab_netns(lab->name, node, ns));
	snprintf(in->host, sizeof(in->host), "%s", name);
	snprintf(in->root, sizeof(in->root), "%s", lab->root);
	snprintf(in->home, sizeof(in->home), "%s",
		 pw && pw->pw_dir[0] == '/' && pw->pw_dir[1] ? pw->pw_dir : "");
	lab_path(lab, "", in->below, sizeof(in->below));
	lab_path(lab, name, in->dir, sizeof(in->dir));
	snprintf(below, sizeof(below), "%s/etc/sshd_config", name);
	lab_path(lab, below, in->conf, sizeof(in->conf));
	snprintf(below, sizeof(below), "%s/sshd.log", name);
	lab_path(lab, below, in->log, sizeof(in->log));
}

/* ---- in the child ------------------------------------------------------- */

_Noreturn static void give_up(const struct inside *in, const char *what)
{
	dprintf(in->say, "%s: %s", what, strerror(errno));
	_exit(1);
}

/* A directory or file of the node, by descriptor, over one that all see. */
static void put_over(const struct inside *in, int fd, const char *target)
{
	char from[64];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (mount(from, target, NULL, MS_BIND, NULL))
		give_up(in, target);
	close(fd);
}

static int open_own(const struct inside *in, int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		give_up(in, name);
	return fd;
}

static void see_kernel(const struct inside *in)
{
	/* A slave: what the host unmounts is not held by a node. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		give_up(in, "the mounts");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL))
		give_up(in, "/proc");
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL))
		give_up(in, "/sys");
	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV,
		  "mode=755,size=64m") ||
	    mkdir("/run/sshd", 0755))
		give_up(in, "/run");
}

/* Other nodes' directories are other machines'. */
static void see_own_directory(const struct inside *in, int dir)
{
	if (path_make(in->root, NULL) ||
	    mount("tmpfs", in->root, "tmpfs", MS_NOSUID | MS_NODEV,
		  "mode=755,size=1m") ||
	    mkdir(in->below, 0755) || mkdir(in->dir, 0755))
		give_up(in, in->root);
	put_over(in, dir, in->dir);
}

static void see_files(const struct inside *in)
{
	static const struct {
		const char *own, *target;
	} files[] = { { "etc/hosts", "/etc/hosts" },
		      { "etc/hostname", "/etc/hostname" },
		      { "etc/shadow", "/etc/shadow" } };
	int dir = open(in->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int home, tmp;
	size_t i;

	if (dir < 0)
		give_up(in, in->dir);
	for (i = 0; i < array_len(files); i++)
		if (path_exists(files[i].target))
			put_over(in, open_own(in, dir, files[i].own),
				 files[i].target);
	home = open_own(in, dir, "home");
	tmp = open_own(in, dir, "tmp");
	if (*in->home)
		put_over(in, home, in->home);
	put_over(in, tmp, "/tmp");
	see_own_directory(in, dir);
}

/* Whatever the program that starts it has set up for itself ends here. */
static void be_plain(void)
{
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* the lock is among them */
	i = open("/dev/null", O_RDWR);
	dup2(i, 0);
	dup2(i, 1);
	dup2(i, 2);
}

_Noreturn static void be_first(const struct inside *in)
{
	char *const argv[] = { (char *)in->sshd,
			       (char *)"-D",
			       (char *)"-f",
			       (char *)in->conf,
			       (char *)"-E",
			       (char *)in->log,
			       NULL };
	char *const env[] = {
		(char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
			"/usr/bin:/sbin:/bin",
		NULL
	};

	see_kernel(in);
	see_files(in);
	if (sethostname(in->host, strlen(in->host)) || chdir("/"))
		give_up(in, "the host name");
	be_plain();
	execve(in->sshd, argv, env);
	give_up(in, in->sshd);
}

_Noreturn static void enter(const struct inside *in)
{
	int ns = open(in->netns, O_RDONLY | O_CLOEXEC);
	pid_t first;

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		give_up(in, in->netns);
	setsid();
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID))
		give_up(in, "namespaces for mounts, names and processes");
	first = fork();
	if (first < 0)
		give_up(in, "fork");
	if (!first)
		be_first(in);
	_exit(0);
}

/* ---- the parent's side -------------------------------------------------- */

/* What the child had to say until sshd ran: nothing, if all went well. */
static int hear(int fd, const struct inside *in, struct err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char said[300];
	size_t n = 0;
	ssize_t k;

	for (;;) {
		if (poll(&p, 1, START_MS) <= 0)
			return err_set(err, -ETIMEDOUT,
				       "%s: it did not start within %d s",
				       in->host, START_MS / 1000);
		k = read(fd, said + n, sizeof(said) - 1 - n);
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	said[n] = '\0';
	if (!n)
		return 0;
	return err_set(err, -EPERM,
		       "%s cannot be set up: %s; a lab needs root with leave "
		       "to make namespaces and mounts, which some containers "
		       "do not give",
		       in->host, said);
}

int lab_node_start(const struct lab *lab, int node, struct err *err)
{
	struct inside in = { 0 };
	int pipe_fd[2], r, status;
	pid_t child;

	r = lab_tool_find("sshd", in.sshd, sizeof(in.sshd), err);
	if (r)
		return r;
	fill(&in, lab, node);
	if (pipe2(pipe_fd, O_CLOEXEC))
		return err_set(err, -errno, "%s: %s", in.host, strerror(errno));
	in.say = pipe_fd[1];
	child = fork();
	if (!child)
		enter(&in);
	close(pipe_fd[1]);
	if (child < 0) {
		r = err_set(err, -errno, "%s: %s", in.host, strerror(errno));
	} else {
		r = hear(pipe_fd[0], &in, err);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(pipe_fd[0]);
	return r;
}

/* 1: it says SSH; 0: not yet. */
static int ask_banner(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char said[256] = "";
	int yes = 0;

	if (fd < 0)
		return 0;
	if ((!connect(fd, (const struct sockaddr *)to, sizeof(*to)) ||
	     errno == EINPROGRESS) &&
	    poll(&p, 1, BANNER_MS) == 1)
		yes = recv(fd, said, sizeof(said), 0) > 4 &&
		      !memcmp(said, "SSH-", 4);
	close(fd);
	return yes;
}

/* The last line of the node's log, which is mostly the reason. */
static void log_end(const struct lab *lab, int node, char *buf, size_t len)
{
	char name[LAB_WORD], below[64], path[PATH_MAX];
	ssize_t n = 0;
	char *line;
	int fd;

	snprintf(below, sizeof(below), "%s/sshd.log",
		 lab_node_name(node, name));
	fd = open(lab_path(lab, below, path, sizeof(path)),
		  O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		lseek(fd, -(off_t)len, SEEK_END);
		n = read(fd, buf, len - 1);
		close(fd);
	}
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	buf[n > 0 ? n : 0] = '\0';
	line = strrchr(buf, '\n');
	if (line)
		memmove(buf, line + 1, strlen(line));
}

int lab_node_wait(const struct lab *lab, int node, struct err *err)
{
	struct timespec nap = { .tv_nsec = NAP_NS }, now, end;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(22) };
	char address[LAB_WORD], name[LAB_WORD], ns[LAB_WORD], why[200];
	int pid;

	inet_pton(AF_INET, lab_address(lab, node, address, sizeof(address)),
		  &to.sin_addr);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ANSWER_MS / 1000;
	lab_netns(lab->name, node, ns);
	do {
		if (ask_banner(&to))
			return 0;
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec && lab_net_pids(ns, &pid, 1, NULL));
	log_end(lab, node, why, sizeof(why));
	return err_set(err, -ETIMEDOUT, "%s: its sshd %s%s%s",
		       lab_node_name(node, name),
		       now.tv_sec < end.tv_sec ? "ended" : "does not answer",
		       *why ? ": " : "", why);
}
