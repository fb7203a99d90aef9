/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lab for rehearsal without a kernel: words, addresses, state, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cluster/node.h"
#include "backend/config.h"
#include "backend/lab/lab_impl.h"

static struct lab three(void)
{
	struct lab lab = { .root = "/srv/labs",
			   .made = "/srv",
			   .name = "a",
			   .net = 0x0a090800,
			   .nodes = 3,
			   .drives = 2,
			   .link_bytes_s = 1.25e9,
			   .drive_bytes = 4.0 * GIB,
			   .ready = true };
	int i;

	for (i = 0; i < lab.nodes; i++)
		lab.node[i].rate_bytes_s = lab.link_bytes_s;
	return lab;
}

/* ---- words -------------------------------------------------------------- */

static void test_names(void **state)
{
	static const char *const good[] = { "a", "lab", "a1", "lab12345" };
	static const char *const bad[] = { "",    "-a",  "1a",        "A",
					   "a-b", "a/b", "lab123456", "..",
					   "a b", "a\n", "\xc3\xa4",  "a%n" };
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(good); i++)
		assert_int_equal(lab_name_check(good[i], &err), 0);
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_name_check(bad[i], &err), -EINVAL);
}

static void test_nodes(void **state)
{
	static const char *const bad[] = { "",    "n",   "n0",  "n4",  "-n1",
					   "n-1", "n01", "n1 ", "N1",  "n1x",
					   "n 1", "*",   "--",  "n65", "n+1" };
	struct lab lab = three();
	struct err err;
	size_t i;

	(void)state;
	assert_int_equal(lab_node_find(&lab, "n1", &err), 0);
	assert_int_equal(lab_node_find(&lab, "n3", &err), 2);
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_node_find(&lab, bad[i], &err), -EINVAL);
	assert_int_equal(lab_node_find(&lab, "n99999999999999999999", &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "expected n1 to n3"));
}

/* A name leads to its namespaces, and no other name's lead to them. */
static void test_namespaces(void **state)
{
	char ns[LAB_WORD], iface[LAB_WORD];

	(void)state;
	assert_true(lab_netns_is("a", lab_netns("a", LAB_SWITCH, ns)));
	assert_true(lab_netns_is("a", lab_netns("a", 63, ns)));
	assert_string_equal(ns, "iodeck-a-n64");
	assert_false(lab_netns_is("a", "iodeck-ab-n1"));
	assert_false(lab_netns_is("ab", "iodeck-a-n1"));
	assert_false(lab_netns_is("a", "iodeck-a-n65"));
	assert_false(lab_netns_is("a", "iodeck-a-n0"));
	assert_false(lab_netns_is("a", "iodeck-a-"));
	assert_false(lab_netns_is("a", "iodeck-a-n1-n1"));
	assert_false(lab_netns_is("a", "iodeck-a"));
	assert_false(lab_netns_is("a", "a-n1"));
	assert_true(strlen(lab_iface("lab12345", iface)) < 16);
}

static void test_rates(void **state)
{
	static const char *const bad[] = { "",      "fast",    "-1Mbit",
					   "0",     "7999",    "1kbit",
					   "1Tbit", "200Gbit", "nan",
					   "inf",   "0x10",    "10 Gbits",
					   "--",    "1e9" };
	char text[24];
	struct err err;
	double rate;
	size_t i;

	(void)state;
	assert_int_equal(lab_rate("10Gbit", &rate, &err), 0);
	assert_true(rate == 1.25e9);
	assert_int_equal(lab_rate("250mbit", &rate, &err), 0);
	assert_true(rate == 31.25e6);
	assert_string_equal(lab_rate_text(rate, text, sizeof(text)),
			    "250 Mbit/s");
	assert_int_equal(lab_rate("64kbit", &rate, &err), 0);
	assert_string_equal(lab_rate_text(rate, text, sizeof(text)),
			    "64 kbit/s");
	assert_int_equal(lab_rate("100MB/s", &rate, &err), 0);
	assert_string_equal(lab_rate_text(rate, text, sizeof(text)),
			    "800 Mbit/s");
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_rate(bad[i], &rate, &err), -EINVAL);
}

