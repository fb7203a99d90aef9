/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sim: runs seeds, one after another, in a process that may end by a violation
 * or an assertion; the next goes on behind the seed that did it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/vdisk/mutation.h"
#include "tests/sim/sim.h"

#define SEED_SECONDS_MAX 300

static const struct sim_client_ops *const layouts[] = { &sim_inplace_ops,
							&sim_log_ops };

struct options {
	const struct sim_client_ops *layout;
	const struct sim_profile *profile; /* NULL: by seed */
	uint64_t first, last;
	double hours;
	bool verbose, single;
	bool expect; /* a violation, and then stop */
};

/* What the parent knows of the child's work. */
struct shared {
	uint64_t seed;
	struct sim_stats stats;
};

static const char usage[] =
	"usage: sim [--layout NAME] [--profile NAME] [--mutation NAME]\n"
	"           [--seeds FIRST-LAST | --seed N [-v] | --hours N]\n"
	"           [--expect-violation] [--list]\n";

static const struct sim_profile *profile_of(const struct options *o,
					    uint64_t seed)
{
	unsigned count = 0;

	if (o->profile)
		return o->profile;
	while (sim_profiles[count].name)
		count++;
	return &sim_profiles[seed % count];
}

static void run_seed(const struct options *o, uint64_t seed,
		     struct sim_stats *stats)
{
	sim_run(o->layout, profile_of(o, seed), seed, o->verbose, stats);
}

/* In a child: from seed on; returns the child's status. */
static int run_child(const struct options *o, struct shared *sh,
		     const struct timespec *until)
{
	struct timespec now;
	int status = 0;
	const pid_t pid = fork();

	if (pid < 0) {
		perror("sim: fork");
		exit(1);
	}
	if (pid) {
		while (waitpid(pid, &status, 0) < 0)
			;
		return status;
	}
	for (; sh->seed <= o->last; sh->seed++) {
		alarm(SEED_SECONDS_MAX);
		run_seed(o, sh->seed, &sh->stats);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (o->hours > 0 && now.tv_sec >= until->tv_sec)
			break;
	}
	fflush(stdout);
	_exit(0);
}

static void stats_print(const struct sim_stats *s, unsigned bad)
{
	printf("%" PRIu64 " seeds, %u bad; %" PRIu64 " crashes (%" PRIu64
	       " with power, %" PRIu64 " while opening), %" PRIu64
	       " openings, %" PRIu64 " clean ends\n",
	       s->seeds, bad, s->crashes, s->power_cuts, s->open_crashes,
	       s->opens, s->closes);
	printf("%" PRIu64 " drives went, %" PRIu64 " came back, %" PRIu64
	       " I/O faults, %" PRIu64 " damages; %" PRIu64 " rebuilds, "
	       "%" PRIu64 " moves\n",
	       s->leaves, s->returns, s->onces, s->damaged, s->rebuilds,
	       s->moves);
	printf("%" PRIu64 " writes, %" PRIu64 " reads, %" PRIu64
	       " flushes, %" PRIu64 " turns\n",
	       s->writes, s->reads, s->flushes, s->turns);
}

static void child_end_print(const struct options *o, uint64_t seed, int status)
{
	if (WIFSIGNALED(status))
		printf("seed %" PRIu64 ": signal %d%s; repeat: sim --layout %s "
		       "--profile %s --seed %" PRIu64 " -v\n",
		       seed, WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? " (it hangs)" : "",
		       o->layout->name, profile_of(o, seed)->name, seed);
	else if (WEXITSTATUS(status) != SIM_EXIT_VIOLATION)
		printf("seed %" PRIu64 ": exit %d\n", seed,
		       WEXITSTATUS(status));
	fflush(stdout);
}

