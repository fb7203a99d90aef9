/* SPDX-License-Identifier: GPL-3.0-or-later */
/* See media.h. */
#include "tests/sim/media.h"

#include <stdlib.h>
#include <string.h>

/* ---- the media ----------------------------------------------------------- */

int sim_drive_init(struct sim_drive *d, struct sim *sim, unsigned index,
		   uint64_t bytes)
{
	struct sim_media *m = calloc(1, sizeof(*m));

	*d = (struct sim_drive) { .sim = sim,
				  .index = index,
				  .bytes = bytes,
				  .slow = 1,
				  .media = m };
	m->durable = calloc(1, bytes);
	m->newest = calloc(bytes / SIM_SECTOR, sizeof(struct version *));
	m->bad = calloc(bytes / SIM_SECTOR, 1);
	return m->durable && m->newest && m->bad ? 0 : -ENOMEM;
}

static struct version *version_get(struct sim_media *m)
{
	struct version *v = m->spare;

	if (v)
		m->spare = v->older;
	else
		v = malloc(sizeof(*v));
	id_assert(v);
	return v;
}

/* This one and all older ones. */
static void versions_put(struct sim_media *m, struct version *v)
{
	while (v) {
		struct version *older = v->older;

		v->older = m->spare;
		m->spare = v;
		v = older;
	}
}

void media_forget(struct sim_media *m, uint64_t s)
{
	versions_put(m, m->newest[s]);
	m->newest[s] = NULL;
}

static void dirty_all_free(struct sim_media *m)
{
	for (size_t i = 0; i < m->dirties; i++)
		media_forget(m, m->dirty[i]);
	m->dirties = 0;
}

static void rot_free(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	while (m->rot) {
		struct rot *rot = m->rot;

		m->rot = rot->next;
		free(rot);
	}
	d->rotten = 0;
}

static uint8_t *durable(struct sim_media *m, uint64_t s)
{
	return m->durable + s * SIM_SECTOR;
}

const uint8_t *media_visible(struct sim_media *m, uint64_t s)
{
	return m->newest[s] ? m->newest[s]->data : durable(m, s);
}

static struct rot **rot_find(struct sim_media *m, uint64_t s)
{
	struct rot **at = &m->rot;

	while (*at && (*at)->sector != s)
		at = &(*at)->next;
	return at;
}

static struct rot *rot_add(struct sim_drive *d, uint64_t s)
{
	struct rot *rot = calloc(1, sizeof(*rot));

	id_assert(rot);
	rot->sector = s;
	rot->next = d->media->rot;
	d->media->rot = rot;
	d->rotten++;
	return rot;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
	static const uint8_t zeros[SIM_SECTOR];

	return !memcmp(a, b ? b : zeros, SIM_SECTOR);
}

/*
 * Whatever was wrong with a sector is gone once it is durably written. If it is
 * by the same that was wrong, somebody may have put back what he found there,
 * or it may be right by now: it counts on, and is not healed.
 */
static void damage_clear(struct sim_drive *d, uint64_t s, const uint8_t *data)
{
	struct sim_media *m = d->media;
	struct rot **at, *rot;

	d->bad -= m->bad[s] == BAD;
	m->bad[s] = 0;
	if (!d->rotten)
		return;
	at = rot_find(m, s);
	rot = *at;
	if (rot && same(durable(m, s), data)) {
		rot->again = true;
	} else if (rot) {
		*at = rot->next;
		free(rot);
		d->rotten--;
	}
}

static void dirty_add(struct sim_media *m, uint64_t s)
{
	if (m->dirties == m->dirty_room) {
		m->dirty_room = m->dirty_room ? 2 * m->dirty_room : 64;
		m->dirty = realloc(m->dirty, m->dirty_room * sizeof(*m->dirty));
		id_assert(m->dirty);
	}
	m->dirty[m->dirties++] = s;
}

/* data NULL: zeros */
void media_land(struct sim_drive *d, uint64_t s, const uint8_t *data)
{
	struct sim_media *m = d->media;
	struct version *v = version_get(m);

	if (data)
		memcpy(v->data, data, SIM_SECTOR);
	else
		memset(v->data, 0, SIM_SECTOR);
	v->seq = ++m->seq;
	if (!m->newest[s])
		dirty_add(m, s);
	v->older = m->newest[s];
	m->newest[s] = v;
}

