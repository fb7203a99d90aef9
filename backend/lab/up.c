/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lab is made in steps; the state file is written before the first that the
 * kernel sees and again after the last. What fails, or is interrupted, is
 * undone as a removal would: by names.
 */
#include "backend/lab/lab_impl.h"

#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/paths.h"

/* ---- what was asked for ------------------------------------------------- */

static int ask_check(const struct lab_ask *ask, struct err *err)
{
	int r = lab_name_check(ask->name, err);

	if (!r)
		r = lab_root_check(ask->root, err);
	if (r)
		return r;
	if (ask->nodes < 1 || ask->nodes > LAB_NODES_MAX)
		return err_set(err, -EINVAL, "nodes: expected 1 to %d",
			       LAB_NODES_MAX);
	if (ask->drives < 1 || ask->drives > LAB_DRIVES_MAX)
		return err_set(err, -EINVAL, "drives: expected 1 to %d a node",
			       LAB_DRIVES_MAX);
	if (!(ask->drive_bytes >= 64 * MIB && ask->drive_bytes <= 0x1p50))
		return err_set(err, -EINVAL, "size: expected 64M or more");
	return 0;
}

static int tools_check(struct err *err)
{
	static const char *const tools[] = { "ip", "tc", "sshd", "ssh-keygen" };
	char path[PATH_MAX];
	size_t i;
	int r = 0;

	for (i = 0; !r && i < array_len(tools); i++)
		r = lab_tool_find(tools[i], path, sizeof(path), err);
	return r;
}

static void lab_set(struct lab *lab, const struct lab_ask *ask)
{
	int i;

	memset(lab, 0, sizeof(*lab));
	snprintf(lab->root, sizeof(lab->root), "%s", ask->root);
	snprintf(lab->name, sizeof(lab->name), "%s", ask->name);
	lab->nodes = ask->nodes;
	lab->drives = ask->drives;
	lab->link_bytes_s = ask->link_bytes_s;
	lab->drive_bytes = ask->drive_bytes;
	for (i = 0; i < lab->nodes; i++)
		lab->node[i].rate_bytes_s = lab->link_bytes_s;
}

/* ---- the directory ------------------------------------------------------ */

/* The topmost directory that is not there yet. */
static void made_find(struct lab *lab)
{
	char *slash;

	snprintf(lab->made, sizeof(lab->made), "%s", lab->root);
	if (path_exists(lab->made)) {
		lab->made[0] = '\0';
		return;
	}
	while ((slash = strrchr(lab->made, '/')) && slash != lab->made) {
		*slash = '\0';
		if (path_exists(lab->made)) {
			*slash = '/';
			return;
		}
	}
	snprintf(lab->made, sizeof(lab->made), "%s", lab->root);
}

/* Nobody else may have a say in what root runs by. */
static int root_is_ours(const struct lab *lab, struct err *err)
{
	struct stat st;

	if (!stat(lab->root, &st) && st.st_uid == geteuid() &&
	    !(st.st_mode & 022))
		return 0;
	return err_set(err, -EPERM,
		       "%s: expected a directory that belongs to root and that "
		       "nobody else may write in; say another lab_dir",
		       lab->root);
}

static int dir_begin(const struct lab *lab, struct err *err)
{
	char path[PATH_MAX];

	lab_path(lab, "", path, sizeof(path));
	if (!mkdir(path, 0700))
		return 0;
	if (errno == EEXIST)
		return err_set(err, -EEXIST,
			       "there is a lab %s already, or what is left of "
			       "one: \"iodeck lab status\" shows it, \"iodeck "
			       "lab down name=%s\" removes it",
			       lab->name, lab->name);
	return err_set(err, -errno, "cannot make the directory %s: %s", path,
		       strerror(errno));
}

/* ---- the steps ---------------------------------------------------------- */

static int interrupted(struct err *err)
{
	sigset_t set;

	if (sigpending(&set) ||
	    !(sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
	      sigismember(&set, SIGHUP)))
		return 0;
	return err_set(err, -EINTR, "interrupted");
}

