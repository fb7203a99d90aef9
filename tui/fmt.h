/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers for people: three significant digits, units, unknown is "-". Each
 * returns `buf`, which holds FMT_MAX bytes.
 */
#ifndef TUI_FMT_H
#define TUI_FMT_H

#include "engine/base.h"

#define FMT_MAX 32

/* 0.412 4.12 41.2 412: three digits, never more than five columns. */
char *fmt_3(char *buf, double v);
/* 412 4.12k 41.2k 412k 4.12M */
char *fmt_k(char *buf, double v);
/* An axis' label: as short as exact allows: 0 0.5 10k 2.5M */
char *fmt_tick(char *buf, double v);
/* 41,571 */
char *fmt_count(char *buf, double v);
/* Microseconds in, milliseconds out: 0.61 */
char *fmt_ms(char *buf, double us);
/* 64 GiB, 1.50 TiB */
char *fmt_bytes(char *buf, double bytes);
/* 310 MB/s, 1.36 GB/s */
char *fmt_rate(char *buf, double bytes_s);
/* 25 GbE where the rate is one that is sold, else "94.0 MB/s" */
char *fmt_link(char *buf, double bytes_s);
/* A share 0..1: 61 % */
char *fmt_pct(char *buf, double share);
/* 0:41, 12:05, 1:02:03 */
char *fmt_span(char *buf, double seconds);
/* 08:41:07, local time */
char *fmt_clock(char *buf, int64_t t_us);
/* 2026-11-30 08:41 */
char *fmt_date(char *buf, int64_t t_us);

#endif
