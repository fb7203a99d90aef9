/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/conf.h"
#include "backend/config_node.h"
#include "backend/paths.h"

/* ---- the cluster -------------------------------------------------------- */

static const struct conf_member shape_members[] = {
	{ "rate", CONF_RATE, "rate_bytes_s", false, 0, 0, NULL },
	{ "iops", CONF_NUMBER, "rate_iops", false, 0, 1e9, NULL },
	{ "latency_us", CONF_NUMBER, NULL, false, 0, 1e7, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member drive_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "path", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "size", CONF_BYTES, "size_bytes", false, 0, 0, NULL },
	{ "shape", CONF_GROUP, NULL, false, 0, 0, shape_members },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member node_members[] = {
	{ "host", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "user", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "port", CONF_INT, NULL, false, 1, 65535, NULL },
	{ "identity", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "ssh_config", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "transport", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "become", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "program", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "state_dir", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "address", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "nbd_ports", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member domain_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "node", CONF_GROUP, NULL, false, 0, 0, node_members },
	{ "link", CONF_GROUP, NULL, false, 0, 0, shape_members },
	{ "drives", CONF_LIST, NULL, true, 0, 0, drive_members },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member policy_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "raid", CONF_INT, NULL, true, 0, 6, NULL },
	{ "ftt", CONF_INT, NULL, false, 0, 3, NULL },
	{ "k", CONF_INT, NULL, false, 1, 16, NULL },
	{ "stripe_unit", CONF_BYTES, "stripe_unit_bytes", false, 4096, 1 << 20,
	  NULL },
	{ "layout", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "compression", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member vdisk_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "size", CONF_BYTES, "size_bytes", true, 1 << 20, 0x1p60, NULL },
	{ "policy", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "raid", CONF_INT, NULL, false, 0, 6, NULL },
	{ "ftt", CONF_INT, NULL, false, 0, 3, NULL },
	{ "k", CONF_INT, NULL, false, 1, 16, NULL },
	{ "stripe_unit", CONF_BYTES, "stripe_unit_bytes", false, 4096, 1 << 20,
	  NULL },
	{ "layout", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "compression", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "owner", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};
static const struct conf_member cluster_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "title", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "node", CONF_GROUP, NULL, false, 0, 0, node_members },
	{ "domains", CONF_LIST, NULL, true, 0, 0, domain_members },
	{ "policies", CONF_LIST, NULL, false, 0, 0, policy_members },
	{ "vdisks", CONF_LIST, NULL, false, 0, 0, vdisk_members },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};

/* Names end up in file names, sockets and commands. */
static bool name_is_good(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n && n < 32 && !name[n] && name[0] != '.' && name[0] != '-';
}

/* Every name good and used once; `at` is the libconfig list of the objects. */
static int check_names(const config_setting_t *at, struct err *err)
{
	const char *name, *other;
	int i, j;

	for (i = 0; at && i < config_setting_length(at); i++) {
		config_setting_t *s = config_setting_get_elem(at, (unsigned)i);

		if (!config_setting_lookup_string(s, "name", &name))
			continue;
		if (!name_is_good(name))
			return conf_bad(s, err,
					"name \"%s\": expected 1 to 31 "
					"letters, digits, '.', '_' or '-'",
					name);
		for (j = 0; j < i; j++)
			if (config_setting_lookup_string(
				    config_setting_get_elem(at, (unsigned)j),
				    "name", &other) &&
			    !strcmp(name, other))
				return conf_bad(s, err,
						"\"%s\" is named twice: "
						"expected each name once",
						name);
	}
	return 0;
}

int config_word(const config_setting_t *s, const char *key,
		const char *const *words, struct err *err)
{
	const char *is, *const *w = words;
	char list[64] = "";
	size_t at = 0;

	if (!config_setting_lookup_string(s, key, &is))
		return 0;
	for (; *w && strcmp(is, *w) != 0; w++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       w == words ? ""
				       : w[1]     ? ", "
						  : " or ",
				       *w);
	return *w ? 0
		  : conf_bad(config_setting_get_member(s, key), err,
			     "%s \"%s\": expected %s", key, is, list);
}

