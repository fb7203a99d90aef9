/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 *   START --> CONFIG --> KNOWN ----------> AGENT -----> WAY -----> OPEN
 *   gate      ssh -G     ssh-keygen -F,    what keys    either     the mark
 *             what to    a file a time:    it holds     kind       was read
 *             do         who the host is
 *
 * `auto` takes libssh2 unless something was found on the way that only ssh can
 * do, and ssh after all where libssh2 then finds no common algorithm or no key
 * that the host takes. Nothing is sent to a host that is not known.
 */
#include "backend/transport/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/event.h"
#include "backend/transport/errand.h"
#include "backend/transport/gate.h"
#include "backend/transport/openssh.h"
#include "backend/transport/ssh2.h"

#define ERRAND_MS 5000   /* ssh -G may run what Match exec names */
#define AGENT_MS 2000    /* a list needs nobody's consent */
#define SSH_MS 40000     /* of ssh, from its start to the mark */
#define MARK_MS 30000    /* from the command to the mark: rc files run */
#define NOISE_MAX 262144 /* of rc files */
#define MARK_LEN 64

enum stage { START, CONFIG, KNOWN, AGENT, WAY, OPEN, OVER };

struct remote {
	struct transport t;
	struct transport_host host; /* strings are copies */
	struct far far;
	char place[360], program[128];
	char *command, mark[MARK_LEN];
	enum stage stage;
	int64_t due_ms;

	struct errand errand;
	size_t file; /* of known_hosts, the one that is read */
	struct sshconf conf;
	struct hostkeys known;
	struct sshagent agent;
	struct agent_key held[AGENT_KEYS_MAX];
	size_t helds;
	struct ssh_keys keys;
	struct gate_ticket gate;

	struct transport *inner;
	bool by_ssh;
	char via[240];
	/* what was read and not yet given out: until the mark, one line */
	char in[16 * 1024];
	size_t in_at, in_len;
	size_t noise;
	int rc; /* with OVER */
	struct err err;
};

static struct remote *remote_of(const struct transport *t)
{
	return container_of(t, struct remote, t);
}

/* ---- choosing ----------------------------------------------------------- */

static int by_ssh(struct remote *r, const char *why, struct err *err)
{
	snprintf(r->via, sizeof(r->via), "ssh%s%s", *why ? ": " : "", why);
	r->by_ssh = true;
	/* how long ssh's own handshake takes shows in its first byte */
	r->due_ms = transport_now_ms() + SSH_MS / transport_hurry;
	r->stage = WAY;
	return openssh_open(&r->host, &r->far, &r->inner, err);
}

static int by_ssh2(struct remote *r, struct err *err)
{
	const struct ssh2_opts opts = { .conf = &r->conf,
					.known = &r->known,
					.keys = &r->keys,
					.far = &r->far };

	snprintf(r->via, sizeof(r->via), "libssh2");
	r->due_ms = 0;
	r->stage = WAY;
	return ssh2_open(&opts, &r->inner, err);
}

/* Why libssh2 will not do; "" it will. */
static const char *why_not(const struct remote *r)
{
	if (*r->conf.only_ssh)
		return r->conf.only_ssh;
	if (r->known.authority)
		return "its host key is vouched for by an authority "
		       "(@cert-authority)";
	if (!ssh2_knows(&r->known, &r->conf))
		return "none of the host keys known of it can be asked for by "
		       "libssh2";
	if (!r->keys.count)
		return *r->keys.left ? r->keys.left
				     : "no key file and no ssh-agent's key was "
				       "found";
	return "";
}

static int way_choose(struct remote *r, struct err *err)
{
	const char *why;
	int rc;

	rc = keys_choose(&r->conf, r->held, r->helds, &r->keys);
	if (rc)
		return err_set(err, rc, "keys: %s", strerror(-rc));
	if (!*r->conf.only_ssh && !r->known.authority)
		rc = hostkey_any(&r->known, &r->conf, err);
	if (rc)
		return rc;
	why = why_not(r);
	if (*why && r->host.way == TRANSPORT_AUTO)
		return by_ssh(r, why, err);
	gate_leave(&r->gate); /* libssh2 queues anew, by address */
	if (*why)
		return err_set(err, -EPROTONOSUPPORT,
			       "%s: libssh2 cannot reach it: %s; set "
			       "transport to \"auto\" or \"ssh\"",
			       r->place, why);
	return by_ssh2(r, err);
}

