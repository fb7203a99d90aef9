/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Between the files of a lab:
 *
 *   words.c  names, rates, addresses        state.c  the state file, the lock
 *   tool.c   ip, tc, ssh-keygen as children  net.c    namespaces and links
 *   pids.c   processes of a namespace
 *   node.c   what runs in a node             files.c  directories, keys, texts
 *   up.c, down.c, act.c, look.c              what a lab is asked to do
 */
#ifndef BACKEND_LAB_LAB_IMPL_H
#define BACKEND_LAB_LAB_IMPL_H

#include "backend/lab/lab.h"

#define LAB_NETNS_DIR "/run/netns"
#define LAB_SWITCH (-1) /* in place of a node's index */
#define LAB_WORD 32     /* an interface, a namespace, an address */
#define LAB_STATE_MAX (64 * 1024)

/* ---- words.c ------------------------------------------------------------- */
struct lab_range {
	uint32_t base; /* host order */
	int bits;
};
/* "10.9.8.0/24", "10.1.2.3"; -EINVAL. */
int lab_range_parse(const char *text, struct lab_range *range);
/* A /24 of the private ranges that none of the taken overlaps; -EADDRINUSE. */
int lab_net_pick(const struct lab_range *taken, size_t count, uint32_t *net);
bool lab_net_overlaps(const struct lab_range *taken, size_t count,
		      uint32_t net);
int lab_net_parse(const char *text, uint32_t *net, struct err *err);
/* The namespace of a node, or of the switch; buf of LAB_WORD. */
const char *lab_netns(const char *name, int node, char *buf);
/* The other way round: whether a namespace is one of this lab's. */
bool lab_netns_is(const char *name, const char *netns);
/* The host's interface. */
const char *lab_iface(const char *name, char *buf);
/* "n3"; buf of LAB_WORD. */
const char *lab_node_name(int node, char *buf);
/* What tbf is told. */
struct lab_shape {
	double rate_bits_s;
	unsigned burst_bytes, latency_ms;
};
struct lab_shape lab_shape(double rate_bytes_s);
/* No character in it that a file of ours would take for more than a letter. */
int lab_root_check(const char *root, struct err *err);

/* ---- state.c ------------------------------------------------------------- */
/* Both check everything: text may come from anywhere. */
int lab_state_read(const char *text, size_t len, struct lab *lab,
		   struct err *err);
char *lab_state_text(const struct lab *lab);
/* root and name of lab are set. -ENOENT none; -EUCLEAN it cannot be read. */
int lab_state_load(struct lab *lab, struct err *err);
int lab_state_save(const struct lab *lab, struct err *err);
/* Against other calls on this host; a descriptor to close, or -EBUSY. */
int lab_lock(struct err *err);

/* ---- tool.c -------------------------------------------------------------- */
/* The path of a program in PATH or where root's are; -ENOENT with what to
 * install. */
int lab_tool_find(const char *program, char *buf, size_t len, struct err *err);
/*
 * Runs argv, ended by NULL, to its end and gives what it printed (out may be
 * NULL; the caller's to free()). No shell, no terminal, at most 20 s. A failure
 * is its last words.
 */
int lab_tool_run(const char *const argv[], char **out, struct err *err);
/* The same from words. */
#define lab_run(err, ...) \
	lab_tool_run((const char *const[]) { __VA_ARGS__, NULL }, NULL, err)
#define lab_ask_tool(out, err, ...) \
	lab_tool_run((const char *const[]) { __VA_ARGS__, NULL }, out, err)

/* ---- net.c --------------------------------------------------------------- */
/* Sets lab->net: the one asked for, or one that is free. */
int lab_net_choose(struct lab *lab, const char *wish, struct err *err);
int lab_net_up(struct lab *lab, struct err *err); /* the switch */
int lab_net_join(const struct lab *lab, int node, struct err *err);
int lab_net_shape(const struct lab *lab, int node, double rate_bytes_s,
		  struct err *err);
int lab_net_link(const struct lab *lab, int node, bool up, struct err *err);
/* Bit by node: whose links have a carrier. */
int lab_net_carriers(const struct lab *lab, uint64_t *up, struct err *err);
/* Every name in the directory that is one of this lab's; NULL-terminated. */
int lab_net_names(const char *name, char ***names, struct err *err);
bool lab_net_there(const char *name, int node);
/* Removes a namespace, or the host's interface; not there: nothing to do. */
int lab_net_remove(const char *netns, struct err *err);
int lab_net_unplug(const char *name, bool *found, struct err *err);

/* ---- pids.c -------------------------------------------------------------- */
/* The pids in it, at most max; negative on errors. */
int lab_net_pids(const char *netns, int *pid, int max, struct err *err);
/* Kills all of them, and waits until they are gone. */
int lab_net_kill(const char *netns, struct err *err);

/* ---- files.c ------------------------------------------------------------- */
int lab_files_dirs(const struct lab *lab, struct err *err);
int lab_files_keys(const struct lab *lab, struct err *err);
int lab_files_texts(const struct lab *lab, struct err *err);
/* program: the agent there; NULL: along its PATH. */
char *lab_text_conf(const struct lab *lab, int node, const char *program);
char *lab_text_cluster(const struct lab *lab, const char *program);
char *lab_text_ssh(const struct lab *lab);
char *lab_text_sshd(const struct lab *lab, int node);
char *lab_text_hosts(const struct lab *lab);
/* One file whole or not at all. */
int lab_file_write(const char *path, const char *text, unsigned mode,
		   struct err *err);

/* ---- node.c -------------------------------------------------------------- */
int lab_node_start(const struct lab *lab, int node, struct err *err);
/* Until its sshd answers. */
int lab_node_wait(const struct lab *lab, int node, struct err *err);

/* ---- look.c -------------------------------------------------------------- */
/* An empty lab of that name and place, both checked. */
int lab_begin(struct lab *lab, const char *root, const char *name,
	      struct err *err);

/* ---- down.c -------------------------------------------------------------- */
/* All of it, under the lock. */
int lab_clear(struct lab *lab, bool *found, struct err *err);
/* The directories that lab->made says, as far as nothing is in them. */
void lab_root_leave(const struct lab *lab);
/* Root, or what to do. */
int lab_root_user(const char *what, struct err *err);

#endif
