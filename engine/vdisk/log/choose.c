/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A component has a say if it accepted a content that names it. One that was
 * replaced only knows contents older than the one that counts, as that one was
 * committed on enough of the others; one that is new and was never accepted
 * knows none. But of a group that grows also those have a say that come into it
 * with the content that counts: they never were asked before.
 */
#include "engine/vdisk/log/choose.h"

#include <stdio.h>
#include <string.h>

#include "engine/vdisk/log/mut.h"

/* What cannot be read may be newer than what can. */
#define SUPER_BLOCKS \
	(1u << FMT_SUPER(0) / FMT_BLOCK | 1u << FMT_SUPER(1) / FMT_BLOCK)

void choose_read(struct choose_component *c, const uint8_t *front,
		 unsigned unread)
{
	const void *const super[2] = { front + FMT_SUPER(0),
				       front + FMT_SUPER(1) };
	const uint8_t *label = front + FMT_LABEL_A;
	unsigned slot;

	c->labelled = !fmt_label_check(label, FMT_COMP_ANY, FMT_LABEL_A);
	if (!c->labelled) {
		label = front + FMT_LABEL_B;
		c->labelled =
			!fmt_label_check(label, FMT_COMP_ANY, FMT_LABEL_B);
	}
	if (!c->labelled)
		return;
	memcpy(&c->label, label, sizeof(c->label));
	c->sound = !(unread & SUPER_BLOCKS) &&
		   !fmt_super_newest(super, c->label.head.vdisk,
				     c->label.head.comp, &c->super, &slot);
}

/* Where things are must be the same on all. */
static bool geometry_same(const struct fmt_label *a, const struct fmt_label *b)
{
	return a->size_blocks == b->size_blocks &&
	       a->off_snap[0] == b->off_snap[0] &&
	       a->off_snap[1] == b->off_snap[1] && a->off_data == b->off_data &&
	       a->snap_bytes == b->snap_bytes &&
	       a->zone_bytes == b->zone_bytes && a->zones == b->zones &&
	       a->unit_bytes == b->unit_bytes && a->stripes == b->stripes &&
	       a->segs == b->segs && a->buffer_bytes == b->buffer_bytes;
}

static bool named(const struct fmt_label *l, const char *cluster,
		  const char *name)
{
	return (!cluster[0] ||
		!strncmp(l->cluster, cluster, sizeof(l->cluster))) &&
	       (!name[0] || !strncmp(l->name, name, sizeof(l->name)));
}

/* One of the vDisk that most with the right name belong to; if none has it,
 * any. */
static const struct choose_component *
label_most(const struct choose_component *c, unsigned count,
	   const char *cluster, const char *name)
{
	const struct choose_component *best = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned votes = 0;

		if (!c[i].labelled)
			continue;
		for (unsigned j = 0; j < count; j++)
			votes += c[j].labelled &&
				 !memcmp(c[i].label.head.vdisk,
					 c[j].label.head.vdisk, 16);
		if (!named(&c[i].label, cluster, name))
			votes = 0;
		if (!best || votes > most) {
			best = &c[i];
			most = votes;
		}
	}
	return best;
}

static int identity_one(const struct choose_component *c,
			const struct choose_component *of, struct err *err)
{
	const struct fmt_label *l = &c->label, *x = &of->label;
	const bool namesake = named(l, x->cluster, x->name);

	if (memcmp(l->head.vdisk, x->head.vdisk, 16))
		return err_set(err, -EINVAL,
			       "%s holds a component of %s%.63s in cluster "
			       "%.63s, not of %.63s: put the right one in its "
			       "place, or take it away",
			       c->name, namesake ? "another " : "", l->name,
			       l->cluster, namesake ? "this one" : x->name);
	if (!geometry_same(l, x))
		return err_set(err, -EINVAL,
			       "the labels of %s and %s contradict each other",
			       of->name, c->name);
	return 0;
}

int choose_identity(const struct choose_component *c, unsigned count,
		    const char *cluster, const char *name, struct err *err)
{
	const struct choose_component *of = label_most(c, count, cluster, name);
	int rc = 0;

	if (!of)
		return err_set(err, -ENOENT,
			       "%s: no component carries a label of the log "
			       "layout",
			       name);
	if (!named(&of->label, cluster, name))
		return err_set(err, -EINVAL,
			       "these are components of %.63s in cluster %.63s",
			       of->label.name, of->label.cluster);
	for (unsigned i = 0; i < count && !rc; i++)
		if (c[i].labelled)
			rc = identity_one(&c[i], of, err);
	return rc;
}

/* ---- contents ------------------------------------------------------ */

static bool has_say(const struct choose_component *c)
{
	const unsigned comp = c->label.head.comp;
	const struct fmt_content *content = &c->super.content;

	return c->labelled && c->sound && content->seq &&
	       comp < content->comps &&
	       !memcmp(content->seat[comp].uuid, c->label.comp_uuid, 16);
}

/* The component that is member i of a content, or -1. */
static int seat_find(const struct choose_component *c, unsigned count,
		     const struct fmt_content *content, unsigned i)
{
	for (unsigned j = 0; j < count; j++)
		if (c[j].labelled && c[j].label.head.comp == i &&
		    !memcmp(c[j].label.comp_uuid, content->seat[i].uuid, 16))
			return (int)j;
	for (unsigned j = 0; j < count && MUT(OLD_VOTES); j++)
		if (c[j].labelled && c[j].label.head.comp == i)
			return (int)j;
	return -1;
}

