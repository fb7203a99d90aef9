/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cluster: a line a node (a node is a fault domain), the host under them once,
 * and the drives of the node under the cursor with who uses them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/bars.h"
#include "tui/chart/line.h"
#include "tui/fmt.h"
#include "tui/screen/cluster_parts.h"

static const char *node_trouble(const struct m_domain *d, unsigned *role)
{
	const char *worst = "ok";

	*role = ROLE_OK;
	for (size_t i = 0; i < d->drives; i++)
		if (d->drive[i].state[0] &&
		    state_role(d->drive[i].state) != ROLE_OK) {
			worst = d->drive[i].state;
			*role = state_role(worst);
		}
	return worst;
}

static void capacity(const struct m_domain *d, double *size, double *used)
{
	*size = *used = 0;
	for (size_t i = 0; i < d->drives; i++) {
		const struct m_drive *drive = &d->drive[i];

		if (drive->size_bytes < 0 || drive->free_bytes < 0)
			continue;
		*size += (double)drive->size_bytes;
		*used += (double)(drive->size_bytes - drive->free_bytes);
	}
	if (*size <= 0)
		*size = *used = NAN;
}

static const struct m_drive *drive_busiest(const struct m_domain *d)
{
	const struct m_drive *most = NULL;

	for (size_t i = 0; i < d->drives; i++)
		if (isfinite(d->drive[i].busy) &&
		    (!most || d->drive[i].busy > most->busy))
			most = &d->drive[i];
	return most;
}

static void node_heads(struct canvas *c, struct rect r, int wide)
{
	int x = r.x + 1;

	canvas_text(c, x + 1, r.y, ROLE_DIM, "node");
	canvas_text(c, x + 10, r.y, ROLE_DIM, "state");
	canvas_text(c, x + 20, r.y, ROLE_DIM, "drives");
	canvas_text(c, x + 28, r.y, ROLE_DIM, "used");
	canvas_text(c, x + 53 + wide, r.y, ROLE_DIM, "link");
	if (r.w >= 110) {
		canvas_right(c, x + 86 + 2 * wide, r.y, ROLE_DIM, "limit");
		canvas_text(c, x + 90 + 2 * wide, r.y, ROLE_DIM,
			    "busiest drive");
	}
}

static void node_line(struct canvas *c, struct rect r, int y,
		      const struct m_domain *d, int wide)
{
	const struct m_drive *drive = drive_busiest(d);
	double size, used, rate = d->link_read_bytes_s + d->link_write_bytes_s;
	int x = r.x + 1, bar = 8 + wide;
	const char *state;
	unsigned role;
	char a[FMT_MAX];

	state = node_trouble(d, &role);
	capacity(d, &size, &used);
	canvas_fit(c, x + 1, y, 8, ROLE_TEXT, d->name);
	canvas_text(c, x + 10, y, role, "\xe2\x97\x8f");
	canvas_fit(c, x + 12, y, 8, role, state);
	canvas_right(c, x + 25, y, ROLE_TEXT, fmt_count(a, (double)d->drives));
	bar_draw(c, x + 28, y, bar, used / size, ROLE_BAR);
	canvas_right(c, x + 34 + bar, y, ROLE_TEXT, fmt_pct(a, used / size));
	canvas_printf(c, x + 35 + bar, y, ROLE_DIM, "%s", fmt_bytes(a, size));
	x += 53 + wide;
	bar_draw(c, x, y, bar, d->link_busy, bar_load_role(d->link_busy));
	canvas_right(c, x + bar + 11, y, ROLE_TEXT, fmt_rate(a, rate));
	if (r.w < 110)
		return;
	canvas_right(c, x + 33 + wide, y, ROLE_DIM,
		     fmt_link(a, d->link.set ? d->link.rate_bytes_s : NAN));
	x += 37 + wide;
	bar_draw(c, x, y, bar, drive ? drive->busy : NAN,
		 bar_load_role(drive ? drive->busy : NAN));
	canvas_right(c, x + bar + 6, y, ROLE_TEXT,
		     fmt_pct(a, drive ? drive->busy : NAN));
	canvas_right(c, x + bar + 13, y, ROLE_TEXT,
		     fmt_ms(a, drive ? drive->latency_us : NAN));
	canvas_text(c, x + bar + 14, y, ROLE_DIM, "ms");
}

