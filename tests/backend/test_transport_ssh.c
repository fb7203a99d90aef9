/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ways over ssh against a real sshd: who is trusted, who may log in, which way
 * is chosen and why.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sshlab.h"

static struct sshlab lab;

/* libssh2 1.10 loses 112 bytes a login with an ecdsa key from a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:CRYPTO_zalloc";
}

static void plain(void)
{
	sshlab_config(&lab, "");
	sshlab_known(&lab);
}

/* ---- who is trusted ----------------------------------------------------- */

/* What stands in known_hosts: %p the port, %k the ed25519 key, %e the ecdsa
 * key, %o another key. Both ways must agree, or say why not. */
static const struct {
	const char *name, *known, *config, *words;
	bool hashed, ssh_differs;
} hosts[] = {
	{ "[h]:port", "[127.0.0.1]:%p %k\n", "", NULL, false, false },
	{ "hashed", "[127.0.0.1]:%p %k\n", "", NULL, true, false },
	{ "wildcard", "[127.0.0.*]:%p %k\n", "", NULL, false, false },
	{ "plain, by alias", "node %k\n", "HostKeyAlias node\n", NULL, false,
	  false },
	{ "only ecdsa", "[127.0.0.1]:%p %e\n", "", NULL, false, false },
	{ "CRLF", "[127.0.0.1]:%p %k\r\n", "", NULL, false, false },
	{ "garbage before", "what is this\n\n%% \n[127.0.0.1]:%p %k\n", "",
	  NULL, false, false },
	{ "a long line before", "%l\n[127.0.0.1]:%p %k\n", "", NULL, false,
	  false },
	{ "wrong, then right", "[127.0.0.1]:%p %o\n[127.0.0.1]:%p %k\n", "",
	  NULL, false, false },
	{ "nothing", "", "", "no host key of it is known", false, false },
	{ "another port's", "127.0.0.1 %k\n", "", "no host key of it is known",
	  false, true },
	{ "wrong", "[127.0.0.1]:%p %o\n", "", "has changed", false, false },
	{ "wrong, right for port 22", "[127.0.0.1]:%p %o\n127.0.0.1 %k\n", "",
	  "has changed", false, false },
	{ "revoked beside", "[127.0.0.1]:%p %k\n@revoked * %k\n", "", "revoked",
	  false, false },
	{ "only revoked", "@revoked [127.0.0.1]:%p %k\n", "", "revoked", false,
	  true },
	{ "another is revoked", "[127.0.0.1]:%p %k\n@revoked * %o\n", "", NULL,
	  false, false },
	{ "not asked for", "", "StrictHostKeyChecking no\n",
	  "no host key of it is known", false, false },
	{ "not for loopback", "", "NoHostAuthenticationForLocalhost yes\n",
	  "no host key of it is known", false, false },
};

static void known_write(const char *fmt)
{
	FILE *f = fopen(lab.known, "we");

	assert_non_null(f);
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			fputc(*fmt, f);
			continue;
		}
		switch (*++fmt) {
		case 'p':
			fprintf(f, "%u", lab.port);
			break;
		case 'k':
			fputs(sshlab_key(&lab, "host_ed25519"), f);
			break;
		case 'e':
			fputs(sshlab_key(&lab, "host_ecdsa"), f);
			break;
		case 'o':
			fputs(sshlab_key(&lab, "other"), f);
			break;
		case 'l':
			for (int k = 0; k < 5000; k++)
				fputc('x', f);
			break;
		default:
			fputc(*fmt, f);
		}
	}
	fclose(f);
}

static void hash_known(void)
{
	char command[256];

	snprintf(command, sizeof(command), "ssh-keygen -q -H -f %s 2>&1",
		 lab.known);
	assert_int_equal(system(command), 0);
}

static void test_hosts(void **state)
{
	static const enum transport_way ways[] = { TRANSPORT_SSH2,
						   TRANSPORT_SSH };

	(void)state;
	for (size_t k = 0; k < array_len(hosts); k++) {
		known_write(hosts[k].known);
		if (hosts[k].hashed)
			hash_known();
		sshlab_config(&lab, hosts[k].config);
		for (size_t w = 0; w < array_len(ways); w++) {
			/* what ssh trusts is not what is tested here */
			if (w &&
			    (hosts[k].ssh_differs || (k && !hosts[k].words)))
				continue;
			print_message("%s, %s\n", hosts[k].name,
				      w ? "ssh" : "libssh2");
			if (hosts[k].words)
				way_refused(&lab, ways[w], 20000,
					    hosts[k].words);
			else
				way_expect(&lab, ways[w], "echo hi", "hi\n");
		}
	}
	plain();
}

