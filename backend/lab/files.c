/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The directory of a lab: keys, and the files that ssh, sshd and iodeck read.
 */
#include "backend/lab/lab_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/paths.h"
#include "backend/text.h"

#define SSH_PORT 22
#define AGENT "iodeck-agent"

/* ---- one file ----------------------------------------------------------- */

static int write_all(int fd, const char *text)
{
	size_t len = strlen(text), at = 0;

	while (at < len) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) ? -errno : 0;
}

int lab_file_write(const char *path, const char *text, unsigned mode,
		   struct err *err)
{
	char part[PATH_MAX];
	int fd, r;

	snprintf(part, sizeof(part), "%.*s.new", PATH_MAX - 8, path);
	unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	r = fd < 0 ? -errno : write_all(fd, text);
	if (fd >= 0 && (fchmod(fd, mode) || close(fd)) && !r)
		r = -errno;
	if (!r && rename(part, path))
		r = -errno;
	if (!r)
		return 0;
	unlink(part);
	return err_set(err, r, "%s: %s%s", path, strerror(-r),
		       r == -ENOSPC ? ": make room there, or say another "
				      "lab_dir"
				    : "");
}

/* What a function above made of the lab, to a file below its directory. */
static int put_text(const struct lab *lab, const char *below, char *text,
		    unsigned mode, struct err *err)
{
	char path[PATH_MAX];
	int r = text ? lab_file_write(lab_path(lab, below, path, sizeof(path)),
				      text, mode, err)
		     : err_set(err, -ENOMEM, "out of memory");

	free(text);
	return r;
}

/* ---- directories -------------------------------------------------------- */

static int dir_make(const struct lab *lab, const char *below, unsigned mode,
		    struct err *err)
{
	char path[PATH_MAX];

	lab_path(lab, below, path, sizeof(path));
	if (!mkdir(path, 0700) && !chmod(path, mode))
		return 0;
	return err_set(err, -errno, "cannot make the directory %s: %s", path,
		       strerror(errno));
}

static int node_dirs(const struct lab *lab, int node, struct err *err)
{
	static const struct {
		const char *name;
		unsigned mode;
	} dirs[] = { { "", 0755 },
		     { "/etc", 0755 },
		     { "/home", 0700 },
		     { "/home/.ssh", 0700 },
		     { "/tmp", 01777 } };
	char name[LAB_WORD], below[64];
	size_t i;
	int r = 0, d;

	lab_node_name(node, name);
	for (i = 0; !r && i < array_len(dirs); i++) {
		snprintf(below, sizeof(below), "%s%s", name, dirs[i].name);
		r = dir_make(lab, below, dirs[i].mode, err);
	}
	for (d = 0; !r && d < lab->drives; d++) {
		snprintf(below, sizeof(below), "%s/d%d", name, d);
		r = dir_make(lab, below, 0700, err);
	}
	return r;
}

int lab_files_dirs(const struct lab *lab, struct err *err)
{
	int i, r = 0;

	for (i = 0; !r && i < lab->nodes; i++)
		r = node_dirs(lab, i, err);
	return r;
}

/* ---- keys --------------------------------------------------------------- */

static int key_make(const struct lab *lab, const char *below, struct err *err)
{
	char path[PATH_MAX];

	return lab_run(err, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
		       lab->name, "-f",
		       lab_path(lab, below, path, sizeof(path)));
}

int lab_files_keys(const struct lab *lab, struct err *err)
{
	char name[LAB_WORD], below[64];
	int i, r = key_make(lab, "id_ed25519", err);

	for (i = 0; !r && i < lab->nodes; i++) {
		snprintf(below, sizeof(below), "%s/etc/ssh_host_ed25519_key",
			 lab_node_name(i, name));
		r = key_make(lab, below, err);
	}
	return r;
}

/* A public key: its type and its text, without the comment; "" none. */
static void key_read(const struct lab *lab, const char *below, char *key,
		     size_t len)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	char *p;
	int fd = open(lab_path(lab, below, path, sizeof(path)),
		      O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0) {
		n = read(fd, key, len - 1);
		close(fd);
	}
	key[n > 0 ? n : 0] = '\0';
	key[strcspn(key, "\r\n")] = '\0';
	p = strchr(key, ' ');
	p = p ? strchr(p + 1, ' ') : NULL;
	if (p)
		*p = '\0';
}

/* ---- texts -------------------------------------------------------------- */

