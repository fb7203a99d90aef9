/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The protocol without sockets: lines that come in pieces, bounds, garbage,
 * who may do what.
 */
#include "backend/agent/peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/event.h"

struct seen {
	struct peer peer; /* first */
	int attach_rc;
	unsigned attached, asked;
	bool watch, take;
	char session[64];
	struct spool_mark from[8];
	size_t from_count;
	int64_t ack_i, ack_n, ask_id, told;
};

static int on_attach(struct peer *peer, const struct peer_attach *attach,
		     struct err *err)
{
	struct seen *s = (struct seen *)peer;

	if (s->attach_rc)
		return err_set(err, s->attach_rc, "taken");
	s->attached++;
	s->watch = attach->watch;
	s->take = attach->take;
	s->from_count = attach->from_count;
	memcpy(s->from, attach->from,
	       (attach->from_count < 8 ? attach->from_count : 8) *
		       sizeof(s->from[0]));
	snprintf(s->session, sizeof(s->session), "%s",
		 attach->session ? attach->session : "");
	return 0;
}

static void on_ack(struct peer *peer, int64_t i, int64_t n)
{
	struct seen *s = (struct seen *)peer;

	s->ack_i = i;
	s->ack_n = n;
}

static void on_ask(struct peer *peer, int64_t id, json_t *request)
{
	struct seen *s = (struct seen *)peer;

	s->asked++;
	s->ask_id = id;
	json_decref(request);
}

static void on_told(struct peer *peer, json_t *line)
{
	struct seen *s = (struct seen *)peer;

	s->told = json_integer_value(json_object_get(line, "told"));
	json_decref(line);
}

static const struct peer_host host = { on_attach, on_ack, on_ask, on_told };

static int setup(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));

	peer_init(&s->peer, &host);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct seen *s = *state;

	peer_fini(&s->peer);
	free(s);
	return 0;
}

static void say(struct seen *s, const char *text)
{
	peer_feed(&s->peer, text, strlen(text));
}

/* The next line out, parsed; NULL: none. */
static json_t *heard(struct seen *s)
{
	size_t len;
	const char *out = wire_out(&s->peer.wire, &len);
	const char *nl = len ? memchr(out, '\n', len) : NULL;
	json_t *j;

	if (!nl)
		return NULL;
	assert_int_equal(
		event_line_decode(out, (size_t)(nl - out) + 1, &j, NULL), 0);
	wire_sent(&s->peer.wire, (size_t)(nl - out) + 1);
	return j;
}

static void heard_code(struct seen *s, int64_t re, int code)
{
	json_t *j = heard(s);

	assert_non_null(j);
	assert_int_equal(json_integer_value(json_object_get(j, "re")), re);
	assert_int_equal(json_is_true(json_object_get(j, "ok")), code == 0);
	assert_int_equal(json_integer_value(json_object_get(j, "code")), code);
	if (code)
		assert_non_null(json_string_value(json_object_get(j, "error")));
	json_decref(j);
}

static void test_attach(void **state)
{
	struct seen *s = *state;

	say(s, "{\"id\":1,\"do\":\"vdisk_create\"}\n");
	heard_code(s, 1, -ENOTCONN);
	say(s, "{\"id\":2,\"do\":\"ping\"}\n");
	heard_code(s, 2, 0);
	say(s, "{\"id\":3,\"do\":\"attach\",\"from\":[[3,70],[4,1]],"
	       "\"session\":\"/s\",\"take\":true}\n");
	heard_code(s, 3, 0);
	assert_int_equal(s->peer.state, PEER_OWNER);
	assert_int_equal(s->from_count, 2);
	assert_int_equal(s->from[1].i, 4);
	assert_int_equal(s->from[0].n, 70);
	assert_true(s->take);
	assert_string_equal(s->session, "/s");
	say(s, "{\"do\":\"ack\",\"i\":4,\"n\":9}\n");
	assert_int_equal(s->ack_n, 9);
	say(s, "{\"id\":4,\"do\":\"attach\"}\n");
	heard_code(s, 4, -EALREADY);
	say(s, "{\"id\":5,\"do\":\"run_stop\"}\n");
	assert_int_equal(s->ask_id, 5);
	assert_null(heard(s));
	peer_answer(&s->peer, 5, peer_ok());
	heard_code(s, 5, 0);
}

static void test_refused_may_try_again(void **state)
{
	struct seen *s = *state;

	s->attach_rc = -EBUSY;
	say(s, "{\"id\":1,\"do\":\"attach\"}\n");
	heard_code(s, 1, -EBUSY);
	assert_int_equal(s->peer.state, PEER_NEW);
	s->attach_rc = 0;
	say(s, "{\"id\":2,\"do\":\"attach\",\"watch\":true}\n");
	heard_code(s, 2, 0);
	assert_int_equal(s->peer.state, PEER_WATCHER);
	say(s, "{\"id\":3,\"do\":\"quit\"}\n");
	heard_code(s, 3, -EPERM);
	say(s, "{\"do\":\"ack\",\"i\":4,\"n\":9}\n");
	assert_int_equal(s->ack_n, 0);
	assert_int_equal(s->asked, 0);
	/* Who sees a run go wrong may hold and end it. */
	say(s, "{\"id\":4,\"do\":\"run_stop\"}\n");
	say(s, "{\"id\":5,\"do\":\"run_pause\",\"pause\":true}\n");
	/* Who shows a run that goes on without a terminal pulls a drive. */
	say(s,
	    "{\"id\":7,\"do\":\"fault\",\"text\":\"drive n1:d0 offline\"}\n");
	say(s, "{\"id\":8,\"do\":\"link_set\",\"domain\":\"*\"}\n");
	say(s, "{\"id\":9,\"do\":\"drive_set\",\"domain\":\"*\"}\n");
	assert_int_equal(s->asked, 5);
	say(s, "{\"id\":6,\"do\":\"run_start\"}\n");
	heard_code(s, 6, -EPERM);
}

