/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/bundle/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- here --------------------------------------------------------------- */

static void manifest_line(struct bundle *b, const char *key, const char *value)
{
	if (!strcmp(key, "hash"))
		snprintf(b->hash, sizeof(b->hash), "%.64s", value);
	else if (!strcmp(key, "bytes"))
		b->bytes = strtoull(value, NULL, 10);
	else if (!strcmp(key, "unpacked"))
		b->unpacked_bytes = strtoull(value, NULL, 10);
}

static int manifest_read(const char *path, struct bundle *b)
{
	char line[256], key[32], value[128];
	FILE *f = fopen(path, "re");

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %127s", key, value) == 2)
			manifest_line(b, key, value);
	fclose(f);
	return 0;
}

int bundle_read(const char *dir, struct bundle *b, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;
	int n, rc;

	*b = (struct bundle) { 0 };
	n = snprintf(path, sizeof(path), "%s/bundle.manifest", dir);
	if (n < 0 || n >= PATH_MAX)
		return -ENOENT;
	rc = manifest_read(path, b);
	if (rc == -ENOENT)
		return rc;
	if (rc)
		return err_set(err, rc, "%s: %s", path, strerror(-rc));
	snprintf(b->path, sizeof(b->path), "%.*s/bundle.tar.gz", PATH_MAX - 15,
		 dir);
	snprintf(b->bytes_text, sizeof(b->bytes_text), "%llu",
		 (unsigned long long)b->bytes);
	if (strspn(b->hash, "0123456789abcdef") != 64 || !b->bytes ||
	    stat(b->path, &st) || (uint64_t)st.st_size != b->bytes)
		return err_set(err, -EBADMSG,
			       "%s is not what %s says: build or install "
			       "iodeck anew",
			       b->path, path);
	return 0;
}

int bundle_find(struct bundle *b, struct err *err)
{
	char self[PATH_MAX], dir[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	snprintf(dir, sizeof(dir), "%s/../libexec/iodeck", self);
	return bundle_read(dir, b, err);
}

/* ---- there -------------------------------------------------------------- */

/*
 * One line for any POSIX shell; no backslash, '!' or apostrophe, which not all
 * login shells pass on. What is unpacked gets its name by one rename, so what
 * has the name is whole; whoever comes second at the same time finds it taken,
 * which is as good. A killed one leaves .new.HOST.PID: the next one there
 * removes it. An empty file is a program to any shell, unless its file system
 * is mounted noexec.
 */
static const char script[] =
	"h=$1 n=$2 s=$3; shift 3; "
	"p() { echo \"" BUNDLE_SAYS "$*\"; }; "
	"q() { p \"$@\"; exit 0; }; "
	"[ -n \"$s\" ] || case $XDG_STATE_HOME in "
	"/*) s=$XDG_STATE_HOME/iodeck/agent;; "
	"*) s=$HOME/.local/state/iodeck/agent;; esac; "
	"case $1 in clean) [ -d \"$s\" ] || { "
	"echo \"nothing of iodeck is in $s\"; exit 0; };; esac; "
	"d=$s/.bundle; b=$d/$h; "
	"[ -f \"$b/MANIFEST\" ] || { "
	"k=\"$(uname -s) $(uname -m)\"; "
	"[ \"$k\" = \"Linux x86_64\" ] || q other \"$k\"; "
	"for c in head tar gzip sha256sum; do "
	"command -v $c >/dev/null 2>&1 || q failed need $c; done; "
	"umask 077; "
	"e=$(mkdir -p \"$d\" 2>&1) || q failed make \"$e\"; "
	"w=$d/.new.$(uname -n).; t=$w$$; "
	"for o in \"$w\"*; do "
	"kill -0 \"${o##*.}\" 2>/dev/null || rm -rf \"$o\"; done; "
	"z() { rm -rf \"$t\"; }; "
	"trap z EXIT; trap \"exit 1\" HUP INT TERM PIPE; "
	"e=$({ mkdir \"$t\" \"$t/$h\" && : >\"$t/x\" && "
	"chmod 700 \"$t/x\"; } 2>&1) || q failed make \"$e\"; "
	"e=$(\"$t/x\" 2>&1) || q failed run \"$e\"; "
	"p absent \"$d\"; "
	"e=$({ head -c $n >\"$t/f\"; } 2>&1) || q failed write \"$e\"; "
	"k=$(sha256sum <\"$t/f\"); "
	"[ \"${k%% *}\" = $h ] || q failed hash $(wc -c <\"$t/f\"); "
	"e=$(tar -xzf \"$t/f\" -C \"$t/$h\" 2>&1) || q failed write \"$e\"; "
	"sync \"$t/$h\"/*/* 2>/dev/null; "
	"[ -f \"$b/MANIFEST\" ] || rm -rf \"$b\"; "
	"e=$(mv \"$t/$h\" \"$d/\" 2>&1) || [ -f \"$b/MANIFEST\" ] || "
	"q failed write \"$e\"; "
	"z; trap - EXIT HUP INT TERM PIPE; "
	"p placed; }; "
	"unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT; "
	"l=$b/lib; exec \"$l/ld-linux-x86-64.so.2\" --inhibit-cache "
	"--library-path \"$l\" \"$b/bin/iodeck-agent\" \"$@\"";

void bundle_words(const struct bundle *b, const char *state_dir,
		  const char *words[BUNDLE_WORDS])
{
	words[0] = "sh";
	words[1] = "-c";
	words[2] = script;
	words[3] = "iodeck";
	words[4] = b->hash;
	words[5] = b->bytes_text;
	words[6] = state_dir ? state_dir : "";
}
