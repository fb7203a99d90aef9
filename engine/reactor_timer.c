/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Timers: a binary heap by (deadline, order of arming). The deadline stands in
 * the heap, so that sifting touches no timer but the moved ones.
 */
#include "engine/reactor_impl.h"

#include <stdlib.h>

static bool slot_before(const struct timer_slot *a, const struct timer_slot *b)
{
	if (a->deadline_ns != b->deadline_ns)
		return a->deadline_ns < b->deadline_ns;
	return a->seq < b->seq;
}

static void slot_put(struct timer_heap *heap, uint32_t i,
		     struct timer_slot slot)
{
	heap->slot[i] = slot;
	slot.timer->heap_index = i;
}

static void sift_up(struct timer_heap *heap, uint32_t i, struct timer_slot slot)
{
	while (i > 1 && slot_before(&slot, &heap->slot[i / 2])) {
		slot_put(heap, i, heap->slot[i / 2]);
		i /= 2;
	}
	slot_put(heap, i, slot);
}

static void sift_down(struct timer_heap *heap, uint32_t i,
		      struct timer_slot slot)
{
	uint32_t child;

	while ((child = 2 * i) <= heap->count) {
		if (child < heap->count &&
		    slot_before(&heap->slot[child + 1], &heap->slot[child]))
			child++;
		if (!slot_before(&heap->slot[child], &slot))
			break;
		slot_put(heap, i, heap->slot[child]);
		i = child;
	}
	slot_put(heap, i, slot);
}

static void heap_place(struct timer_heap *heap, uint32_t i,
		       struct timer_slot slot)
{
	if (i > 1 && slot_before(&slot, &heap->slot[i / 2]))
		sift_up(heap, i, slot);
	else
		sift_down(heap, i, slot);
}

/* The contract has no failure here: an engine that cannot hold a timer of 24
 * bytes cannot go on. */
static void heap_grow(struct timer_heap *heap)
{
	const uint32_t room = heap->room ? heap->room * 2 : 64;
	struct timer_slot *slot =
		realloc(heap->slot, room * sizeof(heap->slot[0]));

	id_assert(slot);
	heap->slot = slot;
	heap->room = room;
}

static void heap_arm(struct reactor *r, struct timer *timer,
		     uint64_t deadline_ns)
{
	struct timer_heap *heap = &r->timers;
	const struct timer_slot slot = { deadline_ns, ++heap->seq, timer };

	timer->deadline_ns = deadline_ns;
	if (timer->heap_index) {
		heap_place(heap, timer->heap_index, slot);
		return;
	}
	if (heap->count + 2 > heap->room)
		heap_grow(heap);
	sift_up(heap, ++heap->count, slot);
}

void timer_arm(struct reactor *r, struct timer *timer, uint64_t deadline_ns)
{
	timer->lived_ns = 0;
	heap_arm(r, timer, deadline_ns);
}

/* It is looked at on the way, for the loop to live all of the time. */
static void lived_look(struct reactor *r, struct timer *timer, uint64_t from_ns,
		       uint64_t left_ns)
{
	heap_arm(r, timer,
		 from_ns + (left_ns < REACTOR_LIVED_TURN_NS
				    ? left_ns
				    : REACTOR_LIVED_TURN_NS));
}

void timer_arm_lived(struct reactor *r, struct timer *timer, uint64_t ns)
{
	const uint64_t now = reactor_clock_read(r), late = now - r->turn_ns;

	timer->lived_ns = r->lived_ns + ns +
			  (late < REACTOR_LIVED_NS ? late : REACTOR_LIVED_NS);
	lived_look(r, timer, now, ns);
}

void timer_cancel(struct reactor *r, struct timer *timer)
{
	struct timer_heap *heap = &r->timers;
	const uint32_t i = timer->heap_index;

	if (!i)
		return;
	id_assert(i <= heap->count && heap->slot[i].timer == timer);
	timer->heap_index = 0;
	if (i != heap->count) {
		const struct timer_slot last = heap->slot[heap->count--];

		heap_place(heap, i, last);
	} else {
		heap->count--;
	}
}

/* What a callback arms waits for the next turn, also when overdue. */
unsigned reactor_timers_run(struct reactor *r)
{
	struct timer_heap *heap = &r->timers;
	const uint64_t seq_max = heap->seq;
	unsigned ran = 0;

	while (heap->count && heap->slot[1].deadline_ns <= r->turn_ns &&
	       heap->slot[1].seq <= seq_max) {
		struct timer *timer = heap->slot[1].timer;

		timer_cancel(r, timer);
		if (timer->lived_ns > r->lived_ns) {
			lived_look(r, timer, r->turn_ns,
				   timer->lived_ns - r->lived_ns);
			continue;
		}
		timer->fn(timer);
		ran++;
	}
	return ran;
}

uint64_t reactor_timers_wait(struct reactor *r)
{
	const struct timer_heap *heap = &r->timers;
	uint64_t now;

	if (!heap->count)
		return UINT64_MAX;
	now = reactor_clock_read(r);
	if (heap->slot[1].deadline_ns <= now)
		return 0;
	return heap->slot[1].deadline_ns - now;
}