static void test_bad_marks(void **state)
{
	static const char *const bad[] = {
		"1",        "[1]",       "[[1]]",       "[[1,2,3]]",
		"[[-1,2]]", "[[1,2.5]]", "[[1,\"2\"]]", "{\"a\":1}",
	};
	struct seen *s = *state;
	char line[128];

	for (size_t k = 0; k < array_len(bad); k++) {
		snprintf(line, sizeof(line),
			 "{\"id\":%zu,\"do\":\"attach\",\"from\":%s}\n", k + 1,
			 bad[k]);
		say(s, line);
		heard_code(s, (int64_t)k + 1, -EINVAL);
		assert_int_equal(s->peer.state, PEER_NEW);
	}
	assert_int_equal(s->attached, 0);
}

static void test_pieces(void **state)
{
	static const char text[] = "{\"id\":1,\"do\":\"ping\"}\n"
				   "{\"id\":2,\"do\":\"ping\"}\n";
	struct seen *s = *state;

	for (size_t k = 0; k < sizeof(text) - 1; k++)
		peer_feed(&s->peer, text + k, 1);
	heard_code(s, 1, 0);
	heard_code(s, 2, 0);
	assert_null(heard(s));
}

/* One answer that says why, and nothing is heard after it. */
static void test_garbage(void **state)
{
	static const char *const bad[] = {
		"hello\n",
		"\n",
		"[]\n",
		"{}\n",
		"{\"do\":1,\"id\":1}\n",
		"{\"do\":\"ping\"}\n",
		"{\"do\":\"ping\",\"id\":0}\n",
		"{\"do\":\"ping\",\"id\":-4}\n",
		"{\"do\":\"ping\",\"id\":\"x\"}\n",
		"{\"do\":\"ack\",\"i\":1}\n",
		"{\"id\":1,\"id\":2,\"do\":\"ping\"}\n",
		"{\"id\":1,\"do\":\"ping\"} x\n",
		"[[[[[[[[[[[[[1]]]]]]]]]]]]]\n",
		"{\"do\":\"\xff\xfe\",\"id\":1}\n",
	};

	for (size_t k = 0; k < array_len(bad); k++) {
		struct seen s = { 0 };

		peer_init(&s.peer, &host);
		say(&s, bad[k]);
		heard_code(&s, 0, -EINVAL);
		assert_int_equal(s.peer.state, PEER_BROKEN);
		say(&s, "{\"id\":7,\"do\":\"ping\"}\n");
		assert_null(heard(&s));
		peer_fini(&s.peer);
	}
	(void)state;
}

static void test_line_without_end(void **state)
{
	struct seen *s = *state;
	char *chunk = malloc(64 * 1024);
	size_t fed = 0;

	memset(chunk, 'x', 64 * 1024);
	while (s->peer.state != PEER_BROKEN && fed < 4 * MIB) {
		peer_feed(&s->peer, chunk, 64 * 1024);
		fed += 64 * 1024;
	}
	assert_in_range(fed, EVENT_LINE_MAX, EVENT_LINE_MAX + 128 * 1024);
	heard_code(s, 0, -EINVAL);
	free(chunk);
}

static void test_asked_bounded(void **state)
{
	struct seen *s = *state;
	char line[64];

	say(s, "{\"id\":1,\"do\":\"attach\"}\n");
	heard_code(s, 1, 0);
	for (int k = 2; k < PEER_ASKED_MAX + 2; k++) {
		snprintf(line, sizeof(line), "{\"id\":%d,\"do\":\"fault\"}\n",
			 k);
		say(s, line);
	}
	assert_int_equal(s->asked, PEER_ASKED_MAX);
	say(s, "{\"id\":999,\"do\":\"fault\"}\n");
	heard_code(s, 999, -EBUSY);
	assert_int_equal(s->asked, PEER_ASKED_MAX);
	peer_answer(&s->peer, 2, peer_ok());
	heard_code(s, 2, 0);
	say(s, "{\"id\":1000,\"do\":\"fault\"}\n");
	assert_int_equal(s->ask_id, 1000);
}

/* What the agent asks of others goes through its owner alone. */
static void test_asking(void **state)
{
	struct seen *s = *state;
	json_t *j;

	say(s, "{\"told\":1,\"reply\":{}}\n");
	assert_int_equal(s->told, 0);
	say(s, "{\"id\":1,\"do\":\"attach\"}\n");
	heard_code(s, 1, 0);
	peer_ask(&s->peer, json_pack("{s:i, s:s}", "ask", 7, "node", "n2"));
	j = heard(s);
	assert_int_equal(json_integer_value(json_object_get(j, "ask")), 7);
	json_decref(j);
	say(s, "{\"told\":7,\"reply\":{\"ok\":true}}\n");
	assert_int_equal(s->told, 7);
	assert_int_equal(s->peer.state, PEER_OWNER);
}

static void test_break(void **state)
{
	struct seen *s = *state;

	say(s, "{\"id\":1,\"do\":\"attach\"}\n");
	heard_code(s, 1, 0);
	peer_break(&s->peer, -ECANCELED, "bad \x01 text");
	peer_break(&s->peer, -EINVAL, "said once only");
	heard_code(s, 0, -ECANCELED);
	assert_null(heard(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_attach, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_may_try_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_marks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_line_without_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_asked_bounded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_asking, setup, teardown),
		cmocka_unit_test_setup_teardown(test_break, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
