/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How worn and how warm an NVMe drive is, by its SMART / Health Information
 * log (NVM Express base specification, log page 02h).
 *
 * Threads: any.
 */
#ifndef BACKEND_AGENT_NVME_H
#define BACKEND_AGENT_NVME_H

#include "engine/base.h"

#define NVME_SMART_BYTES 512

struct nvme_smart {  /* -1 where the drive does not say */
	int warning; /* bits of its critical warning */
	int temperature_c, spare_percent, used_percent;
	int64_t written_bytes, power_on_hours, media_errors;
};

void nvme_smart_parse(const uint8_t log[NVME_SMART_BYTES],
		      struct nvme_smart *smart);
/* Asks the drive; may block. 0, or a negative errno: not permitted, no NVMe
 * drive, one that does not answer. */
int nvme_smart_read(const char *path, struct nvme_smart *smart);

#endif
