/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a node keeps for others, under the real daemon: components made, listed
 * and exported, terms kept, exports that end with the agent or its lease, and
 * a key that nobody hears but who asked.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base.h"
#include "engine/bdev/nbd.h"
#include "engine/bdev/nbd_conn.h"
#include "lab.h"

#define SIZE (4 * MIB)
#define UUID "00112233445566778899aabbccddeeff"

static void nap_ms(long ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000 };

	nanosleep(&nap, NULL);
}

static json_t *node_cluster(const struct lab *lab)
{
	json_t *doc = lab_cluster(lab, 1, 64);
	json_t *cluster = json_object_get(doc, "cluster");

	json_object_set_new(cluster, "node", json_string("n1"));
	json_object_set_new(cluster, "export",
			    json_pack("{s:s, s:[i, i]}", "address", "127.0.0.1",
				      "ports", 21600, 21699));
	return doc;
}

static json_t *about(const char *to, int term)
{
	json_t *j = json_pack("{s:s, s:s, s:s}", "drive", "n1:d0", "component",
			      "db1.18c7f.0", "for", to);

	if (term) {
		json_object_set_new(j, "term", json_integer(term));
		json_object_set_new(j, "uuid", json_string(UUID));
	}
	return j;
}

static void component_make(struct hears *h)
{
	json_t *body = about("n2", 0);

	json_object_set_new(body, "size_bytes", json_integer(SIZE));
	hears_ask_ok(h, "component_make", body);
}

static void begin(struct lab *lab, struct hears *h)
{
	hears_attach(h, lab);
	hears_ask_ok(h, "cluster_open", node_cluster(lab));
}

/* ---- an export, and who uses it ------------------------------------------ */

struct told {
	char key[128], boot[64], export[192], address[64];
	int port;
};

static void export_ask(struct hears *h, const char *to, int term,
		       struct told *told)
{
	const json_t *reply = hears_ask(h, "export_open", about(to, term));
	const char *words[4];
	static const char *const name[] = { "key", "boot", "export",
					    "address" };

	assert_true(json_is_true(json_object_get(reply, "ok")));
	for (size_t k = 0; k < array_len(name); k++) {
		words[k] = json_string_value(json_object_get(reply, name[k]));
		assert_non_null(words[k]);
	}
	snprintf(told->key, sizeof(told->key), "%s", words[0]);
	snprintf(told->boot, sizeof(told->boot), "%s", words[1]);
	snprintf(told->export, sizeof(told->export), "%s", words[2]);
	snprintf(told->address, sizeof(told->address), "%s", words[3]);
	told->port = (int)json_integer_value(json_object_get(reply, "port"));
	assert_true(told->port >= 21600 && told->port <= 21699);
}

struct client {
	struct reactor *r;
	struct bdev *bdev;
	enum bdev_nbd_state state;
};

static void on_state(enum bdev_nbd_state state, const char *why, void *arg)
{
	(void)why;
	((struct client *)arg)->state = state;
}

static void client_start(struct client *c, const struct told *t,
			 enum bdev_nbd_state until)
{
	const struct reactor_opts ropts = { .kind = REACTOR_THREADS };
	const struct bdev_nbd_opts opts = { .name = "n1:d0",
					    .size_bytes = SIZE,
					    .wait_ns = 10 * SEC_NS,
					    .lost_ns = 500 * MSEC_NS,
					    .state = on_state,
					    .arg = c };
	const struct bdev_nbd_target target = { .address = t->address,
						.port = (uint16_t)t->port,
						.key = t->key,
						.export_name = t->export,
						.boot = t->boot };

	*c = (struct client) { 0 };
	assert_int_equal(reactor_new(&ropts, &c->r, NULL), 0);
	assert_int_equal(bdev_nbd_open(c->r, &opts, &c->bdev, NULL), 0);
	assert_int_equal(bdev_nbd_target(c->bdev, &target, NULL), 0);
	while (c->state != until)
		reactor_run_once(c->r, UINT64_MAX);
}

