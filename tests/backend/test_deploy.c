/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A bundle that is brought over: absent, in place, torn, damaged, at once by
 * several; and hosts where it cannot be. The bundle here is a small one, whose
 * loader is a script that says what it was given.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/bundle/deploy.h"
#include "backend/cluster/node.h"
#include "sshlab.h"

#define SAYS "agent: attach --name t\n"
#define STATE "/.local/state/iodeck/agent"

static const enum transport_way both[] = { TRANSPORT_SSH2, TRANSPORT_SSH };

static struct sshlab lab;
static struct bundle small, big;

/* ---- bundles ------------------------------------------------------------ */

/* `filler` bytes that gzip makes no smaller. */
static void bundle_make(const char *name, long filler, struct bundle *b)
{
	char dir[128];
	struct err err = { 0 };

	snprintf(dir, sizeof(dir), "%s/%s", lab.dir, name);
	sshlab_shell("mkdir -p %s/top/lib %s/top/bin && cd %s/top && "
		     "{ echo '#!/bin/sh'; echo 'shift 4; echo agent: \"$@\"'; "
		     "} >lib/ld-linux-x86-64.so.2 && "
		     "chmod 700 lib/ld-linux-x86-64.so.2 && "
		     "head -c %ld /dev/urandom >bin/iodeck-agent && "
		     "echo >MANIFEST && tar -czf ../bundle.tar.gz *",
		     dir, dir, dir, filler);
	sshlab_shell("cd %s && { echo hash $(sha256sum <bundle.tar.gz); "
		     "echo bytes $(wc -c <bundle.tar.gz); echo unpacked %ld; "
		     "} >bundle.manifest",
		     dir, filler + 100);
	if (bundle_read(dir, b, &err))
		fail_msg("%s", err.text);
}

