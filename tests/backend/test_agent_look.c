/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Interfaces and disks, from a /proc and a /sys of the test's own: read right,
 * and hostile text in each of their files harms nothing.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "backend/agent/host.h"
#include "backend/agent/host_disk.h"
#include "backend/agent/host_nic.h"
#include "backend/agent/host_tbf.h"
#include "backend/agent/nvme.h"

/* ---- a root ------------------------------------------------------------- */

static const char net_dev[] =
	"Inter-|   Receive                       |  Transmit\n"
	" face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
	"    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
	"  eth0: 1000 5 1 2 0 0 0 0 2000 6 3 4 0 0 0 0\n"
	"veth9:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n"
	"  cut0: 1 2 3";

static const char diskstats[] =
	"   8  0 sda 100 0 800 50 200 0 1600 150 0 300 400 0 0 0 0\n"
	"   8  1 sda1 1 0 8 5 2 0 16 15 0 3 4\n"
	" 259  0 nvme0n1 10 0 80 5 20 0 160 15 0 30 40 1 2 3 4 5 6\n"
	"   7  0 loop0 1 2 3\n";

static const char mountinfo[] =
	"36 35 8:1 / /data\\040one rw - ext4 /dev/sda1 rw\n"
	"37 35 0:44 / /btr rw shared:1 - btrfs /dev/nvme0n1 rw\n"
	"38 35 0:45 / /run rw - tmpfs tmpfs rw\n";

static const struct {
	const char *path, *text;
} files[] = {
	{ "proc/net/dev", net_dev },
	{ "proc/diskstats", diskstats },
	{ "proc/self/mountinfo", mountinfo },
	{ "proc/stat", "cpu 1 2 3 4 5 6 7 8\n" },
	{ "proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 512 kB\n" },
	{ "proc/cpuinfo", "model name\t: A CPU\n" },
	{ "etc/os-release", "PRETTY_NAME=\"An OS\"\n" },
	{ "sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n" },
	{ "sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n" },
	{ "sys/devices/system/clocksource/clocksource0/current_clocksource",
	  "tsc\n" },
	{ "sys/class/net/eth0/speed", "25000\n" },
	{ "sys/class/net/eth0/mtu", "9000\n" },
	{ "sys/class/net/eth0/operstate", "up\n" },
	{ "sys/class/net/eth0/address", "02:00:00:00:00:01\n" },
	{ "sys/class/net/eth0/device/vendor", "0x8086\n" },
	{ "sys/class/net/veth9/speed", "10000\n" },
	{ "sys/block/sda/size", "2048\n" },
	{ "sys/block/sda/dev", "8:0\n" },
	{ "sys/block/sda/queue/rotational", "1\n" },
	{ "sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n" },
	{ "sys/block/sda/device/model", "  SPINNER 4000 \n" },
	{ "sys/block/sda/device/serial", "XK-12345678\n" },
	{ "sys/block/sda/removable", "0\n" },
	{ "sys/block/sda/sda1/partition", "1\n" },
	{ "sys/block/sda/sda1/dev", "8:1\n" },
	{ "sys/block/sda/sda1/holders/dm-0", "" },
	{ "sys/block/nvme0n1/size", "4096\n" },
	{ "sys/block/nvme0n1/dev", "259:0\n" },
	{ "sys/block/nvme0n1/ro", "1\n" },
	{ "sys/block/loop0/size", "0\n" },
	{ "sys/block/ram0/size", "8\n" },
};

static void file_make(const char *root, const char *path, const char *text,
		      size_t len)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *c = full + strlen(root) + 1; *c; c++)
		if (*c == '/') {
			*c = '\0';
			mkdir(full, 0700);
			*c = '/';
		}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

static int root_make(void **state)
{
	char *root = strdup("/tmp/deck-look.XXXXXX"), link[128];

	assert_non_null(mkdtemp(root));
	for (size_t k = 0; k < array_len(files); k++)
		file_make(root, files[k].path, files[k].text,
			  strlen(files[k].text));
	snprintf(link, sizeof(link), "%s/sys/class/net/eth0/device/driver",
		 root);
	assert_int_equal(symlink("../../../bus/pci/drivers/ice", link), 0);
	*state = root;
	return 0;
}

static int root_remove(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", (char *)*state);
	assert_int_equal(system(command), 0);
	free(*state);
	return 0;
}

static const char *word(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text ? text : "";
}

