/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cluster's events. What is not known is left out or null. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/event.h"
#include "backend/provider/provider_priv.h"

static void emit(struct provider *p, const char *e, json_t *body)
{
	p->host.emit(e, body, p->host.arg);
}

static void text_add(json_t *to, const char *name, const char *text)
{
	char clean[448];

	event_text(clean, sizeof(clean), text);
	if (*clean)
		json_object_set_new(to, name, json_string(clean));
}

static void bytes_add(json_t *to, const char *name, uint64_t bytes)
{
	json_object_set_new(to, name, json_integer((json_int_t)bytes));
}

/* ---- cluster ------------------------------------------------------------ */

static json_t *shape_json(const struct link_opts *shape)
{
	json_t *j;

	if (!shape->rate_bytes_s && !shape->rate_iops && !shape->latency_ns)
		return json_null();
	j = json_object();
	if (shape->rate_bytes_s)
		bytes_add(j, "rate_bytes_s", shape->rate_bytes_s);
	if (shape->rate_iops)
		bytes_add(j, "rate_iops", shape->rate_iops);
	if (shape->latency_ns)
		json_object_set_new(j, "latency_us",
				    json_real((double)shape->latency_ns / 1e3));
	return j;
}

static json_t *drive_json(const struct p_drive *d)
{
	static const char *const state[] = { "ok", "offline", "failed" };
	json_t *j = json_pack("{s:s, s:s}", "name", d->name, "state",
			      state[d->state]);

	text_add(j, "path", d->path);
	text_add(j, "kind", d->kind == DRIVE_DIR ? "directory" : "device");
	if (d->store) {
		bytes_add(j, "size_bytes", d->size_bytes);
		bytes_add(j, "free_bytes", drive_free(d));
	}
	json_object_set_new(j, "shape", shape_json(&d->shape));
	text_add(j, "reason", d->reason);
	return j;
}

void tell_cluster(struct provider *p)
{
	json_t *domains = json_array();

	for (size_t k = 0; k < p->domains; k++) {
		const struct p_domain *dom = &p->domain[k];
		json_t *drives = json_array();

		for (size_t d = 0; d < dom->drives; d++)
			json_array_append_new(drives,
					      drive_json(&dom->drive[d]));
		json_array_append_new(
			domains,
			json_pack("{s:s, s:o, s:o}", "name", dom->name, "link",
				  shape_json(&dom->shape), "drives", drives));
	}
	emit(p, "cluster",
	     json_pack("{s:s, s:s, s:b, s:o}", "name", p->name, "title",
		       p->title, "virtual", p->is_virtual, "domains", domains));
}

/* ---- policies, vDisks --------------------------------------------------- */

void tell_policy(struct provider *p, const struct p_policy *policy)
{
	emit(p, "policy",
	     json_pack("{s:s, s:i, s:i, s:I, s:s, s:s}", "name", policy->name,
		       "raid", (int)policy->policy.raid, "ftt",
		       (int)policy_ftt(&policy->policy), "stripe_unit_bytes",
		       (json_int_t)policy->policy.stripe_unit_bytes, "layout",
		       vdisk_layout_name(policy->policy.layout), "compression",
		       vdisk_codec_name(policy->policy.codec)));
}

const char *vdisk_state_word(const struct p_vdisk *v)
{
	return v->phase == PV_OPEN ? vdisk_state_name(v->info.state)
	       : v->failed         ? vdisk_state_name(VDISK_FAILED)
				   : "offline";
}

/* Of a vDisk that is not open: as its newest label says, if it was found. */
static const char *member_word(const struct p_vdisk *v,
			       const struct vdisk_slot *slot)
{
	for (size_t k = 0; v->phase != PV_OPEN && k < v->parts; k++)
		if (!strcmp(v->part[k].component, slot->component) &&
		    drive_is_there(v->part[k].drive))
			return member_state_name(slot->state);
	return v->phase == PV_OPEN ? member_state_name(slot->state) : "missing";
}

