/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bundle that came with this program: which one it is, and the words that
 * start it on a node, or ask for it there.
 */
#ifndef BACKEND_BUNDLE_BUNDLE_H
#define BACKEND_BUNDLE_BUNDLE_H

#include <limits.h>

#include "engine/base.h"

#define BUNDLE_WORDS 7               /* as bundle_words() fills them */
#define BUNDLE_SAYS "iodeck-bundle " /* what a line of its begins with */

struct bundle {
	char path[PATH_MAX]; /* of the file to be sent */
	char hash[65];       /* SHA-256 of it, its name on nodes */
	char bytes_text[24];
	uint64_t bytes, unpacked_bytes;
};

/* PREFIX/libexec/iodeck. -ENOENT without err: this iodeck came without one. */
int bundle_find(struct bundle *bundle, struct err *err);
int bundle_read(const char *dir, struct bundle *bundle, struct err *err);

/*
 * What a shell there is given, before the agent's own words. It becomes the
 * agent of this bundle where that is in place; else it says
 *
 *	iodeck-bundle other SYSTEM MACHINE      it would not run there
 *	iodeck-bundle absent DIR                and takes the file from stdin
 *	iodeck-bundle placed                    and becomes the agent
 *	iodeck-bundle failed STEP WORDS
 *
 * For `clean` nothing is brought where there is no state directory.
 *
 * state_dir: NULL the usual one. Borrowed from bundle and state_dir.
 */
void bundle_words(const struct bundle *bundle, const char *state_dir,
		  const char *words[BUNDLE_WORDS]);

#endif
