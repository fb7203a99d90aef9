/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/screen/form.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/fmt.h"
#include "tui/screen/screen.h"
#include "tui/term.h"

enum field {
	F_NAME,
	F_POLICY,
	F_LAYOUT,
	F_RAID,
	F_FTT,
	F_CODEC, /* log */
	F_UNIT,  /* in place */
	F_SIZE,
	FIELDS
};

static const char *const codecs[] = { "none", "lz4", "zstd" };
#define LOG_UNIT (128 << 10)

static const int raids[] = { 0, 1, 5, 6 };
static const int64_t units[] = { 4096,  8192,   16384,  32768,
				 65536, 131072, 262144, 524288 };
static const int64_t sizes[] = {
	64ll << 20, 128ll << 20, 256ll << 20, 512ll << 20, 1ll << 30,
	2ll << 30,  4ll << 30,   8ll << 30,   16ll << 30,  32ll << 30,
	64ll << 30, 128ll << 30, 256ll << 30, 512ll << 30, 1ll << 40,
};

static const char *layout_word(bool log)
{
	return log ? "log" : "inplace";
}

/* Labels stand on 2m+1 domains, m the failures to tolerate, so that a majority
 * decides which member is stale. */
void policy_cost(const char *layout, int raid, int ftt, size_t domains,
		 struct policy_cost *cost)
{
	struct series_limit limit;

	*cost = (struct policy_cost) { .k = 1, .m = ftt };
	if (raid == 0) {
		cost->k = domains < 1 ? 1 : domains > 16 ? 16 : (int)domains;
		cost->m = 0;
	} else if (raid == 5) {
		cost->k = domains >= 6 ? 4 : 2, cost->m = 1;
	} else if (raid == 6) {
		cost->k = 4, cost->m = 2;
	}
	policy_limit(layout, cost->k, cost->m, &limit);
	cost->write_ios = limit.ios;
	cost->amp = limit.amp;
	cost->space = (double)(cost->k + cost->m) / cost->k;
	cost->domains = 2 * cost->m + 1;
	if (raid != 0 && cost->domains < cost->k + cost->m)
		cost->domains = cost->k + cost->m;
	if ((size_t)cost->domains > domains)
		cost->refused = "more fault domains than there are";
}

static int ftt_least(int raid)
{
	return raid == 0 ? 0 : raid == 6 ? 2 : 1;
}

static int ftt_most(int raid)
{
	return raid == 1 ? 3 : ftt_least(raid);
}

static void ftt_fit(struct form *f)
{
	if (f->ftt < ftt_least(f->raid))
		f->ftt = ftt_least(f->raid);
	if (f->ftt > ftt_most(f->raid))
		f->ftt = ftt_most(f->raid);
}

static const struct m_vdisk *chosen(const struct ui *ui,
				    const struct scene *scene)
{
	const struct model *m = scene->model;

	return ui->vdisk.at >= 0 && (size_t)ui->vdisk.at < m->vdisks
		       ? &m->vdisk[ui->vdisk.at]
		       : NULL;
}

static void name_free(const struct model *m, char *name, size_t len)
{
	for (int i = 1; i < 1000; i++) {
		snprintf(name, len, "db%d", i);
		if (!model_vdisk(m, name))
			return;
	}
}

static int codec_of(const char *word)
{
	for (size_t i = 0; i < array_len(codecs); i++)
		if (!strcmp(codecs[i], word))
			return (int)i;
	return 0;
}

int form_open(struct ui *ui, const struct scene *scene, bool fresh)
{
	const struct m_vdisk *v = chosen(ui, scene);
	struct form *f = &ui->form;

	if (!fresh && !v)
		return -EINVAL;
	*f = (struct form) { .open = true, .fresh = fresh };
	if (fresh) {
		f->log = true;
		f->codec = 1;
		f->raid = 1;
		f->ftt = 1;
		f->unit_bytes = 65536;
		f->size_bytes = v ? v->size_bytes : 1ll << 30;
		name_free(scene->model, f->name, sizeof(f->name));
		return 0;
	}
	f->field = F_RAID;
	f->log = !strcmp(v->layout, "log");
	f->codec = codec_of(v->compression);
	f->raid = v->raid;
	f->ftt = v->ftt;
	f->unit_bytes = v->stripe_unit_bytes;
	f->size_bytes = v->size_bytes;
	snprintf(f->name, sizeof(f->name), "%s", v->name);
	snprintf(f->policy, sizeof(f->policy), "%s", v->policy);
	return 0;
}

