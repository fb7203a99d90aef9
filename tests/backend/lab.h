/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lab for tests with the real daemon: a directory, a daemon on it, and a
 * console that counts what it hears.
 */
#ifndef TESTS_BACKEND_LAB_H
#define TESTS_BACKEND_LAB_H

#include <sys/types.h>

#include "backend/cluster/link.h"

/* That of the vDisks of a test that is run once for each: "inplace", "log". */
extern const char *lab_layout;
bool lab_is_log(void);

struct hears;
struct lab {
	char dir[64], state[80];
	char program[256];
	char name[32]; /* of the agent; "t" unless set before it is started */
};
void lab_open(struct lab *lab);
/* Ends the daemon if it lives and removes the directory. */
void lab_close(struct lab *lab);
/* For cmocka: a lab in *state, opened before a test and closed after it. */
int lab_setup(void **state);
int lab_setup_log(void **state);
int lab_teardown(void **state);
/* Starts the daemon with these options; its process id. */
pid_t lab_daemon(struct lab *lab, const char *options);
/* That of the daemon that holds the lock; 0: none. */
pid_t lab_pid(const struct lab *lab);
/* For cmocka: a test in one layout, and in each of them. */
#define LAB_TEST(t) cmocka_unit_test_setup_teardown(t, lab_setup, lab_teardown)
#define LAB_TEST_BOTH(t)                                        \
	{ #t " inplace", t, lab_setup, lab_teardown, NULL },    \
	{                                                       \
#t " log", t, lab_setup_log, lab_teardown, NULL \
	}
/* The cluster document: `domains` of two drives of `mib` each, or what the log
 * layout takes for the same. */
json_t *lab_cluster(const struct lab *lab, int domains, int mib);
/* Writes all of a vDisk, by a run of its own. */
void lab_fill(struct hears *h, const char *vdisk);
/* points of length_ms on a vDisk, after a prefill; intervals of 100 ms */
json_t *lab_plan(const char *vdisk, int points, int length_ms);

struct hears {
	struct link_conn *link;
	enum link_state state;
	char reason[512];
	json_t *hello;
	json_t *event; /* an array of all */
	int64_t last_i, last_n;
	unsigned doubles, holes;
	bool acks;
	int file; /* also written there, a line an event; -1 */
	/* chooses marks between hello and attach */
	void (*choose)(struct hears *h);
	bool answered;
	json_t *answer; /* NULL with answered: the link went */
};
struct hears_opts {
	bool watch, take, spawn, acks;
	int file;
	const int64_t (*from)[2];
	size_t from_count;
	const char *program;
	const struct node *node; /* NULL: this machine */
};
/* Turns until UP or DOWN. */
void hears_open(struct hears *h, struct lab *lab,
		const struct hears_opts *opts);
void hears_close(struct hears *h);
/* One that starts the daemon where none runs, and acknowledges: UP. */
void hears_attach(struct hears *h, struct lab *lab);
/* One turn of at most 50 ms. */
void hears_turn(struct hears *h);
/* Turns until it is so; false after timeout_s. */
bool hears_until(struct hears *h, bool (*so)(struct hears *h), int timeout_s);
/* Asks and waits for the answer (borrowed until the next); NULL: none. */
const json_t *hears_ask(struct hears *h, const char *what, json_t *body);
void hears_ask_ok(struct hears *h, const char *what, json_t *body);
/* It is refused with this code and, among others, these words. */
void hears_ask_refused(struct hears *h, const char *what, json_t *body,
		       int code, const char *why);
void hears_fault(struct hears *h, const char *text);
/* The newest event of a type whose member is this text (NULL: any). */
const json_t *hears_find(struct hears *h, const char *e, const char *member,
			 const char *value);
/* What the newest event of a vDisk says; "" or 0 where it says nothing. */
const char *hears_vdisk_text(struct hears *h, const char *vdisk,
			     const char *member);
json_int_t hears_vdisk_int(struct hears *h, const char *vdisk,
			   const char *member);
unsigned hears_count(struct hears *h, const char *e);
bool run_is_over(struct hears *h);
bool link_is_down(struct hears *h);
bool link_is_up(struct hears *h);

#endif
