/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Base64 as in key files and known_hosts (RFC 4648), padded; and the strings
 * of SSH's wire format (RFC 4251), which is what stands in it. */
#ifndef BACKEND_TRANSPORT_BASE64_H
#define BACKEND_TRANSPORT_BASE64_H

#include "engine/base.h"

/* The caller's to free(); NULL: out of memory. */
char *base64_encode(const void *bytes, size_t len);
/* Blanks are skipped, anything else ends it with -EINVAL. *bytes is the
 * caller's to free(). */
int base64_decode(const char *text, size_t text_len, uint8_t **bytes,
		  size_t *len);
/* The next string of what stands from *at to `end`; -EINVAL: there is no whole
 * one. *bytes points into it. */
int blob_string(const uint8_t **at, const uint8_t *end, const uint8_t **bytes,
		size_t *len);
bool blob_is(const uint8_t *bytes, size_t len, const char *text);

#endif