/* Nothing was written into known_hosts by anything above. */
static void test_known_untouched(void **state)
{
	(void)state;
	sshlab_write(&lab, "known_hosts", "%s", "");
	way_refused(&lab, TRANSPORT_AUTO, 20000, "ssh-keyscan");
	way_refused(&lab, TRANSPORT_SSH, 20000, "no host key of it is known");
	sshlab_shell("test ! -s %s", lab.known);
	plain();
}

/* ---- which way, and why ------------------------------------------------- */

static void chosen(const char *config, const char *via)
{
	const char *const argv[] = { "echo", "it's", "two  words", NULL };
	struct way w;

	sshlab_config(&lab, config);
	way_open(&w, &lab, TRANSPORT_AUTO, argv);
	assert_true(way_turn(&w, 0, 40000));
	if (w.rc || w.err.code)
		fail_msg("%s: %s, via %s, said %s", config, w.err.text, w.via,
			 w.said);
	assert_string_equal(w.out, "it's two  words\n");
	if (strncmp(w.via, via, strlen(via)) != 0 &&
	    !(strstr(w.via, via) && !strncmp(w.via, "ssh: ", 5)))
		fail_msg("%s: via %s, not %s", config, w.via, via);
	way_close(&w);
	plain();
}

static void test_auto_keys(void **state)
{
	const char *const argv[] = { "true", NULL };
	char config[256];
	struct way w;

	(void)state;
	chosen("", "libssh2");
	snprintf(config, sizeof(config), "IdentityFile %s/id_ecdsa\n", lab.dir);
	chosen(config, "libssh2");
	sshlab_identities(&lab, "id_rsa", "none");
	way_open(&w, &lab, TRANSPORT_AUTO, argv);
	assert_true(way_turn(&w, 0, 40000));
	assert_int_equal(w.rc, 0);
	assert_int_equal(w.err.code, 0);
	assert_non_null(strstr(w.via, "ssh: "));
	assert_non_null(strstr(w.via, "is RSA"));
	way_close(&w);
	way_refused(&lab, TRANSPORT_SSH2, 20000, "is RSA");
	plain();
}

static void test_auto_config(void **state)
{
	char config[512];

	(void)state;
	/* a jump through itself: the same sshd twice */
	snprintf(config, sizeof(config),
		 "Match final originalhost 127.0.0.1\n  ProxyCommand ssh -F "
		 "%s/jump_config -W 127.0.0.1:%u jump\nMatch all\n",
		 lab.dir, lab.port);
	sshlab_write(&lab, "jump_config",
		     "Host jump\nHostName 127.0.0.1\nPort %u\n"
		     "UserKnownHostsFile %s\nIdentityFile %s/id\n"
		     "IdentityAgent none\n",
		     lab.port, lab.known, lab.dir);
	chosen(config, "it is reached by the ProxyCommand");
	chosen("KnownHostsCommand /bin/true\n", "KnownHostsCommand");
}

static void test_auto_rsa_host(void **state)
{
	(void)state;
	sshlab_write(&lab, "known_hosts", "[127.0.0.1]:%u %s\n", lab.port,
		     sshlab_key(&lab, "host_rsa"));
	way_refused(&lab, TRANSPORT_SSH2, 20000, "can be asked for");
	{
		const char *const argv[] = { "echo", "rsa", NULL };
		struct way w;

		way_open(&w, &lab, TRANSPORT_AUTO, argv);
		assert_true(way_turn(&w, 0, 40000));
		assert_int_equal(w.err.code, 0);
		assert_string_equal(w.out, "rsa\n");
		assert_non_null(strstr(w.via, "ssh: none of the host keys"));
		way_close(&w);
	}
	plain();
}