void media_set(struct sim_drive *d, uint64_t s, const uint8_t *data)
{
	damage_clear(d, s, data);
	d->media->recent[d->media->recents++ % RECENT] = s;
	if (data)
		memcpy(durable(d->media, s), data, SIM_SECTOR);
	else
		memset(durable(d->media, s), 0, SIM_SECTOR);
}

/* The chain's newest of at most seq becomes durable. */
static void sector_flush(struct sim_drive *d, uint64_t s, uint64_t seq)
{
	struct version **at = &d->media->newest[s];

	while (*at && (*at)->seq > seq)
		at = &(*at)->older;
	if (*at)
		media_set(d, s, (*at)->data);
	versions_put(d->media, *at);
	*at = NULL;
}

void media_sweep(struct sim_media *m)
{
	size_t keep = 0;

	for (size_t i = 0; i < m->dirties; i++)
		if (m->newest[m->dirty[i]])
			m->dirty[keep++] = m->dirty[i];
	m->dirties = keep;
}

void media_flush(struct sim_drive *d, uint64_t seq)
{
	struct sim_media *m = d->media;

	for (size_t i = 0; i < m->dirties; i++)
		sector_flush(d, m->dirty[i], seq);
	media_sweep(m);
}

/*
 * A sector that was being written when the power went: the one half new, the
 * other old, or unreadable, until it is written again. That was never
 * acknowledged, so it costs nothing of the budget. What is there already stays
 * whole where the same is written over it: a repair of what lies around.
 */
static void sector_shear(struct sim_drive *d, uint64_t s)
{
	struct sim_media *m = d->media;
	const struct version *v = m->newest[s];

	if (m->bad[s] || (d->rotten && *rot_find(m, s)) ||
	    !memcmp(v->data, durable(m, s), SIM_SECTOR))
		return;
	d->sim->stats.shorn++;
	if (sim_below(d->sim, 3) == 0 &&
	    !d->sim->client->ops->hot(d->sim->client, s * SIM_SECTOR, 1))
		m->bad[s] = SHORN;
	else
		memcpy(durable(m, s), v->data, SIM_SECTOR / 2);
	media_forget(m, s);
}

/* One or two, rather among the first: what stands there matters most. */
static void media_shear(struct sim_drive *d)
{
	struct sim_media *m = d->media;
	uint64_t first = 0;

	if (!d->sim->client->promise.checksums || !m->dirties ||
	    sim_below(d->sim, 2))
		return;
	for (size_t i = 1; i < m->dirties; i++)
		if (m->dirty[i] < m->dirty[first])
			first = i;
	if (sim_below(d->sim, 2))
		sector_shear(d, m->dirty[first]);
	first = sim_below(d->sim, m->dirties);
	if (m->newest[m->dirty[first]])
		sector_shear(d, m->dirty[first]);
}

/*
 * What is not durable is any of its versions from now on, and that durably.
 * kind 0: all of it is lost; 1: none; 2: each sector by itself.
 */
void media_cut(struct sim_drive *d)
{
	struct sim_media *m = d->media;
	const unsigned kind = (unsigned)sim_below(d->sim, 4);

	for (size_t i = 0; i < m->dirties; i++) {
		const uint64_t s = m->dirty[i];
		unsigned depth = 0, pick;
		struct version *v;

		for (v = m->newest[s]; v; v = v->older)
			depth++;
		pick = kind == 0   ? depth
		       : kind == 1 ? 0
				   : (unsigned)sim_below(d->sim, depth + 1);
		v = m->newest[s];
		while (v && pick--)
			v = v->older;
		if (v)
			media_set(d, s, v->data);
		media_forget(m, s);
	}
	m->dirties = 0;
}

void media_power_cut(struct sim_drive *d)
{
	media_shear(d);
	media_cut(d);
}

/* ---- damage -------------------------------------------------------------- */

void media_damage_tell(struct sim_drive *d, uint64_t off)
{
	struct sim_client *c = d->sim->client;

	if (c->ops->damaged)
		c->ops->damaged(c, d->index, off);
}

