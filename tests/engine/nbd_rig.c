/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "nbd_rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/bdev/nbd_conn.h"

bool nbd_server_can(void)
{
	return nbd_conn_can() && !system("nbdkit --version >/dev/null 2>&1");
}

static void file_write(const char *path, const char *text)
{
	const int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	id_assert(fd >= 0 && dprintf(fd, "%s", text) >= 0);
	close(fd);
}

static uint16_t port_free(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	id_assert(!bind(fd, (struct sockaddr *)&at, sizeof(at)) &&
		  !getsockname(fd, (struct sockaddr *)&at, &len));
	close(fd);
	return ntohs(at.sin_port);
}

static void child_run(const struct nbd_server *s)
{
	const struct nbd_server_opts *o = &s->opts;
	const char *argv[32] = { "nbdkit", "-f", "--filter=limit" };
	char port[8], file[128], psk[128];
	const int log = open(s->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	size_t n = 3, k = 0;

	snprintf(port, sizeof(port), "%u", s->port);
	snprintf(file, sizeof(file), "file=%s", s->file);
	snprintf(psk, sizeof(psk), "--tls-psk=%s", s->psk);
	if (o->tcp) {
		argv[n++] = "-i127.0.0.1";
		argv[n++] = "-p";
		argv[n++] = port;
	} else {
		argv[n++] = "-U";
		argv[n++] = s->sock;
	}
	if (o->key) {
		argv[n++] = "--tls=require";
		argv[n++] = psk;
	}
	if (o->read_only)
		argv[n++] = "-r";
	while (o->more[k] && o->more[k][0] == '-')
		argv[n++] = o->more[k++];
	argv[n++] = "file";
	argv[n++] = file;
	while (o->more[k])
		argv[n++] = o->more[k++];
	dup2(log, 2);
	execvp("nbdkit", (char **)argv);
	_exit(127);
}

void nbd_server_again(struct nbd_server *s)
{
	unlink(s->sock);
	s->pid = fork();
	id_assert(s->pid >= 0);
	if (s->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_run(s);
}

void nbd_server_start(struct nbd_server *s, const struct nbd_server_opts *opts)
{
	static unsigned serial;
	char text[160];
	int fd;

	*s = (struct nbd_server) { .opts = *opts };
	snprintf(s->dir, sizeof(s->dir), "base-test-nbd-%d-%u", (int)getpid(),
		 serial++);
	id_assert(!mkdir(s->dir, 0700));
	snprintf(s->file, sizeof(s->file), "%s/file", s->dir);
	snprintf(s->sock, sizeof(s->sock), "%s/sock", s->dir);
	snprintf(s->psk, sizeof(s->psk), "%s/psk", s->dir);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	fd = open(s->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	id_assert(fd >= 0 && !ftruncate(fd, (off_t)opts->size_bytes));
	close(fd);
	if (opts->key) {
		snprintf(text, sizeof(text), "iodeck:%s\n", opts->key);
		file_write(s->psk, text);
	}
	if (opts->tcp)
		s->port = port_free();
	nbd_server_again(s);
}

void nbd_server_halt(const struct nbd_server *s)
{
	int status;

	kill(s->pid, SIGSTOP);
	id_assert(waitpid(s->pid, &status, WUNTRACED) == s->pid &&
		  WIFSTOPPED(status));
}

void nbd_server_kill(struct nbd_server *s)
{
	if (!s->pid)
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

void nbd_server_end(struct nbd_server *s)
{
	nbd_server_kill(s);
	unlink(s->file);
	unlink(s->sock);
	unlink(s->psk);
	unlink(s->log);
	rmdir(s->dir);
}

struct bdev_nbd_target nbd_server_target(const struct nbd_server *s)
{
	return (struct bdev_nbd_target) {
		.unix_path = s->opts.tcp ? NULL : s->sock,
		.address = s->opts.tcp ? "127.0.0.1" : NULL,
		.port = s->port,
		.key = s->opts.key,
	};
}

unsigned nbd_server_said(const struct nbd_server *s, const char *word)
{
	char line[1024];
	unsigned count = 0;
	FILE *f = fopen(s->log, "re");

	while (f && fgets(line, sizeof(line), f))
		count += strstr(line, word) != NULL;
	if (f)
		fclose(f);
	return count;
}
