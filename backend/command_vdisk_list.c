/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDisks and policies as they are: lists, and all of one vDisk. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/command_impl.h"
#include "backend/units.h"

static json_t *member_json(const struct m_member *m)
{
	return json_pack("{s:i,s:s,s:s,s:s,s:s}", "slot", m->slot, "domain",
			 m->domain, "drive", m->drive, "role", m->role, "state",
			 m->state);
}

static json_t *int_or_null(int64_t v)
{
	return v < 0 ? json_null() : json_integer(v);
}

/* Figures of the log layout, as they are and as the sums since it was opened
 * make them. */
static json_t *log_json(const struct m_vdisk *v)
{
	const struct m_vdisk_log *l = &v->log;
	struct m_amp amp;

	model_amp(&l->written, &amp);
	return json_pack(
		"{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,"
		"s:o,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:o,s:o}}",
		"blocks_mapped", int_or_null(l->blocks_mapped), "stored_bytes",
		int_or_null(l->stored_bytes), "space_bytes",
		int_or_null(l->space_bytes), "memory_bytes",
		int_or_null(v->memory_bytes), "compression_ratio",
		number_or_null(l->ratio), "free_share",
		number_or_null(l->free_share), "log_fill",
		number_or_null(l->log_fill), "compliance",
		number_or_null(l->compliance), "blocks_lost",
		int_or_null(l->blocks_lost), "reads_repaired",
		int_or_null(l->reads_repaired), "replayed",
		int_or_null(l->replayed), "opening_us",
		int_or_null(l->opening_us), "scrub_passes",
		int_or_null(l->scrub_passes), "scrub_found",
		int_or_null(l->scrub_found), "scrub_lost",
		int_or_null(l->scrub_lost), "write_amplification", "all",
		number_or_null(amp.all), "log", number_or_null(amp.log),
		"destage", number_or_null(amp.destage), "bypass",
		number_or_null(amp.bypass), "clean", number_or_null(amp.clean),
		"rebuild", number_or_null(amp.rebuild), "checkpoint",
		number_or_null(amp.checkpoint));
}

static json_t *vdisk_json(const struct m_vdisk *v)
{
	json_t *members = json_array(), *j;
	size_t i;

	for (i = 0; i < v->members; i++)
		json_array_append_new(members, member_json(&v->member[i]));
	j = json_pack(
		"{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:s,s:o,s:s,s:o,s:o}",
		"name", v->name, "uuid", v->uuid, "policy",
		*v->policy ? json_string(v->policy) : json_null(), "raid",
		int_or_null(v->raid), "ftt", int_or_null(v->ftt), "k",
		int_or_null(v->k), "m", int_or_null(v->m), "stripe_unit_bytes",
		int_or_null(v->stripe_unit_bytes), "layout", v->layout,
		"compression", v->compression, "size_bytes",
		int_or_null(v->size_bytes), "state", v->state, "failures_left",
		int_or_null(v->failures_left), "members", members);
	if (j && *v->owner)
		json_object_set_new(j, "owner", json_string(v->owner));
	if (j && *v->export.state)
		json_object_set_new(j, "export",
				    json_pack("{s:s,s:s,s:b,s:o}", "uri",
					      v->export.uri, "state",
					      v->export.state, "read_only",
					      v->export.read_only, "restarts",
					      int_or_null(v->export.restarts)));
	if (j && *v->reason)
		json_object_set_new(j, "reason", json_string(v->reason));
	if (j)
		json_object_set_new(j, "progress", number_or_null(v->progress));
	if (j && v->log.t_us >= 0)
		json_object_set_new(j, "log", log_json(v));
	return j;
}

static void policy_text(const struct m_vdisk *v, char *buf, size_t len)
{
	if (v->raid == 1)
		snprintf(buf, len, "RAID-1 x%d", v->m + 1);
	else if (v->raid == 0)
		snprintf(buf, len, "RAID-0 x%d", v->k);
	else if (v->raid < 0)
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "RAID-%d %d+%d", v->raid, v->k, v->m);
}

