/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options, units and iodeck.conf: the sample, and what is wrong where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cluster/node.h"
#include "backend/config.h"
#include "backend/paths.h"
#include "backend/units.h"

static char folder[] = "/tmp/deck-config.XXXXXX";

static void test_units(void **state)
{
	static const struct {
		int (*parse)(const char *text, double *value);
		const char *text;
		double value; /* -1: refused */
	} cases[] = {
		{ units_bytes, "4096", 4096 },
		{ units_bytes, "4K", 4096 },
		{ units_bytes, "4kib", 4096 },
		{ units_bytes, "4KB", 4000 },
		{ units_bytes, "1.5G", 1.5 * (1 << 30) },
		{ units_bytes, " 2 MiB", 2 << 20 },
		{ units_bytes, "", -1 },
		{ units_bytes, "K", -1 },
		{ units_bytes, "-4K", -1 },
		{ units_bytes, "0x10", -1 },
		{ units_bytes, "1e3", -1 },
		{ units_bytes, "inf", -1 },
		{ units_bytes, "4Kit", -1 },
		{ units_bytes, "99999999999T", -1 },
		{ units_rate, "25Gbit", 25e9 / 8 },
		{ units_rate, "150MB/s", 150e6 },
		{ units_rate, "100 Mbit/s", 12.5e6 },
		{ units_seconds, "90", 90 },
		{ units_seconds, "5m", 300 },
		{ units_seconds, "250ms", 0.25 },
		{ units_seconds, "2h", 7200 },
		{ units_seconds, "2x", -1 },
	};
	char buf[32];
	double v;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(cases); i++) {
		v = -1;
		if (cases[i].parse(cases[i].text, &v) < 0)
			v = -1;
		if (v < cases[i].value - 1e-6 || v > cases[i].value + 1e-6)
			fail_msg("%s: %f", cases[i].text, v);
	}
	assert_string_equal(units_bytes_text(4096, buf, sizeof(buf)), "4 KiB");
	assert_string_equal(units_count_text(1234567, buf, sizeof(buf)),
			    "1,234,567");
	assert_string_equal(units_count_text(999, buf, sizeof(buf)), "999");
	assert_string_equal(units_seconds_text(200, buf, sizeof(buf)),
			    "3 min 20 s");
}

/* Every default passes its own check; bad values say what was expected. */
static void test_options(void **state)
{
	const struct option *o;
	struct options *options;
	struct err err;

	(void)state;
	assert_int_equal(options_new(&options), 0);
	for (o = option_table; o->name; o++) {
		assert_int_equal(options_set(options, o->name, o->unset, &err),
				 0);
		assert_true(strlen(o->help) > 10);
		assert_int_equal(o->help[strlen(o->help) - 1], '.');
	}
	assert_float_equal(options_number(options, "bound_us"), 1000, 0);
	assert_int_equal(options_set(options, "bound_us", "2500", &err), 0);
	assert_float_equal(options_number(options, "bound_us"), 2500, 0);
	assert_int_equal(options_set(options, "bound_us", "0", &err), -EINVAL);
	assert_non_null(strstr(err.text, "from 1 to 1e+09 us"));
	assert_int_equal(options_set(options, "mouse", "perhaps", &err),
			 -EINVAL);
	assert_int_equal(options_set(options, "mouse", "off", &err), 0);
	assert_false(options_bool(options, "mouse"));
	assert_int_equal(options_set(options, "colour", "25", &err), -EINVAL);
	assert_non_null(strstr(err.text, "auto|none|8|16|256"));
	assert_int_equal(options_set(options, "nope", "1", &err), -ENOENT);
	options_free(options);
}

static const char *write_conf(const char *text)
{
	static char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/iodeck.conf", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void test_sample(void **state)
{
	struct config *config;
	const json_t *domain, *drive;
	char path[512];
	struct err err;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf/iodeck.conf",
		 getenv("SOURCE_DIR"));
	if (config_load(path, &config, &err))
		fail_msg("%s", err.text);
	domain = json_array_get(json_object_get(config->cluster, "domains"), 3);
	drive = json_array_get(json_object_get(domain, "drives"), 0);
	assert_string_equal(json_string_value(json_object_get(drive, "path")),
			    "/nowhere/op/iodeck/n4d0");
	assert_float_equal(
		json_number_value(json_object_get(
			json_object_get(domain, "link"), "rate_bytes_s")),
		25e9 / 8, 0);
	assert_float_equal(
		json_number_value(json_object_get(
			json_object_get(drive, "shape"), "rate_iops")),
		3000, 0);
	config_free(config);
}

