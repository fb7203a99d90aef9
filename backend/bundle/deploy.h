/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A way to the agent of a bundle: where that is not in place, it is brought
 * over first, by the same connection and command. Whoever reads sees the
 * agent's bytes alone; `via` says meanwhile how far it is, and afterwards that
 * it was.
 */
#ifndef BACKEND_BUNDLE_DEPLOY_H
#define BACKEND_BUNDLE_DEPLOY_H

#include "backend/bundle/bundle.h"
#include "backend/transport/transport.h"

/* opts->argv: bundle_words() and the agent's own, `become`'s before them.
 * bundle is copied. */
int deploy_open(const struct transport_opts *opts, const struct bundle *bundle,
		struct transport **t, struct err *err);

#endif