static void state_text(const struct m_vdisk *v, char *buf, size_t len)
{
	if (!isnan(v->progress) &&
	    (!strcmp(v->state, "rebuilding") || !strcmp(v->state, "migrating")))
		snprintf(buf, len, "%s %.0f %%", v->state, v->progress * 100);
	else
		snprintf(buf, len, "%s", v->state);
}

/* "log lz4", "inplace": what goes beside the level. */
static void layout_text(const char *layout, const char *compression, char *buf,
			size_t len)
{
	const bool packs = *compression && strcmp(compression, "none") != 0;

	snprintf(buf, len, "%s%s%s", *layout ? layout : "-", packs ? " " : "",
		 packs ? compression : "");
}

#define VDISK_LINE "%-14s %9s  %-10s %-11s %-8s %s\n"

static void vdisk_line(struct text *text, const struct m_vdisk *v)
{
	char size[24], level[24], state[40], layout[32];

	policy_text(v, level, sizeof(level));
	state_text(v, state, sizeof(state));
	layout_text(v->layout, v->compression, layout, sizeof(layout));
	text_add(text, VDISK_LINE, v->name,
		 units_bytes_text((double)v->size_bytes, size, sizeof(size)),
		 *v->policy ? v->policy : "-", level, layout, state);
}

static void show_vdisks(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *list = json_array();
	struct text text = { 0 };
	size_t i;

	(void)reply;
	text_add(&text, VDISK_LINE, "vDisk", "size", "policy", "level",
		 "layout", "state");
	for (i = 0; i < m->vdisks; i++) {
		vdisk_line(&text, &m->vdisk[i]);
		json_array_append_new(list, vdisk_json(&m->vdisk[i]));
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = json_pack("{s:o}", "vdisks", list);
}

COMMAND(do_vdisk_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_vdisks, NULL);
	return 0;
}

static void share_text(double share, char *buf, size_t len)
{
	if (isnan(share))
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "%.0f %%", share * 100);
}

/* Thin: what is written of it takes room, and no more. */
static void log_space(struct text *text, const struct m_vdisk *v)
{
	const struct m_vdisk_log *l = &v->log;
	char a[24], b[24], c[24], free[16], fill[16];

	text_add(
		text, "  written %s of %s, stored in %s",
		units_bytes_text((double)l->blocks_mapped * 4096, a, sizeof(a)),
		units_bytes_text((double)v->size_bytes, b, sizeof(b)),
		units_bytes_text((double)l->stored_bytes, c, sizeof(c)));
	if (!isnan(l->ratio))
		text_add(text, ", %.2f:1", l->ratio);
	share_text(l->free_share, free, sizeof(free));
	share_text(l->log_fill, fill, sizeof(fill));
	text_add(text, "\n  segments %s free; log %s full; memory %s at most\n",
		 free, fill,
		 units_bytes_text((double)v->memory_bytes, a, sizeof(a)));
}

static void log_amp(struct text *text, const struct m_vdisk_log *l)
{
	struct m_amp amp;

	model_amp(&l->written, &amp);
	if (isnan(amp.all))
		return;
	text_add(text,
		 "  write amplification %.2f since it was opened: log %.2f, "
		 "stripes %.2f,\n    cleaning %.2f, rebuild %.2f, checkpoints "
		 "%.2f\n",
		 amp.all, amp.log, amp.destage + amp.bypass, amp.clean,
		 amp.rebuild, amp.checkpoint);
}

static void log_lines(struct text *text, const struct m_vdisk *v)
{
	const struct m_vdisk_log *l = &v->log;
	char buf[24];

	if (l->t_us < 0)
		return;
	log_space(text, v);
	log_amp(text, l);
	if (l->opening_us > 0)
		text_add(text,
			 "  opened in %s, %lld records of its log replayed\n",
			 units_seconds_text((double)l->opening_us / 1e6, buf,
					    sizeof(buf)),
			 (long long)(l->replayed < 0 ? 0 : l->replayed));
	if (l->scrub_bytes > 0)
		text_add(text,
			 "  scrubbed %s since, %lld times to the end: %lld "
			 "found wrong, %lld of them lost\n",
			 units_bytes_text((double)l->scrub_bytes, buf,
					  sizeof(buf)),
			 (long long)l->scrub_passes, (long long)l->scrub_found,
			 (long long)l->scrub_lost);
	if (l->blocks_lost > 0)
		text_add(text,
			 "  LOST: %lld blocks of 4 KiB; reads of them fail\n",
			 (long long)l->blocks_lost);
	if (l->reads_repaired > 0)
		text_add(text, "  %lld reads were repaired from the others\n",
			 (long long)l->reads_repaired);
}

