/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The switchboard: no agent reaches another, so what one asks of another's node
 * is passed on by the console that owns both, and so is the answer. Keys travel
 * here: nothing of it is kept, recorded or shown.
 *
 *   n1 --{"ask":7,"node":"n2","do":..}--> board --{"do":..,"for":"n1"}--> n2
 *   n1 <------{"told":7,"reply":{..}}---- board <--{"re":..,"ok":..}----- n2
 */
#ifndef BACKEND_CLUSTER_BOARD_H
#define BACKEND_CLUSTER_BOARD_H

#include <jansson.h>

struct fleet_node;

/* Only a fixed list of requests may pass; "for" is set here alone. */
void board_ask(struct fleet_node *from, const json_t *ask);

#endif
