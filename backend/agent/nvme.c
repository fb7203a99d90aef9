/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/nvme.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ADMIN_GET_LOG_PAGE 0x02
#define LOG_SMART 0x02
#define ALL_NAMESPACES 0xffffffffu
#define TIMEOUT_MS 2000
#define UNIT_BYTES 512000 /* "thousands of units of 512 bytes" */
#define KELVIN 273

/* 128 bits, little endian: what is more than an event can say is not known. */
static int64_t wide(const uint8_t *at, int64_t unit)
{
	uint64_t v = 0;

	for (int i = 15; i >= 8; i--)
		if (at[i])
			return -1;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | at[i];
	return v > (uint64_t)((INT64_C(1) << 53) / unit) ? -1
							 : (int64_t)v * unit;
}

void nvme_smart_parse(const uint8_t log[NVME_SMART_BYTES],
		      struct nvme_smart *smart)
{
	const int kelvin = log[1] | log[2] << 8;

	*smart = (struct nvme_smart) {
		.warning = log[0],
		/* 0 K is not measured, and hotter than this is no drive */
		.temperature_c = kelvin > KELVIN - 100 && kelvin < KELVIN + 300
					 ? kelvin - KELVIN
					 : -1,
		.spare_percent = log[3] <= 100 ? log[3] : -1,
		.used_percent = log[5], /* up to 255, of 100 promised */
		.written_bytes = wide(log + 48, UNIT_BYTES),
		.power_on_hours = wide(log + 128, 1),
		.media_errors = wide(log + 160, 1),
	};
}

int nvme_smart_read(const char *path, struct nvme_smart *smart)
{
	uint8_t log[NVME_SMART_BYTES] = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = ADMIN_GET_LOG_PAGE,
		.nsid = ALL_NAMESPACES,
		.addr = (uint64_t)(uintptr_t)log,
		.data_len = sizeof(log),
		.cdw10 = LOG_SMART | (sizeof(log) / 4 - 1) << 16,
		.timeout_ms = TIMEOUT_MS,
	};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd);
	rc = rc < 0 ? -errno : rc ? -EIO : 0; /* above 0: the drive's status */
	close(fd);
	if (!rc)
		nvme_smart_parse(log, smart);
	return rc;
}
