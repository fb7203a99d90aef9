/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/export.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/agent/export_priv.h"
#include "backend/agent/tools.h"

#define KEY_BYTES 32
#define BACKOFF_NS (20 * MSEC_NS)
#define BACKOFF_MAX_NS (2 * SEC_NS)
#define LIVED_NS (10 * SEC_NS) /* so long, and its death is a new one */
#define LINES_MAX 20u          /* of its stderr in the log, from one start */

struct export
{
	struct exports *x;
	struct export *next;
	char id[16]; /* of its files */
	char name[192];
	struct drive_where where;
	int fd; /* holds the component */
	int listen_fd;
	char address[64], unix_path[128];
	uint16_t port;
	char key[2 * KEY_BYTES + 1]; /* "" : no TLS */
	pid_t pid;
	struct watch ended, said; /* its pidfd; its stderr; fd -1: none */
	char line[512];
	size_t line_len;
	unsigned lines, deaths;
	struct timer again;
	uint64_t backoff_ns, started_ns;
	bool closing;
	void (*done)(void *arg);
	void *arg;
};

static void say(const struct export *e, const char *level, const char *what,
		const char *text)
{
	char line[768];

	snprintf(line, sizeof(line), "exporter of %s: %s%s", e->name, what,
		 text);
	e->x->opts.say(level, line, e->x->opts.arg);
}

/* ---- what it says ------------------------------------------------------- */

static void line_end(struct export *e)
{
	e->line[e->line_len] = '\0';
	if (e->line_len && e->lines++ < LINES_MAX)
		say(e, "warn", "", e->line);
	e->line_len = 0;
}

static void said_take(struct export *e, const char *text, size_t len)
{
	for (size_t k = 0; k < len; k++) {
		const unsigned char c = (unsigned char)text[k];

		if (c == '\n' || e->line_len == sizeof(e->line) - 1)
			line_end(e);
		if (c != '\n')
			e->line[e->line_len++] =
				c < ' ' || c > '~' ? '?' : (char)c;
	}
}

static void watch_end(struct export *e, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	watch_remove(e->x->opts.reactor, watch);
	close(watch->fd);
	watch->fd = -1;
}

static void on_said(struct watch *watch, uint32_t events)
{
	struct export *e = container_of(watch, struct export, said);
	char text[1024];
	const ssize_t n = read(watch->fd, text, sizeof(text));

	(void)events;
	if (n > 0)
		said_take(e, text, (size_t)n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		watch_end(e, watch);
}

/* ---- its process -------------------------------------------------------- */

static void start(struct export *e);

static void free_now(struct export *e)
{
	struct export **at = &e->x->list;
	void (*done)(void *arg) = e->done;
	void *arg = e->arg;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	watch_end(e, &e->said);
	watch_end(e, &e->ended);
	timer_cancel(e->x->opts.reactor, &e->again);
	if (e->fd >= 0)
		close(e->fd);
	explicit_bzero(e->key, sizeof(e->key));
	free(e);
	if (done)
		done(arg);
}

static void start_later(struct export *e)
{
	struct reactor *r = e->x->opts.reactor;

	timer_arm(r, &e->again, reactor_now(r) + e->backoff_ns);
	e->backoff_ns *= 2;
	if (e->backoff_ns > BACKOFF_MAX_NS)
		e->backoff_ns = BACKOFF_MAX_NS;
}

static void death_say(const struct export *e, int status)
{
	char text[96];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text),
			 "it was ended by signal %d, and is started again",
			 WTERMSIG(status));
	else
		snprintf(text, sizeof(text),
			 "it ended with status %d, and is started again",
			 WEXITSTATUS(status));
	say(e, "warn", text, "");
}

/* Only after this no write of it can land any more. */
static void on_ended(struct watch *watch, uint32_t events)
{
	struct export *e = container_of(watch, struct export, ended);
	struct reactor *r = e->x->opts.reactor;
	int status = 0;

	(void)events;
	if (waitpid(e->pid, &status, WNOHANG) == 0)
		return;
	if (e->said.fd >= 0)
		on_said(&e->said, 0);
	line_end(e);
	watch_end(e, watch);
	watch_end(e, &e->said);
	left_unmark(e->x, e->id);
	e->pid = 0;
	if (e->closing) {
		free_now(e);
		return;
	}
	e->deaths++;
	death_say(e, status);
	if (reactor_now(r) >= e->started_ns + LIVED_NS)
		e->backoff_ns = BACKOFF_NS;
	start_later(e);
}

struct words {
	const char *argv[32];
	char limit[PATH_MAX + 16], offset[PATH_MAX + 16], plugin[PATH_MAX];
	char psk[64], from[40], range[40], file[40];
	struct tool tool;
};