/* The next of a rising list after `now` in a direction. */
static int64_t step(const int64_t *list, size_t n, int64_t now, int by)
{
	if (by > 0) {
		for (size_t i = 0; i < n; i++)
			if (list[i] > now)
				return list[i];
	} else {
		for (size_t i = n; i-- > 0;)
			if (list[i] < now)
				return list[i];
	}
	return now;
}

/* Named policies and, before them, none. */
static void policy_change(struct form *f, const struct model *m, int by)
{
	size_t n = m->policies + 1, at = 0;
	const struct m_policy *p;

	for (size_t i = 0; i < m->policies; i++)
		at = !strcmp(m->policy[i].name, f->policy) ? i + 1 : at;
	at = (at + n + (size_t)by) % n;
	if (!at) {
		f->policy[0] = '\0';
		return;
	}
	p = &m->policy[at - 1];
	snprintf(f->policy, sizeof(f->policy), "%s", p->name);
	if (p->layout[0])
		f->log = !strcmp(p->layout, "log");
	f->codec = codec_of(p->compression);
	f->raid = p->raid;
	f->ftt = p->ftt;
	f->unit_bytes = p->stripe_unit_bytes;
}

static void field_change(struct form *f, const struct model *m, int by)
{
	size_t at = 0;

	/* What is changed by hand is no longer the named policy's. */
	if (f->field != F_NAME && f->field != F_POLICY && f->field != F_SIZE)
		f->policy[0] = '\0';

	switch (f->field) {
	case F_POLICY:
		policy_change(f, m, by);
		break;
	case F_LAYOUT:
		f->log = !f->log;
		f->unit_bytes = f->log ? LOG_UNIT : 65536;
		break;
	case F_CODEC:
		f->codec = (f->codec + (int)array_len(codecs) + by) %
			   (int)array_len(codecs);
		break;
	case F_RAID:
		for (size_t i = 0; i < array_len(raids); i++)
			at = raids[i] == f->raid ? i : at;
		at = (at + array_len(raids) + (size_t)by) % array_len(raids);
		f->raid = raids[at];
		ftt_fit(f);
		break;
	case F_FTT:
		f->ftt += by;
		ftt_fit(f);
		break;
	case F_UNIT:
		f->unit_bytes =
			step(units, array_len(units), f->unit_bytes, by);
		break;
	case F_SIZE:
		if (f->fresh)
			f->size_bytes = step(sizes, array_len(sizes),
					     f->size_bytes, by);
		break;
	default:
		break;
	}
}

/* A vDisk keeps its name, size and layout; a layout has fields of its own. */
static bool field_open(const struct form *f, int field)
{
	if (field == F_CODEC)
		return f->log;
	if (field == F_UNIT)
		return !f->log;
	return f->fresh ||
	       (field != F_NAME && field != F_SIZE && field != F_LAYOUT);
}

static void field_move(struct form *f, int by)
{
	do {
		f->field = (f->field + FIELDS + by) % FIELDS;
	} while (!field_open(f, f->field));
}

/* The policy's part of the command line. */
static void policy_words(const struct form *f, char *buf, size_t len)
{
	if (f->policy[0])
		snprintf(buf, len, "policy=%s", f->policy);
	else if (f->log)
		snprintf(buf, len, "layout=log raid=%d ftt=%d compression=%s",
			 f->raid, f->ftt, codecs[f->codec]);
	else
		snprintf(buf, len,
			 "layout=inplace raid=%d ftt=%d stripe_unit=%lldK",
			 f->raid, f->ftt, (long long)(f->unit_bytes >> 10));
}

static void form_apply(struct ui *ui, const struct scene *scene)
{
	struct form *f = &ui->form;
	struct policy_cost cost;
	char line[UI_LINE], words[128], a[FMT_MAX];

	policy_cost(layout_word(f->log), f->raid, f->ftt, scene->model->domains,
		    &cost);
	if (cost.refused) {
		snprintf(line, sizeof(line),
			 "needs %d fault domains, there are %zu", cost.domains,
			 scene->model->domains);
		ui_say(ui, scene, 2, line);
		return;
	}
	policy_words(f, words, sizeof(words));
	if (f->fresh)
		snprintf(line, sizeof(line), "vdisk create %s size=%lldM %s",
			 f->name, (long long)(f->size_bytes >> 20), words);
	else
		snprintf(line, sizeof(line), "vdisk set %s %s", f->name, words);
	ui_confirm(ui, line,
		   f->fresh ? "Create %s, %s, %s?" : "Move %s, %s, to %s?",
		   f->name, fmt_bytes(a, (double)f->size_bytes), words);
	f->open = false;
}