static void host_line(struct canvas *c, struct rect r, int y,
		      const struct m_host *h)
{
	char a[FMT_MAX], b[FMT_MAX];
	int x = r.x + 2;

	x += canvas_fit(c, x, y, 12, ROLE_TEXT, h->name) + 1;
	x += canvas_text(c, x, y, ROLE_DIM, "CPU ");
	bar_draw(c, x, y, 8, h->cpu_busy, bar_load_role(h->cpu_busy));
	x += 8;
	canvas_right(c, x + 6, y, ROLE_TEXT, fmt_pct(a, h->cpu_busy));
	x += 7;
	x += canvas_printf(c, x, y, ROLE_DIM, "of %s cores  memory ",
			   h->cores > 0 ? fmt_count(a, (double)h->cores) : "-");
	x += canvas_printf(c, x, y, ROLE_TEXT, "%s",
			   fmt_bytes(a, h->mem_used_bytes < 0
						? NAN
						: (double)h->mem_used_bytes));
	x += canvas_printf(
		c, x, y, ROLE_DIM, " of %s  ",
		fmt_bytes(b, h->mem_bytes < 0 ? NAN : (double)h->mem_bytes));
	if (h->kernel[0])
		canvas_fit(c, x, y, r.x + r.w - x - 1, ROLE_DIM, h->kernel);
}

/* "db1.0 db2.1": which members of which vDisks a drive holds. */
static void drive_users(const struct model *m, const char *domain,
			const char *drive, char *text, size_t len)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < m->vdisks; i++)
		for (size_t j = 0; j < m->vdisk[i].members; j++) {
			const struct m_member *mb = &m->vdisk[i].member[j];

			if (strcmp(mb->domain, domain) != 0 ||
			    strcmp(mb->drive, drive) != 0 || n + 80 > len)
				continue;
			n += (size_t)snprintf(
				text + n, len - n, "%s%.40s%s", n ? " " : "",
				m->vdisk[i].name,
				!strcmp(mb->role, "witness") ? "(w)" : "");
		}
	if (!n)
		snprintf(text, len, "-");
}

static void drive_line(struct canvas *c, struct rect r, int y,
		       const struct model *m, const struct m_domain *d,
		       const struct m_drive *drive, bool with_node)
{
	const char *state = drive->state[0] ? drive->state : "-";
	char a[FMT_MAX], b[FMT_MAX], users[256], name[80];
	int x = r.x + 2, right = r.x + r.w - 1;

	snprintf(name, sizeof(name), "%.30s%s%.30s", with_node ? d->name : "",
		 with_node ? ":" : "", drive->name);
	canvas_fit(c, x, y, 9, ROLE_TEXT, name);
	canvas_put(c, x + 10, y, state_role(state), 0x25cf);
	canvas_fit(c, x + 12, y, 8, state_role(state), state);
	canvas_fit(c, x + 21, y, 6, ROLE_DIM,
		   !strcmp(drive->kind, "directory") ? "dir" : drive->kind);
	canvas_right(c, x + 35, y, ROLE_TEXT,
		     fmt_bytes(a, (double)drive->size_bytes));
	canvas_right(c, x + 45, y, ROLE_DIM,
		     fmt_bytes(b, (double)drive->free_bytes));
	if (drive->reason[0]) {
		canvas_fit(c, x + 47, y, right - x - 47, ROLE_WARN,
			   drive->reason);
		return;
	}
	drive_users(m, d->name, drive->name, users, sizeof(users));
	canvas_fit(c, x + 47, y, r.w >= 110 ? 24 : right - x - 47, ROLE_TEXT,
		   users);
	if (r.w < 110)
		return;
	bar_draw(c, x + 72, y, 8, drive->busy, bar_load_role(drive->busy));
	canvas_right(c, x + 86, y, ROLE_TEXT, fmt_pct(a, drive->busy));
	canvas_right(c, x + 94, y, ROLE_TEXT, fmt_ms(a, drive->latency_us));
	canvas_right(c, x + 106, y, ROLE_DIM,
		     fmt_rate(a, drive->shape.set ? drive->shape.rate_bytes_s
						  : NAN));
	canvas_right(c, x + 114, y, ROLE_DIM,
		     fmt_k(a, drive->shape.set ? drive->shape.rate_iops : NAN));
	canvas_right(
		c, x + 122, y, ROLE_DIM,
		fmt_ms(a, drive->shape.set ? drive->shape.latency_us : NAN));
	canvas_fit(c, x + 125, y, right - x - 125, ROLE_DIM, drive->path);
}