static json_t *members_json(const struct p_vdisk *v)
{
	const struct vdisk_info *info = &v->info;
	json_t *members = json_array();

	for (unsigned k = 0; k < info->slots; k++) {
		const struct vdisk_slot *slot = &info->slot[k];

		json_array_append_new(
			members,
			json_pack("{s:i, s:s, s:s, s:s, s:s}", "slot", (int)k,
				  "domain", slot->domain, "drive", slot->drive,
				  "role",
				  slot->role == MEMBER_DATA ? "data"
							    : "witness",
				  "state", member_word(v, slot)));
	}
	return members;
}

static void uuid_text(const uint8_t uuid[16], char text[37])
{
	char *at = text;

	for (unsigned k = 0; k < 16; k++) {
		if (k == 4 || k == 6 || k == 8 || k == 10)
			*at++ = '-';
		at += sprintf(at, "%02x", uuid[k]);
	}
}

/* What a rebuild or a migration has done and has to do. */
static void progress_add(json_t *j, const struct vdisk_info *info)
{
	if (info->state != VDISK_REBUILDING && info->state != VDISK_MIGRATING)
		return;
	json_object_set_new(j, "progress", json_real(info->progress));
	bytes_add(j, "left_bytes", info->rebuild_left_bytes);
	if (info->rebuild_bytes_s)
		bytes_add(j, "rate_bytes_s", info->rebuild_bytes_s);
}

/* Ours where we know better than an errno: a drive that is not there. */
static void reason_add(json_t *j, const struct p_vdisk *v)
{
	const struct vdisk_info *info = &v->info;
	const char *said = info->reason;
	char text[160];
	size_t at = 0;

	if (v->phase != PV_OPEN || info->state == VDISK_HEALTHY) {
		text_add(j, "reason", v->reason);
		return;
	}
	/* where it has failed, the engine's says what to do */
	for (unsigned k = 0; k < info->slots && at < sizeof(text) &&
			     info->state != VDISK_FAILED;
	     k++) {
		const struct vdisk_slot *slot = &info->slot[k];
		const struct p_drive *d =
			drive_find(v->provider, slot->domain, slot->drive);

		if (slot->state != MEMBER_MISSING || (d && drive_is_there(d)))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s%s:%s %s", at ? ", " : "",
				       slot->domain, slot->drive,
				       d ? "is offline" : "is not known");
		said = text;
	}
	text_add(j, "reason", *v->reason ? v->reason : said);
}

void tell_vdisk(struct p_vdisk *v)
{
	const struct vdisk_info *info = &v->info;
	const struct vdisk_policy *policy = &info->policy;
	bool open = v->phase == PV_OPEN;
	char uuid[37];
	json_t *j;

	if (!v->owned)
		return;
	uuid_text(info->uuid, uuid);
	j = json_pack("{s:s, s:s, s:s?, s:i, s:i, s:i, s:i, s:I, s:s, s:s, "
		      "s:I, s:I, s:s, s:i, s:o}",
		      "name", v->name, "uuid", uuid, "policy",
		      *v->policy ? v->policy : NULL, "raid", (int)policy->raid,
		      "ftt", (int)policy_ftt(policy), "k", (int)policy->k, "m",
		      (int)policy->m, "stripe_unit_bytes",
		      (json_int_t)policy->stripe_unit_bytes, "layout",
		      vdisk_layout_name(policy->layout), "compression",
		      vdisk_codec_name(policy->codec), "size_bytes",
		      (json_int_t)info->size_bytes, "epoch",
		      (json_int_t)info->epoch, "state", vdisk_state_word(v),
		      "failures_left", open ? (int)info->failures_left : 0,
		      "members", members_json(v));
	if (!j)
		return;
	if (open)
		progress_add(j, info);
	text_add(j, "owner", v->provider->node);
	if (*v->provider->node)
		json_object_set_new(j, "term",
				    json_integer((json_int_t)v->term));
	if (policy->layout == VDISK_LOG)
		bytes_add(j, "memory_bytes",
			  vdisk_memory_bytes(policy, info->size_bytes,
					     info->slots));
	if (v->export)
		json_object_set_new(j, "export", export_json(v));
	reason_add(j, v);
	emit(v->provider, "vdisk", j);
}

/* ---- figures of the log layout ------------------------------------------ */

#define FIGURES_NS (SEC_NS - 10 * MSEC_NS) /* the tending comes in steps */

