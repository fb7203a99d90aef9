/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bundle is enough: in a root that has nothing but it, /proc, /dev and the
 * lab's directory, its agent makes a vDisk and its nbdkit serves a file. Needs
 * root, for the root of its own.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab.h"

#define LOADER                                                              \
	"/b/lib/ld-linux-x86-64.so.2", "--inhibit-cache", "--library-path", \
		"/b/lib"

static struct lab lab;
static char root[96], made[256];

static void shell(const char *fmt, ...) ID_PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command))
		fail_msg("%s", command);
}

/* ---- making ------------------------------------------------------------- */

static void test_same(void **unused)
{
	(void)unused;
	shell("set --; [ ! -e %s/b/nbdkit ] || set -- \"$(command -v "
	      "nbdkit)\"; "
	      "sh '%s/backend/bundle/make.sh' %s/again '%s/iodeck-agent' "
	      "\"$@\"",
	      root, getenv("SOURCE_DIR"), lab.dir, getenv("BIN_DIR"));
	shell("cmp %s/again/bundle.tar.gz '%s/bundle.tar.gz'", lab.dir, made);
	shell("cmp %s/again/bundle.manifest '%s/bundle.manifest'", lab.dir,
	      made);
	/* nothing that one library brings along and nobody asks for */
	shell("! ls %s/b/lib/libicu* 2>/dev/null", root);
}

/* ---- the agent ---------------------------------------------------------- */

static void test_agent(void **unused)
{
	struct hears h;

	(void)unused;
	hears_attach(&h, &lab);
	hears_ask_ok(&h, "cluster_open", lab_cluster(&lab, 3, 64));
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "v",
			       "size_bytes", 16 << 20, "raid", 5, "layout",
			       "inplace"));
	hears_ask_ok(&h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan("v", 1, 300),
			       "run", "r1"));
	assert_true(hears_until(&h, run_is_over, 60));
	assert_non_null(hears_find(&h, "run_state", "state", "done"));
	hears_ask_ok(&h, "quit", NULL);
	assert_true(hears_until(&h, link_is_down, 60));
	hears_close(&h);
}

/* ---- nbdkit ------------------------------------------------------------- */

static pid_t nbdkit(const char *const *more)
{
	const char *argv[32] = { LOADER,
				 "/b/bin/nbdkit",
				 "-f",
				 "-U",
				 "/sock",
				 "--filter=/b/nbdkit/nbdkit-limit-filter.so",
				 "--filter=/b/nbdkit/nbdkit-offset-filter.so" };
	pid_t pid;
	int n = 10;

	while (*more)
		argv[n++] = *more++;
	argv[n++] = "/b/nbdkit/nbdkit-file-plugin.so";
	argv[n++] = "/data";
	argv[n++] = "offset=4096";
	argv[n++] = "range=8192";
	argv[n] = NULL;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!chroot(root) && !chdir("/"))
		execv(argv[0], (char *const *)argv);
	_exit(127);
}

static int dial(pid_t pid)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", root);
	for (int k = 0; k < 3000; k++) {
		if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
			return fd;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			break;
		nanosleep(&nap, NULL);
	}
	fail_msg("nbdkit does not serve");
	return -1;
}

static void get(int fd, void *buf, size_t len)
{
	assert_int_equal(recv(fd, buf, len, MSG_WAITALL), (ssize_t)len);
}

/* "NBDMAGIC", "IHAVEOPT", flags; an option: "IHAVEOPT", number, length. */
static void option_ask(int fd, unsigned char option)
{
	unsigned char hello[18], ask[4 + 16] = { 0 };

	get(fd, hello, sizeof(hello));
	assert_memory_equal(hello, "NBDMAGICIHAVEOPT", 16);
	ask[3] = 1; /* fixed newstyle */
	memcpy(ask + 4, "IHAVEOPT", 8);
	ask[15] = option;
	assert_int_equal(send(fd, ask, sizeof(ask), 0), sizeof(ask));
}

static void nbdkit_end(pid_t pid, int fd)
{
	int status;

	close(fd);
	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	shell("rm -f %s/sock", root);
}

static bool no_nbdkit(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/b/bin/nbdkit", root);
	if (!access(path, F_OK))
		return false;
	printf("the bundle was made without nbdkit\n");
	return true;
}