static void drive_heads(struct canvas *c, struct rect r)
{
	int x = r.x + 2;

	canvas_text(c, x, r.y, ROLE_DIM, "drive");
	canvas_text(c, x + 12, r.y, ROLE_DIM, "state");
	canvas_text(c, x + 21, r.y, ROLE_DIM, "kind");
	canvas_right(c, x + 35, r.y, ROLE_DIM, "size");
	canvas_right(c, x + 45, r.y, ROLE_DIM, "free");
	canvas_text(c, x + 47, r.y, ROLE_DIM, "used by");
	if (r.w < 110)
		return;
	canvas_text(c, x + 72, r.y, ROLE_DIM, "busy");
	canvas_right(c, x + 94, r.y, ROLE_DIM, "ms");
	canvas_right(c, x + 106, r.y, ROLE_DIM, "held to");
	canvas_right(c, x + 114, r.y, ROLE_DIM, "IOPS");
	canvas_right(c, x + 122, r.y, ROLE_DIM, "ms");
	canvas_text(c, x + 125, r.y, ROLE_DIM, "path");
}

/* Of all nodes where there is room, else of the one under the cursor. */
static void drives_draw(struct canvas *c, struct rect r, const struct model *m,
			size_t at)
{
	size_t all = 0;
	bool every;
	char title[128];
	int y;

	for (size_t i = 0; i < m->domains; i++)
		all += m->domain[i].drives;
	every = r.h >= (int)all + 2;
	if (every)
		snprintf(title, sizeof(title), "drives");
	else
		snprintf(title, sizeof(title), "drives of %s",
			 m->domain[at].name);
	r = canvas_head(c, r, title);
	drive_heads(c, r);
	y = r.y + 1;
	for (size_t i = every ? 0 : at; i < (every ? m->domains : at + 1); i++)
		for (size_t j = 0; j < m->domain[i].drives; j++, y++) {
			if (y >= r.y + r.h)
				return;
			drive_line(c, r, y, m, &m->domain[i],
				   &m->domain[i].drive[j], every);
			if (every && i == at)
				row_mark(c, (struct rect) { r.x, y, r.w, 1 },
					 true);
		}
}

/* ---- capacity by vDisk --------------------------------------------------- */

static void capacity_draw(struct canvas *c, struct rect r,
			  const struct model *m)
{
	struct bar_part part[8] = { 0 };
	double size = 0, used = 0, ds, du;
	size_t n = 0;
	int x = r.x + 2;
	char a[FMT_MAX], b[FMT_MAX];

	for (size_t i = 0; i < m->domains; i++) {
		capacity(&m->domain[i], &ds, &du);
		size += isfinite(ds) ? ds : 0;
		used += isfinite(du) ? du : 0;
	}
	r = canvas_head(c, r, "capacity");
	if (size <= 0) {
		canvas_text(c, x, r.y, ROLE_DIM, "-");
		return;
	}
	for (; n < m->vdisks && n < array_len(part); n++) {
		const struct m_vdisk *v = &m->vdisk[n];

		part[n].style = series_role((unsigned)n);
		part[n].share = (double)v->size_bytes * (v->k + v->m) /
				(v->k > 0 ? v->k : 1) / size;
	}
	bar_stack_draw(c, x, r.y, r.w - 34, part, n);
	canvas_printf(c, x + r.w - 33, r.y, ROLE_TEXT, "%s used of %s",
		      fmt_bytes(a, used), fmt_bytes(b, size));
	for (size_t i = 0; i < n; i++) {
		const struct m_vdisk *v = &m->vdisk[i];

		if (x > r.x + r.w - 20)
			break;
		canvas_put(c, x, r.y + 1, part[i].style, 0x25a0);
		x += 2 + canvas_fit(c, x + 2, r.y + 1, 16, ROLE_TEXT, v->name);
		x += canvas_printf(c, x + 1, r.y + 1, ROLE_DIM, "%s",
				   fmt_bytes(a, part[i].share * size)) +
		     3;
	}
}

