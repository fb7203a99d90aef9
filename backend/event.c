/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/event.h"

#include <time.h>

int64_t event_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