static void test_read(void **unused)
{
	char dir[128];
	struct bundle b;
	struct err err = { 0 };

	(void)unused;
	assert_int_equal(bundle_read("/nowhere", &b, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	bundle_make("cut", 1000, &b);
	sshlab_shell("truncate -s 500 %s/cut/bundle.tar.gz", lab.dir);
	snprintf(dir, sizeof(dir), "%s/cut", lab.dir);
	assert_int_equal(bundle_read(dir, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "anew"));
}

/* ---- ways --------------------------------------------------------------- */

static void deploy(struct way *w, enum transport_way way,
		   const struct bundle *b, const char *state_dir)
{
	const struct transport_host host = { .host = "127.0.0.1",
					     .port = lab.port,
					     .config = lab.config,
					     .way = way };
	const char *argv[BUNDLE_WORDS + 4] = { NULL };
	const struct transport_opts opts = { .argv = argv,
					     .name = "iodeck-agent",
					     .host = &host };

	bundle_words(b, state_dir, argv);
	argv[BUNDLE_WORDS] = "attach";
	argv[BUNDLE_WORDS + 1] = "--name";
	argv[BUNDLE_WORDS + 2] = "t";
	*w = (struct way) { .rc = -EAGAIN };
	if (deploy_open(&opts, b, &w->t, &w->err))
		fail_msg("%s", w->err.text);
}

/* It answers, and was brought over for that or not. */
static void answers(enum transport_way way, const struct bundle *b,
		    const char *state_dir, bool brought)
{
	struct way w;

	deploy(&w, way, b, state_dir);
	if (!way_turn(&w, 0, 60000) || w.rc || w.err.code)
		fail_msg("%zd \"%s\", via %s, said %s", w.rc, w.err.text, w.via,
			 w.said);
	assert_string_equal(w.out, SAYS);
	if (!strstr(w.via, "brought iodeck over") == brought)
		fail_msg("via %s", w.via);
	way_close(&w);
}

/* By one way and the other in turn. */
static void refused(const struct bundle *b, const char *state_dir, int code,
		    const char *words)
{
	static size_t turn;
	struct way w;

	deploy(&w, both[turn++ % 2], b, state_dir);
	if (!way_turn(&w, 0, 60000))
		fail_msg("no end, via %s", w.via);
	if (w.err.code != code || !strstr(w.err.text, words))
		fail_msg("%d \"%s\", not \"%s\", via %s, said %s", w.err.code,
			 w.err.text, words, w.via, w.said);
	assert_int_equal(w.out_len, 0);
	/* nobody sends it again and again to where it cannot be */
	assert_int_equal(node_may_heal(code), code == -EBADMSG);
	way_close(&w);
}

/* What is in a bundle directory, but for those of these hashes. */
static void only(const char *state_dir, const char *names)
{
	sshlab_shell("for k in 1 2 3 4 5 6 7 8 9 10; do "
		     "[ \"$(ls -A %s/.bundle 2>&1)\" = '%s' ] && exit; "
		     "sleep .3; done; ls -A %s/.bundle >&2; exit 1",
		     state_dir, names, state_dir);
}

static void clean(void)
{
	sshlab_shell("rm -rf %s/.local", lab.dir);
}

static char *state_usual(void)
{
	static char dir[128];

	snprintf(dir, sizeof(dir), "%s" STATE, lab.dir);
	return dir;
}

/* ---- in order ----------------------------------------------------------- */

static void test_brought(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < array_len(both); k++) {
		clean();
		answers(both[k], &small, NULL, true);
		only(state_usual(), small.hash);
		answers(both[k], &small, NULL, false);
		/* another one is another one */
		answers(both[k], &big, NULL, true);
		answers(both[k], &small, NULL, false);
	}
	sshlab_shell("[ $(stat -c %%a %s/.bundle) = 700 ]", state_usual());
	clean();
}

static void test_elsewhere(void **unused)
{
	char dir[128];

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/a place; of's own", lab.dir);
	answers(TRANSPORT_SSH2, &small, dir, true);
	answers(TRANSPORT_SSH, &small, dir, false);
	answers(TRANSPORT_SSH, &small, "~/elsewhere", true);
	sshlab_shell("[ -d %s/elsewhere/.bundle/%s ] && rm -rf %s/elsewhere "
		     "\"%s\"",
		     lab.dir, small.hash, lab.dir, dir);
}

/* rc files that print, and a host's own library that would be loaded first */
static void test_noise(void **unused)
{
	(void)unused;
	sshlab_write(&lab, ".bashrc",
		     "echo iodeck-bundle absent /x; printf 'no end'; "
		     "export LD_LIBRARY_PATH=/nowhere; cd /tmp; umask 0");
	for (size_t k = 0; k < array_len(both); k++) {
		clean();
		answers(both[k], &small, NULL, true);
		answers(both[k], &small, NULL, false);
	}
	sshlab_shell("[ $(stat -c %%a %s/.bundle) = 700 ] && rm %s/.bashrc",
		     state_usual(), lab.dir);
	clean();
}

/* All at once: each is answered, and nothing is left of the slower. */
static void test_at_once(void **unused)
{
	struct way w[4];
	bool all = false;

	(void)unused;
	for (size_t k = 0; k < array_len(w); k++)
		deploy(&w[k], both[k % 2], &big, NULL);
	for (int turn = 0; !all && turn < 3000; turn++) {
		all = true;
		for (size_t k = 0; k < array_len(w); k++)
			if (w[k].rc == -EAGAIN)
				all = way_turn(&w[k], 0, 10) && all;
	}
	for (size_t k = 0; k < array_len(w); k++) {
		if (w[k].rc || w[k].err.code)
			fail_msg("%s, via %s", w[k].err.text, w[k].via);
		assert_string_equal(w[k].out, SAYS);
		way_close(&w[k]);
	}
	only(state_usual(), big.hash);
	clean();
}

/* ---- torn --------------------------------------------------------------- */

static void test_torn(void **unused)
{
	struct way w;

	(void)unused;
	for (size_t k = 0; k < array_len(both); k++) {
		deploy(&w, both[k], &big, NULL);
		while (!strstr(w.via, "bringing iodeck over"))
			assert_false(way_turn(&w, 0, 1));
		way_close(&w);
		only(state_usual(), "");
		/* of one that was killed, and one that is at work */
		sshlab_shell("cd %s/.bundle && mkdir .new.$(uname -n).999999 "
			     ".new.$(uname -n).%d .new.other.999999 %s",
			     state_usual(), (int)getpid(), big.hash);
		answers(both[k], &big, NULL, true);
		sshlab_shell("cd %s/.bundle && rmdir .new.$(uname -n).%d "
			     ".new.other.999999",
			     state_usual(), (int)getpid());
		only(state_usual(), big.hash);
		clean();
	}
}

static void test_wrong_hash(void **unused)
{
	struct bundle b = small;

	(void)unused;
	b.hash[7] = b.hash[7] == '0' ? '1' : '0';
	refused(&b, NULL, -EBADMSG, "not what was to be sent");
	refused(&b, NULL, -EBADMSG, "not what was to be sent");
	only(state_usual(), "");
	clean();
}

/* ---- hosts where it cannot be ------------------------------------------- */

static void test_other_machine(void **unused)
{
	char more[200];

	(void)unused;
	sshlab_shell("mkdir %s/path && cd %s/path && "
		     "{ echo '#!/bin/sh'; echo 'case $1 in -m) echo aarch64;; "
		     "*) echo Linux;; esac'; } >uname && chmod 700 uname",
		     lab.dir, lab.dir);
	snprintf(more, sizeof(more),
		 "SetEnv HOME=%s PATH=%s/path:/bin:/usr/bin", lab.dir, lab.dir);
	sshlab_sshd(&lab, more);
	refused(&small, NULL, -ENOEXEC, "Linux aarch64");
	sshlab_shell("[ ! -e %s/.local ]", lab.dir);
	/* only sh and what is needed first */
	sshlab_shell("cd %s/path && rm uname && for c in bash sh uname head; "
		     "do ln -s $(command -v $c) .; done",
		     lab.dir);
	snprintf(more, sizeof(more), "SetEnv HOME=%s PATH=%s/path", lab.dir,
		 lab.dir);
	sshlab_sshd(&lab, more);
	refused(&small, NULL, -ENOENT, "there is no tar");
	sshlab_sshd(&lab, "");
}

static void mount_at(const char *dir, unsigned long flags, const char *opts)
{
	sshlab_shell("mkdir -p %s", dir);
	assert_int_equal(mount("none", dir, "tmpfs", flags, opts), 0);
}

static void test_disks(void **unused)
{
	char dir[128];

	(void)unused;
	if (geteuid()) {
		printf("needs root\n");
		skip();
	}
	snprintf(dir, sizeof(dir), "%s/disk", lab.dir);
	mount_at(dir, 0, "size=1m");
	refused(&big, dir, -ENOSPC, "make room for");
	only(dir, "");
	/* it comes, and then there is no room to unpack it */
	assert_int_equal(umount(dir), 0);
	mount_at(dir, 0, "size=6m");
	refused(&big, dir, -ENOSPC, "(tar: ");
	only(dir, "");
	assert_int_equal(umount(dir), 0);
	mount_at(dir, MS_NOEXEC, NULL);
	refused(&small, dir, -EACCES, "noexec");
	only(dir, "");
	assert_int_equal(umount(dir), 0);
	mount_at(dir, MS_RDONLY, NULL);
	refused(&small, dir, -EACCES, "Read-only file system");
	assert_int_equal(umount(dir), 0);
}

/* ---- what is said makes no sense ---------------------------------------- */

static const struct {
	const char *script, *out, *words;
} speeches[] = {
	{ "printf '{x'", "{x", NULL },
	{ "printf 'iodeck-bun'; sleep .1; echo ny", "iodeck-bunny\n", NULL },
	{ "", "", NULL },
	{ "echo iodeck-bundle", "iodeck-bundle\n", NULL },
	{ "echo iodeck-bundle gone; cat", "", "makes no sense" },
	{ "echo iodeck-bundle placed; cat", "", "makes no sense" },
	{ "echo iodeck-bundle absent; echo iodeck-bundle absent; cat", "",
	  "makes no sense" },
	{ "echo iodeck-bundle absent /x; echo hello; cat", "",
	  "something else" },
	{ "echo iodeck-bundle absent /x; head -c 10 >/dev/null", "",
	  "ended while" },
	{ "echo iodeck-bundle failed; cat", "", "was not brought over" },
	{ "printf 'iodeck-bundle failed write a\\033b\\n'; cat", "",
	  "make room" },
	{ "yes 'iodeck-bundle absent' | tr '\\n' x", "", "endless" },
	{ "echo iodeck-bundle absent /x; sleep 9", "", "stands still" },
	{ "echo iodeck-bundle absent /x; cat >/dev/null & sleep 9", "",
	  "stands still" },
};

static void test_speeches(void **unused)
{
	struct way w;

	(void)unused;
	transport_hurry = 100;
	for (size_t k = 0; k < array_len(speeches); k++) {
		const char *const argv[] = { "sh", "-c", speeches[k].script,
					     NULL };
		const struct transport_opts opts = { .argv = argv };

		w = (struct way) { .rc = -EAGAIN };
		assert_int_equal(deploy_open(&opts, &big, &w.t, &w.err), 0);
		if (!way_turn(&w, 0, 20000))
			fail_msg("no end: %s", speeches[k].script);
		if (!speeches[k].words != !w.err.code ||
		    (w.err.code && !strstr(w.err.text, speeches[k].words)))
			fail_msg("%s: %s", speeches[k].script, w.err.text);
		assert_string_equal(w.out, speeches[k].out);
		way_close(&w);
	}
	transport_hurry = 1;
}

/* ---- all ---------------------------------------------------------------- */

static int setup(void **unused)
{
	(void)unused;
	unsetenv("XDG_STATE_HOME");
	/* mounts of tests are theirs alone, sshd's too */
	if (!geteuid() && (unshare(CLONE_NEWNS) ||
			   mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		return -1;
	bundle_make("small", 1000, &small);
	bundle_make("big", 4 << 20, &big);
	sshlab_sshd(&lab, "");
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	sshlab_shell("umount -l %s/disk 2>/dev/null; :", lab.dir);
	sshlab_close(&lab);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_brought),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_wrong_hash),
		cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_disks),
		cmocka_unit_test(test_speeches),
	};

	if (!sshlab_open(&lab))
		return 77;
	return cmocka_run_group_tests(tests, setup, teardown);
}
