/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libconfig files by tables: a table says which members a group may have, and
 * what each becomes in JSON. What the table does not know is an error with
 * file, line and what was expected.
 */
#ifndef BACKEND_CONF_H
#define BACKEND_CONF_H

#include <jansson.h>
#include <libconfig.h>

#include "engine/base.h"

enum conf_kind {
	CONF_TEXT,
	CONF_BOOL,
	CONF_NUMBER,
	CONF_INT,
	CONF_BYTES,   /* a number or "32K" */
	CONF_RATE,    /* bytes a second: a number or "25Gbit" */
	CONF_US,      /* seconds or "5m"; microseconds in JSON */
	CONF_NUMBERS, /* a number or an array of numbers */
	CONF_TEXTS,   /* a text or an array of texts */
	CONF_SIZES,   /* "32K", or ( ("8K", 0.5), ("32K", 0.5) ) */
	CONF_GROUP,   /* by `members` */
	CONF_LIST,    /* of groups by `members` */
};

struct conf_member {
	const char *name;
	enum conf_kind kind;
	const char *json; /* NULL: name */
	bool need;
	double min, max; /* both 0: no limits */
	const struct conf_member *members;
};

/* Reads a file; on success the caller config_destroy()s. */
int conf_read(const char *path, config_t *file, struct err *err);
/* Sets "FILE:LINE: what", returns -EINVAL. */
int conf_bad(const config_setting_t *at, struct err *err, const char *fmt, ...)
	ID_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as in engine/base.h */
#define conf_bad(at, err, ...) ((void)(at), err_seen(err, __VA_ARGS__), -EINVAL)
#endif
/* The group as a new JSON object. members end with name NULL. */
int conf_object(const config_setting_t *group,
		const struct conf_member *members, json_t **object,
		struct err *err);

#endif