/* Paths by our own descriptors, whatever the directories are called. */
static int words_make(struct words *w, const struct export *e, struct err *err)
{
	char path[PATH_MAX];
	size_t n = 0;
	int rc = tool_nbdkit(&w->tool, err);

	if (rc)
		return rc;
	while (n < (size_t)w->tool.words) {
		w->argv[n] = w->tool.argv[n];
		n++;
	}
	w->argv[n++] = "-f";
	tool_filter("limit", path);
	snprintf(w->limit, sizeof(w->limit), "--filter=%s", path);
	w->argv[n++] = w->limit;
	if (e->where.device) {
		tool_filter("offset", path);
		snprintf(w->offset, sizeof(w->offset), "--filter=%s", path);
		w->argv[n++] = w->offset;
	}
	if (*e->key) {
		snprintf(w->psk, sizeof(w->psk),
			 "--tls-psk=/proc/self/fd/%d/key-%s", CHILD_DIR, e->id);
		w->argv[n++] = "--tls=require";
		w->argv[n++] = w->psk;
	}
	tool_plugin("file", w->plugin);
	snprintf(w->file, sizeof(w->file), "file=/proc/self/fd/%d", CHILD_FILE);
	w->argv[n++] = w->plugin;
	w->argv[n++] = w->file;
	if (e->where.device) {
		snprintf(w->from, sizeof(w->from), "offset=%llu",
			 (unsigned long long)e->where.off_bytes);
		snprintf(w->range, sizeof(w->range), "range=%llu",
			 (unsigned long long)e->where.size_bytes);
		w->argv[n++] = w->from;
		w->argv[n++] = w->range;
	}
	w->argv[n] = NULL;
	return 0;
}

static int process_start(struct export *e, const struct words *w, int err_fd)
{
	const struct child_opts child = { .argv = w->argv,
					  .listen_fd = e->listen_fd,
					  .file_fd = e->fd,
					  .dir_fd = e->x->dirfd,
					  .priority_fd = e->x->priority_fd,
					  .err_fd = err_fd };
	int rc = child_start(&child, &e->pid);

	if (rc) {
		e->pid = 0;
		return rc;
	}
	left_mark(e->x, e->id, e->pid);
	e->ended.fd = child_pidfd(e->pid);
	rc = e->ended.fd < 0 ? e->ended.fd
			     : watch_add(e->x->opts.reactor, &e->ended);
	id_assert(!rc); /* who cannot see it end cannot fence it */
	return 0;
}

static int start_try(struct export *e, struct err *err)
{
	struct words *w = calloc(1, sizeof(*w));
	int said[2] = { -1, -1 };
	int rc = w ? words_make(w, e, err)
		   : err_set(err, -ENOMEM, "out of memory");

	if (!rc &&
	    (pipe2(said, O_CLOEXEC | O_NONBLOCK) || fcntl(said[1], F_SETFL, 0)))
		rc = err_set(err, -errno, "a pipe: %s", strerror(errno));
	if (!rc) {
		rc = process_start(e, w, said[1]);
		if (rc)
			err_set(err, rc, "nbdkit cannot be started: %s",
				strerror(-rc));
	}
	if (!rc) {
		e->said.fd = said[0];
		said[0] = -1;
		if (watch_add(e->x->opts.reactor, &e->said)) {
			close(e->said.fd);
			e->said.fd = -1;
		}
	}
	for (int k = 0; k < 2; k++)
		if (said[k] >= 0)
			close(said[k]);
	free(w);
	return rc;
}

static void start(struct export *e)
{
	struct err err = { 0 };

	e->started_ns = reactor_now(e->x->opts.reactor);
	e->lines = 0;
	if (!start_try(e, &err))
		return;
	say(e, "error", err.text, "");
	start_later(e);
}

static void on_again(struct timer *timer)
{
	start(container_of(timer, struct export, again));
}

/* ---- opening and closing ------------------------------------------------ */

