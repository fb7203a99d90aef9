/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is done to a node: failed, cut, slowed, healed. */
#include "backend/lab/lab_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int stop(const struct lab *lab, int i, struct err *err)
{
	char ns[LAB_WORD];
	int r = lab_net_link(lab, i, false, err);

	return r ? r : lab_net_kill(lab_netns(lab->name, i, ns), err);
}

/* One that runs is left alone, however slow it is to answer. */
static int start(const struct lab *lab, int i, struct err *err)
{
	char ns[LAB_WORD];
	int one, n = lab_net_pids(lab_netns(lab->name, i, ns), &one, 1, err);

	if (n < 0 || (n && !lab->node[i].failed))
		return n < 0 ? n : 0;
	n = n ? lab_net_kill(ns, err) : 0;
	return n ? n : lab_node_start(lab, i, err);
}

static int heal(struct lab *lab, int i, struct err *err)
{
	int r = lab_net_link(lab, i, true, err);

	if (!r)
		r = lab_net_shape(lab, i, lab->link_bytes_s, err);
	if (!r)
		r = start(lab, i, err);
	if (!r)
		lab->node[i] = (struct lab_node) {
			.rate_bytes_s = lab->link_bytes_s,
		};
	return r;
}

static int act_one(struct lab *lab, int i, enum lab_deed deed, double rate,
		   struct err *err)
{
	struct lab_node *n = &lab->node[i];

	switch (deed) {
	case LAB_FAIL:
		n->failed = n->cut = true;
		return stop(lab, i, err);
	case LAB_CUT:
		n->cut = true;
		return lab_net_link(lab, i, false, err);
	case LAB_SLOW:
		n->rate_bytes_s = rate;
		return lab_net_shape(lab, i, rate, err);
	case LAB_HEAL:
	default:
		return heal(lab, i, err);
	}
}

/* A state file of before a restart of the host tells of what is gone. */
static int check_there(const struct lab *lab, int i, struct err *err)
{
	if (lab->ready && lab_net_there(lab->name, LAB_SWITCH) &&
	    lab_net_there(lab->name, i))
		return 0;
	return err_set(err, -ENXIO,
		       "the lab %s is not whole: it was half made, or the host "
		       "has been restarted since; \"iodeck lab down name=%s\", "
		       "then \"iodeck lab up\"",
		       lab->name, lab->name);
}

/* The file says what was done even where it failed half way: heal mends. */
static int act_all(struct lab *lab, const char *node, enum lab_deed deed,
		   double rate, struct err *err)
{
	int from = 0, to = lab->nodes, i, r = 0, saved;

	if (strcmp(node, "*") != 0) {
		from = lab_node_find(lab, node, err);
		if (from < 0)
			return from;
		to = from + 1;
	}
	for (i = from; !r && i < to; i++) {
		r = check_there(lab, i, err);
		if (!r)
			r = act_one(lab, i, deed, rate, err);
	}
	for (i = from; !r && deed == LAB_HEAL && i < to; i++)
		r = lab_node_wait(lab, i, err);
	saved = lab_state_save(lab, r ? NULL : err);
	return r ? r : saved;
}

int lab_act(const char *root, const char *name, const char *node,
	    enum lab_deed deed, double rate_bytes_s, struct lab *lab,
	    struct err *err)
{
	static const char *const words[] = { "fail", "cut", "slow", "heal" };
	int r = lab_begin(lab, root, name, err), lock;

	if (!r)
		r = lab_root_user(words[deed], err);
	if (!r)
		r = lab_state_load(lab, err);
	if (r)
		return r;
	lock = lab_lock(err);
	if (lock < 0)
		return lock;
	r = lab_state_load(lab, err); /* as it is now that it is ours */
	if (!r)
		r = act_all(lab, node, deed, rate_bytes_s, err);
	close(lock);
	return r;
}
