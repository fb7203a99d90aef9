/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What goes wrong with drives, and how much of it at a time: within the budget
 * of what the layout can do without, or beyond it where the seed says so. Then
 * drives go as they like, but nothing that stands on them is damaged: what was
 * acknowledged is on some drive, if it were only there.
 */
#include "tests/sim/oracle.h"

#define HOT_FACTOR 10u /* likelier while labels are being written */

/* ---- the budget ---------------------------------------------------------- */

uint32_t sim_budget_used(struct sim *sim)
{
	struct sim_client *c = sim->client;
	const uint64_t oldest = oracle_oldest(sim->oracle);
	uint32_t mask = c->ops->sick(c);

	for (unsigned i = 0; i < c->drives; i++) {
		const struct sim_drive *d = &sim->drive[i];

		/* What a failed read is part of may still be under way. */
		if (d->away || d->once || d->hurt || d->bad || d->rotten ||
		    d->read_clock >= oldest)
			mask |= 1u << i;
	}
	return mask;
}

bool sim_budget_overdrawn(struct sim *sim)
{
	struct sim_client *c = sim->client;

	return !c->ops->tolerates(c, sim_budget_used(sim));
}

/* One more drive may be struck. */
static bool budget_allows(struct sim *sim, unsigned i)
{
	struct sim_client *c = sim->client;

	return !c->ops->fragile(c) &&
	       c->ops->tolerates(c, sim_budget_used(sim) | 1u << i);
}

/* ---- drives -------------------------------------------------------------- */

static void fault_away(struct sim *sim, struct sim_drive *d)
{
	if (!d->away && (sim->beyond || budget_allows(sim, d->index)))
		sim_drive_leave(d, sim_below(sim, 2));
}

static void fault_slow(struct sim *sim, struct sim_drive *d)
{
	static const double factor[] = { 1, 1, 10, 100, 1000 };

	d->slow = factor[sim_below(sim, array_len(factor))];
	sim->stats.slows += d->slow > 1;
	sim_note(sim, "drive %u is %g times slower", d->index, d->slow);
}

static void fault_once(struct sim *sim, struct sim_drive *d)
{
	const enum sim_once once =
		(enum sim_once)(1 + sim_below(sim, SIM_STUCK));

	if (d->once) {
		d->once = SIM_ONCE_NONE; /* it did not come to it */
		return;
	}
	if (sim->beyond && (once == SIM_WRITE_LOST || once == SIM_WRITE_ASTRAY))
		return;
	if (d->away || (!sim->beyond && !budget_allows(sim, d->index)))
		return;
	d->once = once;
}

static uint64_t damage_place(struct sim *sim, struct sim_drive *d)
{
	uint64_t s = sim_below(sim, d->bytes / SIM_SECTOR);

	/* Where something stands that is of use. */
	if (sim->client->promise.checksums && sim_below(sim, 4))
		s = sim_drive_recent(d);
	if (sim_below(sim, 4) == 0) /* labels and their like are at the start */
		s = sim_below(sim, 64);
	return s * SIM_SECTOR;
}

static void fault_damage(struct sim *sim, struct sim_drive *d, bool rot)
{
	struct sim_client *c = sim->client;
	struct sim_range range = {
		.off = damage_place(sim, d),
		.len = (1 + sim_below(sim, 8)) * SIM_SECTOR,
	};

	if (range.off + range.len > d->bytes || sim->beyond ||
	    !c->ops->damage_ok(c, range.off, rot) ||
	    !c->ops->damage_ok(c, range.off + range.len - 1, rot) ||
	    !budget_allows(sim, d->index))
		return;
	sim_note(sim, "drive %u: %s at %llu+%llu", d->index,
		 rot ? "rot" : "bad sectors", (unsigned long long)range.off,
		 (unsigned long long)range.len);
	*(rot ? &sim->stats.rot : &sim->stats.bad) += 1;
	sim_drive_damage(d, range, rot);
}

void sim_faults(struct sim *sim, bool hot)
{
	const struct sim_profile *p = sim->profile;
	const unsigned n = sim->client->drives;
	struct sim_drive *d = &sim->drive[sim_below(sim, n)];

	if (sim_chance(sim, p->away * (hot ? HOT_FACTOR : 1)))
		fault_away(sim, d);
	if (sim_chance(sim, p->back * (hot ? HOT_FACTOR : 1)) ||
	    (d->away && sim_chance(sim, p->back * n)))
		sim_drive_return(d);
	if (sim_chance(sim, p->slow))
		fault_slow(sim, d);
	if (sim_chance(sim, p->once))
		fault_once(sim, d);
	if (sim_chance(sim, p->bad))
		fault_damage(sim, d, false);
	if (sim_chance(sim, p->rot))
		fault_damage(sim, d, true);
	if (sim_chance(sim, p->heal))
		sim_drive_heal(d);
	if (sim_chance(sim, 256))
		sim_drive_free_stuck(d);
}

/*
 * What the next owner finds is not what the last one had: that is when a
 * protocol that counts on a majority shows what it is worth.
 */
void sim_swizzle(struct sim *sim)
{
	const unsigned n = sim->client->drives;

	sim->stats.swizzles++;
	for (unsigned i = 0; i < n; i++)
		if (sim->drive[i].away && sim_below(sim, 4))
			sim_drive_return(&sim->drive[i]);
	for (unsigned i = 0; i < n; i++)
		fault_away(sim, &sim->drive[sim_below(sim, n)]);
}