/* The sample shows each option with its default. */
static void test_sample_defaults(void **state)
{
	const struct option *o;
	char path[512], line[512], want[128];
	bool found;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf/iodeck.conf",
		 getenv("SOURCE_DIR"));
	for (o = option_table; o->name; o++) {
		f = fopen(path, "r");
		assert_non_null(f);
		snprintf(want, sizeof(want), "# %s = ", o->name);
		for (found = false; fgets(line, sizeof(line), f);)
			if (!strncmp(line, want, strlen(want)) &&
			    (o->type == OPTION_PATH || strstr(line, o->unset)))
				found = true;
		fclose(f);
		if (!found)
			fail_msg("%s is not in the sample", o->name);
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "bound_us = 10;\nbound_us_ = 3;\n",
		  "iodeck.conf:2: unknown setting \"bound_us_\"" },
		{ "\nbound_us = \"high\";\n",
		  "iodeck.conf:2: bound_us: expected a number" },
		{ "mouse = 3;\n", ":1: mouse: expected true or false" },
		{ "colour = ;\n", "iodeck.conf:1: syntax error" },
		{ "cluster = 3;\n", ":1: expected a group in { }" },
		{ "cluster = {\n  name = \"lab\";\n};\n",
		  ":1: expected domains here" },
		{ "cluster = { name = \"a b\"; domains = ( { name = \"n1\"; "
		  "drives = (); } ); };\n",
		  "name: expected 1 to 31 letters" },
		{ "cluster = { name = \"a\"; domains = (); };\n",
		  "domains: expected at least one" },
		{ "cluster = { name = \"a\"; domains = (\n { name = \"n\"; "
		  "drives = (); },\n { name = \"n\"; drives = (); } ); };\n",
		  ":3: \"n\" is named twice" },
		{ "cluster = { name = \"a\"; domains = ( { name = \"n\"; "
		  "drives = (\n{ name = \"d\"; path = \"/x\"; size = \"12X\"; "
		  "} ); } ); };\n",
		  ":2: size: expected a size such as" },
		{ "cluster = { name = \"a\"; domains = ( { name = \"n\"; "
		  "drives = (); } );\nvdisks = ( { name = \"v\"; size = "
		  "\"1G\"; policy = \"p\"; } ); };\n",
		  ":2: policy \"p\" is not among the policies" },
		{ "cluster = { name = \"a\"; domains = ( { name = \"n\"; "
		  "drives = (); } );\npolicies = ( { name = \"p\"; raid = 4; "
		  "} ); };\n",
		  ":2: raid: expected 0, 1, 5 or 6" },
		{ "cluster = { name = \"a\";\nnode = { host = \"-oX\"; };\n"
		  "domains = ( { name = \"n\"; drives = (); } ); };\n",
		  ":2: host \"-oX\": expected" },
		{ "cluster = { name = \"a\";\nnode = { port = 22; };\n"
		  "domains = ( { name = \"n\"; drives = (); } ); };\n",
		  ":2: expected host here" },
		{ "cluster = { name = \"a\"; node = { host = \"h\";\n"
		  "transport = \"rsh\"; };\n"
		  "domains = ( { name = \"n\"; drives = (); } ); };\n",
		  ":2: transport \"rsh\": expected auto, libssh2 or ssh" },
		{ "cluster = { name = \"a\"; node = { host = \"h\"; };\n"
		  "domains = ( { name = \"n\"; drives = ( { name = \"d\"; "
		  "path = \"~/x\"; } ); } ); };\n",
		  "expected one that begins with /" },
		{ "cluster = { name = \"a\"; domains = (\n"
		  "{ name = \"n\"; node = { host = \"h\"; }; drives = (); },\n"
		  "{ name = \"m\"; drives = (); } ); };\n",
		  ":3: expected node here, as other domains have one" },
		{ "cluster = { name = \"a\";\nnode = { host = \"h\"; };\n"
		  "domains = ( { name = \"n\"; node = { }; drives = (); } "
		  "); };\n",
		  ":2: node: expected no host and no address here" },
		{ "cluster = { name = \"a\"; domains = (\n"
		  "{ name = \"n\"; node = { host = \"h\"; }; drives = (); },\n"
		  "{ name = \"m\"; node = { }; drives = (); } ); };\n",
		  ":3: node: expected host or address here" },
		{ "cluster = { name = \"a\"; domains = (\n"
		  "{ name = \"n\"; node = { nbd_ports = \"7-5\"; };\n"
		  "drives = (); } ); };\n",
		  ":2: nbd_ports: expected \"FIRST-LAST\"" },
		{ "cluster = { name = \"a\"; domains = (\n"
		  "{ name = \"n\"; node = { address = \"-x\"; };\n"
		  "drives = (); } ); };\n",
		  ":2: address \"-x\": expected a name or an address" },
		{ "cluster = { name = \"a\"; domains = (\n"
		  "{ name = \"n\"; node = { host = \"h\"; }; drives = ( { "
		  "name = \"d\"; path = \"~/x\"; } ); } ); };\n",
		  "expected one that begins with /" },
		{ "cluster = { name = \"a\"; domains = ( { name = \"n\"; "
		  "drives = (); } );\nvdisks = ( { name = \"v\"; size = "
		  "\"1G\"; raid = 0; owner = \"n\"; } ); };\n",
		  ":2: owner \"n\": expected a domain that has a node" },
	};
	struct config *config;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(bad); i++) {
		assert_int_equal(
			config_load(write_conf(bad[i].text), &config, &err),
			-EINVAL);
		if (!strstr(err.text, bad[i].want))
			fail_msg("wanted \"%s\", got \"%s\"", bad[i].want,
				 err.text);
	}
	assert_int_equal(config_load("/nonexistent/x.conf", &config, &err),
			 -ENOENT);
}