/* Returns the number of seeds that went wrong. */
static unsigned run_many(const struct options *o)
{
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec until;
	unsigned bad = 0;

	if (sh == MAP_FAILED) {
		perror("sim: mmap");
		exit(1);
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(o->hours * 3600);
	sh->seed = o->first;
	while (sh->seed <= o->last) {
		const int status = run_child(o, sh, &until);

		if (!status)
			break;
		child_end_print(o, sh->seed, status);
		bad++;
		if (o->expect)
			break;
		sh->seed++;
	}
	if (o->expect && bad)
		printf("caught by seed %" PRIu64 ", the %" PRIu64 "th\n",
		       sh->seed, sh->seed - o->first + 1);
	stats_print(&sh->stats, bad);
	munmap(sh, sizeof(*sh));
	return bad;
}

static void list(void)
{
	for (size_t i = 0; i < array_len(layouts); i++)
		printf("layout    %s\n", layouts[i]->name);
	for (const struct sim_profile *p = sim_profiles; p->name; p++)
		printf("profile   %-9s %s\n", p->name, p->about);
	for (unsigned i = 1; i < MUTATIONS; i++)
		printf("mutation  %s\n", mutation_name[i]);
}

static void refuse(const char *what, const char *name)
{
	fprintf(stderr, "sim: no such %s: %s (sim --list)\n", what, name);
	exit(2);
}

static void layout_set(struct options *o, const char *name)
{
	o->layout = NULL;
	for (size_t i = 0; i < array_len(layouts); i++)
		if (!strcmp(layouts[i]->name, name))
			o->layout = layouts[i];
	if (!o->layout)
		refuse("layout", name);
}

static void mutation_set(const char *name)
{
	for (unsigned i = 1; i < MUTATIONS; i++)
		if (!strcmp(mutation_name[i], name))
			mutation = (enum mutation)i;
	if (!mutation)
		refuse("mutation", name);
}

static void seeds_set(struct options *o, const char *text)
{
	char *end;

	o->first = o->last = strtoull(text, &end, 10);
	if (*end == '-')
		o->last = strtoull(end + 1, &end, 10);
	if (*end || o->last < o->first)
		refuse("range of seeds", text);
}

static const struct option long_options[] = {
	{ "layout", required_argument, NULL, 'l' },
	{ "profile", required_argument, NULL, 'p' },
	{ "mutation", required_argument, NULL, 'm' },
	{ "seeds", required_argument, NULL, 's' },
	{ "seed", required_argument, NULL, '1' },
	{ "hours", required_argument, NULL, 'H' },
	{ "expect-violation", no_argument, NULL, 'x' },
	{ "list", no_argument, NULL, 'L' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void option_take(struct options *o, int c)
{
	switch (c) {
	case 'l':
		layout_set(o, optarg);
		break;
	case 'p':
		o->profile = sim_profile_find(optarg);
		if (!o->profile)
			refuse("profile", optarg);
		break;
	case 'm':
		mutation_set(optarg);
		break;
	case '1':
		o->single = true;
		/* fallthrough */
	case 's':
		seeds_set(o, optarg);
		break;
	case 'H':
		o->hours = strtod(optarg, NULL);
		o->first = (uint64_t)time(NULL) * 1000;
		o->last = UINT64_MAX - 1;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'x':
		o->expect = true;
		break;
	case 'L':
		list();
		exit(0);
	default:
		fputs(usage, c == 'h' ? stdout : stderr);
		exit(c == 'h' ? 0 : 2);
	}
}

int main(int argc, char **argv)
{
	struct options o = { .layout = &sim_inplace_ops,
			     .first = 1,
			     .last = 100 };
	struct sim_stats stats = { 0 };
	unsigned bad = 0;
	int c;

	while ((c = getopt_long(argc, argv, "v", long_options, NULL)) >= 0)
		option_take(&o, c);
	if (o.single) {
		run_seed(&o, o.first, &stats);
		stats_print(&stats, 0);
	} else {
		bad = run_many(&o);
	}
	return (bad != 0) != o.expect;
}