/* Found out only in the handshake. */
static void test_auto_aead(void **state)
{
	(void)state;
	sshlab_sshd(&lab, "Ciphers chacha20-poly1305@openssh.com,"
			  "aes256-gcm@openssh.com\n");
	chosen("", "no common algorithm");
	way_refused(&lab, TRANSPORT_SSH2, 20000, "no common algorithm");
	sshlab_sshd(&lab, "MACs hmac-sha2-256-etm@openssh.com\n"
			  "Ciphers aes128-ctr\n");
	chosen("", "no common algorithm");
	sshlab_sshd(&lab, "");
	/* and what the user allows binds libssh2, too */
	chosen("Ciphers aes256-gcm@openssh.com\n", "libssh2 has none");
}

static void test_certificate(void **state)
{
	(void)state;
	sshlab_shell("ssh-keygen -q -s %s/other -I x -n %s %s/id.pub "
		     "2>/dev/null",
		     lab.dir, lab.user, lab.dir);
	chosen("", "the certificate");
	sshlab_shell("rm %s/id-cert.pub", lab.dir);
}

/* ---- who may log in ----------------------------------------------------- */

static void test_bad_login(void **state)
{
	(void)state;
	sshlab_identities(&lab, "other", "none");
	way_refused(&lab, TRANSPORT_SSH2, 20000, "is refused with 1 key:");
	way_refused(&lab, TRANSPORT_AUTO, 20000, "authorized_keys");
	way_refused(&lab, TRANSPORT_SSH, 20000, "authorized_keys");
	/* the RSA key beside it is let in, and only ssh can show it */
	sshlab_identities(&lab, "other", "id_rsa");
	way_expect(&lab, TRANSPORT_AUTO, "echo by rsa", "by rsa\n");
	plain();
}

static void test_locked_keys(void **state)
{
	(void)state;
	sshlab_shell("cd %s && cp id locked && cp id open && chmod 644 open && "
		     "ssh-keygen -q -p -P '' -N secret -f locked >/dev/null",
		     lab.dir);
	sshlab_identities(&lab, "locked", "open");
	way_refused(&lab, TRANSPORT_SSH2, 20000, "is encrypted: ssh-add it");
	way_refused(&lab, TRANSPORT_SSH2, 20000, "chmod 600");
	way_refused(&lab, TRANSPORT_AUTO, 20000, "ssh-add");
	plain();
}

/* An agent that holds the key; one that hangs costs no more than its limit. */
static void test_agent(void **state)
{
	char command[512];
	pid_t pid = 0;
	FILE *f;

	(void)state;
	snprintf(command, sizeof(command),
		 "ssh-agent -a %s/agent | sed -n 's/.*AGENT_PID=\\([0-9]*\\)"
		 ";.*/\\1/p' && SSH_AUTH_SOCK=%s/agent ssh-add -q %s/id_rsa "
		 "%s/id 2>&1",
		 lab.dir, lab.dir, lab.dir, lab.dir);
	f = popen(command, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	assert_int_equal(pclose(f), 0);
	sshlab_write(&lab, "ssh_config",
		     "UserKnownHostsFile %s\nGlobalKnownHostsFile none\n"
		     "IdentityAgent %s/agent\nIdentityFile %s/none\n",
		     lab.known, lab.dir, lab.dir);
	way_expect(&lab, TRANSPORT_SSH2, "echo by agent", "by agent\n");
	way_expect(&lab, TRANSPORT_AUTO, "echo by agent", "by agent\n");
	kill(pid, SIGSTOP);
	way_refused(&lab, TRANSPORT_SSH2, 8000, "no key file");
	kill(pid, SIGCONT);
	kill(pid, SIGTERM);
	plain();
}

/* ---- main --------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	sshlab_sshd(&lab, "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sshlab_close(&lab);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_known_untouched),
		cmocka_unit_test(test_auto_keys),
		cmocka_unit_test(test_auto_config),
		cmocka_unit_test(test_auto_rsa_host),
		cmocka_unit_test(test_auto_aead),
		cmocka_unit_test(test_certificate),
		cmocka_unit_test(test_bad_login),
		cmocka_unit_test(test_locked_keys),
		cmocka_unit_test(test_agent),
	};

	if (!sshlab_open(&lab))
		return 77;
	return cmocka_run_group_tests(tests, setup, teardown);
}