static void test_nodes(void **state)
{
	static const char text[] =
		"cluster = { name = \"a\";\n"
		"node = { user = \"u\"; identity = \"~/k\"; port = 7;\n"
		"  nbd_ports = \"3000-3001\"; };\n"
		"domains = (\n"
		"{ name = \"x\"; node = { host = \"h\"; port = 8; };\n"
		"  drives = ( { name = \"d\"; path = \"/x\"; } ); },\n"
		"{ name = \"y\"; node = { address = \"10.0.0.2\"; };\n"
		"  drives = ( { name = \"d\"; path = \"~/x\"; } ); } );\n"
		"vdisks = ( { name = \"v\"; size = \"1G\"; raid = 0;\n"
		"  owner = \"y\"; } ); };\n";
	struct config *config;
	struct node x, y;
	struct err err;

	(void)state;
	if (config_load(write_conf(text), &config, &err))
		fail_msg("%s", err.text);
	assert_null(config->node);
	assert_int_equal(json_array_size(config->nodes), 2);
	assert_int_equal(node_read(json_array_get(config->nodes, 0), &x, &err),
			 0);
	assert_int_equal(node_read(json_array_get(config->nodes, 1), &y, &err),
			 0);
	assert_string_equal(x.name, "x");
	assert_string_equal(x.host.host, "h");
	assert_string_equal(x.address, "h");
	assert_string_equal(x.host.user, "u");
	assert_string_equal(x.host.identity, "/nowhere/op/k");
	assert_int_equal(x.host.port, 8);
	assert_string_equal(y.name, "y");
	assert_null(y.host.host);
	assert_string_equal(y.address, "10.0.0.2");
	assert_int_equal(y.ports[1], 3001);
	/* the document says nothing of how they are reached */
	assert_null(json_object_get(
		json_array_get(json_object_get(config->cluster, "domains"), 0),
		"node"));
	assert_null(json_object_get(config->cluster, "node"));
	config_free(config);
	/* here, all of them */
	if (config_load(write_conf("cluster = { name = \"a\"; domains = (\n"
				   "{ name = \"x\"; node = { };\n"
				   "  drives = (); } ); };\n"),
			&config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(node_read(json_array_get(config->nodes, 0), &x, &err),
			 0);
	assert_string_equal(x.address, "127.0.0.1");
	config_free(config);
}

static void test_found_by_xdg(void **state)
{
	struct config *config;
	char dir[64], path[128];
	FILE *f;

	(void)state;
	assert_int_equal(config_load(NULL, &config, NULL), 0);
	assert_null(config->path);
	assert_null(config->cluster);
	config_free(config);

	snprintf(dir, sizeof(dir), "%s/iodeck", folder);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/iodeck.conf", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("bound_us = 500; frames_s = 5;\n", f);
	fclose(f);
	setenv("XDG_CONFIG_HOME", folder, 1);
	assert_int_equal(config_load(NULL, &config, NULL), 0);
	assert_float_equal(options_number(config->options, "bound_us"), 500, 0);
	config_free(config);
	unsetenv("XDG_CONFIG_HOME");
}

static void test_remove(void **state)
{
	char dir[64], path[96], link[96];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/a/b/c", folder);
	assert_int_equal(path_make(dir, NULL), 0);
	snprintf(path, sizeof(path), "%s/keep", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(path, link), 0);
	snprintf(dir, sizeof(dir), "%s/a", folder);
	assert_int_equal(path_remove(dir, NULL), 0);
	assert_false(path_exists(dir));
	assert_true(path_exists(path));
	assert_int_equal(path_remove(dir, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	setenv("HOME", "/nowhere/op", 1);
	unsetenv("XDG_CONFIG_HOME");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return path_remove(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_defaults),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_found_by_xdg),
		cmocka_unit_test(test_remove),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