static int step_first(struct lab *lab, struct err *err)
{
	return lab_state_save(lab, err);
}

static int step_net(struct lab *lab, struct err *err)
{
	int i, r = lab_net_up(lab, err);

	for (i = 0; !r && i < lab->nodes; i++) {
		r = lab_net_join(lab, i, err);
		if (!r)
			r = interrupted(err);
	}
	return r;
}

static int step_dirs(struct lab *lab, struct err *err)
{
	return lab_files_dirs(lab, err);
}

static int step_keys(struct lab *lab, struct err *err)
{
	return lab_files_keys(lab, err);
}

static int step_texts(struct lab *lab, struct err *err)
{
	return lab_files_texts(lab, err);
}

static int step_nodes(struct lab *lab, struct err *err)
{
	int i, r = 0;

	for (i = 0; !r && i < lab->nodes; i++)
		r = lab_node_start(lab, i, err);
	for (i = 0; !r && i < lab->nodes; i++) {
		r = lab_node_wait(lab, i, err);
		if (!r)
			r = interrupted(err);
	}
	return r;
}

static int step_last(struct lab *lab, struct err *err)
{
	lab->ready = true;
	return lab_state_save(lab, err);
}

static int make(struct lab *lab, struct err *err)
{
	static int (*const steps[])(struct lab * lab, struct err * err) = {
		step_first, step_dirs,  step_keys, step_texts,
		step_net,   step_nodes, step_last,
	};
	struct err also;
	bool found;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < array_len(steps); i++) {
		r = steps[i](lab, err);
		if (!r)
			r = interrupted(err);
	}
	/* A name that is another's stays another's. */
	if (r && !lab_clear(lab, &found, &also))
		return r;
	if (r) {
		char was[400];

		snprintf(was, sizeof(was), "%.250s", err ? err->text : "");
		err_set(err, r, "%s; and it could not all be undone: %.200s",
			was, also.text);
	}
	return r;
}

/* No signal ends it half way. */
static int make_held(struct lab *lab, struct err *err)
{
	sigset_t hold, was;
	int r;

	sigemptyset(&hold);
	sigaddset(&hold, SIGINT);
	sigaddset(&hold, SIGTERM);
	sigaddset(&hold, SIGHUP);
	sigprocmask(SIG_BLOCK, &hold, &was);
	r = make(lab, err);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return r;
}

/* A lab of that name may stand in another directory. */
static int name_is_free(const char *name, struct err *err)
{
	char **names, dev[LAB_WORD];
	int r = lab_net_names(name, &names, err);

	if (r)
		return r;
	if (names[0])
		r = err_set(err, -EEXIST,
			    "the network namespace %s is there already, of a "
			    "lab in another lab_dir or what is left of one: "
			    "take another name, or remove it with \"iodeck lab "
			    "down name=%s\"",
			    names[0], name);
	else if (if_nametoindex(lab_iface(name, dev)))
		r = err_set(err, -EEXIST,
			    "the interface %s is there already: take another "
			    "name",
			    dev);
	path_list_free(names);
	return r;
}

static int make_locked(struct lab *lab, const char *net, struct err *err)
{
	int r = name_is_free(lab->name, err);

	if (!r)
		r = lab_net_choose(lab, net, err);
	if (r)
		return r;
	lab->netns_made = !path_exists(LAB_NETNS_DIR);
	made_find(lab);
	r = path_make(lab->root, err);
	if (!r)
		r = root_is_ours(lab, err);
	if (!r)
		r = dir_begin(lab, err);
	if (!r)
		return make_held(lab, err);
	lab_root_leave(lab);
	return r;
}

int lab_up(const struct lab_ask *ask, struct lab *lab, struct err *err)
{
	int r = ask_check(ask, err), lock;

	if (!r)
		r = lab_root_user("up", err);
	if (!r)
		r = tools_check(err);
	if (r)
		return r;
	lab_set(lab, ask);
	lock = lab_lock(err);
	if (lock < 0)
		return lock;
	r = make_locked(lab, ask->net, err);
	close(lock);
	return r;
}