/* What the levels and layouts have; the agent checks what goes together. */
static int check_policies(const config_setting_t *list, struct err *err)
{
	static const char *const layouts[] = { "log", "inplace", NULL };
	static const char *const codecs[] = { "none", "lz4", "zstd", NULL };
	int i, raid;

	for (i = 0; list && i < config_setting_length(list); i++) {
		config_setting_t *s =
			config_setting_get_elem(list, (unsigned)i);
		int r = config_word(s, "layout", layouts, err);

		if (!r)
			r = config_word(s, "compression", codecs, err);
		if (r)
			return r;
		if (config_setting_lookup_int(s, "raid", &raid) && raid != 0 &&
		    raid != 1 && raid != 5 && raid != 6)
			return conf_bad(config_setting_get_member(s, "raid"),
					err, "raid: expected 0, 1, 5 or 6");
	}
	return 0;
}

/* Where the home directory of another machine is nobody here knows. */
static int check_drive_paths(json_t *cluster)
{
	bool all_there = config_there(json_object_get(cluster, "node")), there;
	json_t *domain, *drive;
	char path[PATH_MAX];
	size_t i, j;

	json_array_foreach(json_object_get(cluster, "domains"), i, domain) {
		there = all_there ||
			config_there(json_object_get(domain, "node"));
		json_array_foreach(json_object_get(domain, "drives"), j,
				   drive) {
			const char *given = json_string_value(
				json_object_get(drive, "path"));

			if (there && *given != '/')
				return -EINVAL;
			if (path_expand(given, path, sizeof(path)))
				return -ENAMETOOLONG;
			json_object_set_new(drive, "path", json_string(path));
		}
	}
	return 0;
}

static int check_vdisk_policies(const config_setting_t *cluster,
				struct err *err)
{
	config_setting_t *vdisks = config_setting_get_member(cluster, "vdisks");
	config_setting_t *policies =
		config_setting_get_member(cluster, "policies");
	const char *name, *other;
	int i, j, n, raid;

	for (i = 0; vdisks && i < config_setting_length(vdisks); i++) {
		config_setting_t *s =
			config_setting_get_elem(vdisks, (unsigned)i);

		if (!config_setting_lookup_string(s, "policy", &name)) {
			if (config_setting_lookup_int(s, "raid", &raid))
				continue;
			return conf_bad(s, err, "expected policy or raid here");
		}
		n = policies ? config_setting_length(policies) : 0;
		for (j = 0; j < n; j++)
			if (config_setting_lookup_string(
				    config_setting_get_elem(policies,
							    (unsigned)j),
				    "name", &other) &&
			    !strcmp(name, other))
				break;
		if (j == n)
			return conf_bad(config_setting_get_member(s, "policy"),
					err,
					"policy \"%s\" is not among the "
					"policies: expected one of them",
					name);
	}
	return 0;
}

static int cluster_check(const config_setting_t *s, json_t *cluster,
			 struct err *err)
{
	const config_setting_t *domains =
		config_setting_get_member(s, "domains");
	int i, r;

