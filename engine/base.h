/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What every file may use: attributes behind macros, an assertion that stays
 * on in release builds, and the error sentence.
 */
#ifndef ENGINE_BASE_H
#define ENGINE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define ID_UNUSED __attribute__((unused))
#define ID_WARN_UNUSED __attribute__((warn_unused_result))
#define ID_HOT __attribute__((hot))
#define ID_CACHELINE __attribute__((aligned(64)))
#define id_likely(x) __builtin_expect(!!(x), 1)
#define id_unlikely(x) __builtin_expect(!!(x), 0)

#define array_len(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

#define KIB (1024ull)
#define MIB (1024ull * KIB)
#define GIB (1024ull * MIB)
#define USEC_NS (1000ull)
#define MSEC_NS (1000ull * USEC_NS)
#define SEC_NS (1000ull * MSEC_NS)

/*
 * A mistake of the program, never of its input: says where and aborts, in
 * release builds too.
 */
#define id_assert(cond)                                              \
	do {                                                         \
		if (id_unlikely(!(cond)))                            \
			id_assert_failed(#cond, __FILE__, __LINE__); \
	} while (0)
_Noreturn void id_assert_failed(const char *cond, const char *file, int line);

/*
 * The sentence for people, written once, where the failure is understood:
 * what, where, why, and what to do. Callers pass it up unchanged. A caller
 * that does not care passes NULL.
 */
struct err {
	int code; /* negative errno, 0 when unset */
	char text[512];
};

/* Sets err (may be NULL) and returns code, so `return err_set(...)` reads. */
int err_set(struct err *err, int code, const char *fmt, ...) ID_PRINTF(3, 4);
/* An analyser does not look into a function of `...`: it sees the code. */
#ifdef __clang_analyzer__
void err_seen(struct err *err, const char *fmt, ...) ID_PRINTF(2, 3);
#define err_set(err, code, ...) (err_seen(err, __VA_ARGS__), (code))
#endif

#endif
