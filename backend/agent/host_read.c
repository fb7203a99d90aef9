/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/event.h"

#define BLANKS " \t\r\n"

static void path_make(char *path, size_t size, const char *root,
		      const char *fmt, va_list ap)
{
	const size_t n = (size_t)snprintf(path, size, "%s", root);

	if (n < size)
		vsnprintf(path + n, size - n, fmt, ap);
}

static void text_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t n = 1;

	/* a file of /proc may come in parts */
	while (fd >= 0 && n > 0 && len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	if (fd >= 0)
		close(fd);
}

void host_read(const char *root, const char *path, char *text, size_t size)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	text_read(full, text, size);
}

static void line_trim(char *line)
{
	size_t from = strspn(line, BLANKS), len;

	memmove(line, line + from, strlen(line + from) + 1);
	len = strcspn(line, "\n");
	while (len && strchr(BLANKS, line[len - 1]))
		len--;
	line[len] = '\0';
}

bool host_line(char *line, size_t size, const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	path_make(path, sizeof(path), root, fmt, ap);
	va_end(ap);
	text_read(path, line, size);
	line_trim(line);
	return *line != '\0';
}

int64_t host_number(const char *root, const char *fmt, ...)
{
	char path[PATH_MAX], text[32], *end;
	long long v;
	va_list ap;

	va_start(ap, fmt);
	path_make(path, sizeof(path), root, fmt, ap);
	va_end(ap);
	text_read(path, text, sizeof(text));
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || errno || (*end && *end != '\n') || v < 0)
		return -1;
	return v;
}

bool host_link(char *name, size_t size, const char *root, const char *fmt, ...)
{
	char path[PATH_MAX], to[PATH_MAX];
	const char *last;
	ssize_t n;
	va_list ap;

	va_start(ap, fmt);
	path_make(path, sizeof(path), root, fmt, ap);
	va_end(ap);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	last = strrchr(to, '/');
	snprintf(name, size, "%s", last ? last + 1 : to);
	return *name != '\0';
}

bool host_there(const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	path_make(path, sizeof(path), root, fmt, ap);
	va_end(ap);
	return !access(path, F_OK);
}

void host_dir(const char *root, const char *path,
	      bool (*each)(const char *name, void *arg), void *arg)
{
	char full[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(full, sizeof(full), "%s%s", root, path);
	dir = opendir(full);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !each(entry->d_name, arg))
			break;
	closedir(dir);
}

void host_add_text(json_t *to, const char *name, const char *text)
{
	char clean[256];

	event_text(clean, sizeof(clean), text);
	if (*clean)
		json_object_set_new(to, name, json_string(clean));
}

void host_add_int(json_t *to, const char *name, int64_t v)
{
	if (v >= 0 && v <= EVENT_INT_MAX)
		json_object_set_new(to, name, json_integer(v));
}

void host_add_rate(json_t *to, const char *name, double v)
{
	if (v >= 0 && v <= 1e18)
		json_object_set_new(to, name, json_real(v));
}