static void figures_bytes(json_t *j, const struct vdisk_log_info *f)
{
	const struct {
		const char *name;
		uint64_t value;
	} of[] = {
		{ "user_bytes", f->user_bytes },
		{ "user_stored_bytes", f->user_stored_bytes },
		{ "log_bytes", f->log_bytes },
		{ "destage_bytes", f->destage_bytes },
		{ "bypass_bytes", f->bypass_bytes },
		{ "clean_bytes", f->clean_bytes },
		{ "rebuild_bytes", f->rebuild_bytes },
		{ "checkpoint_bytes", f->checkpoint_bytes },
		{ "blocks_mapped", f->blocks_mapped },
		{ "stored_bytes", f->stored_bytes },
		{ "space_bytes", f->space_bytes },
		{ "buffer_bytes", f->buffer_bytes },
		{ "buffer_max_bytes", f->buffer_max_bytes },
		{ "zero_blocks", f->zero_blocks },
		{ "checkpoints", f->checkpoints },
		{ "segments_cleaned", f->segments_cleaned },
		{ "reads_degraded", f->reads_degraded },
		{ "reads_repaired", f->reads_repaired },
		{ "reads_hedged", f->reads_hedged },
		{ "blocks_lost", f->blocks_lost },
		{ "replayed", f->replayed },
		{ "scrub_passes", f->scrub_passes },
		{ "scrub_bytes", f->scrub_bytes },
		{ "scrub_found", f->scrub_found },
		{ "scrub_repaired", f->scrub_repaired },
		{ "scrub_lost", f->scrub_lost },
	};

	for (size_t k = 0; k < array_len(of); k++)
		bytes_add(j, of[k].name, of[k].value);
}

/* Four digits: more of a share is nothing but length. */
static void figures_share(json_t *j, const char *name, double share)
{
	json_object_set_new(j, name,
			    json_real((double)(int)(share * 1e4 + 0.5) / 1e4));
}

void tell_figures_whole(struct p_vdisk *v)
{
	json_decref(v->figures);
	v->figures = NULL;
	v->figures_ns = 0;
}

void tell_figures(struct p_vdisk *v, uint64_t now)
{
	const struct vdisk_log_info *f = &v->info.log;
	json_t *j;

	if (v->phase != PV_OPEN || v->info.policy.layout != VDISK_LOG ||
	    (v->figures_ns && now < v->figures_ns + FIGURES_NS))
		return;
	v->figures_ns = now;
	j = json_pack("{s:s, s:I, s:I}", "name", v->name, "opened_t_us",
		      (json_int_t)v->opened_t_us, "opening_us",
		      (json_int_t)(v->took_ns / 1000));
	figures_bytes(j, f);
	figures_share(j, "free_share", f->free_share);
	figures_share(j, "log_fill", f->log_fill);
	figures_share(j, "victim_live", f->victim_live);
	figures_share(j, "compliance", f->compliance);
	figures_share(j, "scrub_progress", f->scrub_progress);
	if (json_equal(j, v->figures)) {
		json_decref(j);
		return;
	}
	json_decref(v->figures);
	v->figures = json_copy(j);
	emit(v->provider, "vdisk_usage", j);
}

void tell_seen(struct provider *p, json_t *body)
{
	emit(p, "vdisk_seen", body);
}

void tell_vdisk_gone(struct provider *p, const char *name)
{
	emit(p, "vdisk_gone", json_pack("{s:s}", "name", name));
}

/* ---- words -------------------------------------------------------------- */

