/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sim: runs seeds, one after another, in a process that may end by a violation
 * or an assertion; the next goes on behind the seed that did it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define SEED_SECONDS_MAX 300
#define LAYOUTS 2

static const struct sim_client_ops *const layouts[LAYOUTS] = {
	&sim_inplace_ops,
	&sim_log_ops,
};

struct options {
	const struct sim_client_ops *layout; /* NULL: each seed in each */
	const char *mutation;
	const struct sim_profile *profile; /* NULL: by seed */
	uint64_t first, last;
	double hours;
	bool verbose, single;
	bool expect; /* a violation, and then stop */
};

/* What the parent knows of the child's work. */
struct shared {
	uint64_t seed;
	unsigned layout; /* of it, under way */
	struct sim_stats stats[LAYOUTS];
};

static const char usage[] =
	"usage: sim [--layout NAME] [--profile NAME] [--mutation NAME]\n"
	"           [--seeds FIRST-LAST | --seed N [-v] | --hours N]\n"
	"           [--expect-violation] [--list]\n";

static bool profile_is_for(const struct sim_profile *p,
			   const struct sim_client_ops *layout)
{
	return !p->only || !strcmp(p->only, layout->name);
}

static const struct sim_profile *profile_of(const struct options *o,
					    const struct sim_client_ops *layout,
					    uint64_t seed)
{
	unsigned count = 0, turn;

	if (o->profile)
		return o->profile;
	for (unsigned i = 0; sim_profiles[i].name; i++)
		count += profile_is_for(&sim_profiles[i], layout);
	turn = (unsigned)(seed % count);
	for (unsigned i = 0;; i++)
		if (profile_is_for(&sim_profiles[i], layout) && !turn--)
			return &sim_profiles[i];
}

static bool layout_is_wanted(const struct options *o, unsigned i)
{
	if (o->profile && !profile_is_for(o->profile, layouts[i]))
		return false;
	return !o->layout || o->layout == layouts[i];
}

static void run_seed(const struct options *o, struct shared *sh)
{
	for (; sh->layout < LAYOUTS; sh->layout++) {
		const struct sim_client_ops *layout = layouts[sh->layout];

		if (!layout_is_wanted(o, sh->layout))
			continue;
		alarm(SEED_SECONDS_MAX);
		sim_run(layout, profile_of(o, layout, sh->seed), sh->seed,
			o->verbose, &sh->stats[sh->layout]);
	}
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
		run_seed(o, sh);
		sh->layout = 0;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (o->hours > 0 && now.tv_sec >= until->tv_sec)
			break;
	}
	fflush(stdout);
	_exit(0);
}

static void stats_print(const struct sim_stats *s, const char *layout,
			unsigned bad)
{
	static const struct {
		enum sim_once once;
		const char *name;
	} once[] = {
		{ SIM_READ_ERROR, "read errors" },
		{ SIM_WRITE_ERROR, "write errors" },
		{ SIM_WRITE_FULL, "ENOSPC" },
		{ SIM_FLUSH_ERROR, "failed flushes" },
		{ SIM_WRITE_LOST, "lost writes" },
		{ SIM_WRITE_ASTRAY, "stray writes" },
		{ SIM_STUCK, "stuck" },
	};

	printf("%s: %" PRIu64 " seeds, %u bad; %" PRIu64 " crashes (%" PRIu64
	       " with power, %" PRIu64 " while opening, %" PRIu64
	       " while closing, %" PRIu64 " while creating)\n",
	       layout, s->seeds, bad, s->crashes, s->power_cuts,
	       s->open_crashes, s->close_crashes, s->create_crashes);
	printf("  %" PRIu64 " recoveries, %" PRIu64
	       " not with the drives there were, %" PRIu64 " clean ends\n",
	       s->opens, s->refused, s->closes);
	printf("  %" PRIu64 " drives went, %" PRIu64 " came back, %" PRIu64
	       " got slow; %" PRIu64 " times dealt anew after a crash\n",
	       s->leaves, s->returns, s->slows, s->swizzles);
	printf("  %" PRIu64 " bad sectors, %" PRIu64 " rot, %" PRIu64 " torn",
	       s->bad, s->rot, s->shorn);
	for (size_t i = 0; i < array_len(once); i++)
		printf(", %" PRIu64 " %s", s->once[once[i].once], once[i].name);
	printf("\n  %" PRIu64 " seeds beyond the budget; %" PRIu64
	       " I/Os failed there, %" PRIu64 " for lack of space\n",
	       s->beyond, s->failed - s->full, s->full);
	printf("  %" PRIu64 " writes, %" PRIu64 " reads, %" PRIu64
	       " flushes, %" PRIu64 " discards; %" PRIu64 " returns, %" PRIu64
	       " moves, %" PRIu64 " changes of policy; %" PRIu64 " turns\n",
	       s->writes, s->reads, s->flushes, s->trims, s->rebuilds, s->moves,
	       s->changes, s->turns);
}

