/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What each sector of a vDisk may hold. Every sector written carries a stamp
 * (which write, which sector) and content made of it, so what is read tells
 * which write it is of.
 *
 * A sector has candidates, the writes it may hold now or after a crash:
 *   - a write in flight, or one whose fate a crash left open, may be read
 *   - a write that ended takes the place of those that ended before it began
 *   - what was read, with nothing else going on, is what stands there
 *   - what was replaced comes back by a crash at most until its successor is
 *     durable: by FLUSH or FUA, or at once with sim_promise.durable_ack
 *   - after a crash, what was once read never changes back
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/sim.h"

struct oracle *oracle_new(struct sim *sim);
void oracle_free(struct oracle *o);

/* To the vDisk that is running. false: not just now, too much is open. */
bool oracle_write(struct oracle *o, uint64_t off, uint32_t len, unsigned flags);
bool oracle_trim(struct oracle *o, uint64_t off, uint32_t len);
void oracle_read(struct oracle *o, uint64_t off, uint32_t len);
void oracle_flush(struct oracle *o);

/* Counts what began and ended; and where the oldest in flight began. */
uint64_t oracle_clock(const struct oracle *o);
uint64_t oracle_oldest(const struct oracle *o);
unsigned oracle_inflight(const struct oracle *o);
/* No write is in flight, and all that ended are durable. */
bool oracle_durable(const struct oracle *o);
/* The owner is gone; power: what was not durable is lost in part. */
void oracle_crash(struct oracle *o, bool power);
/* Reads all of it; oracle_inflight() says when that is done. */
void oracle_read_all(struct oracle *o);

#endif
