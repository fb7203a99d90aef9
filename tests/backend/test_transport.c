/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways without an sshd: the child, and the parts that ways over ssh are made
 * of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/transport/errand.h"
#include "backend/transport/far.h"
#include "backend/transport/gate.h"
#include "backend/transport/keyfile.h"
#include "backend/transport/sshconf.h"
#include "sshlab.h"

/* ---- the child ---------------------------------------------------------- */

static void run(struct way *w, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };

	way_open_host(w, NULL, argv);
	if (!way_turn(w, 0, 20000))
		fail_msg("%s: no end", script);
}

static void test_child(void **state)
{
	struct way w;

	(void)state;
	run(&w, "echo out; exec 0</dev/null");
	assert_int_equal(w.rc, 0);
	assert_int_equal(w.err.code, 0);
	assert_string_equal(w.out, "out\n");
	assert_string_equal(w.via, "child");
	way_close(&w);
	run(&w, "echo 'first: what' >&2; echo 'second: why' >&2; exit 1");
	assert_int_equal(w.rc, 0);
	assert_string_equal(w.err.text, "second: why");
	way_close(&w);
}

static void test_child_absent(void **state)
{
	const char *const argv[] = { "/nowhere/iodeck-agent", NULL };
	struct way w;

	(void)state;
	way_open_host(&w, NULL, argv);
	assert_int_equal(w.rc, -ENOENT);
	assert_non_null(strstr(w.err.text, "/nowhere/iodeck-agent"));
	way_close(&w);
}

static void test_child_flood(void **state)
{
	struct way w;

	(void)state;
	run(&w, "head -c 20000000 /dev/zero | tr '\\0' e >&2; echo done");
	assert_string_equal(w.out, "done\n");
	assert_in_range(w.said_len, 1, 20000000);
	way_close(&w);
}

/* ---- names -------------------------------------------------------------- */

static void test_names(void **state)
{
	static const struct transport_host bad[] = {
		{ .host = "-oProxyCommand=touch x" },
		{ .host = "" },
		{ .host = "a b" },
		{ .host = "a;b" },
		{ .host = "$(x)" },
		{ .host = "a", .user = "-l" },
		{ .host = "a", .user = "x y" },
		{ .host = "a", .identity = "-F/x" },
		{ .host = "a", .config = "-x" },
		{ .host = "a", .port = 65536 },
	};
	static const struct transport_host good[] = {
		{ .host = "n1.lab", .user = "root", .port = 22 },
		{ .host = "fe80::1%eth0" },
		{ .host = "10.0.0.1", .identity = "~/.ssh/id" },
	};
	const char *const argv[] = { "true", NULL };
	struct way w;
	struct err err;

	(void)state;
	for (size_t k = 0; k < array_len(bad); k++) {
		way_open_host(&w, &bad[k], argv);
		assert_int_equal(w.rc, -EINVAL);
		assert_true(*w.err.text);
		way_close(&w);
	}
	for (size_t k = 0; k < array_len(good); k++)
		assert_int_equal(sshconf_check(&good[k], &err), 0);
}

/* ---- the far command ---------------------------------------------------- */

static void test_command(void **state)
{
	const char *const argv[] = { "~/a b", "it's", "$x", NULL };
	const char *const worse[] = { "a", "new\nline", NULL };
	struct err err;
	char *text;

	(void)state;
	assert_int_equal(far_command(argv, "MARK", &text, &err), 0);
	assert_string_equal(text, "exec sh -c 'echo; echo MARK; exec \"$0\" "
				  "\"$@\"' \"$HOME\"/'a b' 'it'\\''s' '$x'");
	free(text);
	assert_int_equal(far_command(worse, "MARK", &text, &err), -EINVAL);
}

/* ---- ssh -G ------------------------------------------------------------- */

static int parse(const char *text, struct sshconf *conf)
{
	char *copy = strdup(text);
	struct err err;
	int rc = sshconf_parse(copy, conf, &err);

	free(copy);
	return rc;
}

static void test_config(void **state)
{
	struct sshconf c;

	(void)state;
	setenv("SSH_AUTH_SOCK", "/tmp/sock", 1);
	assert_int_equal(parse("user me\nhostname h.x\nport 2222\n"
			       "identityfile /a\nidentityfile /b\n"
			       "userknownhostsfile /k1 /k2\n"
			       "globalknownhostsfile none\n"
			       "proxycommand none\npubkeyauthentication true\n",
			       &c),
			 0);
	assert_string_equal(c.host, "h.x");
	assert_int_equal(c.port, 2222);
	assert_int_equal(c.identities, 2);
	assert_int_equal(c.knowns, 2);
	assert_string_equal(c.agent, "/tmp/sock");
	assert_string_equal(c.only_ssh, "");
	sshconf_fini(&c);
	assert_int_equal(parse("user me\nhostname h\nport 22\n"
			       "proxyjump bastion\nidentityagent none\n",
			       &c),
			 0);
	assert_null(c.agent);
	assert_string_equal(c.only_ssh, "it is behind the jump host bastion");
	sshconf_fini(&c);
	assert_int_equal(parse("user me\nhostname -oX\nport 22\n", &c),
			 -EINVAL);
	sshconf_fini(&c);
	assert_int_equal(parse("Pseudo-terminal\n", &c), -EPROTO);
	sshconf_fini(&c);
	unsetenv("SSH_AUTH_SOCK");
}

