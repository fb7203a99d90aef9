/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * iodeck-agent: the engine behind the console. See iodeck-agent(8).
 * Exit status: 0 done, 1 the work failed, 2 usage.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "backend/agent/attach.h"
#include "backend/agent/bundles.h"
#include "backend/agent/clean.h"
#include "backend/agent/daemon.h"
#include "backend/agent/place.h"
#include "backend/agent/tools.h"

struct options {
	const char *name, *state_dir;
	struct daemon_opts daemon;
	bool foreground, spawn, force;
	int ready_fd;
};

static const char usage_text[] =
	"usage: iodeck-agent daemon [--name NAME] [--state-dir DIR]\n"
	"                           [--lease-run SECONDS] [--lease-idle "
	"SECONDS]\n"
	"                           [--spool-max BYTES] [--foreground]\n"
	"       iodeck-agent attach [--name NAME] [--state-dir DIR] "
	"[--spawn]\n"
	"                           [--lease-run SECONDS] [--lease-idle "
	"SECONDS]\n"
	"       iodeck-agent clean [--name NAME] [--state-dir DIR] [--force]\n"
	"       iodeck-agent --help | --version\n";

static const char help_text[] =
	"\n"
	"  daemon        own drives and vDisks, generate load, keep events\n"
	"  attach        join stdin and stdout to the daemon's socket\n"
	"  clean         end the daemon, remove what it has here\n"
	"\n"
	"  --name NAME         one daemon a name (local)\n"
	"  --state-dir DIR     sockets and spools "
	"($XDG_STATE_HOME/iodeck/agent)\n"
	"  --lease-run S       end after S seconds of a run without a console "
	"(900)\n"
	"  --lease-idle S      the same with no run (15)\n"
	"  --spool-max BYTES   most the events may take on disk (268435456)\n"
	"  --foreground        do not detach; say things on stderr\n"
	"  --spawn             start the daemon when there is none\n"
	"  --force             clean: though a run goes on\n";

/* ---- options ------------------------------------------------------------ */

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "iodeck-agent: %s%s%s\n%s", what, value ? ": " : "",
		value ? value : "", usage_text);
	return 2;
}

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *v >= min &&
	       *v <= max;
}

enum {
	OPT_NAME = 256,
	OPT_DIR,
	OPT_RUN,
	OPT_IDLE,
	OPT_MAX,
	OPT_FG,
	OPT_SPAWN,
	OPT_FORCE
};
static const struct option long_options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "state-dir", required_argument, NULL, OPT_DIR },
	{ "lease-run", required_argument, NULL, OPT_RUN },
	{ "lease-idle", required_argument, NULL, OPT_IDLE },
	{ "spool-max", required_argument, NULL, OPT_MAX },
	{ "foreground", no_argument, NULL, OPT_FG },
	{ "spawn", no_argument, NULL, OPT_SPAWN },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ 0 },
};

static int option_take(struct options *o, int opt)
{
	uint64_t v = 0;

	switch (opt) {
	case OPT_NAME:
		o->name = optarg;
		return 0;
	case OPT_DIR:
		o->state_dir = optarg;
		return 0;
	case OPT_FG:
		o->foreground = true;
		return 0;
	case OPT_SPAWN:
		o->spawn = true;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_RUN:
	case OPT_IDLE:
		if (!number(optarg, 1, 7 * 86400, &v))
			return usage_error("a lease is 1 to 604800 seconds",
					   optarg);
		if (opt == OPT_RUN)
			o->daemon.lease_run_s = (unsigned)v;
		else
			o->daemon.lease_idle_s = (unsigned)v;
		return 0;
	case OPT_MAX:
		if (!number(optarg, 64 * KIB, 1ull << 50, &v))
			return usage_error("a spool takes 64 KiB or more",
					   optarg);
		o->daemon.spool_max_bytes = v;
		return 0;
	default: /* getopt has said what */
		fputs(usage_text, stderr);
		return 2;
	}
}

static int options_take(struct options *o, int argc, char **argv)
{
	int opt, rc = 0;

	while (!rc &&
	       (opt = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		rc = option_take(o, opt);
	if (!rc && optind < argc)
		rc = usage_error("unexpected argument", argv[optind]);
	return rc;
}

/* ---- daemon ------------------------------------------------------------- */

/* Tells the process that was typed, then lets it go. */
static void say_ready(int rc, const struct err *err, void *arg)
{
	struct options *o = arg;
	const char *text = rc ? err->text : "+";

	if (o->ready_fd < 0)
		return;
	if (write(o->ready_fd, text, strlen(text)) < 0)
		fprintf(stderr, "iodeck-agent: nobody waits\n");
	close(o->ready_fd);
	o->ready_fd = -1;
}

static int wait_ready(int fd)
{
	char text[600];
	ssize_t n, len = 0;

	while ((n = read(fd, text + len, sizeof(text) - 1 - (size_t)len)) > 0)
		len += n;
	close(fd);
	text[len] = '\0';
	if (!strcmp(text, "+"))
		return 0;
	fprintf(stderr, "iodeck-agent: %s\n",
		len ? text : "the daemon ended before it was ready");
	return 1;
}

static int stdio_to_log(const struct options *o, struct err *err)
{
	struct place place;
	int rc = place_open(o->state_dir, o->name, &place, err);
	int null, log;

	if (rc)
		return rc;
	log = place_log(&place);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (log < 0)
		log = null;
	rc = null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 ||
			     dup2(log, 2) < 0
		     ? -errno
		     : 0;
	place_close(&place);
	if (log != null)
		close(log);
	close(null);
	return rc ? err_set(err, rc, "stdio: %s", strerror(-rc)) : 0;
}

/*
 * Twice forked, a session of its own, so neither a terminal's signals nor its
 * end reach it. Returns in the daemon with -1; in the first process with the
 * status to exit with.
 */
static int detach(struct options *o)
{
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) || (pid = fork()) < 0) {
		perror("iodeck-agent");
		return 1;
	}
	if (pid) {
		close(fd[1]);
		return wait_ready(fd[0]);
	}
	close(fd[0]);
	o->ready_fd = fd[1];
	setsid();
	pid = fork();
	if (pid)
		_exit(pid < 0);
	return -1;
}