static void test_shape(void **state)
{
	(void)state;
	assert_int_equal(lab_shape(1.25e9).burst_bytes, 6250000);
	assert_int_equal(lab_shape(8000).burst_bytes, 16384);
	assert_true(lab_shape(1.25e9).rate_bits_s == 1e10);
}

static void test_roots(void **state)
{
	static const char *const bad[] = { "",     "/",     "labs",  "/a b",
					   "/a%h", "/a\"b", "/a\nb", "/a;b",
					   "/a$b", "/a#b",  "/a\\b" };
	char deep[300];
	struct err err;
	size_t i;

	(void)state;
	assert_int_equal(lab_root_check(LAB_ROOT, &err), 0);
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_root_check(bad[i], &err), -EINVAL);
	memset(deep, 'a', sizeof(deep));
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(lab_root_check(deep, &err), -ENAMETOOLONG);
}

/* ---- addresses ---------------------------------------------------------- */

static void test_ranges(void **state)
{
	static const char *const bad[] = { "",
					   "default",
					   "10.0.0",
					   "10.0.0.256",
					   "10.0.0.0/",
					   "::1",
					   "10.0.0.0/33",
					   "10.0.0.0/-1",
					   "10.0.0.0/8x",
					   "10.0.0.0 /8" };
	struct lab_range r;
	size_t i;

	(void)state;
	assert_int_equal(lab_range_parse("10.1.2.3/8", &r), 0);
	assert_int_equal(r.base, 0x0a000000);
	assert_int_equal(r.bits, 8);
	assert_int_equal(lab_range_parse("10.1.2.3", &r), 0);
	assert_int_equal(r.bits, 32);
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_range_parse(bad[i], &r), -EINVAL);
}

static struct lab_range range(const char *text)
{
	struct lab_range r;

	assert_int_equal(lab_range_parse(text, &r), 0);
	return r;
}

static void test_pick(void **state)
{
	struct lab_range taken[5];
	uint32_t net;

	(void)state;
	assert_int_equal(lab_net_pick(NULL, 0, &net), 0);
	assert_int_equal(net, 0x0ad50000);
	/* One address of a range is enough, and so is all around it. */
	taken[0] = range("10.213.0.77");
	taken[1] = range("10.213.1.128/25");
	assert_int_equal(lab_net_pick(taken, 2, &net), 0);
	assert_int_equal(net, 0x0ad50200);
	taken[2] = range("10.0.0.0/8");
	assert_int_equal(lab_net_pick(taken, 3, &net), 0);
	assert_int_equal(net, 0xac1d0000);
	taken[3] = range("172.16.0.0/12");
	assert_int_equal(lab_net_pick(taken, 4, &net), 0);
	assert_int_equal(net, 0xc0a80000);
	taken[4] = range("192.168.0.0/16");
	assert_int_equal(lab_net_pick(taken, 5, &net), -EADDRINUSE);
}

static void test_net_wish(void **state)
{
	static const char *const bad[] = { "10.9.8.0",
					   "10.9.8.0/25",
					   "8.8.8.0/24",
					   "172.32.0.0/24",
					   "192.169.0.0/24",
					   "x",
					   "" };
	struct err err;
	uint32_t net;
	size_t i;

	(void)state;
	assert_int_equal(lab_net_parse("10.9.8.0/24", &net, &err), 0);
	assert_int_equal(net, 0x0a090800);
	for (i = 0; i < array_len(bad); i++)
		assert_int_equal(lab_net_parse(bad[i], &net, &err), -EINVAL);
}