	if (!name_is_good(json_string_value(json_object_get(cluster, "name"))))
		return conf_bad(config_setting_get_member(s, "name"), err,
				"name: expected 1 to 31 letters, digits, '.', "
				"'_' or '-'");
	if (!config_setting_length(domains))
		return conf_bad(domains, err, "domains: expected at least one");
	r = check_names(domains, err);
	for (i = 0; !r && i < config_setting_length(domains); i++)
		r = check_names(
			config_setting_get_member(
				config_setting_get_elem(domains, (unsigned)i),
				"drives"),
			err);
	if (!r)
		r = check_names(config_setting_get_member(s, "policies"), err);
	if (!r)
		r = check_names(config_setting_get_member(s, "vdisks"), err);
	if (!r)
		r = check_policies(config_setting_get_member(s, "policies"),
				   err);
	if (!r)
		r = check_policies(config_setting_get_member(s, "vdisks"), err);
	if (!r)
		r = check_vdisk_policies(s, err);
	if (!r)
		r = config_nodes_check(s, cluster, err);
	if (r)
		return r;
	r = check_drive_paths(cluster);
	if (r == -EINVAL)
		r = conf_bad(s, err,
			     "a drive's path, on a node: expected one that "
			     "begins with /");
	else if (r)
		r = conf_bad(s, err, "a drive's path is too long");
	return r;
}

static int cluster_read(const config_setting_t *s, struct config *config,
			struct err *err)
{
	json_t *cluster;
	int r;

	r = conf_object(s, cluster_members, &cluster, err);
	if (r)
		return r;
	r = cluster_check(s, cluster, err);
	if (r) {
		json_decref(cluster);
		return r;
	}
	config_nodes_take(cluster, &config->node, &config->nodes);
	json_object_set_new(cluster, "virtual", json_false());
	json_object_set_new(cluster, "create", json_true());
	config->cluster = cluster;
	return 0;
}

/* ---- options ------------------------------------------------------------ */

static void setting_text(const config_setting_t *s, char *buf, size_t len)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		snprintf(buf, len, "%lld", config_setting_get_int64(s));
		break;
	case CONFIG_TYPE_FLOAT:
		snprintf(buf, len, "%.9g", config_setting_get_float(s));
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(buf, len, "%s",
			 config_setting_get_bool(s) ? "true" : "false");
		break;
	case CONFIG_TYPE_STRING:
		snprintf(buf, len, "%s", config_setting_get_string(s));
		break;
	default:
		snprintf(buf, len, "a group");
	}
}

static int option_read(const config_setting_t *s, struct config *config,
		       struct err *err)
{
	char value[PATH_MAX];
	struct err why;
	int r;

	setting_text(s, value, sizeof(value));
	r = options_set(config->options, config_setting_name(s), value, &why);
	if (r == -ENOENT)
		return conf_bad(s, err,
				"unknown setting \"%s\": expected cluster or "
				"an option of iodeck.conf(5)",
				config_setting_name(s));
	return r ? conf_bad(s, err, "%s", why.text) : 0;
}

static int root_read(const config_setting_t *root, struct config *config,
		     struct err *err)
{
	config_setting_t *s;
	int i, r = 0;

	for (i = 0; !r && i < config_setting_length(root); i++) {
		s = config_setting_get_elem(root, (unsigned)i);
		if (!strcmp(config_setting_name(s), "cluster"))
			r = cluster_read(s, config, err);
		else
			r = option_read(s, config, err);
	}
	return r;
}

static int file_read(const char *path, struct config *config, struct err *err)
{
	config_t file;
	int r;

	r = conf_read(path, &file, err);
	if (r)
		return r;
	r = root_read(config_root_setting(&file), config, err);
	config_destroy(&file);
	config->path = strdup(path);
	return r;
}

int config_load(const char *path, struct config **config, struct err *err)
{
	struct config *c = calloc(1, sizeof(*c));
	char found[PATH_MAX];
	int r = 0;

	if (!c || options_new(&c->options)) {
		config_free(c);
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (!path &&
	    !path_of(PATH_CONFIG, "iodeck.conf", found, sizeof(found)) &&
	    path_exists(found))
		path = found;
	if (path)
		r = file_read(path, c, err);
	if (r) {
		config_free(c);
		return r;
	}
	*config = c;
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	options_free(config->options);
	json_decref(config->cluster);
	json_decref(config->node);
	json_decref(config->nodes);
	free(config->path);
	free(config);
}