static int key_make(struct export *e, struct err *err)
{
	uint8_t bytes[KEY_BYTES];
	char name[32];
	int fd, rc = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_set(err, -EIO, "NBD: no random numbers for a key");
	for (size_t k = 0; k < sizeof(bytes); k++)
		snprintf(e->key + 2 * k, 3, "%02x", bytes[k]);
	explicit_bzero(bytes, sizeof(bytes));
	snprintf(name, sizeof(name), "key-%s", e->id);
	fd = openat(e->x->dirfd, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || dprintf(fd, "iodeck:%s\n", e->key) < 0)
		rc = err_set(err, -errno, "NBD: a key cannot be kept: %s",
			     strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int listen_start(struct export *e, const struct export_opts *o,
			struct err *err)
{
	char link[40], dir[96];
	ssize_t n;
	int fd;

	if (o->address) {
		uint16_t port = e->x->port_last < o->port_last
					? (uint16_t)(e->x->port_last + 1)
					: o->port_first;

		fd = listen_tcp(o->address, o->port_first, o->port_last, &port,
				err);
		snprintf(e->address, sizeof(e->address), "%s", o->address);
		e->port = e->x->port_last = port;
		return fd;
	}
	snprintf(dir, sizeof(dir), "sock-%s", e->id);
	fd = listen_unix(e->x->dirfd, dir, err);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", e->x->dirfd);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (fd < 0 || (n > 0 && n < 84)) {
		dir[n > 0 ? n : 0] = '\0';
		snprintf(e->unix_path, sizeof(e->unix_path), "%s/sock-%s", dir,
			 e->id);
		return fd;
	}
	close(fd);
	return err_set(err, -ENAMETOOLONG,
		       "NBD: the agent's directory has a path too long for a "
		       "socket");
}

static void files_remove(const struct export *e)
{
	static const char *const kinds[] = { "key", "sock" };
	char name[32];

	for (size_t k = 0; k < array_len(kinds); k++) {
		snprintf(name, sizeof(name), "%s-%s", kinds[k], e->id);
		unlinkat(e->x->dirfd, name, 0);
	}
}

int export_open(struct exports *x, const struct export_opts *opts,
		struct export **export, struct err *err)
{
	struct export *e = calloc(1, sizeof(*e));
	int rc = 0;

	if (!e) {
		close(opts->fd);
		return err_set(err, -ENOMEM, "out of memory");
	}
	e->x = x;
	e->fd = opts->fd;
	e->where = opts->where;
	e->ended = (struct watch) { .fd = -1, .events = EPOLLIN, on_ended };
	e->said = (struct watch) { .fd = -1, .events = EPOLLIN, on_said };
	e->again.fn = on_again;
	e->backoff_ns = BACKOFF_NS;
	snprintf(e->name, sizeof(e->name), "%s", opts->name);
	snprintf(e->id, sizeof(e->id), "%u", x->serial++);
	e->next = x->list;
	x->list = e;
	e->listen_fd = listen_start(e, opts, err);
	if (e->listen_fd < 0)
		rc = e->listen_fd;
	if (!rc && opts->address)
		rc = key_make(e, err);
	if (!rc)
		rc = start_try(e, err);
	if (rc) {
		export_close(e, NULL, NULL);
		return rc;
	}
	e->started_ns = reactor_now(x->opts.reactor);
	*export = e;
	return 0;
}

void export_close(struct export *e, void (*done)(void *arg), void *arg)
{
	id_assert(!e->closing);
	e->closing = true;
	e->done = done;
	e->arg = arg;
	files_remove(e);
	if (e->listen_fd >= 0)
		close(e->listen_fd);
	timer_cancel(e->x->opts.reactor, &e->again);
	if (e->pid)
		child_kill(e->ended.fd);
	else
		free_now(e);
}

void export_facts(const struct export *e, struct export_facts *facts)
{
	*facts = (struct export_facts) {
		.name = e->name,
		.unix_path = *e->unix_path ? e->unix_path : NULL,
		.address = *e->address ? e->address : NULL,
		.port = e->port,
		.key = *e->key ? e->key : NULL,
		.boot = e->x->boot,
		.pid = (int)e->pid,
		.deaths = e->deaths,
	};
}

/* ---- all of them -------------------------------------------------------- */

/* ChaCha20 is what GnuTLS takes of itself for a pre-shared key, and it costs
 * many times what AES-GCM does. nbdkit has no option for it. */
static int priority_make(void)
{
	static const char text[] = "[overrides]\n"
				   "tls-disabled-cipher = CHACHA20-POLY1305\n";
	const int fd = memfd_create("iodeck-priority", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, text, sizeof(text) - 1) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void boot_read(char *boot, size_t len)
{
	const int fd =
		open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, boot, len - 1);

	if (fd >= 0)
		close(fd);
	boot[n > 0 ? n : 0] = '\0';
	boot[strcspn(boot, "\n")] = '\0';
}

static int dir_make(struct exports *x, struct err *err)
{
	if (mkdirat(x->opts.dirfd, "export", 0700) && errno != EEXIST)
		return err_set(err, -errno, "export: %s", strerror(errno));
	x->dirfd = openat(x->opts.dirfd, "export",
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (x->dirfd < 0 || fchmod(x->dirfd, 0700))
		return err_set(err, -errno, "export: %s", strerror(errno));
	return 0;
}

int exports_new(const struct exports_opts *opts, struct exports **exports,
		struct err *err)
{
	struct exports *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return err_set(err, -ENOMEM, "out of memory");
	*x = (struct exports) { .opts = *opts, .dirfd = -1 };
	boot_read(x->boot, sizeof(x->boot));
	x->priority_fd = priority_make();
	rc = x->priority_fd < 0
		     ? err_set(err, -errno, "memory: %s", strerror(errno))
		     : dir_make(x, err);
	if (rc) {
		exports_free(x);
		return rc;
	}
	left_end(x);
	*exports = x;
	return 0;
}

void exports_free(struct exports *x)
{
	if (!x)
		return;
	id_assert(!x->list);
	if (x->dirfd >= 0)
		close(x->dirfd);
	if (x->priority_fd >= 0)
		close(x->priority_fd);
	free(x);
}

bool exports_any(const struct exports *x)
{
	return x && x->list;
}