static void test_addresses(void **state)
{
	struct lab lab = three();
	char a[LAB_WORD];

	(void)state;
	assert_string_equal(lab_address(&lab, -1, a, sizeof(a)), "10.9.8.1");
	assert_string_equal(lab_address(&lab, 0, a, sizeof(a)), "10.9.8.11");
	assert_string_equal(lab_address(&lab, 63, a, sizeof(a)), "10.9.8.74");
}

/* ---- the state ---------------------------------------------------------- */

static struct lab blank(void)
{
	struct lab lab = { .root = "/srv/labs", .name = "a" };

	return lab;
}

static void test_state(void **state)
{
	struct lab lab = three(), back = blank();
	struct err err;
	char *text;

	(void)state;
	lab.node[1] = (struct lab_node) { true, true, 1e6 };
	lab.netns_made = true;
	text = lab_state_text(&lab);
	assert_non_null(text);
	assert_int_equal(lab_state_read(text, strlen(text), &back, &err), 0);
	assert_memory_equal(&back, &lab, sizeof(lab));
	free(text);
}

/* Cut anywhere it is refused, with what to do. */
static void test_state_torn(void **state)
{
	struct lab lab = three(), back;
	struct err err;
	char *text = lab_state_text(&lab);
	size_t n;

	(void)state;
	assert_non_null(text);
	for (n = 0; n < strlen(text); n++) {
		back = blank();
		assert_int_equal(lab_state_read(text, n, &back, &err),
				 -EUCLEAN);
		assert_non_null(strstr(err.text, "lab down name=a"));
	}
	free(text);
}

static void hostile(const char *key, const char *value)
{
	struct lab lab = three(), back = blank();
	char *text = lab_state_text(&lab);
	json_t *j = json_loads(text, 0, NULL),
	       *v = json_loads(value, JSON_DECODE_ANY, NULL);
	struct err err;

	assert_non_null(v);
	free(text);
	json_object_set_new(j, key, v);
	text = json_dumps(j, 0);
	if (lab_state_read(text, strlen(text), &back, &err) != -EUCLEAN)
		fail_msg("%s: %s was taken", key, value);
	free(text);
	json_decref(j);
}

static void test_state_hostile(void **state)
{
	static const struct {
		const char *key, *value;
	} cases[] = {
		{ "v", "2" },
		{ "v", "\"1\"" },
		{ "name", "\"b\"" },
		{ "name", "null" },
		{ "net", "\"8.8.8.0/24\"" },
		{ "net", "\"10.0.0.0/8\"" },
		{ "net", "7" },
		{ "drives", "-1" },
		{ "drives", "17" },
		{ "drives", "1.5" },
		{ "drive_bytes", "0" },
		{ "drive_bytes", "1e300" },
		{ "link_bytes_s", "-5" },
		{ "link_bytes_s", "1e13" },
		{ "ready", "1" },
		{ "netns_made", "\"yes\"" },
		/* What a removal may take away besides the lab. */
		{ "made", "\"/\"" },
		{ "made", "\"/home\"" },
		{ "made", "\"/srv/labs/a\"" },
		{ "made", "\"/sr\"" },
		{ "made", "\"srv\"" },
		{ "made", "\"/srv/../srv\"" },
		{ "nodes", "[]" },
		{ "nodes", "{}" },
		{ "nodes", "[1]" },
		{ "nodes", "[{\"failed\":false,\"cut\":false}]" },
		{ "nodes",
		  "[{\"failed\":0,\"cut\":false,\"rate_bytes_s\":9}]" },
		{ "nodes",
		  "[{\"failed\":true,\"cut\":true,\"rate_bytes_s\":-9}]" },
	};
	char many[70 * 60] = "[";
	size_t i;

	(void)state;
	for (i = 0; i < array_len(cases); i++)
		hostile(cases[i].key, cases[i].value);
	for (i = 0; i < LAB_NODES_MAX + 1; i++)
		strcat(many, "{\"failed\":true,\"cut\":true,"
			     "\"rate_bytes_s\":9},");
	many[strlen(many) - 1] = ']';
	hostile("nodes", many);
}