static json_int_t number(const json_t *j, const char *name)
{
	const json_t *v = json_object_get(j, name);

	return v ? json_integer_value(v) : -1;
}

static double real(const json_t *j, const char *name)
{
	return json_number_value(json_object_get(j, name));
}

/* ---- what it says ------------------------------------------------------- */

static void test_host(void **state)
{
	json_t *facts = host_facts(*state);

	assert_int_equal(number(facts, "sockets"), 2);
	assert_string_equal(word(facts, "cpu"), "A CPU");
	assert_string_equal(word(facts, "distribution"), "An OS");
	assert_string_equal(word(json_object_get(facts, "clock"), "source"),
			    "tsc");
	assert_true(json_is_true(json_object_get(facts, "steal_known")));
	assert_int_equal(number(facts, "mem_bytes"), 1024 * 1024);
	json_decref(facts);
}

static void test_nics(void **state)
{
	struct host_rates rates;
	json_t *facts, *eth, *veth;

	host_rates_read(*state, &rates);
	assert_int_equal(rates.count, 1);
	assert_true(rates.of[0].bytes_s == 3125000000ull);
	facts = host_nics_facts(*state, &rates);
	assert_int_equal(json_array_size(facts), 2);
	eth = json_array_get(facts, 0);
	veth = json_array_get(facts, 1);
	assert_string_equal(word(eth, "name"), "eth0");
	assert_string_equal(word(eth, "driver"), "ice");
	assert_string_equal(word(eth, "state"), "up");
	assert_string_equal(word(eth, "line_by"), "driver");
	assert_int_equal(number(eth, "mtu"), 9000);
	assert_true(json_is_false(json_object_get(eth, "virtual")));
	/* 10 Gbit/s is what every veth says */
	assert_string_equal(word(veth, "name"), "veth9");
	assert_true(json_is_true(json_object_get(veth, "virtual")));
	assert_null(json_object_get(veth, "line_bytes_s"));
	json_decref(facts);
}

static void test_nics_usage(void **state)
{
	static const char after[] =
		"  eth0: 3001000 5 2 2 0 0 0 0 1564502000 6 3 9 0 0 0 0\n"
		" veth9:6 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n";
	struct host_nics last = { 0 };
	struct host_rates rates;
	json_t *usage = json_object(), *nics, *eth;

	host_rates_read(*state, &rates);
	host_nics_usage(*state, &rates, 0, &last, usage);
	assert_null(json_object_get(usage, "nics"));
	file_make(*state, "proc/net/dev", after, strlen(after));
	host_nics_usage(*state, &rates, 2, &last, usage);
	nics = json_object_get(usage, "nics");
	/* veth9's counter went back: it was made anew */
	assert_int_equal(json_array_size(nics), 1);
	eth = json_array_get(nics, 0);
	assert_true(real(eth, "rx_bytes_s") == 1500000);
	assert_true(real(eth, "tx_bytes_s") == 782250000);
	assert_int_equal(number(eth, "drops"), 5);
	assert_int_equal(number(eth, "errors"), 1);
	assert_true(real(eth, "share") == 782250000.0 / 3125000000.0);
	json_decref(usage);
}

static void test_disks(void **state)
{
	struct host_disk_names names;
	json_t *facts, *sda, *nvme;
	size_t at;

	host_disk_names_read(*state, &names);
	assert_int_equal(names.count, 2);
	at = strcmp(names.name[0], "sda") != 0;
	facts = host_disks_facts(*state, &names);
	sda = json_array_get(facts, at);
	nvme = json_array_get(facts, !at);
	assert_int_equal(number(sda, "size_bytes"), MIB);
	assert_string_equal(word(sda, "model"), "SPINNER 4000");
	assert_string_equal(word(sda, "serial"), "345678");
	assert_string_equal(word(sda, "media"), "rotational");
	assert_string_equal(word(sda, "scheduler"), "mq-deadline");
	assert_null(json_object_get(sda, "removable"));
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(sda, "mounts"), 0)),
			    "/data one");
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(sda, "holders"), 0)),
			    "dm-0");
	assert_string_equal(word(nvme, "media"), "nvme");
	assert_true(json_is_true(json_object_get(nvme, "read_only")));
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(nvme, "mounts"), 0)),
			    "/btr");
	json_decref(facts);
}

