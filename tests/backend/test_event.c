/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events as text and back, and what must not come through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/event.h"
#include "backend/event_fast.h"

static json_t *sample_event(void)
{
	struct event_stamp stamp = { .a = "lab", .i = 7, .n = 41 };
	json_t *j = json_pack("{s:s}", "text", "a\nb\x1b[2J");

	assert_int_equal(event_stamp(&stamp, "note", 1700000000000000, j), 0);
	assert_int_equal(stamp.n, 42);
	return j;
}

static void round_trip(void **state)
{
	json_t *j = sample_event(), *back = NULL;
	struct event_head head;
	struct err err;
	char *line;
	size_t len;

	(void)state;
	assert_int_equal(event_encode(j, &line, &len), 0);
	assert_int_equal(line[len - 1], '\n');
	assert_ptr_equal(memchr(line, '\n', len), line + len - 1);
	assert_null(strchr(line, '\x1b'));
	assert_int_equal(event_decode(line, len, &back, &err), 0);
	assert_true(json_equal(j, back));
	assert_int_equal(event_head(back, &head, &err), 0);
	assert_string_equal(head.e, "note");
	assert_string_equal(head.a, "lab");
	assert_int_equal(head.i, 7);
	assert_int_equal(head.n, 42);
	json_decref(back);
	assert_int_equal(event_decode(line, len - 1, &back, &err), 0);
	json_decref(back);
	/* Cut anywhere it is no event. */
	for (size_t cut = 0; cut + 1 < len; cut++)
		assert_int_equal(event_decode(line, cut, &back, &err), -EINVAL);
	free(line);
	json_decref(j);
}

static void bad_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":0,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":-1,\"n\":1,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1.0,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":-1}",
		"{\"e\":\"\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}",
		"{\"e\":1,\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1,\"t\":2}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}{}",
		"{\"e\":\"x\",\n\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":"
		"99999999999999999999}",
		"{\"e\":\"x\",\"a\":\"\xff\",\"i\":1,\"n\":1,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\\u0000\",\"i\":1,\"n\":1,\"t\":1}",
		"{\"e\":\"x\",\"a\":\"a\",\"i\":1,\"n\":1,\"t\":1,\"d\":"
		"[[[[[[[[[[[[]]]]]]]]]]]]}",
	};
	static const char deep[] =
		"{\"e\":\"x\",\"a\":\"a[[[[[[[[[[[[[\\\"[\",\"i\":1,"
		"\"n\":1,\"t\":1,\"d\":[[[[[[[[[[[]]]]]]]]]]]}";
	json_t *j = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		err.text[0] = '\0';
		assert_int_equal(event_decode(bad[i], strlen(bad[i]), &j, &err),
				 -EINVAL);
		assert_true(strlen(err.text) > 8);
	}
	/* One level less, and brackets in a string, are fine. */
	assert_int_equal(event_decode(deep, strlen(deep), &j, &err), 0);
	json_decref(j);
}

static void long_lines(void **state)
{
	char *big = malloc(EVENT_LINE_MAX + 1), *line;
	size_t len;
	json_t *j, *back;
	struct err err;

	(void)state;
	memset(big, 'x', EVENT_LINE_MAX);
	big[EVENT_LINE_MAX] = '\0';
	j = sample_event();
	json_object_set_new(j, "big", json_string(big));
	assert_int_equal(event_encode(j, &line, &len), -EMSGSIZE);
	assert_int_equal(event_decode(big, EVENT_LINE_MAX, &back, &err),
			 -EINVAL);
	big[EVENT_LINE_MAX - 200] = '\0';
	json_object_set_new(j, "big", json_string(big));
	assert_int_equal(event_encode(j, &line, &len), 0);
	assert_int_equal(event_decode(line, len, &back, &err), 0);
	json_decref(back);
	json_decref(j);
	free(line);
	free(big);
}

static void text_is_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "plain", "plain" },
		{ "\x1b[2Jred\x07", "[2Jred" },
		{ "a\tb\nc\r", "a b c" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "c1\xc2\x9b"
		  "31m",
		  "c131m" },
		{ "\xff\xc0\xaf\xed\xa0\x80\xf5x\xc3", "x" },
		{ "a\xe2\x80\xae"
		  "b",
		  "ab" },
		{ "\x7f", "" },
		{ NULL, "" },
	};
	char out[32], five[5];

	(void)state;
	for (size_t i = 0; i < array_len(t); i++) {
		event_text(out, sizeof(out), t[i].in);
		assert_string_equal(out, t[i].out);
	}
	event_text(five, sizeof(five), "abc\xc3\xbc");
	assert_string_equal(five, "abc"); /* no half of a character */
}