static void test_state_garbage(void **state)
{
	static const char *const texts[] = { "[]", "null", "{}", "\1\2",
					     "{\"v\":1,\"v\":1}" };
	char deep[5000];
	struct lab back;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < array_len(texts); i++) {
		back = blank();
		assert_int_equal(
			lab_state_read(texts[i], strlen(texts[i]), &back, &err),
			-EUCLEAN);
	}
	memset(deep, '[', sizeof(deep));
	back = blank();
	assert_int_equal(lab_state_read(deep, sizeof(deep), &back, &err),
			 -EUCLEAN);
}

/* The file itself: who may write it, what it is, how long it is. */
static void test_state_file(void **state)
{
	char dir[] = "/tmp/test_lab.XXXXXX", path[PATH_MAX], *long_text;
	struct lab lab = three(), back = blank();
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(lab.root, sizeof(lab.root), "%s", dir);
	snprintf(back.root, sizeof(back.root), "%s", dir);
	lab.made[0] = '\0';
	lab_path(&lab, "", path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(lab_state_load(&back, &err), -ENOENT);
	assert_int_equal(lab_state_save(&lab, &err), 0);
	assert_int_equal(lab_state_load(&back, &err), 0);
	assert_int_equal(back.nodes, 3);

	lab_path(&lab, "state.json", path, sizeof(path));
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(lab_state_load(&back, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "nobody else may write"));
	long_text = malloc(LAB_STATE_MAX + 10);
	assert_non_null(long_text);
	memset(long_text, ' ', LAB_STATE_MAX + 9);
	long_text[LAB_STATE_MAX + 9] = '\0';
	assert_int_equal(lab_file_write(path, long_text, 0600, &err), 0);
	assert_int_equal(lab_state_load(&back, &err), -EUCLEAN);
	free(long_text);
	unlink(path);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_true(lab_state_load(&back, &err) < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(lab_state_load(&back, &err), -EUCLEAN);
	unlink(path);
	rmdir(lab_path(&lab, "", path, sizeof(path)));
	assert_int_equal(rmdir(dir), 0);
}

/* ---- files -------------------------------------------------------------- */

static const char *node_text(const config_setting_t *node, const char *key)
{
	const char *text = "";

	assert_true(config_setting_lookup_string(node, key, &text));
	return text;
}

static void test_conf_text(void **state)
{
	struct lab lab = three();
	char *text = lab_text_conf(&lab, 2, "/usr/bin/iodeck-agent");
	config_setting_t *node, *domains, *drive;
	config_t file;
	long long size;
	int port;

	(void)state;
	config_init(&file);
	assert_true(config_read_string(&file, text));
	node = config_lookup(&file, "cluster");
	assert_string_equal(node_text(node, "name"), "iodeck-a-n3");
	node = config_lookup(&file, "cluster.node");
	assert_string_equal(node_text(node, "host"), "n3");
	assert_string_equal(node_text(node, "user"), "root");
	assert_string_equal(node_text(node, "identity"),
			    "/srv/labs/a/id_ed25519");
	assert_string_equal(node_text(node, "ssh_config"),
			    "/srv/labs/a/ssh_config");
	assert_string_equal(node_text(node, "program"),
			    "/usr/bin/iodeck-agent");
	assert_true(config_setting_lookup_int(node, "port", &port));
	assert_int_equal(port, 22);
	domains = config_lookup(&file, "cluster.domains");
	assert_int_equal(config_setting_length(domains), 2);
	drive = config_lookup(&file, "cluster.domains.[1].drives.[0]");
	assert_string_equal(node_text(drive, "path"), "/srv/labs/a/n3/d1");
	assert_true(config_setting_lookup_int64(drive, "size", &size));
	assert_int_equal(size, 4 * GIB);
	config_destroy(&file);
	free(text);
}

/* As iodeck reads it. */
static void test_conf_load(void **state)
{
	char path[] = "/tmp/test_lab.XXXXXX";
	struct lab lab = three();
	char *text = lab_text_conf(&lab, 0, NULL);
	struct config *config;
	struct err err;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(lab_file_write(path, text, 0600, &err), 0);
	if (config_load(path, &config, &err))
		fail_msg("%s", err.text);
	assert_string_equal(
		json_string_value(json_object_get(config->node, "host")), "n1");
	assert_int_equal(
		json_array_size(json_object_get(config->cluster, "domains")),
		2);
	config_free(config);
	unlink(path);
	free(text);
}

static void test_cluster_load(void **state)
{
	char path[] = "/tmp/test_lab.XXXXXX";
	struct lab lab = three();
	char *text = lab_text_cluster(&lab, "/usr/bin/iodeck-agent");
	struct config *config;
	struct node node;
	struct err err;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(lab_file_write(path, text, 0600, &err), 0);
	if (config_load(path, &config, &err))
		fail_msg("%s", err.text);
	assert_null(config->node);
	assert_int_equal(json_array_size(config->nodes), 3);
	assert_int_equal(
		node_read(json_array_get(config->nodes, 2), &node, &err), 0);
	assert_string_equal(node.name, "n3");
	assert_string_equal(node.host.host, "n3");
	assert_string_equal(node.host.identity, "/srv/labs/a/id_ed25519");
	assert_string_equal(node.program, "/usr/bin/iodeck-agent");
	assert_string_equal(node.address, "10.9.8.13");
	assert_int_equal(node.ports[0], 20000);
	assert_int_equal(node.ports[1], 20999);
	config_free(config);
	unlink(path);
	free(text);
}

static void test_ssh_texts(void **state)
{
	struct lab lab = three();
	char *ssh = lab_text_ssh(&lab), *sshd = lab_text_sshd(&lab, 1);
	char *hosts = lab_text_hosts(&lab);

	(void)state;
	assert_non_null(strstr(ssh, "Host n3\n  HostName 10.9.8.13\n"));
	assert_non_null(strstr(ssh, "StrictHostKeyChecking yes"));
	assert_non_null(strstr(sshd, "ListenAddress 10.9.8.12\n"));
	assert_non_null(strstr(sshd, "AuthenticationMethods publickey\n"));
	assert_non_null(strstr(hosts, "10.9.8.1 console\n10.9.8.11 n1\n"));
	free(ssh);
	free(sshd);
	free(hosts);
}

/* ---- programs ----------------------------------------------------------- */

static void test_tool(void **state)
{
	char *out = NULL;
	struct err err;

	(void)state;
	assert_int_equal(lab_ask_tool(&out, &err, "echo", "a b", "$HOME;*"), 0);
	assert_string_equal(out, "a b $HOME;*\n");
	free(out);
	assert_int_equal(lab_run(&err, "ls", "/nonexistent/x"), -EIO);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	assert_int_equal(lab_run(&err, "false"), -EIO);
	assert_non_null(strstr(err.text, "without a word"));
	assert_int_equal(lab_run(&err, "no-such-program"), -ENOENT);
	/* More than a pipe holds, of either kind. */
	assert_int_equal(lab_ask_tool(&out, &err, "seq", "200000"), 0);
	assert_int_equal(strlen(out), 1288895);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_net_wish),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_torn),
		cmocka_unit_test(test_state_hostile),
		cmocka_unit_test(test_state_garbage),
		cmocka_unit_test(test_state_file),
		cmocka_unit_test(test_conf_text),
		cmocka_unit_test(test_conf_load),
		cmocka_unit_test(test_cluster_load),
		cmocka_unit_test(test_ssh_texts),
		cmocka_unit_test(test_tool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
