/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vdisk_kill: kills the owners of log-structured vDisks over real files and
 * lets the next one look whether anything is lost.
 *
 *   vdisk_kill [-n KILLS] [-s SEED] [-d DIR] [-p POLICY] [-V] [-r]
 *     -n  how many kills, over all policies (300)
 *     -p  one policy alone: its name, as the summary says it
 *     -d  where its files go; they are removed unless something was found
 *     -V  a volatile cache under each member: unsynced writes are lost, by
 *         sectors
 *     -r  zones, segments and buffers of real size, not small ones
 *   vdisk_kill_mut FAULT...: the same with each of the faults planted, until it
 *   is found: would it be noticed?
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kill.h"

#define LIFE_MAX_MS 60000
#define WORK_MAX_MS 1500
#define OPEN_MAX_US 60000

struct policy {
	const char *name;
	unsigned drives, k, m;
	enum vdisk_codec codec;
};

static const struct policy policies[] = {
	{ "raid1", 3, 1, 1, VDISK_LZ4 },
	{ "raid5-2+1", 3, 2, 1, VDISK_ZSTD },
	{ "raid5-4+1", 6, 4, 1, VDISK_LZ4 },
	{ "raid6-4+2", 6, 4, 2, VDISK_LZ4 },
	{ "raid1-ftt2", 5, 1, 2, VDISK_RAW },
	{ "raid0", 2, 2, 0, VDISK_LZ4 },
};

struct options {
	unsigned kills;
	uint64_t seed;
	const char *dir, *policy;
	bool volatile_cache, real;
};

struct tally {
	unsigned kills, opening, reading, loaded, closed;
	uint64_t replayed, degraded, failed, rejoined, changed;
	uint64_t open_max_ns;
};