static void child_end_print(const struct options *o, const struct shared *sh,
			    int status)
{
	const struct sim_client_ops *layout = layouts[sh->layout];
	const uint64_t seed = sh->seed;

	if (WIFSIGNALED(status))
		printf("seed %" PRIu64 ": signal %d%s; repeat: sim --layout %s "
		       "--profile %s --seed %" PRIu64 " -v\n",
		       seed, WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? " (it hangs)" : "",
		       layout->name, profile_of(o, layout, seed)->name, seed);
	else if (WEXITSTATUS(status) != SIM_EXIT_VIOLATION)
		printf("seed %" PRIu64 ": exit %d\n", seed,
		       WEXITSTATUS(status));
	fflush(stdout);
}

/*
 * What a planted fault is said to have caused must not happen without it. The
 * seed of a violation is run once more, sound.
 */
static bool sound_seed_passes(const struct options *o, const struct shared *sh)
{
	const pid_t pid = fork();
	int status = 0;

	if (!pid) {
		struct shared alone = *sh; /* its counts are not wanted */

		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		layouts[sh->layout]->plant(0);
		run_seed(o, &alone);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return false;
	if (status)
		printf("not by it: seed %" PRIu64 " goes wrong without it, "
		       "too\n",
		       sh->seed);
	return !status;
}

/* Returns the number of seeds that went wrong. */
static unsigned run_many(const struct options *o)
{
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec until;
	unsigned bad[LAYOUTS] = { 0 }, all = 0;

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
		child_end_print(o, sh, status);
		if (!o->mutation || sound_seed_passes(o, sh)) {
			bad[sh->layout]++;
			all++;
			if (o->expect)
				break;
		}
		if (++sh->layout < LAYOUTS)
			continue; /* the same seed in what comes next */
		sh->layout = 0;
		sh->seed++;
	}
	if (o->expect && all)
		printf("caught by seed %" PRIu64 ", the %" PRIu64 "th\n",
		       sh->seed, sh->seed - o->first + 1);
	for (unsigned i = 0; i < LAYOUTS; i++)
		if (layout_is_wanted(o, i))
			stats_print(&sh->stats[i], layouts[i]->name, bad[i]);
	munmap(sh, sizeof(*sh));
	return all;
}

static void list(void)
{
	for (size_t i = 0; i < array_len(layouts); i++)
		printf("layout    %s\n", layouts[i]->name);
	for (const struct sim_profile *p = sim_profiles; p->name; p++)
		printf("profile   %-9s %s\n", p->name, p->about);
	for (size_t l = 0; l < array_len(layouts); l++)
		for (unsigned i = 1; layouts[l]->fault(i); i++)
			printf("mutation  %-8s %s\n", layouts[l]->name,
			       layouts[l]->fault(i));
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

/* Of the layout named; in-place where none is. */
static void mutation_set(struct options *o)
{
	if (!o->layout)
		o->layout = layouts[0];
	for (unsigned i = 1; o->layout->fault(i); i++)
		if (!strcmp(o->layout->fault(i), o->mutation)) {
			o->layout->plant(i);
			return;
		}
	refuse("mutation", o->mutation);
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
		o->mutation = optarg;
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

/* An opening takes and gives back megabytes, many thousand times: from a heap
 * that is kept, or most of the time goes into page faults. */
static void heap_keep(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 64 << 20);
}

int main(int argc, char **argv)
{
	struct options o = { .first = 1, .last = 100 };
	struct shared sh = { 0 };
	unsigned bad = 0;
	int c;

	heap_keep();
	while ((c = getopt_long(argc, argv, "v", long_options, NULL)) >= 0)
		option_take(&o, c);
	if (o.mutation)
		mutation_set(&o);
	if (o.single) {
		sh.seed = o.first;
		run_seed(&o, &sh);
		for (unsigned i = 0; i < LAYOUTS; i++)
			if (layout_is_wanted(&o, i))
				stats_print(&sh.stats[i], layouts[i]->name, 0);
	} else {
		bad = run_many(&o);
	}
	return (bad != 0) != o.expect;
}
