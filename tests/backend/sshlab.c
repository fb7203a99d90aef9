/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sshlab.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/transport/process.h"

#define SSHD "/usr/sbin/sshd"

void sshlab_shell(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static char *slurp(const char *path)
{
	char *text = calloc(1, 1 << 20);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_non_null(text);
	if (fd >= 0 && read(fd, text, (1 << 20) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

/* ---- files -------------------------------------------------------------- */

void sshlab_write(struct sshlab *lab, const char *name, const char *fmt, ...)
{
	char path[160];
	va_list ap;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", lab->dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	assert_int_equal(fclose(f), 0);
}

const char *sshlab_key(struct sshlab *lab, const char *name)
{
	static char key[8][1024];
	static unsigned turn;
	char path[160], *text, *to = key[turn++ % 8], *blank;

	snprintf(path, sizeof(path), "%s/%s.pub", lab->dir, name);
	text = slurp(path);
	text[strcspn(text, "\n")] = '\0';
	snprintf(to, sizeof(key[0]), "%s", text);
	free(text);
	blank = strchr(to, ' ');
	assert_non_null(blank);
	blank = strchr(blank + 1, ' ');
	if (blank)
		*blank = '\0';
	return to;
}

bool sshlab_logged(struct sshlab *lab, const char *words)
{
	char path[160], *text;
	bool has;

	snprintf(path, sizeof(path), "%s/log", lab->dir);
	text = slurp(path);
	has = strstr(text, words) != NULL;
	free(text);
	return has;
}

void sshlab_config(struct sshlab *lab, const char *more)
{
	sshlab_write(lab, "ssh_config",
		     "%s\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n"
		     "IdentityFile %s/id\nIdentitiesOnly yes\n"
		     "IdentityAgent none\n",
		     more, lab->known, lab->dir);
}

void sshlab_identities(struct sshlab *lab, const char *one, const char *two)
{
	sshlab_write(lab, "ssh_config",
		     "UserKnownHostsFile %s\nGlobalKnownHostsFile none\n"
		     "IdentityAgent none\nIdentityFile %s/%s\n"
		     "IdentityFile %s/%s\n",
		     lab->known, lab->dir, one, lab->dir, two);
}

void sshlab_known(struct sshlab *lab)
{
	sshlab_write(lab, "known_hosts", "[127.0.0.1]:%u %s\n", lab->port,
		     sshlab_key(lab, "host_ed25519"));
}

static void keys_make(struct sshlab *lab)
{
	static const char *const keys[][2] = {
		{ "host_ed25519", "ed25519" }, { "host_ecdsa", "ecdsa" },
		{ "host_rsa", "rsa" },         { "id", "ed25519" },
		{ "id_ecdsa", "ecdsa" },       { "id_rsa", "rsa" },
		{ "other", "ed25519" },
	};

	for (size_t k = 0; k < array_len(keys); k++)
		sshlab_shell("ssh-keygen -q -N '' -t %s%s -f %s/%s", keys[k][1],
			     strcmp(keys[k][1], "rsa") ? "" : " -b 2048",
			     lab->dir, keys[k][0]);
	sshlab_shell("cat %s/id.pub %s/id_ecdsa.pub %s/id_rsa.pub "
		     ">%s/authorized_keys",
		     lab->dir, lab->dir, lab->dir, lab->dir);
}

/* ---- sshd --------------------------------------------------------------- */

static unsigned port_free(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static bool port_answers(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool up;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	up = !connect(fd, (struct sockaddr *)&at, sizeof(at));
	close(fd);
	return up;
}

static pid_t sshd_run(struct sshlab *lab)
{
	char config[160], log[160];
	pid_t pid = fork();
	int null;

	snprintf(config, sizeof(config), "%s/sshd_config", lab->dir);
	snprintf(log, sizeof(log), "%s/log", lab->dir);
	if (pid)
		return pid;
	/* it ends with the test, however that ends, and holds nothing of it */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	setsid();
	execl(SSHD, SSHD, "-D", "-f", config, "-E", log, (char *)NULL);
	_exit(127);
}

void sshlab_sshd(struct sshlab *lab, const char *more)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	sshlab_stop(lab);
	sshlab_write(lab, "sshd_config",
		     "%s\nListenAddress 127.0.0.1\nPort %u\nUsePAM no\n"
		     "HostKey %s/host_ed25519\nHostKey %s/host_ecdsa\n"
		     "HostKey %s/host_rsa\nAuthorizedKeysFile "
		     "%s/authorized_keys\nStrictModes no\n"
		     "PermitRootLogin prohibit-password\n"
		     "PasswordAuthentication no\n"
		     "KbdInteractiveAuthentication no\n"
		     "PidFile none\nLogLevel VERBOSE\n"
		     /* rc files are the lab's too */
		     "SetEnv HOME=%s\n",
		     more, lab->port, lab->dir, lab->dir, lab->dir, lab->dir,
		     lab->dir);
	lab->pid = sshd_run(lab);
	for (int k = 0; k < 1000 && !port_answers(lab->port); k++) {
		if (waitpid(lab->pid, NULL, WNOHANG) == lab->pid) {
			lab->pid = 0;
			sshlab_shell("cat %s/log >&2", lab->dir);
			fail_msg("sshd does not start");
		}
		nanosleep(&nap, NULL);
	}
}

/* Its sessions are in its session (setsid), each in a group of its own; they
 * end with their connections. */
void sshlab_stop(struct sshlab *lab)
{
	if (!lab->pid)
		return;
	kill(lab->pid, SIGCONT);
	kill(lab->pid, SIGTERM);
	assert_int_equal(waitpid(lab->pid, NULL, 0), lab->pid);
	lab->pid = 0;
}

bool sshlab_open(struct sshlab *lab)
{
	const struct passwd *me = getpwuid(getuid());

	*lab = (struct sshlab) { .port = port_free() };
	if (access(SSHD, X_OK) || !me) {
		printf("skipped: needs " SSHD " (openssh-server)\n");
		return false;
	}
	if (!getuid()) /* where sshd separates its privileges */
		mkdir("/run/sshd", 0755);
	snprintf(lab->user, sizeof(lab->user), "%s", me->pw_name);
	strcpy(lab->dir, "/tmp/iodeck-ssh-XXXXXX");
	assert_non_null(mkdtemp(lab->dir));
	snprintf(lab->config, sizeof(lab->config), "%s/ssh_config", lab->dir);
	snprintf(lab->known, sizeof(lab->known), "%s/known_hosts", lab->dir);
	keys_make(lab);
	sshlab_config(lab, "");
	sshlab_known(lab);
	return true;
}

void sshlab_close(struct sshlab *lab)
{
	sshlab_stop(lab);
	/* a session that has only just begun may still make its log */
	if (*lab->dir)
		sshlab_shell("for k in 1 2 3 4 5; do rm -rf '%s' && exit; "
			     "sleep .2; done; exit 1",
			     lab->dir);
}

/* ---- ways --------------------------------------------------------------- */

void way_open_host(struct way *w, const struct transport_host *host,
		   const char *const argv[])
{
	const struct transport_opts opts = { .argv = argv, .host = host };

	*w = (struct way) { .rc = -EAGAIN };
	if (transport_open(&opts, &w->t, &w->err))
		w->rc = w->err.code;
}

void way_open(struct way *w, struct sshlab *lab, enum transport_way way,
	      const char *const argv[])
{
	const struct transport_host host = { .host = "127.0.0.1",
					     .port = lab->port,
					     .config = lab->config,
					     .way = way };

	way_open_host(w, &host, argv);
}

static void out_room(struct way *w)
{
	if (w->out_room - w->out_len > 65536)
		return;
	w->out_room = w->out_room ? 2 * w->out_room : 1 << 18;
	w->out = realloc(w->out, w->out_room);
	assert_non_null(w->out);
}

static void said_take_all(struct way *w)
{
	char buf[4096];
	ssize_t n;

	while ((n = w->t->ops->read_err(w->t, buf, sizeof(buf))) > 0) {
		size_t keep = (size_t)n < sizeof(w->said) - 1
				      ? (size_t)n
				      : sizeof(w->said) - 1;

		w->said_len += (size_t)n;
		memcpy(w->said, buf + (size_t)n - keep, keep);
		w->said[keep] = '\0';
	}
	assert_int_equal(n, -EAGAIN);
}

static void way_step(struct way *w)
{
	ssize_t n;

	for (;;) {
		out_room(w);
		w->rc = w->t->ops->read(w->t, w->out + w->out_len, 65536,
					&w->err);
		if (w->rc <= 0)
			break;
		w->out_len += (size_t)w->rc;
	}
	w->out[w->out_len] = '\0';
	said_take_all(w);
	for (n = 1; w->in_len && n > 0;) {
		n = w->t->ops->write(w->t, w->in, w->in_len);
		if (n > 0) {
			assert_true((size_t)n <= w->in_len);
			w->in += n;
			w->in_len -= (size_t)n;
		}
	}
	snprintf(w->via, sizeof(w->via), "%s", w->t->ops->via(w->t));
}

bool way_turn(struct way *w, size_t bytes, int limit_ms)
{
	int64_t end = transport_now_ms() + limit_ms, at;
	struct pollfd fd[TRANSPORT_FDS];
	int ms, n;

	while (w->t) {
		at = transport_now_ms();
		way_step(w);
		if (transport_now_ms() - at > w->longest_ms)
			w->longest_ms = (int)(transport_now_ms() - at);
		if (w->rc != -EAGAIN || (bytes && w->out_len >= bytes))
			return true;
		if (transport_now_ms() > end)
			return false;
		ms = 200;
		n = w->t->ops->poll(w->t, w->in_len > 0, fd, &ms);
		assert_in_range(n, 0, TRANSPORT_FDS);
		poll(fd, (nfds_t)n, ms);
	}
	return true;
}

void way_close(struct way *w)
{
	transport_close(w->t);
	free(w->out);
	*w = (struct way) { 0 };
}

void way_expect(struct sshlab *lab, enum transport_way way, const char *script,
		const char *out)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct way w;

	way_open(&w, lab, way, argv);
	if (!way_turn(&w, 0, 40000))
		fail_msg("%s: no end, via %s", script, w.via);
	if (w.rc || w.err.code)
		fail_msg("%s: %zd \"%s\", via %s, said %s", script, w.rc,
			 w.err.text, w.via, w.said);
	assert_string_equal(w.out, out);
	way_close(&w);
}

void way_refused(struct sshlab *lab, enum transport_way way, int limit_ms,
		 const char *words)
{
	const char *const argv[] = { "true", NULL };
	struct way w;

	way_open(&w, lab, way, argv);
	if (!way_turn(&w, 0, limit_ms))
		fail_msg("no end within %d ms, via %s", limit_ms, w.via);
	if (!w.err.code || !strstr(w.err.text, words))
		fail_msg("\"%s\", not \"%s\", via %s, said %s", w.err.text,
			 words, w.via, w.said);
	assert_int_equal(w.out_len, 0);
	way_close(&w);
}