static void name_edit(struct form *f, int key)
{
	size_t n = strlen(f->name);

	if (key == K_BACKSPACE && n)
		f->name[n - 1] = '\0';
	else if (((key >= 'a' && key <= 'z') || (key >= '0' && key <= '9') ||
		  (key >= 'A' && key <= 'Z') || key == '-' || key == '_') &&
		 n < 24)
		snprintf(f->name + n, sizeof(f->name) - n, "%c", (char)key);
}

bool form_key(struct ui *ui, const struct scene *scene, int key, char *line)
{
	struct form *f = &ui->form;

	(void)line;
	if (!f->open || key == K_F1 || key == K_MOUSE)
		return false;
	switch (key) {
	case K_ESC:
	case K_CTRL('c'):
		f->open = false;
		break;
	case K_ENTER:
		form_apply(ui, scene);
		break;
	case K_UP:
	case K_BTAB:
		field_move(f, -1);
		break;
	case K_DOWN:
	case K_TAB:
		field_move(f, 1);
		break;
	case K_LEFT:
		field_change(f, scene->model, -1);
		break;
	case K_RIGHT:
	case ' ':
		field_change(f, scene->model, 1);
		break;
	default:
		if (f->field == F_NAME)
			name_edit(f, key);
		else if (key == ':' || key == 'q')
			return false;
	}
	return true;
}

/* ---- drawing ------------------------------------------------------------- */

static int label(struct canvas *c, struct rect r, int y, const char *text,
		 bool here)
{
	canvas_text(c, r.x, r.y + y, ROLE_KEY | STYLE_BOLD,
		    here ? "\xe2\x96\xb8" : " ");
	canvas_text(c, r.x + 1, r.y + y, here ? ROLE_TITLE : ROLE_DIM, text);
	return r.x + 13;
}

/* One of a few words. */
static void draw_choice(struct canvas *c, struct rect r, int y,
			const char *name, const char *const *word, size_t words,
			size_t at, bool here)
{
	int x = label(c, r, y, name, here);

	for (size_t i = 0; i < words; i++) {
		const bool on = i == at;

		x += canvas_printf(
			c, x, r.y + y, on ? ROLE_TEXT | STYLE_BOLD : ROLE_DIM,
			"(%s) %s   ", on ? "\xe2\x80\xa2" : " ", word[i]);
	}
}

static void draw_raid(const struct form *f, struct canvas *c, struct rect r,
		      int y)
{
	static const char *const word[] = { "0", "1", "5", "6" };
	size_t at = 0;

	for (size_t i = 0; i < array_len(raids); i++)
		at = raids[i] == f->raid ? i : at;
	draw_choice(c, r, y, "RAID", word, array_len(word), at,
		    f->field == F_RAID);
}

static void draw_value(const struct form *f, struct canvas *c, struct rect r,
		       int y, int field, const char *name, const char *value,
		       const char *note)
{
	int x = label(c, r, y, name, f->field == field);

	x += canvas_text(c, x, r.y + y, ROLE_TEXT | STYLE_BOLD, value) + 2;
	canvas_fit(c, x, r.y + y, r.x + r.w - x, ROLE_DIM, note);
}

/* What a small write costs, and what that leaves of a mirror's IOPS. */
static int draw_write(const struct form *f, struct canvas *c, int x, int y,
		      const struct policy_cost *now)
{
	struct series_limit mirror;
	char a[FMT_MAX], b[FMT_MAX];

	if (!f->log)
		return canvas_printf(
			c, x, y, ROLE_TEXT, ", %.0f I/O%s a small write",
			now->write_ios, now->write_ios > 1 ? "s" : "");
	policy_limit("log", 1, 1, &mirror);
	return canvas_printf(
		c, x, y, ROLE_TEXT, ", W %s: %sx the IOPS of RAID-1",
		fmt_3(a, now->amp), fmt_3(b, mirror.amp / now->amp));
}

