/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a reactor makes of a host that forbids io_uring, or locked memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/reactor.h"

static int in_child(int (*fn)(void))
{
	int status = 0;
	const pid_t pid = fork();

	if (!pid)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* As a container's filter does it. */
static int forbidden_child(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { array_len(code), code };
	struct reactor_opts opts = { .kind = REACTOR_URING };
	struct reactor *r = NULL;
	struct err err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 77;
	if (reactor_new(&opts, &r, &err) != -EPERM && !strstr(err.text, "no "))
		return 1;
	opts.kind = REACTOR_AUTO;
	if (reactor_new(&opts, &r, &err) || reactor_kind(r) != REACTOR_THREADS)
		return 2;
	reactor_run_once(r, MSEC_NS);
	reactor_free(r);
	return 0;
}

static void without_io_uring_auto_takes_threads(void **state)
{
	const int rc = in_child(forbidden_child);

	(void)state;
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}

/* An ordinary user who may lock no memory still gets io_uring. */
static int unlocked_child(void)
{
	/* Enough for the ring, not for the buffers. */
	const struct rlimit little = { 512 * KIB, 512 * KIB };
	const struct reactor_opts opts = { .kind = REACTOR_URING,
					   .arena_bytes = 4 * MIB };
	struct reactor *r = NULL;
	char text[128];
	void *buf;

	if (setrlimit(RLIMIT_MEMLOCK, &little) || (!getuid() && setuid(65534)))
		return 77;
	if (reactor_new(&opts, &r, NULL))
		return 77;
	reactor_describe(r, text, sizeof(text));
	if (!strstr(text, "ulimit -l"))
		return 1;
	buf = reactor_buf_alloc(r, 4096);
	reactor_run_once(r, 0);
	reactor_buf_free(r, buf, 4096);
	reactor_free(r);
	return 0;
}

static void without_locked_memory_buffers_are_plain(void **state)
{
	const int rc = in_child(unlocked_child);

	(void)state;
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_io_uring_auto_takes_threads),
		cmocka_unit_test(without_locked_memory_buffers_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