/* All who hold it, and all who may. */
static bool maybe_committed(const struct choose_component *c, unsigned count,
			    const struct fmt_content *content)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < content->comps; i++) {
		const int at = seat_find(c, count, content, i);

		if (at < 0 || !c[at].sound ||
		    !fmt_content_compare(&c[at].super.content, content))
			mask |= 1u << i;
	}
	return fmt_group_quorum(content, mask);
}

static const struct fmt_content *content_best(const struct choose_component *c,
					      unsigned count,
					      const struct fmt_content *below)
{
	const struct fmt_content *best = NULL;

	for (unsigned i = 0; i < count; i++) {
		const struct fmt_content *x = &c[i].super.content;

		if (!has_say(&c[i]) ||
		    (below && (fmt_content_compare(x, below) >= 0 ||
			       fmt_config_same(x, below))))
			continue;
		if (!best || fmt_content_compare(x, best) > 0)
			best = x;
	}
	return best;
}

static int passed_over(const struct choose_component *c, unsigned count,
		       const struct fmt_content *best, struct err *err)
{
	for (unsigned i = 0; i < count; i++) {
		const struct fmt_content *x = &c[i].super.content;

		if (has_say(&c[i]) && fmt_content_compare(x, best) > 0 &&
		    maybe_committed(c, count, x))
			return err_set(err, -EIO,
				       "%s: no metadata component within "
				       "reach holds an intact copy of the "
				       "newest state; bring back what is "
				       "missing",
				       c[i].label.name);
	}
	return 0;
}

/* ---- members ------------------------------------------------------- */

static void missing_list(const struct choose *x, char *buf, size_t len)
{
	size_t at = 0;

	snprintf(buf, len, "more of what holds its metadata");
	for (unsigned i = 0; i < x->content.comps && at + 1 < len; i++)
		if (x->member[i].component < 0)
			at += (size_t)snprintf(
				buf + at, len - at, "%s%.31s:%.31s (%s)",
				at ? ", " : "", x->content.seat[i].domain,
				x->content.seat[i].drive, x->member[i].note);
}

static int too_few(const struct choose *x, struct err *err)
{
	char missing[320];

	missing_list(x, missing, sizeof(missing));
	return err_set(err, -EAGAIN,
		       "bring back %s: of the %u components of %s %u are "
		       "needed, and %u of the first %u; %u are there",
		       missing, x->content.comps, x->label->name,
		       x->content.comps - x->content.tolerates,
		       x->content.group_m + 1, 2 * x->content.group_m + 1,
		       x->there);
}

/* By where it stands: which member had the label that cannot be read? */
static const char *note_of(const struct choose_component *c, unsigned count,
			   const struct fmt_seat *seat)
{
	for (unsigned i = 0; i < count; i++)
		if (c[i].name && !c[i].labelled &&
		    !strncmp(c[i].domain, seat->domain, 32) &&
		    !strncmp(c[i].drive, seat->drive, 32))
			return c[i].failed ? "its label cannot be read"
					   : "carries no label";
	return "not there";
}

/* Torn: as good as away, and never written to. */
static bool cut_short(const struct choose_component *c, const struct choose *x,
		      unsigned i)
{
	const struct fmt_label *l = x->label;

	return c->size_bytes <
	       l->off_data + (uint64_t)x->content.seat[i].slots *
				     l->unit_bytes * l->stripes;
}

static void member_find(const struct choose_component *c, unsigned count,
			struct choose *x, unsigned i)
{
	struct choose_member *m = &x->member[i];

	m->component = seat_find(c, count, &x->content, i);
	m->note = NULL;
	if (m->component < 0) {
		m->note = note_of(c, count, &x->content.seat[i]);
	} else if (cut_short(&c[m->component], x, i)) {
		m->note = "shorter than it was made";
		m->component = -1;
	} else {
		x->there++;
	}
}

static bool votes(const struct choose_component *c,
		  const struct fmt_content *best, unsigned i)
{
	return has_say(c) || (c->sound && fmt_group_fresh(best, i, &c->super));
}

static int twice_check(const struct choose_component *c, unsigned count,
		       struct err *err)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; c[i].labelled && j < i; j++)
			if (c[j].labelled && !memcmp(c[i].label.comp_uuid,
						     c[j].label.comp_uuid, 16))
				return err_set(err, -EINVAL,
					       "%s and %s are the same "
					       "component",
					       c[j].name, c[i].name);
	return 0;
}

int choose_members(const struct choose_component *c, unsigned count,
		   const struct fmt_content *below, struct choose *x,
		   struct err *err)
{
	const struct fmt_content *best = content_best(c, count, below);
	uint32_t voters = 0;
	int rc = twice_check(c, count, err);

	for (unsigned i = 0; i < count; i++)
		if (c[i].labelled)
			x->label = &c[i].label;
	x->there = 0;
	if (rc)
		return rc;
	if (!best)
		return err_set(err, below ? -EIO : -EAGAIN,
			       "%s: none of the components that hold its "
			       "metadata is there",
			       x->label->name);
	rc = passed_over(c, count, best, err);
	if (rc)
		return rc;
	x->content = *best;
	for (unsigned i = 0; i < best->comps; i++) {
		member_find(c, count, x, i);
		if (x->member[i].component >= 0 &&
		    (votes(&c[x->member[i].component], best, i) ||
		     MUT(BLANK_VOTES)))
			voters |= 1u << i;
	}
	if (x->there + best->tolerates < best->comps ||
	    !fmt_group_quorum(best, voters))
		return too_few(x, err);
	return 0;
}
