/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file from anywhere: read it twice, repair it, read it again. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/session/session_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_all(struct session_reader *r)
{
	struct err err;
	json_t *event;
	size_t n = 0;
	int rc;

	while ((rc = session_next(r, &event, &err)) != -ENODATA) {
		if (rc == -EBADMSG)
			continue;
		if (rc)
			break;
		json_decref(event);
		n++;
	}
	return n;
}

static size_t read_fd(int fd)
{
	struct session_reader *r;
	uint64_t torn;
	int64_t from, to;
	struct err err;
	size_t n;

	if (session_reader_of_fd(fd, "f", &r, &torn, &err))
		return 0;
	n = read_all(r);
	session_rewind(r);
	id_assert(read_all(r) == n);
	if (!session_span(r, &from, &to))
		id_assert(from <= to && n);
	session_reader_free(r);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct session_marks marks = { 0 };
	uint64_t whole = 0;
	struct err err;
	size_t n;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	n = read_fd(fd);
	/* A repair takes away no event that could be read. */
	if (!session_repair(fd, "f", &marks, &whole, &err))
		id_assert(read_fd(fd) == n && whole <= size);
	free(marks.mark);
	close(fd);
	return 0;
}
