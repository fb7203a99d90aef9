/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a plan will do, before it does: phases, bytes, time, share of the
 * drives. Sizes and layouts from the model, else from the cluster document. */
#ifndef BACKEND_PLAN_TEXT_H
#define BACKEND_PLAN_TEXT_H

#include "backend/model.h"

/* For people; the caller's to free(). cluster may be NULL. */
char *plan_text(const json_t *plan, const struct model *model,
		const json_t *cluster);
/* {"phases","points","seconds_at_least","seconds_at_most","prefill_bytes",
 * "drive_bytes","drive_share","write_share"}, null where it is not known. */
json_t *plan_cost_json(const json_t *plan, const struct model *model,
		       const json_t *cluster);

#endif
