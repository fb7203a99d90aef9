/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void id_assert_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
	abort();
}

int(err_set)(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}