static void client_end(struct client *c)
{
	bdev_close_sync(c->bdev);
	reactor_free(c->r);
}

static int client_write(struct client *c, uint8_t byte)
{
	uint8_t buf[4096];

	memset(buf, byte, sizeof(buf));
	return bdev_io_sync(c->bdev, BDEV_WRITE, BDEV_FUA, 0, buf, 4096);
}

static uint8_t client_read(struct client *c)
{
	uint8_t buf[4096];

	assert_int_equal(bdev_io_sync(c->bdev, BDEV_READ, 0, 0, buf, 4096), 0);
	return buf[4095];
}

static int nbdkits(const struct told *t)
{
	char command[128];

	snprintf(command, sizeof(command), "ss -Hltn 'sport = :%d' | grep -q .",
		 t->port);
	return !system(command);
}

static bool gone(const struct told *t)
{
	for (int k = 0; k < 200 && nbdkits(t); k++)
		nap_ms(50);
	return !nbdkits(t);
}

/* ---- tests -------------------------------------------------------------- */

static const json_t *listed(struct hears *h)
{
	const json_t *reply = hears_ask(h, "component_list",
					json_pack("{s:s}", "drive", "n1:d0"));

	assert_true(json_is_true(json_object_get(reply, "ok")));
	assert_string_equal(json_string_value(json_object_get(reply, "kind")),
			    "directory");
	return json_object_get(reply, "components");
}

static void test_components(void **state)
{
	struct lab *lab = *state;
	const json_t *one;
	struct hears h;

	begin(lab, &h);
	component_make(&h);
	component_make(&h); /* twice the same is no harm */
	one = listed(&h);
	assert_int_equal(json_array_size(one), 1);
	one = json_array_get(one, 0);
	assert_string_equal(
		json_string_value(json_object_get(one, "component")),
		"db1.18c7f.0");
	assert_int_equal(json_integer_value(json_object_get(one, "size_bytes")),
			 SIZE);
	assert_true(json_is_false(json_object_get(one, "busy")));
	assert_true(json_is_null(json_object_get(one, "label")));
	hears_ask_refused(&h, "component_list",
			  json_pack("{s:s}", "drive", "n9:d0"), -ENOENT,
			  "no drive n9:d0");
	hears_ask_refused(&h, "export_open",
			  json_pack("{s:s, s:s, s:s}", "drive", "n1:d0",
				    "component", "../x", "for", "n2"),
			  -EINVAL, "component");
	hears_ask_ok(&h, "component_remove", about("n2", 0));
	hears_ask_ok(&h, "component_remove", about("n2", 0));
	assert_int_equal(json_array_size(listed(&h)), 0);
	hears_close(&h);
}

/* A label that a vDisk has written is told, though the vDisk is open here. */
static void test_labels(void **state)
{
	struct lab *lab = *state;
	const json_t *label;
	struct hears h;

	begin(lab, &h);
	hears_ask_ok(&h, "vdisk_create",
		     json_pack("{s:s, s:i, s:i, s:s}", "name", "own",
			       "size_bytes", 4 << 20, "raid", 0, "layout",
			       "inplace"));
	label = json_object_get(json_array_get(listed(&h), 0), "label");
	if (!label) { /* the other drive has it */
		const json_t *reply =
			hears_ask(&h, "component_list",
				  json_pack("{s:s}", "drive", "n1:d1"));

		label = json_object_get(
			json_array_get(json_object_get(reply, "components"), 0),
			"label");
	}
	assert_string_equal(json_string_value(json_object_get(label, "name")),
			    "own");
	hears_close(&h);
}

