/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A line a node: its link, its agent, CPU, interface and drives, and how far
 * its clock is off. A node that is not there shows what it last was in no
 * figure: "-".
 */
#include "tui/screen/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/fmt.h"

#define WIDE 110

static const struct m_node *node_of(const struct model *m,
				    const struct m_domain *d)
{
	return model_node(m, d->name);
}

bool cluster_has_nodes(const struct model *m)
{
	return m->domains && node_of(m, &m->domain[0]);
}

static bool is_up(const struct m_node *n)
{
	return n && !strcmp(n->state, "up");
}

static unsigned link_role(const struct m_node *n)
{
	return is_up(n)                               ? ROLE_OK
	       : n && !strcmp(n->state, "connecting") ? ROLE_WARN
						      : ROLE_BAD;
}

/* The one with the most of its line in use, else with the most bytes. */
static const struct m_nic *nic_busiest(const struct m_host *h)
{
	const struct m_nic *most = NULL;

	for (size_t i = 0; h && i < h->nics; i++) {
		const struct m_nic *n = &h->nic[i];
		double share = isnan(n->share) ? -1 : n->share;
		double was = most && !isnan(most->share) ? most->share : -1;

		if (!most || share > was ||
		    (share == was &&
		     n->rx_bytes_s + n->tx_bytes_s >
			     most->rx_bytes_s + most->tx_bytes_s))
			most = n;
	}
	return most;
}

static size_t drives_ok(const struct m_domain *d, double *busy,
			double *latency_us)
{
	size_t ok = 0;

	*busy = *latency_us = NAN;
	for (size_t i = 0; i < d->drives; i++) {
		const struct m_drive *drive = &d->drive[i];

		ok += !strcmp(drive->state, "ok");
		if (isnan(drive->busy) ||
		    (!isnan(*busy) && drive->busy <= *busy))
			continue;
		*busy = drive->busy;
		*latency_us = drive->latency_us;
	}
	return ok;
}

static const char *clock_text(const struct m_node *n, char *buf, size_t len)
{
	double ms = n ? (double)n->offset_us / 1e3 : 0;

	if (!n || !n->offset_known)
		return "-";
	if (fabs(ms) < 1000)
		snprintf(buf, len, "%+.1f ms", ms);
	else if (fabs(ms) < 120000)
		snprintf(buf, len, "%+.1f s", ms / 1e3);
	else
		snprintf(buf, len, "%+.0f min", ms / 6e4);
	return buf;
}

void cluster_node_heads(struct canvas *c, struct rect r)
{
	int x = r.x + 1;

	canvas_text(c, x + 1, r.y, ROLE_DIM, "node");
	canvas_text(c, x + 10, r.y, ROLE_DIM, "link");
	canvas_text(c, x + 22, r.y, ROLE_DIM, "CPU");
	canvas_text(c, x + 35, r.y, ROLE_DIM, "network");
	canvas_text(c, x + 53, r.y, ROLE_DIM, "drives");
	canvas_right(c, x + 77, r.y, ROLE_DIM, "clock");
	if (r.w < WIDE)
		return;
	canvas_right(c, x + 88, r.y, ROLE_DIM, "memory");
	canvas_text(c, x + 91, r.y, ROLE_DIM, "agent");
	canvas_text(c, x + 101, r.y, ROLE_DIM, "reached by, or why not");
}

static void host_part(struct canvas *c, int x, int y, const struct m_host *h)
{
	const struct m_nic *nic = nic_busiest(h);
	double cpu = h ? h->cpu_busy : NAN, share = nic ? nic->share : NAN;
	char a[FMT_MAX];

	bar_draw(c, x + 22, y, 6, cpu, bar_load_role(cpu));
	canvas_right(c, x + 34, y, ROLE_TEXT, fmt_pct(a, cpu));
	bar_draw(c, x + 35, y, 6, share, bar_load_role(share));
	canvas_right(
		c, x + 52, y, ROLE_TEXT,
		fmt_rate(a, nic ? nic->rx_bytes_s + nic->tx_bytes_s : NAN));
}