char *lab_text_hosts(const struct lab *lab)
{
	struct text t = { 0 };
	char address[LAB_WORD];
	int i;

	text_add(&t, "127.0.0.1 localhost\n::1 localhost\n%s console\n",
		 lab_address(lab, -1, address, sizeof(address)));
	for (i = 0; i < lab->nodes; i++)
		text_add(&t, "%s n%d\n",
			 lab_address(lab, i, address, sizeof(address)), i + 1);
	return text_take(&t);
}

char *lab_text_sshd(const struct lab *lab, int node)
{
	struct text t = { 0 };
	char address[LAB_WORD];

	text_add(&t,
		 "# Node n%d of the lab %s.\n"
		 "ListenAddress %s\n"
		 "Port %d\n"
		 "HostKey %s/%s/n%d/etc/ssh_host_ed25519_key\n"
		 "PidFile none\n"
		 "UsePAM no\n"
		 "AllowUsers root\n"
		 "PermitRootLogin prohibit-password\n"
		 "AuthenticationMethods publickey\n"
		 "AuthorizedKeysFile .ssh/authorized_keys\n"
		 "UseDNS no\n"
		 "PrintMotd no\n"
		 "Subsystem sftp internal-sftp\n",
		 node + 1, lab->name,
		 lab_address(lab, node, address, sizeof(address)), SSH_PORT,
		 lab->root, lab->name, node + 1);
	return text_take(&t);
}

char *lab_text_ssh(const struct lab *lab)
{
	struct text t = { 0 };
	char address[LAB_WORD], dir[PATH_MAX];
	int i;

	lab_path(lab, "", dir, sizeof(dir));
	text_add(&t, "# The nodes of the lab %s: ssh -F %s/ssh_config n1\n",
		 lab->name, dir);
	for (i = 0; i < lab->nodes; i++)
		text_add(&t, "Host n%d\n  HostName %s\n", i + 1,
			 lab_address(lab, i, address, sizeof(address)));
	text_add(&t,
		 "Host *\n"
		 "  User root\n"
		 "  Port %d\n"
		 "  IdentityFile %s/id_ed25519\n"
		 "  IdentitiesOnly yes\n"
		 "  IdentityAgent none\n"
		 "  UserKnownHostsFile %s/known_hosts\n"
		 "  GlobalKnownHostsFile none\n"
		 "  StrictHostKeyChecking yes\n"
		 "  UpdateHostKeys no\n"
		 "  PasswordAuthentication no\n"
		 "  KbdInteractiveAuthentication no\n",
		 SSH_PORT, dir, dir);
	return text_take(&t);
}

static char *text_known(const struct lab *lab)
{
	struct text t = { 0 };
	char address[LAB_WORD], below[64], key[1024];
	int i;

	for (i = 0; i < lab->nodes; i++) {
		snprintf(below, sizeof(below),
			 "n%d/etc/ssh_host_ed25519_key.pub", i + 1);
		key_read(lab, below, key, sizeof(key));
		text_add(&t, "n%d,%s %s\n", i + 1,
			 lab_address(lab, i, address, sizeof(address)), key);
	}
	return text_take(&t);
}

/* A drive is a fault domain, so that one node can hold what takes several. */
static void conf_domains(const struct lab *lab, int node, struct text *t)
{
	char dir[PATH_MAX];
	int d;

	lab_path(lab, "", dir, sizeof(dir));
	for (d = 0; d < lab->drives; d++)
		text_add(t,
			 "    { name = \"d%d\"; drives = ( { name = \"d0\";\n"
			 "        path = \"%s/n%d/d%d\";\n"
			 "        size = %.0fL; } ); }%s\n",
			 d, dir, node + 1, d, lab->drive_bytes,
			 d + 1 < lab->drives ? "," : "");
}

/* A node is one. */
static void conf_nodes(const struct lab *lab, struct text *t)
{
	char dir[PATH_MAX], address[LAB_WORD];
	int i, d;

	lab_path(lab, "", dir, sizeof(dir));
	for (i = 0; i < lab->nodes; i++) {
		text_add(t,
			 "    { name = \"n%d\";\n"
			 "      node = { host = \"n%d\"; address = \"%s\"; };\n"
			 "      drives = (\n",
			 i + 1, i + 1,
			 lab_address(lab, i, address, sizeof(address)));
		for (d = 0; d < lab->drives; d++)
			text_add(t,
				 "        { name = \"d%d\"; path = "
				 "\"%s/n%d/d%d\"; size = %.0fL; }%s\n",
				 d, dir, i + 1, d, lab->drive_bytes,
				 d + 1 < lab->drives ? "," : "");
		text_add(t, "      ); }%s\n", i + 1 < lab->nodes ? "," : "");
	}
}