/* The second block of the file is the first of the export. */
static void test_nbdkit(void **unused)
{
	static const char *const none[] = { NULL };
	unsigned char size[8 + 2 + 124], reply[16 + 4096];
	unsigned char ask[28] = { 0x25, 0x60, 0x95, 0x13 };
	pid_t pid;
	int fd;

	(void)unused;
	if (no_nbdkit())
		skip();
	pid = nbdkit(none);
	fd = dial(pid);
	option_ask(fd, 1); /* NBD_OPT_EXPORT_NAME "" */
	get(fd, size, sizeof(size));
	assert_memory_equal(size, "\0\0\0\0\0\0\x20\0", 8);
	ask[26] = 0x10; /* 4096 bytes */
	assert_int_equal(send(fd, ask, sizeof(ask), 0), sizeof(ask));
	get(fd, reply, sizeof(reply));
	assert_memory_equal(reply, "\x67\x44\x66\x98\0\0\0\0", 8);
	for (size_t k = 16; k < sizeof(reply); k++)
		assert_int_equal(reply[k], 'b');
	nbdkit_end(pid, fd);
}

/* gnutls and all that it needs are there: STARTTLS is taken. */
static void test_tls(void **unused)
{
	static const char *const tls[] = { "--tls=require",
					   "--tls-psk=/keys.psk", NULL };
	unsigned char reply[20];
	pid_t pid;
	int fd;

	(void)unused;
	if (no_nbdkit())
		skip();
	pid = nbdkit(tls);
	fd = dial(pid);
	option_ask(fd, 5);
	get(fd, reply, sizeof(reply));
	assert_memory_equal(reply + 8, "\0\0\0\x05\0\0\0\x01", 8);
	nbdkit_end(pid, fd);
}

/* ---- the root ----------------------------------------------------------- */

static void mounts(void)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL),
			 0);
	shell("mkdir -p %s/b %s/proc %s/dev %s%s", root, root, root, root,
	      lab.dir);
	shell("mount -t proc proc %s/proc && mount --bind /dev %s/dev && "
	      "mount --bind %s %s%s",
	      root, root, lab.dir, root, lab.dir);
}

static int setup(void **unused)
{
	(void)unused;
	lab_open(&lab);
	strcpy(root, "/tmp/iodeck-root-XXXXXX");
	assert_non_null(mkdtemp(root));
	mounts();
	shell("tar -xzf '%s/bundle.tar.gz' -C %s/b && "
	      "cd %s/b && sha256sum -c --quiet MANIFEST",
	      made, root, root);
	shell("for c in a b c d; do head -c 4096 /dev/zero | tr '\\0' $c; "
	      "done >%s/data; echo x:00112233445566778899aabbccddeeff "
	      ">%s/keys.psk",
	      root, root);
	snprintf(lab.program, sizeof(lab.program), "%s/enter", lab.dir);
	shell("{ echo '#!/bin/sh'; echo 'exec chroot %s "
	      "/b/lib/ld-linux-x86-64.so.2 --inhibit-cache --library-path "
	      "/b/lib /b/bin/iodeck-agent \"$@\"'; } >%s; chmod 700 %s",
	      root, lab.program, lab.program);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	shell("umount %s/proc %s/dev %s%s && rm -rf %s", root, root, root,
	      lab.dir, root);
	lab_close(&lab);
	return 0;
}

static int lacks(const char *what)
{
	const char *ci = getenv("CI");

	printf("%s: needs %s\n", ci && *ci ? "FAILED" : "skipped", what);
	return ci && *ci ? 1 : 77;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_agent),
		cmocka_unit_test(test_nbdkit),
		cmocka_unit_test(test_tls),
	};
	char file[300];

	snprintf(made, sizeof(made), "%s/../libexec/iodeck", getenv("BIN_DIR"));
	snprintf(file, sizeof(file), "%s/bundle.tar.gz", made);
	if (access(file, R_OK)) {
		printf("skipped: this build makes no bundle\n");
		return 77;
	}
	if (geteuid())
		return lacks("root");
	return cmocka_run_group_tests(tests, setup, teardown);
}
