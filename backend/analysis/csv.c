/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Published curves: a CSV whose first line names its columns; `series`, `iops`
 * and `latency_ms` must be there, `x_percent_of_max` may be. Fields may stand
 * in double quotes, "" is a quote in them. Decimal point whatever the locale.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/analysis/analysis_priv.h"
#include "backend/event.h"

#define CSV_LINE 4096
#define CSV_FIELDS 64
#define CSV_POINTS 100000
#define CSV_NAMES 1000

enum column { SERIES, PERCENT, IOPS, LATENCY, COLUMNS };
static const struct {
	const char *name;
	bool must;
} column_table[COLUMNS] = {
	{ "series", true },
	{ "x_percent_of_max", false },
	{ "iops", true },
	{ "latency_ms", true },
};

struct csv {
	const char *path;
	FILE *f;
	unsigned line_no;
	char line[CSV_LINE];
	char *field[CSV_FIELDS];
	size_t fields;
	int at[COLUMNS]; /* -1: not there */
};

/* ---- lines and fields --------------------------------------------------- */

/* 0; -ENODATA at the end. */
static int line_read(struct csv *c, struct err *err)
{
	size_t len;

	if (!fgets(c->line, sizeof(c->line), c->f)) {
		if (ferror(c->f))
			return err_set(err, -EIO, "%s: cannot be read",
				       c->path);
		return -ENODATA;
	}
	c->line_no++;
	len = strlen(c->line);
	if (len == sizeof(c->line) - 1 && c->line[len - 1] != '\n')
		return err_set(err, -EINVAL, "%s:%u: line longer than %d bytes",
			       c->path, c->line_no, CSV_LINE - 2);
	while (len && (c->line[len - 1] == '\n' || c->line[len - 1] == '\r'))
		c->line[--len] = '\0';
	return 0;
}

/* Takes the quotes off in place; NULL when they do not end. */
static char *quoted(char *s, char **field)
{
	char *to = s;

	*field = s++;
	for (; *s; s++) {
		if (*s == '"' && *++s != '"')
			break;
		*to++ = *s;
		if (!*s)
			return NULL;
	}
	if (!*s && s[-1] != '"')
		return NULL;
	*to = '\0';
	return s;
}

static int fields_split(struct csv *c, struct err *err)
{
	char *s = c->line, end;

	c->fields = 0;
	do {
		if (c->fields == CSV_FIELDS)
			return err_set(err, -EINVAL,
				       "%s:%u: more than %d columns", c->path,
				       c->line_no, CSV_FIELDS);
		if (*s == '"') {
			char *next = quoted(s, &c->field[c->fields++]);

			if (!next || (*next && *next != ','))
				return err_set(err, -EINVAL,
					       "%s:%u: column %zu: expected a "
					       "closing quote, then a comma",
					       c->path, c->line_no, c->fields);
			s = next;
		} else {
			c->field[c->fields++] = s;
			s += strcspn(s, ",");
		}
		end = *s;
		*s++ = '\0';
	} while (end);
	return 0;
}

/* ---- numbers ------------------------------------------------------------ */

/* strtod() would take a comma where the locale has one. */
static bool number(const char *s, double *out)
{
	double v = 0, scale = 1;
	int digits = 0, power = 0;

	for (; *s >= '0' && *s <= '9'; s++, digits++)
		v = v * 10 + (*s - '0');
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, digits++) {
			scale /= 10;
			v += (*s - '0') * scale;
		}
	if (!digits)
		return false;
	if (*s == 'e' || *s == 'E') {
		bool minus = *++s == '-';

		if (*s == '-' || *s == '+')
			s++;
		if (*s < '0' || *s > '9')
			return false;
		for (; *s >= '0' && *s <= '9' && power < 1000; s++)
			power = power * 10 + (*s - '0');
		v *= pow(10, minus ? -power : power);
	}
	*out = v;
	return !*s && v <= 1e15;
}

static const char *field(const struct csv *c, enum column col)
{
	return c->at[col] >= 0 && (size_t)c->at[col] < c->fields
		       ? c->field[c->at[col]]
		       : "";
}

static int field_number(const struct csv *c, enum column col, bool must,
			double *out, struct err *err)
{
	const char *s = field(c, col);
	char shown[32];

	*out = NAN;
	if (!*s && !must)
		return 0;
	if (number(s, out) && (!must || *out > 0))
		return 0;
	event_text(shown, sizeof(shown), s);
	return err_set(err, -EINVAL,
		       "%s:%u: %s: expected a number above 0, as 1500 or 0.92, "
		       "found \"%s\"",
		       c->path, c->line_no, column_table[col].name, shown);
}

/* ---- file --------------------------------------------------------------- */