static void sleep_us(uint64_t us)
{
	const struct timespec t = { (time_t)(us / 1000000),
				    (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

static bool expected; /* a fault is planted */

static void dir_remove(const char *dir)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		printf("cannot remove %s\n", dir);
}

static int failed(const struct setting *set, const char *what)
{
	if (expected) {
		printf("found: %u+%u: %s\n", set->k, set->m, what);
		dir_remove(set->dir);
		return 1;
	}
	printf("FAILED: %u+%u on %u: %s\n  files are left in %s\n", set->k,
	       set->m, set->drives, what, set->dir);
	return 1;
}

/* ---- one life ----------------------------------------------------------- */

static int wait_dead(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Until it has got so far, or is dead (*status is set then). */
static bool until_phase(pid_t pid, const struct shared *shared, int phase,
			int *status)
{
	for (unsigned ms = 0; ms < LIFE_MAX_MS; ms++) {
		if (__atomic_load_n(&shared->phase, __ATOMIC_ACQUIRE) >= phase)
			return true;
		if (waitpid(pid, status, WNOHANG) == pid)
			return false;
		sleep_us(1000);
	}
	kill(pid, SIGKILL);
	*status = wait_dead(pid);
	return false;
}

/* Some work gets done first, and then a little time passes. */
static void until_work(const struct shared *shared, struct rng *rng)
{
	const uint64_t want = rng_below(rng, rng_below(rng, 4) ? 64 : 1000);

	for (unsigned ms = 0; ms < WORK_MAX_MS; ms++) {
		if (__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) >= want)
			break;
		sleep_us(1000);
	}
	sleep_us(rng_below(rng, 5000));
}

static void phase_count(struct tally *t, int phase)
{
	t->kills++;
	t->opening += phase == OWNER_OPENING || phase == OWNER_STARTED;
	t->reading += phase == OWNER_READING;
	t->loaded += phase == OWNER_LOADED;
}

/*
 * Two of three die under load, the others while they open or read; one of 16
 * is asked to close, so that a clean open is met, too.
 */
static int one_life(const struct setting *set, struct rng *rng,
		    struct shared *shared, struct tally *t)
{
	const uint64_t life = rng_u64(rng);
	const bool loaded = rng_below(rng, 3) != 0;
	const bool term = rng_below(rng, 16) == 0;
	int status = 0;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid < 0)
		return failed(set, strerror(errno));
	if (!pid)
		owner_live(set, life, shared);
	if (!until_phase(pid, shared,
			 loaded || term ? OWNER_LOADED : OWNER_OPENING,
			 &status))
		return failed(set, shared->error[0] ? shared->error
						    : "it does not get on");
	if (loaded || term)
		until_work(shared, rng);
	else
		sleep_us(rng_below(rng, OPEN_MAX_US));
	kill(pid, term ? SIGTERM : SIGKILL);
	status = wait_dead(pid);
	if (WIFEXITED(status) && (WEXITSTATUS(status) || shared->error[0]))
		return failed(set,
			      shared->error[0] ? shared->error : "it gave up");
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		return failed(set, "it crashed by itself");
	if (term)
		t->closed++;
	else
		phase_count(t, shared->phase);
	t->replayed += shared->replayed;
	t->degraded += shared->degraded;
	t->failed += shared->failed;
	t->rejoined += shared->rejoined;
	t->changed += shared->changed;
	if (shared->open_ns > t->open_max_ns)
		t->open_max_ns = shared->open_ns;
	return 0;
}

/* ---- one policy --------------------------------------------------------- */

static int make(const struct setting *set, struct shared *shared)
{
	const pid_t pid = fork();
	int status;

	if (pid < 0)
		return failed(set, strerror(errno));
	if (!pid)
		owner_make(set, shared);
	status = wait_dead(pid);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return failed(set, shared->error);
}

/* The last word: opened once more, all of it read, and closed. */
static int at_last(const struct setting *set, struct rng *rng,
		   struct shared *shared)
{
	const uint64_t life = rng_u64(rng);
	int status = 0;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid)
		owner_live(set, life, shared);
	if (pid < 0 || !until_phase(pid, shared, OWNER_LOADED, &status))
		return failed(set, shared->error);
	kill(pid, SIGTERM);
	status = wait_dead(pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return failed(set, shared->error);
	return 0;
}

static void head_read(const struct setting *set, struct verify_head *head)
{
	char path[128];
	FILE *f;

	memset(head, 0, sizeof(*head));
	snprintf(path, sizeof(path), "%s/journal", set->dir);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fread(head, sizeof(*head), 1, f) != 1)
		memset(head, 0, sizeof(*head));
	fclose(f);
}

static void say(const struct policy *p, const struct tally *t,
		const struct verify_head *h)
{
	printf("%-10s %4u kills: %u opening, %u reading, %u under load; "
	       "%u closed\n",
	       p->name, t->kills, t->opening, t->reading, t->loaded, t->closed);
	printf("           %llu writes, %llu trims, %llu reads; %llu "
	       "sweeps; cut off %llu blocks, %llu of them as after\n",
	       (unsigned long long)h->writes, (unsigned long long)h->trims,
	       (unsigned long long)h->reads, (unsigned long long)h->sweeps,
	       (unsigned long long)h->settled,
	       (unsigned long long)h->settled_new);
	printf("           %llu records replayed, %llu opens without a "
	       "member, %llu lost, %llu came back; %llu policy changes begun; "
	       "open at most %.1f ms\n",
	       (unsigned long long)t->replayed, (unsigned long long)t->degraded,
	       (unsigned long long)t->failed, (unsigned long long)t->rejoined,
	       (unsigned long long)t->changed, (double)t->open_max_ns / 1e6);
	fflush(stdout);
}

static void setting_make(const struct options *o, const struct policy *p,
			 struct rng *rng, struct setting *set)
{
	*set = (struct setting) {
		.drives = p->drives,
		.k = p->k,
		.m = p->m,
		.codec = p->codec,
		.size_bytes = o->real ? 256 * MIB : 24 * MIB,
		.volatile_cache = o->volatile_cache,
		.seed = rng_u64(rng),
	};
	if (!o->real)
		set->tune = (struct vlog_tune) { .zone_bytes = MIB,
						 .zones = 8,
						 .unit_bytes = 32 * KIB,
						 .stripes = 4,
						 .buffer_bytes = 2 * MIB };
}

