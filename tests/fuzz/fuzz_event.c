/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines into the model, and what is then made of it. */
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis.h"
#include "backend/event.h"
#include "backend/event_fast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the fast decoder takes, jansson takes, and reads the same. */
static void fast_is_right(const char *line, size_t len)
{
	json_t *fast = event_fast_decode(line, len), *slow;

	if (!fast)
		return;
	slow = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	id_assert(slow && json_equal(fast, slow));
	json_decref(fast);
	json_decref(slow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct model *m;
	char *text;

	if (model_new(&m))
		return 0;
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl ? (size_t)(nl - at) + 1 : (size_t)(end - at);
		struct err err;
		json_t *event;

		fast_is_right(at, nl ? len - 1 : len);
		if (!event_decode(at, len, &event, &err)) {
			model_apply(m, event, &err);
			json_decref(event);
		}
		at += len;
	}
	for (size_t i = 0; i < m->runs; i++) {
		json_t *j = analysis_run_json(&m->run[i], 1000);

		id_assert(j);
		json_decref(j);
		if (!analysis_run_text(&m->run[i], 1000, &text))
			free(text);
	}
	model_free(m);
	return 0;
}
