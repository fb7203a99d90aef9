/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/base64.h"

#include <stdlib.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "abcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t len)
{
	const uint8_t *in = bytes;
	char *text = malloc((len + 2) / 3 * 4 + 1), *to = text;
	uint32_t bits;

	if (!text)
		return NULL;
	for (size_t k = 0; k < len; k += 3) {
		bits = (uint32_t)in[k] << 16;
		if (k + 1 < len)
			bits |= (uint32_t)in[k + 1] << 8;
		if (k + 2 < len)
			bits |= in[k + 2];
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = k + 1 < len ? letters[bits >> 6 & 63] : '=';
		*to++ = k + 2 < len ? letters[bits & 63] : '=';
	}
	*to = '\0';
	return text;
}

int base64_decode(const char *text, size_t text_len, uint8_t **bytes,
		  size_t *len)
{
	uint8_t *out = malloc(text_len / 4 * 3 + 3);
	uint32_t bits = 0;
	unsigned have = 0;
	size_t n = 0;

	if (!out)
		return -ENOMEM;
	for (size_t k = 0; k < text_len && text[k] != '='; k++) {
		const char *letter = text[k] ? strchr(letters, text[k]) : NULL;

		if (text[k] && strchr(" \t\r\n", text[k]))
			continue;
		if (!letter) {
			free(out);
			return -EINVAL;
		}
		bits = bits << 6 | (uint32_t)(letter - letters);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (uint8_t)(bits >> have);
		}
	}
	*bytes = out;
	*len = n;
	return 0;
}

int blob_string(const uint8_t **at, const uint8_t *end, const uint8_t **bytes,
		size_t *len)
{
	const uint8_t *p = *at;
	uint32_t n;

	if (end - p < 4)
		return -EINVAL;
	n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
	    p[3];
	if (n > (size_t)(end - p) - 4)
		return -EINVAL;
	*bytes = p + 4;
	*len = n;
	*at = p + 4 + n;
	return 0;
}

bool blob_is(const uint8_t *bytes, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(bytes, text, len);
}
