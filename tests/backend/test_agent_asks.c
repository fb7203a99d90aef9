/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Questions to other nodes: asked once, asked again of a new console, answered
 * once, in any order, and never left without an answer.
 */
#include "backend/agent/asks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rig {
	struct reactor *reactor;
	struct asks *asks;
	json_t *sent;   /* lines */
	unsigned again; /* ask again so often from an answer */
};

struct heard {
	struct rig *rig;
	unsigned times;
	int code;
};

static void on_send(json_t *line, void *arg)
{
	struct rig *rig = arg;

	json_array_append_new(rig->sent, line);
}

static void on_answer(const json_t *reply, void *arg)
{
	struct heard *h = arg;

	h->times++;
	h->code = (int)json_integer_value(json_object_get(reply, "code"));
	if (!h->rig->again)
		return;
	h->rig->again--;
	asks_ask(h->rig->asks, "n2", "again", NULL, SEC_NS, on_answer, h);
}

static int setup(void **state)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = 1 };
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_int_equal(reactor_new(&opts, &rig->reactor, NULL), 0);
	assert_int_equal(asks_new(rig->reactor, on_send, rig, &rig->asks), 0);
	rig->sent = json_array();
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	asks_free(rig->asks);
	reactor_free(rig->reactor);
	json_decref(rig->sent);
	free(rig);
	return 0;
}

static int64_t sent_id(const struct rig *rig, size_t k)
{
	return json_integer_value(
		json_object_get(json_array_get(rig->sent, k), "ask"));
}

static void tell(struct rig *rig, int64_t id, int code)
{
	json_t *line = json_pack("{s:I, s:{s:b, s:i}}", "told", (json_int_t)id,
				 "reply", "ok", !code, "code", code);

	asks_told(rig->asks, line);
	json_decref(line);
}

static void test_answered(void **state)
{
	struct rig *rig = *state;
	struct heard a = { .rig = rig }, b = { .rig = rig };

	asks_ask(rig->asks, "n2", "export_open", json_pack("{s:i}", "x", 1),
		 SEC_NS, on_answer, &a);
	asks_ask(rig->asks, "n3", "export_open", NULL, SEC_NS, on_answer, &b);
	assert_int_equal(json_array_size(rig->sent), 2);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(rig->sent, 1), "node")),
			    "n3");
	tell(rig, sent_id(rig, 1), -ENOSPC);
	assert_int_equal(b.times, 1);
	assert_int_equal(b.code, -ENOSPC);
	tell(rig, sent_id(rig, 1), 0); /* twice */
	tell(rig, 4711, 0);
	assert_int_equal(b.times, 1);
	assert_int_equal(a.times, 0);
	tell(rig, sent_id(rig, 0), 0);
	assert_int_equal(a.times, 1);
}

static void test_new_owner(void **state)
{
	struct rig *rig = *state;
	struct heard a = { .rig = rig }, b = { .rig = rig };

	asks_ask(rig->asks, "n2", "one", NULL, SEC_NS, on_answer, &a);
	asks_ask(rig->asks, "n2", "two", NULL, SEC_NS, on_answer, &b);
	tell(rig, sent_id(rig, 0), 0);
	asks_again(rig->asks);
	assert_int_equal(json_array_size(rig->sent), 3);
	assert_int_equal(sent_id(rig, 2), sent_id(rig, 1));
	tell(rig, sent_id(rig, 2), 0);
	assert_int_equal(b.times, 1);
}

static void test_limit(void **state)
{
	struct rig *rig = *state;
	struct heard a = { .rig = rig }, b = { .rig = rig };
	const uint64_t from = reactor_now(rig->reactor);

	rig->again = 1; /* the answer asks, while others are late, too */
	asks_ask(rig->asks, "n2", "one", NULL, SEC_NS, on_answer, &a);
	asks_ask(rig->asks, "n2", "two", NULL, 2 * SEC_NS, on_answer, &b);
	while (!b.times)
		reactor_run_once(rig->reactor, UINT64_MAX);
	assert_int_equal(a.times, 2);
	assert_int_equal(a.code, -ETIMEDOUT);
	assert_int_equal(b.times, 1);
	assert_int_equal((reactor_now(rig->reactor) - from) / SEC_NS, 2);
}

static void test_forgotten(void **state)
{
	struct rig *rig = *state;
	struct heard a = { .rig = rig }, b = { .rig = rig };

	asks_ask(rig->asks, "n2", "one", NULL, SEC_NS, on_answer, &a);
	asks_ask(rig->asks, "n2", "two", NULL, SEC_NS, on_answer, &b);
	asks_forget(rig->asks, &a);
	tell(rig, sent_id(rig, 0), 0);
	tell(rig, sent_id(rig, 1), 0);
	assert_int_equal(a.times, 0);
	assert_int_equal(b.times, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_owner, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