static void test_terms(void **state)
{
	struct lab *lab = *state;
	struct told first, again, later;
	struct client c, old;
	struct hears h;

	begin(lab, &h);
	component_make(&h);
	export_ask(&h, "n2", 1, &first);
	export_ask(&h, "n2", 1, &again);
	assert_string_equal(first.key, again.key);
	assert_int_equal(first.port, again.port);
	client_start(&c, &first, BDEV_NBD_UP);
	assert_int_equal(client_write(&c, 7), 0);
	assert_true(json_is_true(
		json_object_get(json_array_get(listed(&h), 0), "busy")));
	hears_ask_refused(&h, "export_open", about("n3", 1), -ESTALE, "n2");
	/* n3 takes over: n2 is out, and hears so */
	export_ask(&h, "n3", 2, &later);
	assert_string_not_equal(first.key, later.key);
	assert_int_equal(client_write(&c, 8), -ENODEV);
	client_end(&c);
	client_start(&old, &first, BDEV_NBD_LOST);
	client_end(&old);
	client_start(&c, &later, BDEV_NBD_UP);
	assert_int_equal(client_read(&c), 7);
	client_end(&c);
	hears_ask_refused(&h, "export_open", about("n2", 1), -ESTALE, "term 2");
	hears_ask_refused(&h, "export_close", about("n2", 1), -ESTALE, "n3");
	/* a fence of the console's, in a later term, holds for good */
	hears_ask_ok(&h, "export_close", about("n4", 3));
	assert_true(gone(&later));
	hears_ask_refused(&h, "export_open", about("n3", 2), -ESTALE, "term 3");
	hears_close(&h);
}

static void test_after_kill_9(void **state)
{
	struct lab *lab = *state;
	struct told first, again;
	struct hears h;
	struct client c;
	pid_t pid;

	begin(lab, &h);
	component_make(&h);
	export_ask(&h, "n2", 4, &first);
	client_start(&c, &first, BDEV_NBD_UP);
	assert_int_equal(client_write(&c, 9), 0);
	pid = lab_pid(lab);
	kill(pid, SIGKILL);
	hears_close(&h);
	assert_true(gone(&first));
	assert_int_equal(client_write(&c, 10), -ENODEV);
	client_end(&c);
	begin(lab, &h);
	hears_ask_refused(&h, "export_open", about("n2", 3), -ESTALE, "term 4");
	export_ask(&h, "n2", 4, &again);
	assert_string_not_equal(first.key, again.key);
	assert_string_equal(first.boot, again.boot);
	client_start(&c, &again, BDEV_NBD_UP);
	assert_int_equal(client_read(&c), 9);
	client_end(&c);
	/* nobody learnt the keys: not the spool, not the log, not an event */
	for (int k = 0; k < 2; k++) {
		char command[300];

		snprintf(command, sizeof(command),
			 "! grep -rqF %s --exclude-dir=export %s",
			 k ? again.key : first.key, lab->state);
		assert_int_equal(system(command), 0);
	}
	{
		char *text = json_dumps(h.event, 0);

		assert_non_null(strstr(text, "\"cluster\""));
		assert_null(strstr(text, again.key));
		free(text);
	}
	hears_ask_ok(&h, "quit", NULL);
	assert_true(gone(&again));
	hears_close(&h);
}

/* Nobody came back: the exports end with the lease. */
static void test_lease(void **state)
{
	struct lab *lab = *state;
	struct told told;
	struct hears h;

	lab_daemon(lab, "--lease-idle 1");
	begin(lab, &h);
	component_make(&h);
	export_ask(&h, "n2", 1, &told);
	assert_true(nbdkits(&told));
	hears_close(&h);
	assert_true(gone(&told));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_components), LAB_TEST(test_labels),
		LAB_TEST(test_terms),      LAB_TEST(test_after_kill_9),
		LAB_TEST(test_lease),
	};

	if (!nbd_conn_can() || system("nbdkit --version >/dev/null 2>&1")) {
		printf("no libnbd, or no nbdkit, here\n");
		return getenv("CI") ? 1 : 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
