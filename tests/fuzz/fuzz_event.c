/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines into the model, and what is then made of it. */
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis.h"
#include "backend/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