static void test_disks_usage(void **state)
{
	static const char after[] =
		"8 0 sda 200 0 1800 150 400 0 1600 350 0 2300 4400 0 0 0 0\n"
		"259 0 nvme0n1 9 0 80 5 20 0 160 15 0 30 40\n";
	struct host_disk_names names;
	struct host_disks last = { 0 };
	json_t *usage = json_object(), *disks, *sda;

	host_disk_names_read(*state, &names);
	host_disks_usage(*state, &names, 0, &last, usage);
	file_make(*state, "proc/diskstats", after, strlen(after));
	host_disks_usage(*state, &names, 2, &last, usage);
	disks = json_object_get(usage, "disks");
	assert_int_equal(json_array_size(disks), 1);
	sda = json_array_get(disks, 0);
	assert_true(real(sda, "read_iops") == 50);
	assert_true(real(sda, "write_iops") == 100);
	assert_true(real(sda, "read_bytes_s") == 256000);
	assert_true(real(sda, "write_bytes_s") == 0);
	assert_true(real(sda, "busy") == 1);
	assert_true(real(sda, "queue") == 2);
	assert_true(real(sda, "latency_us") == 1000);
	json_decref(usage);
}

static void test_words(void **state)
{
	char text[8], point[64];

	(void)state;
	host_scheduler_parse("[none] bfq", text, sizeof(text));
	assert_string_equal(text, "none");
	host_scheduler_parse("none", text, sizeof(text));
	assert_string_equal(text, "none");
	host_scheduler_parse("[", text, sizeof(text));
	assert_string_equal(text, "");
	host_scheduler_parse("a [unterminated and long", text, sizeof(text));
	assert_string_equal(text, "untermi");
	assert_false(host_mount_parse("", "8:1", "/dev/sda1", point, 64));
	assert_false(host_mount_parse("1 2 8:1 /", "8:1", "x", point, 64));
	assert_true(host_mount_parse("1 2 8:1 / /a\\134b\\9\\04", "8:1", "x",
				     point, 64));
	assert_string_equal(point, "/a\\b\\9\\04");
}

/* ---- what is not in files ----------------------------------------------- */

static void test_nvme(void **state)
{
	uint8_t log[NVME_SMART_BYTES] = { 0 };
	struct nvme_smart s;

	(void)state;
	nvme_smart_parse(log, &s);
	assert_int_equal(s.temperature_c, -1);
	assert_int_equal(s.used_percent, 0);
	log[1] = (273 + 41) & 0xff;
	log[2] = (273 + 41) >> 8;
	log[3] = 97;
	log[5] = 103;
	log[48] = 2;
	log[128] = 0x10;
	log[129] = 0x27;
	nvme_smart_parse(log, &s);
	assert_int_equal(s.temperature_c, 41);
	assert_int_equal(s.spare_percent, 97);
	assert_int_equal(s.used_percent, 103);
	assert_true(s.written_bytes == 1024000);
	assert_true(s.power_on_hours == 10000);
	memset(log, 0xff, sizeof(log));
	nvme_smart_parse(log, &s);
	assert_int_equal(s.temperature_c, -1);
	assert_int_equal(s.spare_percent, -1);
	assert_true(s.written_bytes == -1 && s.power_on_hours == -1);
	/* no drive, and no such thing at all */
	assert_true(nvme_smart_read("/dev/null", &s) < 0);
	assert_true(nvme_smart_read("/dev/none", &s) < 0);
}

struct qdisc_message {
	struct nlmsghdr h;
	struct tcmsg tc;
	struct nlattr kind;
	char name[4];
	struct nlattr options;
	struct nlattr parms;
	struct tc_tbf_qopt opt;
};

static struct qdisc_message qdisc(void)
{
	struct qdisc_message q;

	memset(&q, 0, sizeof(q));
	q.h.nlmsg_len = sizeof(q);
	q.h.nlmsg_type = RTM_NEWQDISC;
	q.tc.tcm_ifindex = 7;
	q.tc.tcm_parent = TC_H_ROOT;
	q.kind = (struct nlattr) { sizeof(q.kind) + 4, TCA_KIND };
	memcpy(q.name, "tbf", 4);
	q.parms = (struct nlattr) { sizeof(q.parms) + sizeof(q.opt),
				    TCA_TBF_PARMS };
	q.options = (struct nlattr) { sizeof(q.options) + q.parms.nla_len,
				      TCA_OPTIONS };
	q.opt.rate.rate = 31250000;
	return q;
}