/* ---- what is asked first ------------------------------------------------ */

static int errand_lost(const struct remote *r, int rc, const char *program,
		       struct err *err)
{
	if (rc == -ENOENT)
		return err_set(err, rc,
			       "%s: there is no %s on this machine: install "
			       "OpenSSH's client (openssh-client)",
			       r->place, program);
	return rc;
}

static int config_begin(struct remote *r, struct err *err)
{
	const char *argv[SSHCONF_WORDS] = { "ssh", "-G", "-oBatchMode=yes" };
	char port[16];
	int n = sshconf_words(&r->host, argv, 3, port);

	argv[n] = NULL;
	if (r->host.way == TRANSPORT_SSH)
		return by_ssh(r, "", err);
	r->stage = CONFIG;
	return errand_lost(r, errand_start(&r->errand, argv, ERRAND_MS, err),
			   "ssh", err);
}

static int known_begin(struct remote *r, struct err *err)
{
	const char *argv[] = { "ssh-keygen", "-F", NULL, "-f", NULL, NULL };
	char name[280];

	hostkey_name(&r->conf, name, sizeof(name));
	argv[2] = name;
	while (r->file < r->conf.knowns &&
	       access(r->conf.known[r->file], R_OK) != 0)
		r->file++;
	if (r->file == r->conf.knowns) {
		r->due_ms = transport_now_ms() + AGENT_MS;
		r->stage = AGENT;
		if (!sshagent_open(&r->agent, r->conf.agent))
			return sshagent_list(&r->agent);
		return 0;
	}
	argv[4] = r->conf.known[r->file];
	r->stage = KNOWN;
	return errand_lost(r, errand_start(&r->errand, argv, ERRAND_MS, err),
			   "ssh-keygen", err);
}

static int config_step(struct remote *r, struct err *err)
{
	char last[300];
	int status, rc = errand_step(&r->errand, &status, err);

	if (rc)
		return rc;
	if (status) {
		said_last(&r->errand.process.said, last, sizeof(last));
		return err_set(err, -EINVAL, "%s: ssh -G: %s", r->place,
			       *last ? last : "it failed and said nothing");
	}
	rc = sshconf_parse(r->errand.out, &r->conf, err);
	if (rc)
		return rc;
	return known_begin(r, err);
}

static int known_step(struct remote *r, struct err *err)
{
	const char *file = r->conf.known[r->file];
	char last[200];
	int status, rc = errand_step(&r->errand, &status, err);

	if (rc)
		return rc;
	/* 1: no line of it is there */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		said_last(&r->errand.process.said, last, sizeof(last));
		return err_set(err, -EIO, "%s: ssh-keygen -F: %s", r->place,
			       *last ? last : file);
	}
	rc = hostkey_take(&r->known, r->errand.out, file);
	if (rc == -E2BIG)
		err_set(err, rc,
			"%s: %s has more than %d keys for it: take out the old",
			r->place, file, HOSTKEYS_MAX);
	if (rc)
		return rc;
	r->file++;
	return known_begin(r, err);
}

/* Without an agent that answers there are only files. */
static int agent_step(struct remote *r, struct err *err)
{
	int rc = 0;

	if (r->agent.fd >= 0)
		rc = sshagent_listed(&r->agent, r->held, AGENT_KEYS_MAX,
				     &r->helds);
	if (rc == -EAGAIN && transport_now_ms() < r->due_ms)
		return rc;
	sshagent_close(&r->agent);
	return way_choose(r, err);
}

/* ---- the mark ----------------------------------------------------------- */

static int way_lost(struct remote *r, ssize_t n, struct err *err)
{
	char why[200];

	if (n != -EPROTONOSUPPORT || r->host.way != TRANSPORT_AUTO ||
	    r->by_ssh) {
		if (!err->code)
			err_set(err, n ? (int)n : -ECONNRESET,
				"%s: the connection ended before %s answered",
				r->place, r->program);
		return err->code;
	}
	event_text(why, sizeof(why), err->text);
	transport_close(r->inner);
	r->inner = NULL;
	*err = (struct err) { 0 };
	return by_ssh(r, why, err);
}

