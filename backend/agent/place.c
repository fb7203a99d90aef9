/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

char *place_state_dir(void)
{
	const char *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char *dir = NULL;
	int rc = -1;

	if (xdg && *xdg == '/')
		rc = asprintf(&dir, "%s/iodeck/agent", xdg);
	else if (home && *home == '/')
		rc = asprintf(&dir, "%s/.local/state/iodeck/agent", home);
	return rc < 0 ? NULL : dir;
}

int place_name_check(const char *name, struct err *err)
{
	size_t len = strlen(name);
	size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-");

	if (!len || len > 63 || good != len || name[0] == '.')
		return err_set(err, -EINVAL,
			       "agent name: 1 to 63 letters, digits, dots, "
			       "dashes and underlines, no dot first");
	return 0;
}

/* mkdir -p, the last one of this user alone. */
static int dirs_make(const char *path)
{
	char *copy = strdup(path);
	int rc = 0;

	if (!copy)
		return -ENOMEM;
	for (char *at = copy + 1; *at && !rc; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			rc = -errno;
		*at = '/';
	}
	if (!rc && mkdir(copy, 0700) && errno != EEXIST)
		rc = -errno;
	free(copy);
	return rc;
}

/* Opens a directory that is ours alone, made if it is not there. */
static int dir_own(int at, const char *name)
{
	struct stat st;
	int fd, rc;

	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) ? -errno : 0;
	if (!rc && st.st_uid != geteuid())
		rc = -EACCES;
	if (!rc && (st.st_mode & 077) && fchmod(fd, 0700))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int place_open(const char *state_dir, const char *name, struct place *place,
	       struct err *err)
{
	int rc, top;

	*place = (struct place) { .dirfd = -1, .lockfd = -1 };
	rc = place_name_check(name, err);
	if (rc)
		return rc;
	snprintf(place->name, sizeof(place->name), "%s", name);
	rc = dirs_make(state_dir);
	top = rc ? rc : dir_own(AT_FDCWD, state_dir);
	if (top >= 0) {
		place->dirfd = dir_own(top, name);
		close(top);
	}
	rc = top < 0 ? top : place->dirfd;
	if (rc < 0)
		return err_set(err, rc,
			       "state directory %s/%s: %s; --state-dir names "
			       "another",
			       state_dir, name, strerror(-rc));
	return 0;
}

void place_close(struct place *place)
{
	if (place->lockfd >= 0)
		close(place->lockfd);
	if (place->dirfd >= 0)
		close(place->dirfd);
	place->lockfd = place->dirfd = -1;
}

int place_lock(struct place *place, struct err *err)
{
	char pid[24];
	int rc, len;

	place->lockfd = openat(place->dirfd, "lock",
			       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (place->lockfd < 0) {
		rc = -errno;
		return err_set(err, rc, "lock file: %s", strerror(-rc));
	}
	if (flock(place->lockfd, LOCK_EX | LOCK_NB)) {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
		return err_set(err, rc,
			       rc == -EBUSY ? "an agent named %s runs already"
					    : "agent %s: cannot lock",
			       place->name);
	}
	len = snprintf(pid, sizeof(pid), "%20ld\n", (long)getpid());
	if (pwrite(place->lockfd, pid, (size_t)len, 0) != len)
		return 0; /* for people only: a full disk may not stop us */
	return 0;
}

/* ---- the socket --------------------------------------------------------- */

static const struct sockaddr_un sock_name = {
	.sun_family = AF_UNIX,
	.sun_path = "sock",
};

/* Calls bind() or connect() from inside the directory. */
static int sock_name_use(const struct place *place, int fd,
			 int (*use)(int, const struct sockaddr *, socklen_t))
{
	int was = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (fchdir(place->dirfd))
		rc = -errno;
	else if (use(fd, (const struct sockaddr *)&sock_name,
		     sizeof(sock_name)))
		rc = -errno;
	if (was < 0 || fchdir(was)) {
		if (chdir("/") && !rc)
			rc = -errno;
	}
	if (was >= 0)
		close(was);
	return rc;
}

int place_listen(struct place *place, struct err *err)
{
	int fd, rc;

	unlinkat(place->dirfd, sock_name.sun_path, 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : sock_name_use(place, fd, bind);
	if (!rc && fchmodat(place->dirfd, sock_name.sun_path, 0600, 0))
		rc = -errno;
	if (!rc && listen(fd, 16))
		rc = -errno;
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return err_set(err, rc, "socket of agent %s: %s", place->name,
		       strerror(-rc));
}

void place_unlisten(struct place *place)
{
	unlinkat(place->dirfd, sock_name.sun_path, 0);
}

int place_connect(struct place *place)
{
	int fd, rc;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = sock_name_use(place, fd, connect);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

bool place_peer_is_us(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       cred.uid == geteuid();
}

/* ---- files -------------------------------------------------------------- */

int place_spool(struct place *place, struct err *err)
{
	int fd = dir_own(place->dirfd, "spool");

	if (fd < 0)
		return err_set(err, fd, "spool of agent %s: %s", place->name,
			       strerror(-fd));
	return fd;
}

int place_log(struct place *place)
{
	struct stat st;
	int fd;

	fd = openat(place->dirfd, "log",
		    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_size > (off_t)MIB && ftruncate(fd, 0))
		return fd; /* then it grows on */
	return fd;
}