static void test_tbf(void **state)
{
	struct qdisc_message q = qdisc();
	struct host_tbf tbf[2];
	size_t count = 0;

	(void)state;
	assert_true(host_tbf_parse(&q, sizeof(q), tbf, 2, &count));
	assert_int_equal(count, 1);
	assert_int_equal(tbf[0].ifindex, 7);
	assert_true(tbf[0].rate_bytes_s == 31250000);
	/* one that holds a part of the traffic says nothing of all of it */
	q.tc.tcm_parent = 1;
	host_tbf_parse(&q, sizeof(q), tbf, 2, &count);
	q = qdisc();
	memcpy(q.name, "htb", 4);
	host_tbf_parse(&q, sizeof(q), tbf, 2, &count);
	assert_int_equal(count, 1);
	/* every length there is, and each byte of it a large one */
	for (size_t len = 0; len <= sizeof(q); len++) {
		q = qdisc();
		q.h.nlmsg_len = (uint32_t)len;
		count = 0;
		host_tbf_parse(&q, len, tbf, 2, &count);
		assert_true(count <= 1);
	}
	for (size_t at = 0; at < sizeof(q); at++) {
		q = qdisc();
		((uint8_t *)&q)[at] = 0xff;
		count = 0;
		host_tbf_parse(&q, sizeof(q), tbf, 2, &count);
		assert_true(count <= 1);
	}
	host_tbf_list(tbf, 2);
}

/* ---- hostile text ------------------------------------------------------- */

static json_t *all_of(const char *root)
{
	struct host_disk_names names;
	struct host_rates rates;
	struct host_nics nics = { 0 };
	struct host_disks disks = { 0 };
	struct host_cpu cpu = { 0 };
	json_t *all = host_facts(root);

	host_rates_read(root, &rates);
	host_disk_names_read(root, &names);
	json_object_set_new(all, "nics", host_nics_facts(root, &rates));
	json_object_set_new(all, "disks", host_disks_facts(root, &names));
	for (int k = 0; k < 2; k++) {
		host_usage_add(root, &cpu, all);
		host_nics_usage(root, &rates, 1, &nics, all);
		host_disks_usage(root, &names, 1, &disks, all);
	}
	return all;
}

/* Each file in turn says something else; what comes of it can be encoded. */
static void test_hostile(void **state)
{
	static char big[100000];
	const struct {
		const char *text;
		size_t len;
	} bad[] = {
		{ "", 0 },
		{ "\n\n\n", 3 },
		{ "-1\n", 3 },
		{ "99999999999999999999999999\n", 27 },
		{ "\xff\xfe\0\1 : 1 2\n\x1b[2J\n", 17 },
		{ "cpu 18446744073709551615 18446744073709551615 1 1\n", 50 },
		{ "eth0: 18446744073709551615 1 1 1 1 1 1 1 "
		  "18446744073709551615 1 1 1 1\n",
		  70 },
		{ "%n%s%d[[]](((\\\\\\\\ - - -\n", 24 },
		{ big, sizeof(big) },
	};

	memset(big, 'A', sizeof(big));
	for (size_t f = 0; f < array_len(files); f++) {
		for (size_t b = 0; b < array_len(bad); b++) {
			json_t *all;
			char *text;

			file_make(*state, files[f].path, bad[b].text,
				  bad[b].len);
			all = all_of(*state);
			text = json_dumps(all, 0);
			assert_non_null(text);
			assert_null(strchr(text, '\x1b'));
			free(text);
			json_decref(all);
		}
		file_make(*state, files[f].path, files[f].text,
			  strlen(files[f].text));
	}
}

/* More than there is room for, in a table of each. */
static void test_many(void **state)
{
	struct host_nics *nics = calloc(1, sizeof(*nics));
	char *text = malloc(1 << 20), *at = text;

	(void)state;
	for (int k = 0; k < 3 * HOST_NICS_MAX; k++)
		at += sprintf(at, "if%d: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", k);
	host_nics_parse(text, nics);
	assert_int_equal(nics->count, HOST_NICS_MAX);
	free(text);
	free(nics);
}

#define ROOT_TEST(t) cmocka_unit_test_setup_teardown(t, root_make, root_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOT_TEST(test_host),        ROOT_TEST(test_nics),
		ROOT_TEST(test_nics_usage),  ROOT_TEST(test_disks),
		ROOT_TEST(test_disks_usage), cmocka_unit_test(test_words),
		cmocka_unit_test(test_nvme), cmocka_unit_test(test_tbf),
		ROOT_TEST(test_hostile),     cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
