/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of the Cluster screen, what a cluster of several nodes has. */
#ifndef TUI_SCREEN_CLUSTER_PARTS_H
#define TUI_SCREEN_CLUSTER_PARTS_H

#include "tui/screen/screen.h"

/* Whether its domains are machines that the console reaches one by one. */
bool cluster_has_nodes(const struct model *m);
void cluster_node_heads(struct canvas *c, struct rect r);
/* How it is reached, what it does now, its drives. */
void cluster_node_line(struct canvas *c, struct rect r, int y,
		       const struct model *m, const struct m_domain *d);
/* Two rows: what it is and how it is reached, or why it is not. */
void cluster_node_detail(struct canvas *c, struct rect r, int y,
			 const struct model *m, const struct m_domain *d);

#endif