/* The newest lines of the log, where there is room for them. */
static void happened_draw(struct canvas *c, struct rect r,
			  const struct model *m)
{
	size_t n = m->lines, first;
	char a[FMT_MAX];

	r = canvas_head(c, r, "what happened");
	first = n > (size_t)r.h ? n - (size_t)r.h : 0;
	for (size_t i = first; i < n; i++) {
		const struct m_line *l = &m->line[i];
		int y = r.y + (int)(i - first);

		canvas_text(c, r.x + 2, y, ROLE_DIM, fmt_clock(a, l->t_us));
		canvas_fit(c, r.x + 12, y, r.w - 13, log_role(l->level),
			   l->text);
	}
}

static void cluster_draw(struct ui *ui, const struct scene *scene,
			 struct canvas *c, struct rect body)
{
	const struct model *m = scene->model;
	bool nodes = cluster_has_nodes(m);
	int hosts = nodes || m->hosts > 2 ? 2 : (int)m->hosts;
	int rows = (int)m->domains, most, y = body.y, drives = 0;
	struct rect r;
	int wide = body.w >= 150 ? 8 : 0;
	struct cursor *cur = &ui->node;

	most = body.h - hosts - 9;
	rows = rows > most ? most : rows;
	rows = rows < 1 ? 1 : rows;
	cursor_fit(cur, (int)m->domains, rows);
	if (nodes)
		cluster_node_heads(c, (struct rect) { body.x, y, body.w, 1 });
	else
		node_heads(c, (struct rect) { body.x, y, body.w, 1 }, wide);
	for (int i = 0; i < rows && cur->top + i < cur->count; i++) {
		struct rect row = { body.x, ++y, body.w, 1 };

		if (nodes)
			cluster_node_line(c, row, y, m,
					  &m->domain[cur->top + i]);
		else
			node_line(c, row, y, &m->domain[cur->top + i], wide);
		row_mark(c, row, cur->top + i == cur->at);
	}
	y++;
	if (nodes)
		cluster_node_detail(c, body, y, m, &m->domain[cur->at]);
	for (int i = 0; i < hosts; i++, y++)
		if (!nodes)
			host_line(c, body, y, &m->host[i]);
	capacity_draw(c, (struct rect) { body.x, y, body.w, 3 }, m);
	y += 3;
	r = (struct rect) { body.x, y, body.w, body.y + body.h - y };
	for (size_t i = 0; i < m->domains; i++)
		drives += (int)m->domain[i].drives;
	if (r.h > drives + 8) {
		happened_draw(c,
			      (struct rect) { r.x, r.y + drives + 3, r.w,
					      r.h - drives - 3 },
			      m);
		r.h = drives + 2;
	}
	if (cur->count)
		drives_draw(c, r, m, (size_t)cur->at);
}

static struct cursor *cluster_cursor(struct ui *ui)
{
	return &ui->node;
}

static const char *cluster_selected(const struct ui *ui,
				    const struct scene *scene)
{
	return (size_t)ui->node.at < scene->model->domains
		       ? scene->model->domain[ui->node.at].name
		       : NULL;
}

const struct screen screen_cluster = {
	.name = "cluster",
	.title = "Cluster",
	.page = "iodeck(1)",
	.draw = cluster_draw,
	.cursor = cluster_cursor,
	.selected = cluster_selected,
};
