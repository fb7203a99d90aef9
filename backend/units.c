/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/units.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit byte_units[] = {
	{ "", 1 },       { "B", 1 },        { "K", 0x1p10 }, { "KiB", 0x1p10 },
	{ "M", 0x1p20 }, { "MiB", 0x1p20 }, { "G", 0x1p30 }, { "GiB", 0x1p30 },
	{ "T", 0x1p40 }, { "TiB", 0x1p40 }, { "KB", 1e3 },   { "MB", 1e6 },
	{ "GB", 1e9 },   { "TB", 1e12 },    { NULL, 0 },
};
static const struct unit bit_units[] = {
	{ "bit", 1 / 8.0 },  { "kbit", 1e3 / 8 }, { "Mbit", 1e6 / 8 },
	{ "Gbit", 1e9 / 8 }, { NULL, 0 },
};
static const struct unit time_units[] = {
	{ "", 1 },      { "s", 1 },  { "sec", 1 },  { "ms", 1e-3 },
	{ "us", 1e-6 }, { "m", 60 }, { "min", 60 }, { "h", 3600 },
	{ "d", 86400 }, { NULL, 0 },
};
static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };

static double unit_factor(const struct unit *unit, const char *name)
{
	for (; unit->name; unit++)
		if (!strcasecmp(unit->name, name))
			return unit->factor;
	return 0.0;
}

/*
 * The number by itself: digits and a point, whatever the locale says, no sign,
 * no "inf" and no hexadecimal, all of which strtod() would take.
 */
static const char *number(const char *text, double *value)
{
	double v = 0.0, place = 1.0;
	unsigned digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		v = v * 10.0 + (*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
			place *= 10.0;
			v += (*text - '0') / place;
		}
	*value = v;
	return digits && digits < 25 ? text : NULL;
}

static int parse(const char *text, const struct unit *units,
		 const struct unit *more, double *value)
{
	double v, factor;
	char name[8];
	size_t n;

	while (*text == ' ')
		text++;
	text = number(text, &v);
	if (!text)
		return -EINVAL;
	while (*text == ' ')
		text++;
	n = strlen(text);
	if (more && n > 2 && !strcmp(text + n - 2, "/s"))
		n -= 2;
	if (n >= sizeof(name))
		return -EINVAL;
	memcpy(name, text, n);
	name[n] = '\0';
	factor = unit_factor(units, name);
	if (factor == 0.0 && more)
		factor = unit_factor(more, name);
	if (factor == 0.0)
		return -EINVAL;
	if (v * factor > 0x1p62)
		return -ERANGE;
	*value = v * factor;
	return 0;
}

int units_bytes(const char *text, double *bytes)
{
	return parse(text, byte_units, NULL, bytes);
}

int units_rate(const char *text, double *bytes_s)
{
	return parse(text, byte_units, bit_units, bytes_s);
}

int units_seconds(const char *text, double *seconds)
{
	return parse(text, time_units, NULL, seconds);
}

int units_number(const char *text, double *value)
{
	return parse(text, no_units, NULL, value);
}

int units_signed(const char *text, double *value)
{
	bool minus = *text == '-';
	int r = units_number(text + minus, value);

	if (!r && minus)
		*value = -*value;
	return r;
}

const char *units_bytes_text(double bytes, char *buf, size_t len)
{
	static const char *const names[] = { "B",   "KiB", "MiB",
					     "GiB", "TiB", "PiB" };
	unsigned i = 0;

	if (!(bytes >= 0)) {
		snprintf(buf, len, "-");
		return buf;
	}
	while (bytes >= 1024.0 && i + 1 < array_len(names)) {
		bytes /= 1024.0;
		i++;
	}
	if (bytes == floor(bytes))
		snprintf(buf, len, "%.0f %s", bytes, names[i]);
	else
		snprintf(buf, len, "%.*f %s",
			 bytes < 10    ? 2
			 : bytes < 100 ? 1
				       : 0,
			 bytes, names[i]);
	return buf;
}

const char *units_count_text(double count, char *buf, size_t len)
{
	char digits[32];
	size_t n, i, out = 0;

	if (isnan(count) || fabs(count) >= 1e18) {
		snprintf(buf, len, "-");
		return buf;
	}
	snprintf(digits, sizeof(digits), "%.0f", count);
	n = strlen(digits);
	for (i = 0; i < n && out + 2 < len; i++) {
		buf[out++] = digits[i];
		if (i + 1 < n && (n - i - 1) % 3 == 0 && digits[i] != '-')
			buf[out++] = ',';
	}
	buf[out] = '\0';
	return buf;
}

const char *units_three_text(double v, char *buf, size_t len)
{
	double a = fabs(v);

	if (!isfinite(v))
		snprintf(buf, len, "-");
	else if (a >= 999.5)
		return units_count_text(v, buf, len);
	else
		snprintf(buf, len, "%.*f",
			 a >= 99.95               ? 0
			 : a >= 9.995             ? 1
			 : a >= 0.9995            ? 2
			 : a >= 0.09995 || a == 0 ? 3
			 : a >= 0.009995          ? 4
						  : 5,
			 v);
	return buf;
}

const char *units_seconds_text(double seconds, char *buf, size_t len)
{
	if (isnan(seconds))
		snprintf(buf, len, "-");
	else if (seconds < 10.0)
		snprintf(buf, len, "%.1f s", seconds);
	else if (seconds < 60.0)
		snprintf(buf, len, "%.0f s", seconds);
	else if (seconds < 3600.0)
		snprintf(buf, len, "%d min %02d s", (int)seconds / 60,
			 (int)seconds % 60);
	else
		snprintf(buf, len, "%.0f h %02d min", floor(seconds / 3600),
			 (int)fmod(seconds / 60, 60));
	return buf;
}