static int header_read(struct csv *c, struct err *err)
{
	int rc = line_read(c, err);

	if (rc == -ENODATA)
		return err_set(err, -EINVAL,
			       "%s: is empty: expected a line "
			       "that names the columns",
			       c->path);
	if (rc)
		return rc;
	if (!strncmp(c->line, "\xef\xbb\xbf", 3)) /* a byte order mark */
		memmove(c->line, c->line + 3, strlen(c->line + 3) + 1);
	rc = fields_split(c, err);
	for (int col = 0; col < COLUMNS && !rc; col++) {
		c->at[col] = -1;
		for (size_t i = 0; i < c->fields; i++)
			if (!strcmp(c->field[i], column_table[col].name))
				c->at[col] = (int)i;
		if (c->at[col] < 0 && column_table[col].must)
			rc = err_set(err, -EINVAL,
				     "%s:%u: expected a column \"%s\"; needed "
				     "are series, iops and latency_ms",
				     c->path, c->line_no,
				     column_table[col].name);
	}
	return rc;
}

static int csv_open(struct csv *c, const char *path, struct err *err)
{
	int rc;

	c->path = path;
	c->line_no = 0;
	c->f = fopen(path, "re");
	if (!c->f)
		return err_set(err, -errno, "%s: cannot be opened: %s", path,
			       strerror(errno));
	rc = header_read(c, err);
	if (rc)
		fclose(c->f);
	return rc;
}

struct csv_row {
	char series[MODEL_NAME];
	struct curve_point point;
};

/* The next row that is not blank; -ENODATA at the end. */
static int row_read(struct csv *c, struct csv_row *row, struct err *err)
{
	double ms;
	int rc;

	do
		rc = line_read(c, err);
	while (!rc && !*c->line);
	if (!rc)
		rc = fields_split(c, err);
	if (rc)
		return rc;
	event_text(row->series, sizeof(row->series), field(c, SERIES));
	if (!*row->series)
		return err_set(err, -EINVAL,
			       "%s:%u: series: expected a name, found nothing",
			       c->path, c->line_no);
	memset(&row->point, 0, sizeof(row->point));
	rc = field_number(c, PERCENT, false, &row->point.percent, err);
	if (!rc)
		rc = field_number(c, IOPS, true, &row->point.iops, err);
	if (!rc)
		rc = field_number(c, LATENCY, true, &ms, err);
	if (rc)
		return rc;
	row->point.latency_us = ms * 1000;
	row->point.iops_ci = row->point.latency_ci = NAN;
	return 0;
}

/* ---- public ------------------------------------------------------------- */

static int point_push(struct curve *curve, const struct curve_point *point)
{
	struct curve_point *more;

	if (!(curve->points & (curve->points - 1))) {
		more = realloc(curve->point,
			       (curve->points ? 2 * curve->points : 1) *
				       sizeof(*more));
		if (!more)
			return -ENOMEM;
		curve->point = more;
	}
	curve->point[curve->points++] = *point;
	return 0;
}

/* What there is instead, in the sentence. */
static int not_there(const char *path, const char *series, struct err *err)
{
	char **names, list[320] = "";
	int rc = curve_csv_series(path, &names, err);

	if (rc)
		return rc;
	for (size_t i = 0; names[i]; i++) {
		size_t len = strlen(list);

		snprintf(list + len, sizeof(list) - len, "%s%s",
			 len ? ", " : "", names[i]);
		free(names[i]);
	}
	free(names);
	return err_set(err, -ENOENT, "%s: has no series \"%s\"; it has: %s",
		       path, series, *list ? list : "none");
}

int curve_of_csv(const char *path, const char *series, struct curve *curve,
		 struct err *err)
{
	struct csv_row row;
	struct csv c;
	int rc = csv_open(&c, path, err);

	memset(curve, 0, sizeof(*curve));
	curve->max_iops = NAN;
	if (rc)
		return rc;
	event_text(curve->name, sizeof(curve->name), series);
	while (!(rc = row_read(&c, &row, err))) {
		if (strcmp(row.series, curve->name))
			continue;
		if (curve->points == CSV_POINTS)
			rc = err_set(err, -EINVAL, "%s:%u: more than %d points",
				     path, c.line_no, CSV_POINTS);
		else
			rc = point_push(curve, &row.point);
		if (rc)
			break;
	}
	fclose(c.f);
	if (rc == -ENODATA)
		rc = curve->points ? 0 : not_there(path, series, err);
	if (rc)
		curve_fini(curve);
	return rc;
}

static int name_push(char ***names, size_t *n, const char *name)
{
	char **more;

	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*names)[i], name))
			return 0;
	more = realloc(*names, (*n + 2) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	*names = more;
	more[*n] = strdup(name);
	if (!more[*n])
		return -ENOMEM;
	more[++*n] = NULL;
	return 0;
}

int curve_csv_series(const char *path, char ***names, struct err *err)
{
	struct csv_row row;
	char **list;
	struct csv c;
	size_t n = 0;
	int rc = csv_open(&c, path, err);

	if (rc)
		return rc;
	list = calloc(1, sizeof(*list));
	rc = list ? 0 : -ENOMEM;
	while (!rc && !(rc = row_read(&c, &row, err))) {
		if (n == CSV_NAMES)
			rc = err_set(err, -EINVAL, "%s:%u: more than %d series",
				     path, c.line_no, CSV_NAMES);
		else
			rc = name_push(&list, &n, row.series);
	}
	fclose(c.f);
	if (rc == -ENODATA) {
		*names = list;
		return 0;
	}
	for (size_t i = 0; list && i < n; i++)
		free(list[i]);
	free(list);
	return rc;
}
