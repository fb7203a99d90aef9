/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lab for rehearsal. These block, so no prompt has them. */
#include "backend/command_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/lab/lab.h"
#include "backend/paths.h"
#include "backend/units.h"

#define NAME "lab"
#define NODES 3
#define DRIVES 3
#define DRIVE_BYTES (4 * GIB)
#define LINK "10Gbit"

static const char *name_of(const struct command *command, int argc,
			   char *const argv[])
{
	const char *name = ARG("name");

	return name ? name : NAME;
}

/* lab_dir with HOME put in; what is too long is refused as any bad path. */
static const char *root_of(const struct deck *deck, char buf[PATH_MAX])
{
	const char *dir = deck_option(deck, "lab_dir");

	return path_expand(dir, buf, PATH_MAX) ? dir : buf;
}

static int fail(struct outcome *outcome, int code, const struct err *err)
{
	return outcome_fail(outcome, code == -EINVAL ? 2 : 1, "%s", err->text);
}

/* ---- how it stands ------------------------------------------------------ */

/* One word; of a node that nobody failed it may be the host's doing. */
static const char *node_state(const struct lab_look *k)
{
	return !k->there ? "gone" : k->processes ? "up" : "failed";
}

static const char *link_words(const struct lab *lab, int i,
			      const struct lab_look *k, char *buf, size_t len)
{
	char rate[24];
	double now = lab->node[i].rate_bytes_s;

	if (!k->carrier)
		return k->there ? "cut" : "-";
	snprintf(buf, len, "%s%s", now < lab->link_bytes_s ? "slow " : "",
		 lab_rate_text(now, rate, sizeof(rate)));
	return buf;
}

static void node_show(const struct lab *lab, int i, const struct lab_look *k,
		      struct text *text, json_t *nodes)
{
	char name[16], address[24], link[40], below[32], conf[PATH_MAX];

	snprintf(name, sizeof(name), "n%d", i + 1);
	snprintf(below, sizeof(below), "%s/iodeck.conf", name);
	lab_address(lab, i, address, sizeof(address));
	text_add(text, "  %-4s %-15s %-7s %-18s %d\n", name, address,
		 node_state(k), link_words(lab, i, k, link, sizeof(link)),
		 k->processes);
	json_array_append_new(
		nodes,
		json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:i}", "name", name,
			  "address", address, "config",
			  lab_path(lab, below, conf, sizeof(conf)), "state",
			  node_state(k), "link", k->carrier ? "up" : "cut",
			  "rate_bytes_s", (json_int_t)lab->node[i].rate_bytes_s,
			  "processes", k->processes));
}

static json_t *lab_show(const struct lab *lab, const struct lab_look *look,
			struct text *text)
{
	char dir[PATH_MAX], address[24], ssh[PATH_MAX], conf[PATH_MAX];
	json_t *nodes = json_array();
	int i;

	lab_path(lab, "", dir, sizeof(dir));
	text_add(text, "lab %s%s: %d nodes, console at %s, %s\n", lab->name,
		 lab->ready ? "" : " (half made)", lab->nodes,
		 lab_address(lab, -1, address, sizeof(address)), dir);
	text_add(text, "  %-4s %-15s %-7s %-18s %s\n", "node", "address",
		 "state", "link", "processes");
	for (i = 0; i < lab->nodes; i++)
		node_show(lab, i, &look[i], text, nodes);
	return json_pack(
		"{s:s,s:s,s:b,s:s,s:s,s:s,s:I,s:i,s:I,s:o}", "name", lab->name,
		"dir", dir, "ready", lab->ready, "console", address,
		"ssh_config", lab_path(lab, "ssh_config", ssh, sizeof(ssh)),
		"config", lab_path(lab, "iodeck.conf", conf, sizeof(conf)),
		"link_bytes_s", (json_int_t)lab->link_bytes_s, "drives",
		lab->drives, "drive_bytes", (json_int_t)lab->drive_bytes,
		"nodes", nodes);
}

/* One that cannot be read is said, and does not hide the others. */
static int show_named(struct outcome *outcome, const char *root,
		      char *const names[], size_t count)
{
	struct lab_look look[LAB_NODES_MAX];
	json_t *labs = json_array();
	struct text text = { 0 };
	struct lab lab;
	struct err err;
	size_t i;
	int r;

	for (i = 0; i < count; i++) {
		r = lab_look(root, names[i], &lab, look, &err);
		if (!r) {
			json_array_append_new(labs,
					      lab_show(&lab, look, &text));
			continue;
		}
		text_add(&text, "%s%s\n", count > 1 ? "lab: " : "", err.text);
		outcome->status = r == -EINVAL ? 2 : 1;
	}
	if (!count)
		text_add(&text,
			 "no lab in %s: make one with \"iodeck lab "
			 "up\"\n",
			 root);
	outcome->text = text_take(&text);
	if (count != 1 || !outcome->status)
		outcome->json = json_pack("{s:O}", "labs", labs);
	json_decref(labs);
	return 0;
}