static void hist_round_trip(void **state)
{
	struct hist a, b;
	uint64_t ns = 3;
	json_t *j;
	struct err err;

	(void)state;
	hist_reset(&a);
	hist_reset(&b);
	for (int i = 0; i < 500; i++) {
		hist_add(&a, ns);
		ns = (ns * 6364136223846793005u + 1442695040888963407u) >>
		     (10 + i % 50);
	}
	hist_add(&a, 0);
	hist_add(&a, 1ull << 41);
	/* The random ones wrapped the sum: any that fits will do. */
	if (a.max_ns > INT64_MAX / 1024)
		a.max_ns = INT64_MAX / 1024;
	a.sum_ns = a.max_ns;
	j = event_hist_encode(&a);
	assert_non_null(j);
	assert_int_equal(event_hist_decode(j, &b, &err), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(event_hist_decode(j, &b, &err), 0);
	assert_int_equal(b.count, 2 * a.count);
	json_decref(j);

	hist_reset(&a);
	hist_reset(&b);
	j = event_hist_encode(&a);
	assert_int_equal(event_hist_decode(j, &b, &err), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	json_decref(j);
}

static void hist_hostile(void **state)
{
	static const char *const bad[] = {
		"3",
		"{}",
		"{'n':1,'sum_ns':5,'b':[5,1]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5,-1]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5,2]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5,0]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[-5,1]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[99999,1]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[4,1]}",
		"{'n':1,'sum_ns':9,'min_ns':5,'max_ns':5,'b':[5,1]}",
		"{'n':2,'sum_ns':10,'min_ns':5,'max_ns':5,'b':[5,1,0,1]}",
		"{'n':-1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5,-1]}",
		"{'n':9223372036854775807,'sum_ns':5,'min_ns':5,'max_ns':5,"
		"'b':[5,9223372036854775807]}",
		"{'n':2,'sum_ns':9223372036854775807,'min_ns':5,'max_ns':5,"
		"'b':[5,2]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':[5,1.5]}",
		"{'n':1,'sum_ns':5,'min_ns':5,'max_ns':5,'b':{'5':1}}",
	};
	struct hist h, clean;
	struct err err;
	char text[256];

	(void)state;
	hist_reset(&h);
	hist_reset(&clean);
	for (size_t i = 0; i < array_len(bad); i++) {
		json_t *j;

		strcpy(text, bad[i]);
		for (char *c = text; *c; c++)
			if (*c == '\'')
				*c = '"';
		j = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_non_null(j);
		assert_int_equal(event_hist_decode(j, &h, &err), -EINVAL);
		assert_memory_equal(&h, &clean, sizeof(h));
		json_decref(j);
	}
	/* Many sums, each allowed, overflow in the end and say so. */
	strcpy(text, "{\"n\":1,\"sum_ns\":9223372036854775807,\"min_ns\":"
		     "9223372036854775807,\"max_ns\":9223372036854775807,"
		     "\"clipped\":1,\"b\":[4351,1]}");
	for (int i = 0; i < 3; i++) {
		json_t *j = json_loads(text, 0, NULL);

		assert_int_equal(hist_index(INT64_MAX), 4351);
		assert_int_equal(event_hist_decode(j, &h, &err),
				 i < 2 ? 0 : -EINVAL);
		json_decref(j);
	}
}

/* The fast decoder: what it takes it takes as jansson does. */
static void fast_decoder(void **state)
{
	static const char *const takes[] = {
		"{}",
		"{\"a\":1}",
		"{\"a\":[0,1,[],{}],\"b\":{\"c\":\"x y\"}}",
		"{\"a\":true,\"b\":false,\"c\":null,\"d\":\"\"}",
		"{\"a\":999999999999999999}",
		"{\"a\":[0.1,1.5,0.0,312500000.25,0.00000000000001]}",
		"{\"a\":0.12345678901234,\"b\":12345678901234.5}",
	};
	static const char *const leaves[] = {
		"",
		"[]",
		"{",
		"{\"a\":1",
		"{\"a\":1,}",
		"{\"a\":01}",
		"{\"a\":1.}",
		"{\"a\":.5}",
		"{\"a\":00.5}",
		"{\"a\":1.5.1}",
		"{\"a\":12345678901234.123456789012345678}",
		"{\"a\":0.12345678901234567}",
		"{\"a\":1e3}",
		"{\"a\":-1}",
		"{\"a\": 1}",
		"{\"a\":1}x",
		"{\"a\":1,\"a\":2}",
		"{\"a\":[1,]}",
		"{\"a\":[,1]}",
		"{\"a\":tru}",
		"{\"a\":\"\\n\"}",
		"{\"a\":\"\xc3\xbc\"}",
		"{\"a\":\"x}",
		"{\"a\":1000000000000000000}",
		"{\"a\":99999999999999999999}",
		"{\"a\"}",
		"{a:1}",
		"{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}",
	};

	(void)state;
	for (size_t i = 0; i < array_len(takes); i++) {
		size_t len = strlen(takes[i]);
		json_t *fast = event_fast_decode(takes[i], len);
		json_t *slow = json_loadb(takes[i], len, 0, NULL);

		assert_non_null(fast);
		assert_true(json_equal(fast, slow));
		json_decref(fast);
		json_decref(slow);
		for (size_t cut = 0; cut < len; cut++)
			assert_null(event_fast_decode(takes[i], cut));
	}
	for (size_t i = 0; i < array_len(leaves); i++)
		assert_null(event_fast_decode(leaves[i], strlen(leaves[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(fast_decoder),
		cmocka_unit_test(text_is_clean),
		cmocka_unit_test(hist_round_trip),
		cmocka_unit_test(hist_hostile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
