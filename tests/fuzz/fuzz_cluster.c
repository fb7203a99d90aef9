/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cluster document and requests' pieces, as they come over the wire. */
#include "backend/agent/run_workload.h"
#include "backend/event.h"
#include "backend/provider/provider_priv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void nothing(const char *e, json_t *body, void *arg)
{
	(void)e;
	(void)arg;
	json_decref(body);
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct reactor_opts opts = { .kind = REACTOR_SIM };
	const struct provider_host host = { .emit = nothing, .dirfd = -1 };
	struct provider *p = NULL;
	struct workload w;
	struct reactor *r;
	struct err err;
	bool gone = false;
	json_t *j;

	if (event_line_decode((const char *)data, size, &j, &err))
		return 0;
	if (!reactor_new(&opts, &r, &err)) {
		if (!provider_new(r, j, &host, &p, &err)) {
			provider_close(p, closed, &gone);
			while (!gone)
				reactor_run_once(r, SEC_NS);
		}
		reactor_free(r);
	}
	run_workload_read(j, &w, &err);
	json_decref(j);
	return 0;
}