void tell_log(struct provider *p, const char *level, const char *fmt, ...)
{
	char text[512], clean[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	event_text(clean, sizeof(clean), text);
	emit(p, "log", json_pack("{s:s, s:s}", "level", level, "text", clean));
}

void tell_fault(struct provider *p, const char *text, const char *kind,
		const char *target, const char *by)
{
	char clean[256];

	event_text(clean, sizeof(clean), text);
	emit(p, "fault",
	     json_pack("{s:s, s:s, s:s, s:s}", "text", clean, "kind", kind,
		       "target", target, "by", by));
}

/* ---- usage -------------------------------------------------------------- */

static void rate_add(json_t *j, const char *name, uint64_t count, double len_s)
{
	json_object_set_new(j, name, json_real((double)count / len_s));
}

static void share_add(json_t *j, const char *name, uint64_t ns, double len_s)
{
	double share = (double)ns / 1e9 / len_s;

	json_object_set_new(j, name, json_real(share < 1.0 ? share : 1.0));
}

/* Busy: how much of its rate is used, where it has one; else the share of the
 * time with something in flight. */
static json_t *drive_usage(struct p_drive *d, double len_s)
{
	const struct hub_stats was = d->told;
	struct link_stats link;
	json_t *j = json_pack("{s:s, s:s}", "domain", d->domain->name, "drive",
			      d->name);
	uint64_t ops, link_busy_ns;

	hub_stats(&d->hub, &d->told);
	link_stats(d->link, &link);
	link_busy_ns = link.busy_ns[0] + link.busy_ns[1];
	ops = d->told.ops[0] - was.ops[0] + d->told.ops[1] - was.ops[1];
	rate_add(j, "read_iops", d->told.ops[0] - was.ops[0], len_s);
	rate_add(j, "write_iops", d->told.ops[1] - was.ops[1], len_s);
	rate_add(j, "read_bytes_s", d->told.bytes[0] - was.bytes[0], len_s);
	rate_add(j, "write_bytes_s", d->told.bytes[1] - was.bytes[1], len_s);
	share_add(j, "busy",
		  d->shape.rate_bytes_s || d->shape.rate_iops
			  ? link_busy_ns - d->told_link_busy_ns
			  : d->told.busy_ns - was.busy_ns,
		  len_s);
	d->told_link_busy_ns = link_busy_ns;
	rate_add(j, "queue", (d->told.queue_ns - was.queue_ns) / 1000,
		 len_s * 1e6);
	if (ops)
		json_object_set_new(j, "latency_us",
				    json_real((double)(d->told.latency_ns -
						       was.latency_ns) /
					      1e3 / (double)ops));
	return j;
}

static json_t *domain_usage(struct p_domain *dom, double len_s)
{
	const struct link_stats was = dom->told;
	json_t *j = json_pack("{s:s}", "domain", dom->name);
	uint64_t busy_ns;

	link_stats(dom->link, &dom->told);
	rate_add(j, "read_bytes_s", dom->told.bytes[0] - was.bytes[0], len_s);
	rate_add(j, "write_bytes_s", dom->told.bytes[1] - was.bytes[1], len_s);
	/* both directions have a wire of their own: the fuller one counts */
	busy_ns = dom->told.busy_ns[0] - was.busy_ns[0];
	if (busy_ns < dom->told.busy_ns[1] - was.busy_ns[1])
		busy_ns = dom->told.busy_ns[1] - was.busy_ns[1];
	if (dom->shape.rate_bytes_s || dom->shape.rate_iops)
		share_add(j, "busy", busy_ns, len_s);
	return j;
}

void tell_usage(struct timer *timer)
{
	struct provider *p = container_of(timer, struct provider, usage);
	uint64_t now = reactor_now(p->reactor);
	uint64_t len_ns = now - p->usage_ns;
	double len_s = (double)len_ns / 1e9;
	json_t *links = json_array(), *drives = json_array();
	json_t *exports = json_array();

	for (size_t k = 0; k < p->domains; k++) {
		struct p_domain *dom = &p->domain[k];

		json_array_append_new(links, domain_usage(dom, len_s));
		for (size_t d = 0; d < dom->drives; d++)
			if (dom->drive[d].store)
				json_array_append_new(
					drives,
					drive_usage(&dom->drive[d], len_s));
	}
	for (struct p_vdisk *v = p->vdisks; v; v = v->next)
		if (v->export)
			json_array_append_new(exports, export_usage(v, len_s));
	emit(p, "usage",
	     json_pack("{s:I, s:o, s:o, s:o}", "len_us",
		       (json_int_t)(len_ns / USEC_NS), "links", links, "drives",
		       drives, "exports", exports));
	p->usage_ns = now;
	timer_arm(p->reactor, &p->usage, now + p->usage_every_ns);
}