/* ---- key files ---------------------------------------------------------- */

static enum key_use use_of(const char *text)
{
	char path[] = "/tmp/iodeck-key-XXXXXX";
	int fd = mkstemp(path);
	struct keyfile key;
	enum key_use use;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	keyfile_look(path, &key);
	use = key.use;
	keyfile_fini(&key);
	unlink(path);
	return use;
}

static void test_keyfile(void **state)
{
	(void)state;
	assert_int_equal(use_of(""), KEY_OTHER);
	assert_int_equal(use_of("-----BEGIN RSA PRIVATE KEY-----\nMII"),
			 KEY_RSA);
	assert_int_equal(use_of("-----BEGIN RSA PRIVATE KEY-----\n"
				"Proc-Type: 4,ENCRYPTED\n"),
			 KEY_ENCRYPTED);
	assert_int_equal(use_of("-----BEGIN OPENSSH PRIVATE KEY-----\n"
				"!!!!\n-----END"),
			 KEY_OTHER);
	assert_int_equal(use_of("-----BEGIN OPENSSH PRIVATE KEY-----\n"
				"b3BlbnNzaC1rZXktdjEAAAAA\n-----END"),
			 KEY_OTHER);
}

/* ---- errands ------------------------------------------------------------ */

static int errand(const char *script, int limit_ms, struct err *err)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct pollfd fd[TRANSPORT_FDS];
	struct errand e = { 0 };
	int status = -1, ms, n, rc;

	assert_int_equal(errand_start(&e, argv, limit_ms, err), 0);
	while ((rc = errand_step(&e, &status, err)) == -EAGAIN) {
		ms = 1000;
		n = errand_poll(&e, fd, &ms);
		poll(fd, (nfds_t)n, ms);
	}
	errand_fini(&e);
	return rc ? rc : status;
}

static void test_errand(void **state)
{
	struct err err = { 0 };
	int64_t at = transport_now_ms();

	(void)state;
	assert_int_equal(errand("echo 1; exit 3", 20000, &err), 3 << 8);
	assert_int_equal(errand("cat", 20000, &err), 0); /* no stdin */
	assert_int_equal(errand("sleep 100 & sleep 100", 300, &err),
			 -ETIMEDOUT);
	assert_non_null(strstr(err.text, "0.3 s"));
	assert_int_equal(errand("yes", 20000, &err), -E2BIG);
	assert_true(transport_now_ms() - at < 30000);
}

/* ---- the gate ----------------------------------------------------------- */

static void test_gate(void **state)
{
	struct gate_ticket t[12] = { 0 };
	char to[16];
	int64_t now = 1000;

	(void)state;
	for (int k = 0; k < 8; k++) {
		snprintf(to, sizeof(to), "h%d", k / 4);
		assert_true(gate_enter(&t[k], to, now));
	}
	assert_int_equal(gate_count(now), 8);
	assert_false(gate_enter(&t[8], "h2", now));
	gate_leave(&t[0]);
	assert_false(gate_enter(&t[8], "h1", now)); /* four already */
	assert_true(gate_enter(&t[8], "h0", now));
	/* those that hang hold up nobody but their own address */
	now += GATE_HOLD_MS;
	assert_int_equal(gate_count(now), 0);
	assert_true(gate_enter(&t[9], "h2", now));
	assert_false(gate_enter(&t[10], "h0", now));
	for (int k = 0; k < 12; k++)
		gate_leave(&t[k]);
	assert_int_equal(gate_count(0), 0);
}

static void test_said(void **state)
{
	static struct said said;
	char last[80], buf[16];

	(void)state;
	for (int k = 0; k < 5000; k++)
		said_add(&said, "line\n", 5);
	said_add(&said, "the \033[31mlast\r\n \n", 17);
	said_last(&said, last, sizeof(last));
	assert_string_equal(last, "the [31mlast");
	assert_true(said_has(&said, "31m"));
	assert_int_equal(said_take(&said, buf, sizeof(buf)), 16);
	while (said_take(&said, buf, sizeof(buf)) > 0)
		;
	said_last(&said, last, sizeof(last));
	assert_string_equal(last, "the [31mlast");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_child_absent),
		cmocka_unit_test(test_child_flood),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_keyfile),
		cmocka_unit_test(test_errand),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
