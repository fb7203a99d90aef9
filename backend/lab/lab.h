/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lab for rehearsal: nodes made of namespaces on this host, each with an
 * sshd, a link of a stated rate and drives of its own. Needs root and Linux.
 *
 *    host                switch (a namespace)          node n1 (namespaces)
 *  +------+  veth   +----------------------------+  veth  +----------------+
 *  | .1   |---------| host      br0           n1 |--------| eth0 .11  sshd |
 *  +------+         |            |               |  tbf   +----------------+
 *  iodeck-NAME      |            +----------- n2 |--------| eth0 .12  sshd |
 *                   +----------------------------+  tbf   +----------------+
 *
 * The switch is a namespace too, so that neither a firewall nor a manager of
 * networks on the host sees more than the one interface, and so that it goes as
 * a whole. Namespaces are called iodeck-NAME-switch and iodeck-NAME-n1..., and
 * all else stands in one directory, ROOT/NAME:
 *
 *   state.json     what was made, and what has been done to it since
 *   ssh_config, known_hosts, id_ed25519   `ssh -F ROOT/NAME/ssh_config n1`
 *   iodeck.conf    all nodes as one cluster
 *   n1/            home, tmp, etc of the node, its log, its drives d0..., and
 *                  iodeck.conf, which is the node as a cluster
 *
 * What runs in a node sees its own of these, its own process table and host
 * name, and the host's other files: a node is no container, and root there is
 * root here.
 *
 * A removal goes by names, never by what a file says, so that it also clears
 * away what was half made, or what a restart of the host has left. All calls
 * block, for seconds where a lab is made; none may be made from a prompt.
 */
#ifndef BACKEND_LAB_LAB_H
#define BACKEND_LAB_LAB_H

#include <limits.h>

#include "engine/base.h"

#define LAB_NODES_MAX 64
#define LAB_DRIVES_MAX 16
#define LAB_NAME_MAX 9 /* with its end: interface names have 15 characters */
#define LAB_ROOT "/var/lib/iodeck/lab"

/* What has been done to a node. */
struct lab_node {
	bool failed, cut;
	double rate_bytes_s; /* of its link, now */
};

struct lab {
	char root[PATH_MAX];
	char made[PATH_MAX]; /* the topmost directory made for root; "" none */
	char name[LAB_NAME_MAX];
	uint32_t net; /* of a /24, in host order */
	int nodes, drives;
	double link_bytes_s; /* as asked for */
	double drive_bytes;
	bool ready;      /* made to its end */
	bool netns_made; /* the directory of names was not there before */
	struct lab_node node[LAB_NODES_MAX];
};

struct lab_ask {
	const char *root, *name;
	const char *net; /* "10.9.8.0/24"; NULL: one that is free is chosen */
	int nodes, drives;
	double link_bytes_s, drive_bytes;
};

/*
 * Makes a lab; on success *lab says what came of it. A failure, or a signal
 * that would end the program, undoes what was made. -EPERM not root or not
 * permitted, -ENOENT a program is missing, -EEXIST the name is in use, -EBUSY
 * another call is at work, -EADDRINUSE the addresses are, -EINVAL.
 */
int lab_up(const struct lab_ask *ask, struct lab *lab, struct err *err);

/* Removes all of it, whatever there is of it; *found: there was anything. */
int lab_down(const char *root, const char *name, bool *found, struct err *err);

enum lab_deed {
	LAB_FAIL, /* kills all that runs in the node, takes its link down */
	LAB_CUT,  /* takes its link down */
	LAB_SLOW, /* holds its link to a rate */
	LAB_HEAL, /* ends all three: link up at the lab's rate, sshd started */
};
/* node: "n3", or "*" for all. *lab: as it is now. */
int lab_act(const char *root, const char *name, const char *node,
	    enum lab_deed deed, double rate_bytes_s, struct lab *lab,
	    struct err *err);

/* A lab as the kernel has it, beside what the state says. */
struct lab_look {
	bool there;    /* its namespace */
	bool carrier;  /* its link is up */
	int processes; /* in it */
};
/* -ENOENT no such lab. look: LAB_NODES_MAX of them. */
int lab_look(const char *root, const char *name, struct lab *lab,
	     struct lab_look *look, struct err *err);
/* The names in root, sorted; the caller's to free, each and all, with
 * path_list_free(). No root: none. */
int lab_names(const char *root, char ***names, struct err *err);

/* ---- words: lab/words.c, pure -------------------------------------------- */
/* 1 to 8 letters and digits, small ones, a letter first. */
int lab_name_check(const char *name, struct err *err);
/* "n3" of this lab: its index. */
int lab_node_find(const struct lab *lab, const char *text, struct err *err);
/* A rate as in iodeck.conf(5), within what a link can be held to. */
int lab_rate(const char *text, double *bytes_s, struct err *err);
/* "10 Gbit/s". Returns buf. */
const char *lab_rate_text(double bytes_s, char *buf, size_t len);
/* node 0..: "10.9.8.11"; -1: the host's. Returns buf. */
const char *lab_address(const struct lab *lab, int node, char *buf, size_t len);
/* ROOT/NAME, and what is in it; returns buf, cut where it is too short. */
const char *lab_path(const struct lab *lab, const char *below, char *buf,
		     size_t len);

#endif