static int policy_run(const struct options *o, const struct policy *p,
		      unsigned kills, struct shared *shared)
{
	struct setting set;
	struct tally t = { 0 };
	struct verify_head head;
	struct rng rng;
	int rc;

	rng_seed(&rng, o->seed + (uint64_t)(p - policies));
	setting_make(o, p, &rng, &set);
	snprintf(set.dir, sizeof(set.dir), "%s/iodeck-kill-XXXXXX", o->dir);
	if (!mkdtemp(set.dir)) {
		printf("%s: %s\n", set.dir, strerror(errno));
		return 1;
	}
	rc = make(&set, shared);
	while (!rc && t.kills < kills)
		rc = one_life(&set, &rng, shared, &t);
	if (!rc)
		rc = at_last(&set, &rng, shared);
	head_read(&set, &head);
	if (!expected)
		say(p, &t, &head);
	if (!rc && head.wrong)
		rc = failed(&set, head.first);
	if (!rc && (!head.writes || !head.sweeps))
		rc = failed(&set, "nothing was written or read");
	if (!rc)
		dir_remove(set.dir);
	return rc;
}

static int run(const struct options *o)
{
	struct shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const unsigned n = array_len(policies);
	unsigned left = o->kills;
	int rc = 0;

	if (shared == MAP_FAILED)
		return 1;
	printf("seed %llu%s%s\n", (unsigned long long)o->seed,
	       o->volatile_cache ? ", unsynced writes are lost" : "",
	       o->real ? ", real sizes" : "");
	for (unsigned i = 0; i < n && !rc; i++) {
		const unsigned share = o->policy ? left : left / (n - i);

		if (o->policy && strcmp(o->policy, policies[i].name))
			continue;
		rc = policy_run(o, &policies[i], share, shared);
		left -= share;
	}
	if (!rc && left && o->policy)
		printf("no such policy: %s\n", o->policy);
	else if (!rc)
		printf("%u kills: nothing lost, nothing wrong\n", o->kills);
	return rc || left;
}

#ifdef IODECK_MUTATIONS
#include "engine/vdisk/log/mut.h"

static const enum vlog_mut faults[] = {
	MUT_ACK_ANY,      MUT_NO_FUA,     MUT_NO_FLUSH, MUT_SB_EARLY,
	MUT_COMMIT_EARLY, MUT_TRIM_EARLY, MUT_NO_CAS,   MUT_SNAP_NO_COW,
	MUT_APPLY_OOO,    MUT_FREE_EARLY,
};

static int fault_run(const char *name)
{
	const struct options o = {
		.kills = 180, .seed = 1, .dir = "/tmp", .volatile_cache = true
	};

	for (unsigned i = 0; i < array_len(faults); i++) {
		if (strcmp(name, vlog_mut_name[faults[i]]))
			continue;
		vlog_mut = faults[i];
		expected = true;
		printf("%s: ", name);
		fflush(stdout);
		if (run(&o))
			return 0;
		printf("NOT FOUND: %s\n", name);
		return 1;
	}
	printf("no such fault: %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	int rc = 0;

	for (int i = 1; i < argc && !rc; i++)
		rc = fault_run(argv[i]);
	return rc;
}
#else
int main(int argc, char **argv)
{
	struct options o = { .kills = 300, .seed = 1, .dir = "/tmp" };
	int c;

	while ((c = getopt(argc, argv, "n:s:d:p:Vr")) != -1) {
		switch (c) {
		case 'n':
			o.kills = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			o.seed = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			o.dir = optarg;
			break;
		case 'p':
			o.policy = optarg;
			break;
		case 'V':
			o.volatile_cache = true;
			break;
		case 'r':
			o.real = true;
			break;
		default:
			return 2;
		}
	}
	return run(&o);
}
#endif
