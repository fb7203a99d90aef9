/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel, a drive and a peer of a link test say: the first byte says
 * whose words the rest is: n /proc/net/dev, d /proc/diskstats, m mountinfo,
 * s a scheduler, o os-release, c /proc/stat and meminfo, t rtnetlink, v NVMe's
 * log, l frames of a link test. */
#include <stdlib.h>
#include <string.h>

#include "backend/agent/host.h"
#include "backend/agent/host_disk.h"
#include "backend/agent/host_nic.h"
#include "backend/agent/host_tbf.h"
#include "backend/agent/link_test.h"
#include "backend/agent/nvme.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void disks(const char *text)
{
	static struct host_disk_names names = { .name = { "sda", "vda" },
						.count = 2 };
	static struct host_disks found;

	host_disks_parse(text, &names, &found);
}

static void nics(const char *text)
{
	static struct host_nics found;

	host_nics_parse(text, &found);
}

static void cpu(const char *text)
{
	struct host_cpu c;

	host_cpu_parse(text, &c);
	host_mem_parse(text, "MemTotal");
}

static void words(char which, const char *text)
{
	char out[16];

	if (which == 'm')
		host_mount_parse(text, "8:1", "/dev/sda1", out, sizeof(out));
	else if (which == 's')
		host_scheduler_parse(text, out, sizeof(out));
	else
		host_distribution_parse(text, out, sizeof(out));
}

static bool frame(enum link_type type, const uint8_t *body, uint32_t len,
		  void *arg)
{
	uint64_t *sum = arg;

	id_assert((type == LINK_DATA) == !body);
	for (uint32_t k = 0; body && k < len; k++)
		*sum += body[k];
	return type != LINK_END;
}

/* In pieces, as a socket gives them. */
static void frames(const uint8_t *data, size_t size)
{
	struct link_frames f = { 0 };
	uint64_t sum = 0;
	size_t at = 0, piece = 1;

	while (at < size) {
		const size_t n = piece < size - at ? piece : size - at;
		const ssize_t took =
			link_frames_feed(&f, data + at, n, frame, &sum);

		if (took < 0)
			return;
		id_assert(took > 0 && (size_t)took <= n);
		at += (size_t)took;
		piece = piece * 2 % 61;
		piece += !piece;
	}
}

static void bytes(char which, const uint8_t *data, size_t size)
{
	uint8_t log[NVME_SMART_BYTES] = { 0 };
	struct nvme_smart smart;
	struct host_tbf tbf[4];
	size_t count = 0;

	if (which == 't') {
		host_tbf_parse(data, size, tbf, array_len(tbf), &count);
	} else if (which == 'v') {
		memcpy(log, data, size < sizeof(log) ? size : sizeof(log));
		nvme_smart_parse(log, &smart);
	} else {
		frames(data, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 'n')
		nics(text);
	else if (data[0] == 'd')
		disks(text);
	else if (data[0] == 'c')
		cpu(text);
	else if (strchr("mso", data[0]))
		words((char)data[0], text);
	else
		bytes((char)data[0], (uint8_t *)text, size - 1);
	free(text);
	return 0;
}