COMMAND(do_lab_status)
{
	char buf[PATH_MAX], **names;
	const char *root = root_of(deck, buf), *name = ARG("name");
	struct err err;
	size_t n = 0;
	int r;

	if (name)
		return show_named(outcome, root, (char *const *)&name, 1);
	r = lab_names(root, &names, &err);
	if (r)
		return fail(outcome, r, &err);
	while (names[n])
		n++;
	show_named(outcome, root, names, n);
	path_list_free(names);
	return 0;
}

/* ---- up and down -------------------------------------------------------- */

COMMAND(do_lab_up)
{
	char root[PATH_MAX];
	struct lab_ask ask = {
		.root = root_of(deck, root),
		.name = name_of(command, argc, argv),
		.net = ARG("net"),
		.nodes = (int)arg_number(ARG("nodes"), "int", NODES),
		.drives = (int)arg_number(ARG("drives"), "int", DRIVES),
		.drive_bytes = arg_number(ARG("size"), "bytes", DRIVE_BYTES),
	};
	struct lab_look look[LAB_NODES_MAX];
	struct text text = { 0 };
	struct lab lab;
	struct err err;
	json_t *shown;
	char *said;
	int r = lab_rate(ARG("link") ? ARG("link") : LINK, &ask.link_bytes_s,
			 &err);

	if (!r)
		r = lab_up(&ask, &lab, &err);
	if (!r)
		r = lab_look(ask.root, ask.name, &lab, look, &err);
	if (r)
		return fail(outcome, r, &err);
	shown = lab_show(&lab, look, &text);
	outcome->json = json_pack("{s:[o]}", "labs", shown);
	said = text_take(&text);
	outcome_say(outcome,
		    "%sas a cluster:   iodeck --config %s/%s/iodeck.conf\n"
		    "a shell there:  ssh -F %s/%s/ssh_config n1\n"
		    "its end:        iodeck lab down%s%s",
		    said ? said : "", ask.root, ask.name, ask.root, ask.name,
		    strcmp(ask.name, NAME) ? " name=" : "",
		    strcmp(ask.name, NAME) ? ask.name : "");
	free(said);
	return 0;
}

COMMAND(do_lab_down)
{
	const char *name = name_of(command, argc, argv);
	char root[PATH_MAX];
	struct err err;
	bool found;
	int r = lab_down(root_of(deck, root), name, &found, &err);

	if (r)
		return fail(outcome, r, &err);
	outcome->json = json_pack("{s:s,s:b}", "name", name, "found", found);
	return outcome_say(outcome,
			   found ? "lab %s is removed"
				 : "there is no lab %s: nothing to do",
			   name);
}

/* ---- what happens to a node --------------------------------------------- */

static int act(struct deck *deck, const struct command *command, int argc,
	       char *const argv[], enum lab_deed deed, double rate,
	       struct outcome *outcome)
{
	static const char *const words[] = { "has failed", "is cut off",
					     "is slowed", "is healed" };
	const char *node = ARG("NODE"), *all = "*";
	char root[PATH_MAX];
	struct lab lab;
	struct err err;
	int r = lab_act(root_of(deck, root), name_of(command, argc, argv), node,
			deed, rate, &lab, &err);

	if (r)
		return fail(outcome, r, &err);
	outcome->json = json_pack("{s:s,s:s,s:s}", "lab", lab.name, "node",
				  node, "done", command->name + 4);
	return outcome_say(outcome, "%s of lab %s %s",
			   strcmp(node, all) ? node : "each node", lab.name,
			   words[deed]);
}

COMMAND(do_lab_fail)
{
	return act(deck, command, argc, argv, LAB_FAIL, 0, outcome);
}

COMMAND(do_lab_cut)
{
	return act(deck, command, argc, argv, LAB_CUT, 0, outcome);
}

COMMAND(do_lab_slow)
{
	struct err err;
	double rate;
	int r = lab_rate(ARG("RATE"), &rate, &err);

	if (r)
		return fail(outcome, r, &err);
	return act(deck, command, argc, argv, LAB_SLOW, rate, outcome);
}

COMMAND(do_lab_heal)
{
	return act(deck, command, argc, argv, LAB_HEAL, 0, outcome);
}