static void export_line(struct text *text, const struct m_vdisk *v)
{
	if (!*v->export.state)
		return;
	text_add(text, "  exported%s at %s",
		 v->export.read_only ? ", to be read," : "", v->export.uri);
	if (strcmp(v->export.state, "up") != 0)
		text_add(text, " (%s)", v->export.state);
	if (v->export.restarts > 0)
		text_add(text, "; nbdkit was started again %lld times",
			 (long long)v->export.restarts);
	text_add(text, "\n");
}

static void show_vdisk(struct pending *p, const json_t *reply)
{
	const struct m_vdisk *v = model_vdisk(deck_model(p->deck), p->name);
	struct text text = { 0 };
	char buf[40];
	size_t i;

	(void)reply;
	if (!v) {
		outcome_fail(&p->outcome, 1,
			     "there is no vDisk %s; `vdisk list` names them",
			     p->name);
		return;
	}
	vdisk_line(&text, v);
	if (*v->reason)
		text_add(&text, "  %s\n", v->reason);
	if (*v->owner && !v->hearsay)
		text_add(&text, "  open on node %s\n", v->owner);
	if (v->failures_left >= 0)
		text_add(&text, "  may lose %d more; stripe unit %s\n",
			 v->failures_left,
			 units_bytes_text((double)v->stripe_unit_bytes, buf,
					  sizeof(buf)));
	export_line(&text, v);
	log_lines(&text, v);
	for (i = 0; i < v->members; i++) {
		snprintf(buf, sizeof(buf), "%.18s:%.18s", v->member[i].domain,
			 v->member[i].drive);
		text_add(&text, "  %2d  %-16s %-8s %s\n", v->member[i].slot,
			 buf, v->member[i].role, v->member[i].state);
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = vdisk_json(v);
}

COMMAND(do_vdisk_show)
{
	live_show(deck, outcome, show_vdisk, ARG("NAME"));
	return 0;
}

#define POLICY_LINE "%-16s %-8s %-9s %-12s %s\n"

static void show_policies(struct pending *p, const json_t *reply)
{
	const struct model *m = deck_model(p->deck);
	json_t *list = json_array();
	struct text text = { 0 };
	char unit[24], layout[32], level[16], ftt[16];
	size_t i;

	(void)reply;
	text_add(&text, POLICY_LINE, "policy", "level", "failures", "layout",
		 "stripe unit");
	for (i = 0; i < m->policies; i++) {
		const struct m_policy *y = &m->policy[i];

		snprintf(level, sizeof(level), "RAID-%d", y->raid);
		snprintf(ftt, sizeof(ftt), "%d", y->ftt);
		layout_text(y->layout, y->compression, layout, sizeof(layout));
		text_add(&text, POLICY_LINE, y->name, level, ftt, layout,
			 units_bytes_text((double)y->stripe_unit_bytes, unit,
					  sizeof(unit)));
		json_array_append_new(
			list,
			json_pack("{s:s,s:i,s:i,s:I,s:s,s:s}", "name", y->name,
				  "raid", y->raid, "ftt", y->ftt,
				  "stripe_unit_bytes",
				  (json_int_t)y->stripe_unit_bytes, "layout",
				  y->layout, "compression", y->compression));
	}
	p->outcome.text = text_take(&text);
	p->outcome.json = json_pack("{s:o}", "policies", list);
}

COMMAND(do_policy_list)
{
	(void)command;
	(void)argc;
	(void)argv;
	live_show(deck, outcome, show_policies, NULL);
	return 0;
}
