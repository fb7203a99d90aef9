/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A pre-flight of all nodes at once: whether each is reached, fit and has its
 * drives, and what the links between them carry. A verdict a line, with what to
 * do where there is something to do. Each stage has an end in time.
 *
 *   node_check of all --> a link to the next node, those that share no node at
 *   once --> over
 */
#ifndef BACKEND_CLUSTER_CHECK_H
#define BACKEND_CLUSTER_CHECK_H

#include "backend/cluster/fleet.h"

enum check_verdict { CHECK_OK, CHECK_WARN, CHECK_BAD };

struct check_line {
	char node[136]; /* "n1"; of a link "n1-n2"; "" the only one */
	const char *what;
	enum check_verdict verdict;
	char text[400];
	double bytes_s[2], rtt_us; /* of a link, out and in; NAN */
};

struct check;

/* fleet has settled. cluster: the document, for whose drives they are; NULL:
 * none. Both are borrowed. NULL: out of memory. */
struct check *check_new(struct fleet *fleet, const json_t *cluster);
/* true: it is over. Call until then, at least each 50 ms. */
bool check_step(struct check *check);
size_t check_lines(const struct check *check, const struct check_line **line);
/* Takes NULL; replies may still be on their way. */
void check_free(struct check *check);

/* What a node's reply comes to; for tests. Adds lines to check. */
void check_judge(struct check *check, const struct fleet_node *node,
		 const json_t *reply);

#endif
