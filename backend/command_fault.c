/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Faults: of drives and domains by the agents; of nodes and their links where
 * they are those of a lab, by `iodeck lab` as a child, as that takes seconds.
 */
#include "backend/command_impl.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/lab/lab.h"
#include "backend/paths.h"
#include "backend/transport/errand.h"

#define LAB_MS 60000

COMMAND(do_fault)
{
	bool drive = !strcmp(command->name, "fault drive");
	const char *target = drive ? ARG("DRIVE") : ARG("DOMAIN");
	const char *state = ARG("STATE"), *time = ARG("TIME");
	bool timed = !strcmp(state, "slow") || !strcmp(state, "stall");
	char text[256];

	if (timed != (time != NULL))
		return outcome_fail(outcome, 2, "%s: %s", command->name,
				    timed ? "say how long: slow 20ms, stall "
					    "200ms"
					  : "only slow and stall take a time");
	if (time)
		snprintf(text, sizeof(text), "%s %s %s %gms",
			 drive ? "drive" : "domain", target, state,
			 1000 * arg_number(time, "seconds", 0));
	else
		snprintf(text, sizeof(text), "%s %s %s",
			 drive ? "drive" : "domain", target, state);
	live_ask(deck, outcome, "fault", json_pack("{s:s}", "text", text),
		 NULL);
	return 0;
}

/* ---- nodes and links of a lab ------------------------------------------- */

struct deed {
	struct errand errand;
	char text[160]; /* "node n3 stop" */
	const char *kind;
	char target[MODEL_NAME];
};

static void deed_free(void *order)
{
	struct deed *d = order;

	if (d)
		errand_fini(&d->errand);
	free(d);
}

/* It is part of the record, and a mark on the charts. */
static void deed_record(struct deck *deck, const struct deed *d)
{
	record_own(deck, "fault",
		   json_pack("{s:s, s:s, s:s, s:s}", "text", d->text, "kind",
			     d->kind, "target", d->target, "by", "operator"));
}

static void deed_turn(struct pending *p)
{
	struct deed *d = p->order;
	struct err err = { 0 };
	char said[400];
	int status = 0, rc = errand_step(&d->errand, &status, &err);

	if (rc == -EAGAIN)
		return;
	p->done = true;
	if (rc) {
		outcome_fail(&p->outcome, 1, "%s: %s", d->text, err.text);
	} else if (status) {
		said_last(&d->errand.process.said, said, sizeof(said));
		outcome_fail(&p->outcome, 1, "%s: %s", d->text,
			     *said ? said : "the lab refuses");
	} else {
		deed_record(p->deck, d);
		outcome_say(&p->outcome, "%s", d->text);
	}
}

/* The configuration that `lab up` wrote lies beside the state of the lab. */
static bool lab_of(const struct deck *deck, char *root, char *name)
{
	const char *path = deck->config->path;
	char real[PATH_MAX], state[PATH_MAX + 16];
	const char *base;

	if (!path || !deck->config->nodes || !realpath(path, real))
		return false;
	base = dirname(real);
	snprintf(state, sizeof(state), "%s/state.json", base);
	if (!path_exists(state))
		return false;
	snprintf(name, LAB_NAME_MAX, "%.8s", strrchr(base, '/') + 1);
	if (strcmp(name, strrchr(base, '/') + 1) != 0 ||
	    lab_name_check(name, NULL))
		return false;
	snprintf(root, PATH_MAX, "%.*s", (int)(strrchr(base, '/') - base),
		 base);
	return true;
}

static int deed_start(struct deed *d, const char *root, const char *name,
		      const char *verb, const char *node, const char *rate,
		      struct err *err)
{
	char set[PATH_MAX + 16], of[LAB_NAME_MAX + 8], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *argv[10];
	int k = 0;

	self[n > 0 ? n : 0] = '\0';
	snprintf(set, sizeof(set), "lab_dir=%s", root);
	snprintf(of, sizeof(of), "name=%s", name);
	argv[k++] = self;
	argv[k++] = "--set";
	argv[k++] = set;
	argv[k++] = "lab";
	argv[k++] = verb;
	argv[k++] = node;
	if (rate)
		argv[k++] = rate;
	argv[k++] = of;
	argv[k] = NULL;
	return errand_start(&d->errand, argv, LAB_MS, err);
}

static int no_lab(const struct command *command, const char *node,
		  struct outcome *outcome)
{
	return outcome_fail(outcome, 1,
			    "%s: this cluster is no lab of `iodeck lab up`, "
			    "so that only you can do that to %s; `fault "
			    "domain %s offline` takes its drives away",
			    command->name, node, node);
}

COMMAND(do_fault_node)
{
	bool link = !strcmp(command->name, "fault link");
	const char *node = ARG("NODE"), *state = ARG("STATE");
	const char *rate = link ? ARG("RATE") : NULL, *verb = state;
	char root[PATH_MAX], name[LAB_NAME_MAX];
	struct deed *d;
	struct err err;

	if (link && !strcmp(state, "slow") != (rate != NULL))
		return outcome_fail(outcome, 2, "fault link: %s",
				    rate ? "only slow takes a rate"
					 : "say how slow: slow 100mbit");
	if (!lab_of(deck, root, name))
		return no_lab(command, node, outcome);
	if (!strcmp(state, "stop"))
		verb = "fail";
	d = calloc(1, sizeof(*d));
	if (!d)
		return outcome_fail(outcome, 1, "out of memory");
	d->kind = link ? "link" : "node";
	snprintf(d->target, sizeof(d->target), "%s", node);
	snprintf(d->text, sizeof(d->text), "%s %.60s %s%s%.24s", d->kind, node,
		 state, rate ? " " : "", rate ? rate : "");
	if (deed_start(d, root, name, verb, node, rate, &err)) {
		deed_free(d);
		return outcome_fail(outcome, 1, "%s", err.text);
	}
	live_turn(deck, outcome, deed_turn, d, deed_free);
	return 0;
}