/* How each of them is reached. */
static void conf_way(const struct lab *lab, const char *program, struct text *t)
{
	char dir[PATH_MAX];

	lab_path(lab, "", dir, sizeof(dir));
	text_add(t,
		 "    port = %d; user = \"root\"; transport = \"auto\";\n"
		 "    identity = \"%s/id_ed25519\";\n"
		 "    ssh_config = \"%s/ssh_config\";\n",
		 SSH_PORT, dir, dir);
	if (program)
		text_add(t, "    program = \"%s\";\n", program);
	text_add(t, "  };\n  domains = (\n");
}

static void conf_end(struct text *t)
{
	text_add(t, "  );\n"
		    "  policies = (\n"
		    "    { name = \"mirror\"; raid = 1; },\n"
		    "    { name = \"parity\"; raid = 5; },\n"
		    "    { name = \"double\"; raid = 6; }\n"
		    "  );\n"
		    "};\n");
}

char *lab_text_conf(const struct lab *lab, int node, const char *program)
{
	struct text t = { 0 };

	text_add(&t,
		 "# Node n%d of the lab %s as a cluster, iodeck.conf(5).\n"
		 "cluster = {\n"
		 "  name = \"iodeck-%s-n%d\";\n"
		 "  title = \"Node n%d of the lab %s\";\n"
		 "  node = {\n"
		 "    host = \"n%d\";\n",
		 node + 1, lab->name, lab->name, node + 1, node + 1, lab->name,
		 node + 1);
	conf_way(lab, program, &t);
	conf_domains(lab, node, &t);
	conf_end(&t);
	return text_take(&t);
}

char *lab_text_cluster(const struct lab *lab, const char *program)
{
	struct text t = { 0 };

	text_add(&t,
		 "# The lab %s as one cluster, iodeck.conf(5).\n"
		 "cluster = {\n"
		 "  name = \"%s\";\n"
		 "  title = \"The lab %s, %d nodes\";\n"
		 "  node = {\n",
		 lab->name, lab->name, lab->name, lab->nodes);
	conf_way(lab, program, &t);
	conf_nodes(lab, &t);
	conf_end(&t);
	return text_take(&t);
}

/* The agent that belongs to this program, which nodes see in the same place. */
static const char *agent_find(char *buf, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", buf, len - 1);
	char *slash;

	buf[n > 0 ? n : 0] = '\0';
	slash = strrchr(buf, '/');
	if (!slash || (size_t)(slash - buf) + sizeof("/" AGENT) > len)
		return NULL;
	memcpy(slash, "/" AGENT, sizeof("/" AGENT));
	return !access(buf, X_OK) && !lab_root_check(buf, NULL) ? buf : NULL;
}

static char *text_line(const char *line)
{
	struct text t = { 0 };

	text_add(&t, "%s\n", line);
	return text_take(&t);
}

static char *text_name(int node)
{
	char name[LAB_WORD];

	return text_line(lab_node_name(node, name));
}

/* ---- all of them -------------------------------------------------------- */

static int node_texts(const struct lab *lab, int node, const char *key,
		      const char *program, struct err *err)
{
	const struct {
		const char *name;
		char *text;
		unsigned mode;
	} files[] = {
		{ "etc/sshd_config", lab_text_sshd(lab, node), 0644 },
		{ "etc/hosts", lab_text_hosts(lab), 0644 },
		{ "etc/hostname", text_name(node), 0644 },
		{ "etc/shadow", strdup("root:*:19000:0:99999:7:::\n"), 0600 },
		{ "iodeck.conf", lab_text_conf(lab, node, program), 0600 },
		{ "home/.ssh/authorized_keys", text_line(key), 0600 },
	};
	char below[64];
	size_t i;
	int r = 0;

	for (i = 0; i < array_len(files); i++) {
		snprintf(below, sizeof(below), "n%d/%s", node + 1,
			 files[i].name);
		if (r)
			free(files[i].text);
		else
			r = put_text(lab, below, files[i].text, files[i].mode,
				     err);
	}
	return r;
}

int lab_files_texts(const struct lab *lab, struct err *err)
{
	char key[1024], path[PATH_MAX];
	const char *program = agent_find(path, sizeof(path));
	int i, r;

	key_read(lab, "id_ed25519.pub", key, sizeof(key));
	r = put_text(lab, "ssh_config", lab_text_ssh(lab), 0600, err);
	if (!r)
		r = put_text(lab, "known_hosts", text_known(lab), 0600, err);
	if (!r)
		r = put_text(lab, "iodeck.conf", lab_text_cluster(lab, program),
			     0600, err);
	for (i = 0; !r && i < lab->nodes; i++)
		r = node_texts(lab, i, key, program, err);
	return r;
}
