/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether terminfo describes a terminal: asked before newterm(), which leaves
 * memory behind when it fails.
 */
#ifndef TUI_TERM_KNOWN_H
#define TUI_TERM_KNOWN_H

#include "engine/base.h"

bool term_known(const char *name);

#endif