/* True: the mark's line is at the front, whole; it is taken off. */
static bool mark_take(struct remote *r)
{
	char *line = r->in, *end;
	size_t left = r->in_len, len;
	bool found = false;

	while (!found && (end = memchr(line, '\n', left))) {
		len = (size_t)(end - line);
		found = len == strlen(r->mark) && !memcmp(line, r->mark, len);
		line = end + 1;
		left -= len + 1;
	}
	/* of a line without an end no more is needed than a mark's length */
	if (!found && left > MARK_LEN) {
		line += left - MARK_LEN;
		left = MARK_LEN;
	}
	memmove(r->in, line, left);
	r->in_len = left;
	return found;
}

static int mark_step(struct remote *r, struct err *err)
{
	ssize_t n = 0;

	for (int turns = 0; turns < 64; turns++) {
		n = r->inner->ops->read(r->inner, r->in + r->in_len,
					sizeof(r->in) - r->in_len, err);
		if (n != -EAGAIN) /* its handshake is through */
			gate_leave(&r->gate);
		if (n <= 0)
			break;
		r->noise += (size_t)n;
		r->in_len += (size_t)n;
		if (mark_take(r)) {
			r->stage = OPEN;
			return 0;
		}
		if (r->noise > NOISE_MAX)
			return err_set(err, -EPROTO,
				       "%s: its login shell prints more than "
				       "%d KiB before %s begins: let its rc "
				       "files print in interactive shells only",
				       r->place, NOISE_MAX / 1024, r->program);
	}
	if (n != -EAGAIN && n <= 0)
		return way_lost(r, n, err);
	if (!r->due_ms && ssh2_ready(r->inner))
		r->due_ms = transport_now_ms() + MARK_MS / transport_hurry;
	if (!r->due_ms || transport_now_ms() < r->due_ms)
		return -EAGAIN;
	return err_set(err, -ETIMEDOUT,
		       "%s: %s was not begun within %d s: look what the host, "
		       "or an rc file of the login shell there, waits for",
		       r->place, r->program,
		       (r->by_ssh ? SSH_MS : MARK_MS) / 1000);
}

/* ---- turning ------------------------------------------------------------ */

static int stage_step(struct remote *r, struct err *err)
{
	switch (r->stage) {
	case START:
		if (!gate_enter(&r->gate, r->place, transport_now_ms()))
			return -EAGAIN;
		return config_begin(r, err);
	case CONFIG:
		return config_step(r, err);
	case KNOWN:
		return known_step(r, err);
	case AGENT:
		return agent_step(r, err);
	default:
		return mark_step(r, err);
	}
}

static int over(struct remote *r, int rc, const struct err *err)
{
	r->rc = rc;
	r->err = *err;
	r->stage = OVER;
	return rc;
}

/* 0: open. */
static int remote_step(struct remote *r, struct err *err)
{
	struct err why = { 0 };
	int rc = 0;

	while (!rc && r->stage < OPEN)
		rc = stage_step(r, &why);
	if (r->stage == OPEN || rc == -EAGAIN)
		return rc;
	if (r->stage != OVER) {
		if (!why.code)
			err_set(&why, rc, "%s: %s", r->place, strerror(-rc));
		over(r, rc, &why);
	}
	if (err)
		*err = r->err;
	return r->rc;
}

static ssize_t remote_read(struct transport *t, void *buf, size_t len,
			   struct err *err)
{
	struct remote *r = remote_of(t);
	struct err why = { 0 };
	ssize_t n = remote_step(r, err);

	if (n)
		return n;
	if (r->in_len) {
		n = (ssize_t)(r->in_len < len ? r->in_len : len);
		memcpy(buf, r->in + r->in_at, (size_t)n);
		r->in_at += (size_t)n;
		r->in_len -= (size_t)n;
		return n;
	}
	n = r->inner->ops->read(r->inner, buf, len, &why);
	if (why.code && err)
		*err = why;
	return n;
}