/*
 * Makes a sector hold data though it should hold `right`. Where that is what is
 * wrong with it already, what it should hold is known from before; and if it is
 * to hold that on, somebody meant to put it back: see damage_clear().
 */
void media_rot(struct sim_drive *d, uint64_t s, const uint8_t *right,
	       const uint8_t *data)
{
	struct sim_media *m = d->media;
	struct rot *rot = *rot_find(m, s);

	if (rot && same(media_visible(m, s), right)) {
		rot->again |= same(right, data);
	} else {
		if (!rot)
			rot = rot_add(d, s);
		memcpy(rot->right, right, SIM_SECTOR);
		rot->again = false;
	}
	if (m->newest[s]) {
		media_forget(m, s);
		media_sweep(m);
	}
	memmove(durable(m, s), data, SIM_SECTOR);
}

void sim_drive_damage(struct sim_drive *d, struct sim_range range, bool rot)
{
	struct sim_media *m = d->media;
	uint8_t rubbish[SIM_SECTOR], right[SIM_SECTOR];

	media_damage_tell(d, range.off);
	for (uint64_t s = range.off / SIM_SECTOR;
	     s < (range.off + range.len) / SIM_SECTOR; s++) {
		if (!rot) {
			d->bad += m->bad[s] != BAD;
			m->bad[s] = BAD;
			continue;
		}
		memcpy(right, media_visible(m, s), SIM_SECTOR);
		memcpy(rubbish, right, SIM_SECTOR);
		rubbish[sim_below(d->sim, SIM_SECTOR)] ^=
			(uint8_t)(1 + sim_below(d->sim, 255));
		if (!*rot_find(m, s))
			media_rot(d, s, right, rubbish);
	}
}

uint64_t sim_drive_recent(struct sim_drive *d)
{
	const struct sim_media *m = d->media;
	const unsigned n = m->recents < RECENT ? m->recents : RECENT;

	return n ? m->recent[sim_below(d->sim, n)]
		 : sim_below(d->sim, d->bytes / SIM_SECTOR);
}

void media_read(struct sim_drive *d, uint64_t s, uint8_t *buf)
{
	struct sim_media *m = d->media;
	struct rot *rot = d->rotten && !m->newest[s] ? *rot_find(m, s) : NULL;

	if (rot)
		rot->seen = true;
	memcpy(buf, media_visible(m, s), SIM_SECTOR);
}

void media_unsee(struct sim_drive *d)
{
	for (struct rot *rot = d->media->rot; rot; rot = rot->next)
		rot->seen = false;
}

void sim_drive_heal(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	if (d->bad)
		memset(m->bad, 0, d->bytes / SIM_SECTOR);
	d->bad = 0;
	for (struct rot **at = &m->rot, *rot; (rot = *at);) {
		if (rot->again || rot->seen || m->newest[rot->sector]) {
			at = &rot->next;
			continue;
		}
		memcpy(durable(m, rot->sector), rot->right, SIM_SECTOR);
		m->bad[rot->sector] = 0; /* shorn, and its repair was lost */
		*at = rot->next;
		free(rot);
		d->rotten--;
	}
}

void sim_drive_peek(struct sim_drive *d, uint64_t off, uint8_t *buf,
		    uint32_t len)
{
	for (uint32_t i = 0; i < len / SIM_SECTOR; i++)
		memcpy(buf + i * SIM_SECTOR,
		       media_visible(d->media, off / SIM_SECTOR + i),
		       SIM_SECTOR);
}

void sim_drive_wipe(struct sim_drive *d)
{
	sim_drive_heal(d);
	rot_free(d);
	dirty_all_free(d->media);
	memset(d->media->durable, 0, d->bytes);
}

void sim_drive_fini(struct sim_drive *d)
{
	struct sim_media *m = d->media;

	if (!m)
		return;
	while (d->ghosts)
		sim_ghost_free(d->ghosts);
	dirty_all_free(m);
	rot_free(d);
	while (m->spare) {
		struct version *v = m->spare;

		m->spare = v->older;
		free(v);
	}
	free(m->dirty);
	free(m->durable);
	free(m->newest);
	free(m->bad);
	free(m);
	d->media = NULL;
}