static void draw_cost(const struct form *f, const struct scene *scene,
		      struct canvas *c, struct rect r, int y)
{
	const struct m_vdisk *v = model_vdisk(scene->model, f->name);
	const size_t domains = scene->model->domains;
	struct policy_cost now, was;
	char a[FMT_MAX], b[FMT_MAX];
	int x;

	policy_cost(layout_word(f->log), f->raid, f->ftt, domains, &now);
	label(c, r, y, "costs", false);
	x = r.x + 13;
	x += canvas_printf(c, x, r.y + y, ROLE_TEXT, "space %sx",
			   fmt_3(a, now.space));
	if (!f->fresh && v) {
		policy_cost(v->layout, v->raid, v->ftt, domains, &was);
		x += canvas_printf(c, x, r.y + y, ROLE_DIM, " (now %sx)",
				   fmt_3(b, was.space));
	}
	draw_write(f, c, x, r.y + y, &now);
	label(c, r, y + 1, "needs", false);
	canvas_printf(
		c, r.x + 13, r.y + y + 1, now.refused ? ROLE_BAD : ROLE_TEXT,
		now.refused ? "%d domains: %zu are here" : "%d of %zu domains",
		now.domains, domains);
}

static void draw_move(const struct form *f, const struct scene *scene,
		      struct canvas *c, struct rect r, int y)
{
	const struct m_vdisk *v = model_vdisk(scene->model, f->name);
	struct policy_cost now;
	char a[FMT_MAX], b[FMT_MAX];

	policy_cost(layout_word(f->log), f->raid, f->ftt, scene->model->domains,
		    &now);
	label(c, r, y, f->fresh ? "to make" : "to move", false);
	if (!f->fresh && f->log && v && v->log.stored_bytes >= 0)
		canvas_printf(c, r.x + 13, r.y + y, ROLE_TEXT,
			      "%s stored of %s, in the background; I/O goes "
			      "on",
			      fmt_bytes(a, (double)v->log.stored_bytes),
			      fmt_bytes(b, (double)v->size_bytes));
	else
		canvas_printf(c, r.x + 13, r.y + y, ROLE_TEXT,
			      "%s of data, %s on drives%s",
			      fmt_bytes(a, (double)f->size_bytes),
			      fmt_bytes(b, (double)f->size_bytes * now.space),
			      f->fresh && f->log ? " before compression"
			      : f->fresh         ? ""
					 : "; the old stay until verified");
}

void form_draw(struct ui *ui, const struct scene *scene, struct canvas *c,
	       struct rect r)
{
	const struct form *f = &ui->form;
	/* What a vDisk has it keeps. */
	const char *const layouts[] = { f->fresh || f->log
						? "log"
						: "inplace, as it was made",
					"inplace" };
	char a[FMT_MAX], title[96];
	int y = 0;

	snprintf(title, sizeof(title), f->fresh ? "new vDisk" : "change %s to",
		 f->name);
	r = canvas_head(c, r, title);
	r.x++;
	r.w -= 2;
	if (f->fresh)
		draw_value(f, c, r, y++, F_NAME, "name", f->name, "type it");
	draw_value(f, c, r, y++, F_POLICY, "policy",
		   f->policy[0] ? f->policy : "none",
		   f->policy[0] ? "sets the fields below"
				: "set by the fields below");
	draw_choice(c, r, y++, "layout", layouts, f->fresh ? 2 : 1,
		    f->fresh ? !f->log : 0, f->field == F_LAYOUT);
	draw_raid(f, c, r, y++);
	snprintf(a, sizeof(a), "%d", f->ftt);
	draw_value(f, c, r, y++, F_FTT, "failures", a,
		   f->raid == 1 ? "to tolerate, 1 to 3"
				: "to tolerate, by the RAID level");
	if (f->log)
		draw_choice(c, r, y++, "compression", codecs, array_len(codecs),
			    (size_t)f->codec, f->field == F_CODEC);
	else
		draw_value(f, c, r, y++, F_UNIT, "stripe",
			   fmt_bytes(a, (double)f->unit_bytes),
			   "to a drive before the next");
	if (f->fresh)
		draw_value(f, c, r, y++, F_SIZE, "size",
			   fmt_bytes(a, (double)f->size_bytes), "");
	draw_cost(f, scene, c, r, y);
	draw_move(f, scene, c, r, y + 2);
}