void cluster_node_line(struct canvas *c, struct rect r, int y,
		       const struct model *m, const struct m_domain *d)
{
	const struct m_node *n = node_of(m, d);
	const struct m_host *h = is_up(n) ? model_host(m, n->agent) : NULL;
	double busy, latency_us;
	size_t ok = drives_ok(d, &busy, &latency_us);
	char a[FMT_MAX];
	int x = r.x + 1;

	canvas_fit(c, x + 1, y, 8, ROLE_TEXT, d->name);
	canvas_text(c, x + 10, y, link_role(n), "\xe2\x97\x8f");
	canvas_fit(c, x + 12, y, 9, link_role(n), n ? n->state : "-");
	host_part(c, x, y, h);
	if (is_up(n))
		canvas_printf(c, x + 53, y,
			      ok == d->drives ? ROLE_TEXT : ROLE_BAD, "%zu/%zu",
			      ok, d->drives);
	else
		canvas_printf(c, x + 53, y, ROLE_DIM, "-/%zu", d->drives);
	canvas_right(c, x + 62, y, ROLE_TEXT,
		     fmt_pct(a, is_up(n) ? busy : NAN));
	canvas_right(c, x + 68, y, ROLE_DIM,
		     fmt_ms(a, is_up(n) ? latency_us : NAN));
	canvas_right(c, x + 77, y,
		     n && n->offset_known &&
				     (n->offset_us > 1000000 ||
				      n->offset_us < -1000000)
			     ? ROLE_WARN
			     : ROLE_DIM,
		     clock_text(n, a, sizeof(a)));
	if (r.w < WIDE || !n)
		return;
	canvas_right(c, x + 88, y, ROLE_DIM,
		     fmt_bytes(a, h && h->mem_used_bytes >= 0
					  ? (double)h->mem_used_bytes
					  : NAN));
	canvas_fit(c, x + 91, y, 9, ROLE_DIM, *n->version ? n->version : "-");
	canvas_fit(c, x + 101, y, r.w - 103, is_up(n) ? ROLE_DIM : ROLE_WARN,
		   *n->why ? n->why : n->via);
}

static void reached_line(struct canvas *c, struct rect r, int y,
			 const struct m_node *n)
{
	char text[2 * MODEL_TEXT], off[FMT_MAX];

	if (!is_up(n))
		snprintf(text, sizeof(text), "%s: %s", n->state,
			 *n->why ? n->why : "-");
	else
		snprintf(text, sizeof(text),
			 "agent %s of iodeck %s by %s, round trip %.2f ms, "
			 "clock %s",
			 n->agent, n->version, n->via,
			 n->offset_known ? (double)n->rtt_us / 1e3 : NAN,
			 clock_text(n, off, sizeof(off)));
	canvas_fit(c, r.x + 2, y, r.w - 3, is_up(n) ? ROLE_DIM : ROLE_WARN,
		   text);
}

void cluster_node_detail(struct canvas *c, struct rect r, int y,
			 const struct model *m, const struct m_domain *d)
{
	const struct m_node *n = node_of(m, d);
	const struct m_host *h = n ? model_host(m, n->agent) : NULL;
	const struct m_nic *nic = nic_busiest(h);
	char text[2 * MODEL_TEXT], a[FMT_MAX], b[FMT_MAX];

	if (!n)
		return;
	if (h) {
		snprintf(text, sizeof(text),
			 "%.30s: %s cores, %s, %.60s, %.15s", h->name,
			 h->cores > 0 ? fmt_count(a, (double)h->cores) : "-",
			 fmt_bytes(b, h->mem_bytes < 0 ? NAN
						       : (double)h->mem_bytes),
			 h->kernel, nic ? nic->name : "no interface");
		canvas_fit(c, r.x + 2, y, r.w - 16, ROLE_TEXT, text);
		if (nic)
			canvas_right(c, r.x + r.w - 1, y, ROLE_DIM,
				     fmt_link(a, nic->line_bytes_s));
	}
	reached_line(c, r, y + 1, n);
}
