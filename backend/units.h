/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sizes, times and rates as people write them, and back.
 *
 * K, M, G, T and KiB.. are powers of 1024; KB, MB, GB, TB powers of 1000, as
 * drives and links are sold. Network rates may be in bits: 25Gbit.
 */
#ifndef BACKEND_UNITS_H
#define BACKEND_UNITS_H

#include "engine/base.h"

/* "32K", "1.5GiB", "200GB", "4096". -EINVAL; -ERANGE beyond 2^62. */
int units_bytes(const char *text, double *bytes);
/* Bytes a second: a size, "/s" or not, or bits: "25Gbit", "100Mbit/s". */
int units_rate(const char *text, double *bytes_s);
/* Seconds: "90", "1.5s", "250ms", "100us", "5m", "2h". */
int units_seconds(const char *text, double *seconds);
/* A plain number. */
int units_number(const char *text, double *number);
/* The same, with a minus ahead or not. */
int units_signed(const char *text, double *number);

/* "4 KiB", "1.50 GiB"; "-" for NAN or less than 0. Returns buf. */
const char *units_bytes_text(double bytes, char *buf, size_t len);
/* "1,234,567" */
const char *units_count_text(double count, char *buf, size_t len);
/* Three significant digits: "0.588", "5.36", "12.3", "1,234". */
const char *units_three_text(double value, char *buf, size_t len);
/* "2 h 05 min", "3 min 20 s", "1.5 s" */
const char *units_seconds_text(double seconds, char *buf, size_t len);

#endif
