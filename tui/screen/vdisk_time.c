/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A vDisk of the log layout over time: write amplification, log, free space,
 * what the cleaner and a rebuild write, and when it was not healthy.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/chart/spark.h"
#include "tui/fmt.h"
#include "tui/screen/vdisk_parts.h"

#define COLUMNS_MAX 512
#define GUTTER 22

enum row { ROW_AMP, ROW_LOG, ROW_FREE, ROW_CLEAN, ROW_REBUILD, ROWS };

static const struct {
	const char *name, *brief;
	unsigned role;
} row_of[ROWS] = {
	[ROW_AMP] = { "write amp", "W", ROLE_BAR },
	[ROW_LOG] = { "log full", "log", ROLE_S4 },
	[ROW_FREE] = { "free space", "free", ROLE_S2 },
	[ROW_CLEAN] = { "cleaning", "clean", ROLE_S3 },
	[ROW_REBUILD] = { "rebuild", "rebuild", ROLE_WARN },
};

/* The column a moment falls in; may be outside. */
static int64_t column(const struct time_axis *axis, int64_t t_us)
{
	return t_us / axis->len_us - axis->first;
}

static double value_of(const struct m_vdisk_strip *s, enum row row)
{
	const double seconds = (double)s->len_us / 1e6;
	struct m_amp amp;

	switch (row) {
	case ROW_AMP:
		model_amp(&s->written, &amp);
		return amp.all;
	case ROW_LOG:
		return s->log_fill;
	case ROW_FREE:
		return s->free_share;
	case ROW_CLEAN:
		return (double)s->written.clean / seconds;
	case ROW_REBUILD:
		return (double)s->written.rebuild / seconds;
	default:
		return NAN;
	}
}

/* A level stays as it is while nothing is told, and stands against all there
 * is. */
static bool is_level(enum row row)
{
	return row == ROW_LOG || row == ROW_FREE;
}

static double values_fill(const struct m_vdisk *v, const struct time_axis *axis,
			  enum row row, double *value)
{
	double max = 0;

	for (int i = 0; i < axis->count; i++)
		value[i] = NAN;
	for (size_t i = v->strips; i-- > 0;) {
		const struct m_vdisk_strip *s = &v->strip[i];
		/* As the strip of the run: a column is that of its end. */
		int64_t to = column(axis, s->t_us);
		int64_t from = column(axis, s->t_us - s->len_us) + 1;
		const double is = value_of(s, row);

		if (to < 0)
			break;
		from = from < 0 ? 0 : from;
		to = to < axis->count ? to : axis->count - 1;
		from = from > to ? to : from;
		for (; from <= to; from++)
			value[from] = is > 0 ? is : NAN;
		max = from > 0 && is > max ? is : max;
	}
	if (is_level(row) && v->strips) {
		const struct m_vdisk_strip *s = &v->strip[v->strips - 1];
		int64_t at = column(axis, s->t_us) + 1;

		for (at = at < 0 ? 0 : at; at < axis->count; at++)
			value[at] = value_of(s, row);
	}
	return is_level(row) ? 1 : max;
}

static char *value_text(char *buf, const struct scene *scene,
			const struct m_vdisk *v, enum row row)
{
	struct vdisk_now now;

	vdisk_now(v, scene->now_us, &now);
	switch (row) {
	case ROW_AMP:
		return fmt_3(buf, now.amp.all);
	case ROW_LOG:
		return fmt_pct(buf, v->log.log_fill);
	case ROW_FREE:
		return fmt_pct(buf, v->log.free_share);
	case ROW_CLEAN:
		return fmt_rate(buf, now.clean_s);
	default:
		return fmt_rate(buf, now.rebuild_s);
	}
}

/* ---- when it was not healthy --------------------------------------------- */

/* As much of the word as there is room for, blanks around it. */
static void span_name(struct canvas *c, int x, int y, int w, const char *state)
{
	if (w < 3)
		return;
	w = canvas_fit(c, x, y, w, state_role(state), state);
	canvas_put(c, x - 1, y, ROLE_TEXT, ' ');
	canvas_put(c, x + w, y, ROLE_TEXT, ' ');
}