static int run_daemon(struct options *o)
{
	struct err err = { 0 };
	int rc;

	o->daemon.name = o->name;
	o->daemon.state_dir = o->state_dir;
	o->daemon.ready = say_ready;
	o->daemon.arg = o;
	if (!o->foreground) {
		rc = detach(o);
		if (rc >= 0)
			return rc;
		rc = stdio_to_log(o, &err);
		if (rc) {
			say_ready(rc, &err, o);
			return 1;
		}
	}
	setvbuf(stderr, NULL, _IOLBF, 0);
	if (*tools_bundle()) {
		bundles_hold(tools_bundle());
		bundles_tidy(tools_bundle(), time(NULL));
	}
	rc = daemon_run(&o->daemon, &err);
	if (rc)
		fprintf(stderr, "iodeck-agent: %s\n", err.text);
	return rc ? 1 : 0;
}

/* ---- attach ------------------------------------------------------------- */

static int run_attach(struct options *o)
{
	char run_s[24], idle_s[24];
	const char *const daemon[] = {
		"daemon",     "--name",      o->name, "--state-dir",
		o->state_dir, "--lease-run", run_s,   "--lease-idle",
		idle_s,       NULL,
	};
	struct attach_opts opts = { .name = o->name,
				    .state_dir = o->state_dir };
	struct tool self;
	const char *spawn[TOOL_WORDS + array_len(daemon)];
	struct err err = { 0 };

	snprintf(run_s, sizeof(run_s), "%u", o->daemon.lease_run_s);
	snprintf(idle_s, sizeof(idle_s), "%u", o->daemon.lease_idle_s);
	if (o->spawn && !tool_self(&self, NULL)) {
		memcpy(spawn, self.argv, sizeof(self.argv));
		memcpy(spawn + self.words, daemon, sizeof(daemon));
		opts.spawn = (char *const *)spawn;
	}
	if (!attach_run(&opts, &err))
		return 0;
	fprintf(stderr, "iodeck-agent: %s\n", err.text);
	return 1;
}

/* ---- clean -------------------------------------------------------------- */

static void say_line(const char *line)
{
	puts(line);
}

static int run_clean(struct options *o)
{
	const struct clean_opts opts = { .name = o->name,
					 .state_dir = o->state_dir,
					 .force = o->force,
					 .say = say_line };
	struct err err;

	if (!clean_run(&opts, &err))
		return 0;
	fflush(stdout);
	fprintf(stderr, "iodeck-agent: %s\n", err.text);
	return 1;
}

/* ---- main --------------------------------------------------------------- */

static int run(struct options *o, const char *verb)
{
	char *own = NULL;
	struct err err;
	int rc;

	if (place_name_check(o->name, &err))
		return usage_error(err.text, NULL);
	if (!o->state_dir) {
		own = place_state_dir();
		if (!own)
			return usage_error(
				"no home directory: give --state-dir", NULL);
		o->state_dir = own;
	}
	if (!strcmp(verb, "daemon"))
		rc = run_daemon(o);
	else if (!strcmp(verb, "attach"))
		rc = run_attach(o);
	else
		rc = run_clean(o);
	free(own);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {
		.name = "local",
		.daemon.lease_run_s = LEASE_RUN_S,
		.daemon.lease_idle_s = LEASE_IDLE_S,
		.ready_fd = -1,
	};
	const char *verb = argc > 1 ? argv[1] : "";
	int rc;

	if (!strcmp(verb, "--version")) {
		printf("iodeck-agent %s\n", IODECK_VERSION);
		return 0;
	}
	if (!strcmp(verb, "--help")) {
		fputs(usage_text, stdout);
		fputs(help_text, stdout);
		return 0;
	}
	if (*tools_bundle()) /* which is seen as its loader else */
		prctl(PR_SET_NAME, "iodeck-agent");
	if (strcmp(verb, "daemon") != 0 && strcmp(verb, "attach") != 0 &&
	    strcmp(verb, "clean") != 0)
		return usage_error(*verb ? "unknown command" : "say what to do",
				   *verb ? verb : NULL);
	argv[1] = argv[0];
	rc = options_take(&o, argc - 1, argv + 1);
	return rc ? rc : run(&o, verb);
}
