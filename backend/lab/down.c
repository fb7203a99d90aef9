/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lab is removed by the names of its parts: all processes, all namespaces,
 * the interface, the directory, and what was made to hold these. It can be done
 * again after whatever stopped it.
 */
#include "backend/lab/lab_impl.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/paths.h"

int lab_root_user(const char *what, struct err *err)
{
	if (!geteuid())
		return 0;
	return err_set(err, -EPERM,
		       "lab %s: only root makes and changes labs: sudo iodeck "
		       "lab %s ...",
		       what, what);
}

/* The switch last: as long as it is there, so is what tells of the lab. */
static int namespaces_clear(const char *name, bool *found, struct err *err)
{
	char **names, sw[LAB_WORD];
	int i, pass, r = lab_net_names(name, &names, err);

	if (r)
		return r;
	lab_netns(name, LAB_SWITCH, sw);
	for (i = 0; !r && names[i]; i++)
		r = lab_net_kill(names[i], err);
	if (!r)
		r = lab_net_unplug(name, found, err);
	for (pass = 0; !r && pass < 2; pass++)
		for (i = 0; !r && names[i]; i++)
			if (!strcmp(names[i], sw) == (pass == 1)) {
				*found = true;
				r = lab_net_remove(names[i], err);
			}
	path_list_free(names);
	return r;
}

/*
 * The directory of names is a mount on itself, made with the first name. Both
 * calls fail where anybody's name is in it.
 */
static void netns_dir_leave(void)
{
	if (!umount2(LAB_NETNS_DIR, UMOUNT_NOFOLLOW))
		rmdir(LAB_NETNS_DIR);
}

void lab_root_leave(const struct lab *lab)
{
	char path[PATH_MAX], *slash;

	if (!lab->made[0])
		return;
	snprintf(path, sizeof(path), "%s", lab->root);
	while (!rmdir(path) && strlen(path) > strlen(lab->made) &&
	       (slash = strrchr(path, '/')))
		*slash = '\0';
}

/* A directory of another's, in a place of ours, is left. */
static int directory_clear(const struct lab *lab, bool *found, struct err *err)
{
	char path[PATH_MAX];
	struct stat st;

	lab_path(lab, "", path, sizeof(path));
	if (lstat(path, &st))
		return 0;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, -EPERM,
			       "%s is no directory that a lab made: remove it "
			       "by hand",
			       path);
	*found = true;
	return path_remove(path, err);
}

int lab_clear(struct lab *lab, bool *found, struct err *err)
{
	int r;

	*found = false;
	r = namespaces_clear(lab->name, found, err);
	if (!r)
		r = directory_clear(lab, found, err);
	if (r)
		return r;
	if (lab->netns_made)
		netns_dir_leave();
	lab_root_leave(lab);
	return 0;
}

int lab_down(const char *root, const char *name, bool *found, struct err *err)
{
	struct lab lab;
	int r, lock;

	*found = false;
	r = lab_begin(&lab, root, name, err);
	if (!r)
		r = lab_root_user("down", err);
	if (r)
		return r;
	lock = lab_lock(err);
	if (lock < 0)
		return lock;
	/* What it says of things besides the lab, if it can. */
	if (lab_state_load(&lab, NULL)) {
		lab.made[0] = '\0';
		lab.netns_made = false;
	}
	r = lab_clear(&lab, found, err);
	close(lock);
	return r;
}