/* "├ rebuilding ┤", open at the end while it lasts. */
static void span_draw(struct canvas *c, struct rect r,
		      const struct time_axis *axis, const struct m_span *s,
		      int64_t now_us)
{
	const int64_t end = s->to_us < 0 ? now_us : s->to_us;
	int64_t from = column(axis, s->from_us), to = column(axis, end);
	const unsigned role = state_role(s->state);

	if (to < 0 || from >= axis->count)
		return;
	from = from < 0 ? 0 : from;
	to = to < axis->count ? to : axis->count - 1;
	for (int64_t x = from; x <= to; x++)
		canvas_put(c, r.x + (int)x, r.y, role, 0x2501);
	if (from == column(axis, s->from_us))
		canvas_put(c, r.x + (int)from, r.y, role, 0x251c);
	if (s->to_us >= 0 && to == column(axis, end) && to > from)
		canvas_put(c, r.x + (int)to, r.y, role, 0x2524);
	span_name(c, r.x + (int)from + 2, r.y, (int)(to - from) - 3, s->state);
}

static bool spans_shown(const struct m_vdisk *v, const struct time_axis *axis)
{
	const struct m_span *last = v->spans ? &v->span[v->spans - 1] : NULL;

	return last && (last->to_us < 0 || column(axis, last->to_us) >= 0);
}

static void spans_draw(const struct scene *scene, struct canvas *c,
		       struct rect r, const struct time_axis *axis,
		       const struct m_vdisk *v)
{
	canvas_text(c, r.x + 1, r.y, ROLE_DIM, "state");
	canvas_right(c, r.x + GUTTER - 2, r.y, state_role(v->state), v->state);
	canvas_put(c, r.x + GUTTER - 1, r.y, ROLE_AXIS, 0x2502);
	r.x += GUTTER;
	for (size_t i = 0; i < v->spans; i++)
		span_draw(c, r, axis, &v->span[i], scene->now_us);
}

/* ---- drawing ------------------------------------------------------------- */

/* A rebuild that is not, or was not, is not shown. */
static bool row_shown(const struct m_vdisk *v, enum row row)
{
	return row != ROW_REBUILD || v->log.written.rebuild > 0;
}

int vdisk_time_rows(const struct m_vdisk *v)
{
	int rows = v->spans > 0;

	for (enum row i = 0; i < ROWS; i++)
		rows += row_shown(v, i);
	return rows;
}

void vdisk_time_draw(const struct scene *scene, struct canvas *c, struct rect r,
		     const struct m_vdisk *v)
{
	static double value[COLUMNS_MAX];
	int w = r.w - GUTTER, y = r.y;
	struct time_axis axis;
	char a[FMT_MAX];

	if (w < 8)
		return;
	w = w > COLUMNS_MAX ? COLUMNS_MAX : w;
	time_axis(scene->model, scene->now_us, w, &axis);
	if (r.h > 1 && spans_shown(v, &axis)) {
		spans_draw(scene, c, (struct rect) { r.x, y++, r.w, 1 }, &axis,
			   v);
	}
	for (enum row i = 0; i < ROWS && y < r.y + r.h; i++) {
		double max;

		if (!row_shown(v, i))
			continue;
		max = values_fill(v, &axis, i, value);
		canvas_text(c, r.x + 1, y, ROLE_DIM, row_of[i].name);
		canvas_right(c, r.x + GUTTER - 2, y, ROLE_TEXT,
			     value_text(a, scene, v, i));
		canvas_put(c, r.x + GUTTER - 1, y, ROLE_AXIS, 0x2502);
		spark_draw(c, (struct rect) { r.x + GUTTER, y++, w, 1 }, value,
			   (size_t)w, max, row_of[i].role);
	}
}

void vdisk_time_line(const struct scene *scene, struct canvas *c, struct rect r,
		     const struct m_vdisk *v)
{
	static double value[COLUMNS_MAX];
	const bool rebuilt = v->log.written.rebuild > 0;
	const enum row shown[] = { ROW_AMP, ROW_LOG, ROW_FREE,
				   rebuilt ? ROW_REBUILD : ROW_CLEAN };
	int x = r.x + 1, right = r.x + r.w;
	char a[FMT_MAX];

	for (size_t i = 0; i < array_len(shown); i++) {
		const int cells = (int)array_len(shown) - (int)i;
		const int end = x + (right - x) / cells - (cells > 1);
		struct time_axis axis;
		double max;
		int w;

		x += canvas_text(c, x, r.y, ROLE_DIM, row_of[shown[i]].brief) +
		     1;
		value_text(a, scene, v, shown[i]);
		w = end - x - text_columns(a) - 1;
		if (w > 0) {
			time_axis(scene->model, scene->now_us, w, &axis);
			max = values_fill(v, &axis, shown[i], value);
			spark_draw(c, (struct rect) { x, r.y, w, 1 }, value,
				   (size_t)w, max, row_of[shown[i]].role);
		}
		canvas_right(c, end, r.y, ROLE_TEXT, a);
		x = end + 1;
	}
}
