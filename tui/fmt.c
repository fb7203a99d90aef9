/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/fmt.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static char *fmt_none(char *buf)
{
	snprintf(buf, FMT_MAX, "-");
	return buf;
}

char *fmt_3(char *buf, double v)
{
	double a = fabs(v);

	if (!isfinite(v))
		return fmt_none(buf);
	if (a == 0)
		snprintf(buf, FMT_MAX, "0");
	else if (a < 0.9995)
		snprintf(buf, FMT_MAX, "%.3f", v);
	else if (a < 9.995)
		snprintf(buf, FMT_MAX, "%.2f", v);
	else if (a < 99.95)
		snprintf(buf, FMT_MAX, "%.1f", v);
	else
		snprintf(buf, FMT_MAX, "%.0f", v);
	return buf;
}

/* Scales by `base` until three digits hold it; *unit counts the steps. */
static double scale(double v, double base, unsigned units, unsigned *unit)
{
	*unit = 0;
	while (fabs(v) >= (base == 1000 ? 999.5 : 1000) && *unit + 1 < units) {
		v /= base;
		(*unit)++;
	}
	return v;
}

char *fmt_k(char *buf, double v)
{
	static const char *const unit[] = { "", "k", "M", "G" };
	char digits[FMT_MAX];
	unsigned u;

	if (!isfinite(v))
		return fmt_none(buf);
	v = scale(v, 1000, array_len(unit), &u);
	if (u == 0)
		snprintf(buf, FMT_MAX, "%.*f", v < 10 && v != floor(v) ? 1 : 0,
			 v);
	else
		snprintf(buf, FMT_MAX, "%.16s%s", fmt_3(digits, v), unit[u]);
	return buf;
}

char *fmt_tick(char *buf, double v)
{
	static const char *const unit[] = { "", "k", "M", "G" };
	unsigned u;

	if (!isfinite(v))
		return fmt_none(buf);
	v = scale(v, 1000, array_len(unit), &u);
	snprintf(buf, FMT_MAX, "%.4g%s", v, unit[u]);
	return buf;
}

char *fmt_count(char *buf, double v)
{
	char digits[FMT_MAX];
	int len, n = 0;

	if (!isfinite(v) || fabs(v) >= 1e15)
		return fmt_none(buf);
	len = snprintf(digits, sizeof(digits), "%.0f", fabs(v));
	if (v <= -0.5)
		buf[n++] = '-';
	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[n++] = ',';
		buf[n++] = digits[i];
	}
	buf[n] = '\0';
	return buf;
}

char *fmt_ms(char *buf, double us)
{
	return fmt_3(buf, us / 1000);
}

char *fmt_bytes(char *buf, double bytes)
{
	static const char *const unit[] = { "B",   "KiB", "MiB",
					    "GiB", "TiB", "PiB" };
	char digits[FMT_MAX];
	unsigned u;

	if (!isfinite(bytes) || bytes < 0)
		return fmt_none(buf);
	bytes = scale(bytes, 1024, array_len(unit), &u);
	if (bytes == floor(bytes))
		snprintf(buf, FMT_MAX, "%.0f %s", bytes, unit[u]);
	else
		snprintf(buf, FMT_MAX, "%.16s %s", fmt_3(digits, bytes),
			 unit[u]);
	return buf;
}

char *fmt_rate(char *buf, double bytes_s)
{
	static const char *const unit[] = { "B/s", "kB/s", "MB/s", "GB/s" };
	char digits[FMT_MAX];
	unsigned u;

	if (!isfinite(bytes_s))
		return fmt_none(buf);
	bytes_s = scale(bytes_s, 1000, array_len(unit), &u);
	snprintf(buf, FMT_MAX, "%.16s %s", fmt_3(digits, bytes_s), unit[u]);
	return buf;
}

char *fmt_link(char *buf, double bytes_s)
{
	static const double gbe[] = { 1, 10, 25, 40, 50, 100, 200, 400 };

	for (size_t i = 0; i < array_len(gbe); i++)
		if (fabs(bytes_s * 8e-9 / gbe[i] - 1) < 0.001) {
			snprintf(buf, FMT_MAX, "%.0f GbE", gbe[i]);
			return buf;
		}
	return fmt_rate(buf, bytes_s);
}

char *fmt_pct(char *buf, double share)
{
	if (!isfinite(share))
		return fmt_none(buf);
	snprintf(buf, FMT_MAX, "%.0f %%", share * 100);
	return buf;
}

char *fmt_span(char *buf, double seconds)
{
	long s;

	if (!isfinite(seconds) || seconds < 0 || seconds > 1e9)
		return fmt_none(buf);
	s = lround(seconds);
	if (s >= 3600)
		snprintf(buf, FMT_MAX, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60,
			 s % 60);
	else
		snprintf(buf, FMT_MAX, "%ld:%02ld", s / 60, s % 60);
	return buf;
}

static bool time_local(int64_t t_us, struct tm *tm)
{
	time_t t = (time_t)(t_us / 1000000);

	return t_us >= 0 && localtime_r(&t, tm);
}

char *fmt_clock(char *buf, int64_t t_us)
{
	struct tm tm;

	if (!time_local(t_us, &tm) || !strftime(buf, FMT_MAX, "%H:%M:%S", &tm))
		return fmt_none(buf);
	return buf;
}

char *fmt_date(char *buf, int64_t t_us)
{
	struct tm tm;

	if (!time_local(t_us, &tm) ||
	    !strftime(buf, FMT_MAX, "%Y-%m-%d %H:%M", &tm))
		return fmt_none(buf);
	return buf;
}