static ssize_t remote_read_err(struct transport *t, void *buf, size_t len)
{
	struct remote *r = remote_of(t);

	return r->inner ? r->inner->ops->read_err(r->inner, buf, len) : -EAGAIN;
}

static ssize_t remote_write(struct transport *t, const void *buf, size_t len)
{
	struct remote *r = remote_of(t);

	if (r->stage == OPEN)
		return r->inner->ops->write(r->inner, buf, len);
	return r->stage == OVER ? -EPIPE : -EAGAIN;
}

static int remote_poll(struct transport *t, bool out, struct pollfd *fd,
		       int *timeout_ms)
{
	struct remote *r = remote_of(t);
	int n = 0;

	if (r->stage == START)
		transport_wake(transport_now_ms() + GATE_LOOK_MS, timeout_ms);
	else if (r->stage == OVER || r->in_len)
		*timeout_ms = 0;
	if (r->due_ms && r->stage < OPEN)
		transport_wake(r->due_ms, timeout_ms);
	if (r->inner)
		return r->inner->ops->poll(r->inner, out && r->stage == OPEN,
					   fd, timeout_ms);
	if (r->stage == AGENT && r->agent.fd >= 0)
		fd[n++] = sshagent_poll(&r->agent);
	return n + errand_poll(&r->errand, fd + n, timeout_ms);
}

static const char *remote_via(const struct transport *t)
{
	return remote_of(t)->via;
}

static void remote_shut(struct transport *t)
{
	transport_shut(remote_of(t)->inner);
}

static void remote_close(struct transport *t)
{
	struct remote *r = remote_of(t);

	transport_close(r->inner);
	gate_leave(&r->gate);
	errand_fini(&r->errand);
	sshagent_close(&r->agent);
	for (size_t k = 0; k < r->helds; k++)
		free(r->held[k].blob);
	keys_fini(&r->keys);
	hostkey_fini(&r->known);
	sshconf_fini(&r->conf);
	free(r->command);
	free((char *)r->host.host);
	free((char *)r->host.user);
	free((char *)r->host.identity);
	free((char *)r->host.config);
	free(r);
}

static const struct transport_ops remote_ops = {
	.kind = "remote",
	.poll = remote_poll,
	.read = remote_read,
	.read_err = remote_read_err,
	.write = remote_write,
	.via = remote_via,
	.shut = remote_shut,
	.close = remote_close,
};

/* ---- opening ------------------------------------------------------------ */

static int copy(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int host_copy(struct transport_host *to,
		     const struct transport_host *from)
{
	*to = *from;
	to->host = to->user = to->identity = to->config = NULL;
	if (copy(&to->host, from->host) || copy(&to->user, from->user) ||
	    copy(&to->identity, from->identity) ||
	    copy(&to->config, from->config))
		return -ENOMEM;
	return 0;
}

/* A line that nothing prints by chance. */
static void mark_make(char mark[MARK_LEN])
{
	uint64_t chance[2] = { 0 };

	if (getrandom(chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance[0] = (uint64_t)transport_now_ms();
	snprintf(mark, MARK_LEN, "iodeck-stream-%016llx%016llx",
		 (unsigned long long)chance[0], (unsigned long long)chance[1]);
}

int remote_open(const struct transport_opts *opts, struct transport **t,
		struct err *err)
{
	struct remote *r;
	int rc = sshconf_check(opts->host, err);

	if (rc)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(err, -ENOMEM, "transport: out of memory");
	r->t.ops = &remote_ops;
	r->agent.fd = -1;
	sshconf_place(opts->host, r->place, sizeof(r->place));
	snprintf(r->program, sizeof(r->program), "%s",
		 opts->name ? opts->name : opts->argv[0]);
	mark_make(r->mark);
	rc = host_copy(&r->host, opts->host);
	if (rc)
		err_set(err, rc, "transport: out of memory");
	else
		rc = far_command(opts->argv, r->mark, &r->command, err);
	r->far = (struct far) { .place = r->place,
				.command = r->command,
				.program = r->program };
	if (rc)
		remote_close(&r->t);
	else
		*t = &r->t;
	return rc;
}
