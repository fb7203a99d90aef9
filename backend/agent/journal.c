/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void journal_init(struct journal *j, struct spool *spool, const char *agent)
{
	*j = (struct journal) { .spool = spool };
	snprintf(j->stamp.a, sizeof(j->stamp.a), "%s", agent);
	j->stamp.i = spool_incarnation(spool);
}

void journal_fini(struct journal *j)
{
	spool_close(j->spool);
	j->spool = NULL;
}

static int journal_write(struct journal *j, const char *e, int64_t t_us,
			 json_t *body)
{
	char *line = NULL;
	size_t len;
	int rc;

	rc = body ? event_stamp(&j->stamp, e, t_us, body) : -ENOMEM;
	if (rc)
		return rc;
	rc = event_encode(body, &line, &len);
	if (!rc)
		rc = spool_append(j->spool, j->stamp.n, line, len);
	free(line);
	if (rc < 0) {
		if (!j->lost_from)
			j->lost_from = j->stamp.n;
		j->lost_to = j->stamp.n;
	}
	return rc;
}

/* The gap's own number comes behind what it names; lost again, it becomes
 * part of what the next one names. */
static void gap_write(struct journal *j, int64_t t_us)
{
	int64_t from = j->lost_from, to = j->lost_to;
	json_t *body;

	body = json_pack("{s:I, s:I}", "from", (json_int_t)from, "to",
			 (json_int_t)to);
	if (journal_write(j, "gap", t_us, body) >= 0)
		j->lost_from = j->lost_to = 0;
	json_decref(body);
}

int journal_add(struct journal *j, const char *e, int64_t t_us, json_t *body)
{
	int rc;

	if (j->lost_from)
		gap_write(j, t_us);
	rc = journal_write(j, e, t_us, body);
	json_decref(body);
	return rc;
}

void journal_log(struct journal *j, const char *level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	journal_add(j, "log", event_now_us(),
		    json_pack("{s:s, s:s}", "level", level, "text", text));
}
