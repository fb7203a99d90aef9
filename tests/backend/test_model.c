/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fold: a whole session against what it was made from, and hostile ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/event.h"
#include "synth.h"

#define assert_near(a, b, share) assert_true(fabs((a) - (b)) <= (share)*fabs(b))

static struct model *folded(const struct synth_opts *o)
{
	struct model *m;

	assert_int_equal(model_new(&m), 0);
	assert_int_equal(synth_model(o, m), 0);
	return m;
}

static void whole_session(void **state)
{
	struct synth_opts o;
	struct model *m;
	struct m_run *run;

	(void)state;
	synth_defaults(&o);
	m = folded(&o);
	assert_string_equal(m->session, "20260302-084000-demo");
	assert_string_equal(m->cluster, "demo");
	assert_true(m->cluster_virtual);
	assert_true(m->closed);
	assert_int_equal(m->ignored, 0);
	assert_int_equal(m->revision, synth_events(&o));
	assert_int_equal(m->first_t_us, o.begin_t_us);
	assert_int_equal(m->hosts, 1);
	assert_string_equal(m->host[0].name, "lab");
	assert_int_equal(m->host[0].pid, 4242);
	assert_int_equal(m->host[0].cores, 8);
	assert_int_equal(m->domains, 6);
	assert_int_equal(m->domain[3].drives, 2);
	assert_string_equal(m->domain[3].drive[1].state, "ok");
	assert_true(m->domain[3].link.set);
	assert_true(isnan(m->domain[3].link.rate_iops));
	assert_near(m->domain[3].link.rate_bytes_s, 3.125e9, 1e-9);
	assert_false(isnan(m->domain[3].drive[0].busy));
	assert_int_equal(m->policies, 3);
	assert_int_equal(m->vdisks, 3);
	assert_int_equal(model_vdisk(m, "db3")->members, 6);
	assert_string_equal(model_vdisk(m, "db3")->state, "healthy");
	assert_null(model_vdisk(m, "db9"));
	assert_non_null(model_domain(m, "n6"));
	run = model_run(m);
	assert_non_null(run);
	assert_string_equal(run->state, "done");
	assert_true(run->done_share == 1);
	assert_true(run->left_s == 0);
	assert_int_equal(run->phases, 39);
	assert_int_equal(run->series_count, 3);
	assert_true(m->lines > 40);
	model_free(m);
}

static void points(void **state)
{
	struct synth_opts o;
	struct model *m;
	struct m_run *run;

	(void)state;
	synth_defaults(&o);
	m = folded(&o);
	run = model_run(m);
	for (int i = 0; i < 3; i++) {
		const struct m_series *se = &run->series[i];

		assert_int_equal(se->points, 11);
		assert_string_equal(se->point[0].kind, "max");
		assert_near(se->max_iops, synth_max_iops(i), 1e-9);
		assert_int_equal(se->max_outstanding, 64);
		for (int k = 1; k <= 10; k++) {
			const struct m_point *p = &se->point[k];
			double share = k / 10.0;
			double ops = (double)(p->read.ops + p->write.ops);
			double sum = (double)(p->read.svc.sum_ns +
					      p->write.svc.sum_ns);

			assert_int_equal(p->state, POINT_DONE);
			assert_int_equal(p->point, k - 1);
			/* Six counted seconds; the two warm ones are not. */
			assert_true(p->measured_s == 6);
			assert_int_equal(p->intervals, 6);
			assert_int_equal(p->read.svc.count, p->read.ops);
			assert_int_equal(p->write.rsp.count, p->write.ops);
			assert_near(p->asked_iops, synth_max_iops(i) * share,
				    1e-9);
			assert_int_equal(p->scheduled,
					 6 * (int64_t)p->asked_iops);
			assert_false(p->generator_bound);
			assert_true(p->host_s > 5 && p->host_full_s == 0);
			if (i == 2 && k >= 9)
				continue; /* hurt, and saturated */
			assert_near(ops / 6, p->asked_iops, 0.01);
			assert_near(sum / ops / 1000,
				    synth_latency_us(i, share) * 1.06, 0.03);
		}
	}
	assert_string_equal(run->series[2].point[9].marks,
			    "drive n4:d1 offline");
	assert_string_equal(run->series[2].point[10].marks, "");
	assert_string_equal(run->series[0].point[9].marks, "");
	model_free(m);
}

static void strip_and_heat(void **state)
{
	struct synth_opts o;
	struct model *m;

	(void)state;
	synth_defaults(&o);
	m = folded(&o);
	assert_int_equal(m->strips, 3 * (7 + 10 * 8)); /* warm ones too */
	for (size_t i = 0; i < m->strips; i++) {
		const struct m_strip *st = &m->strip[i];
		double sum = 0;

		for (int r = 0; r < MODEL_HEAT_ROWS; r++)
			sum += st->heat[r];
		assert_near(sum, st->iops, 1e-9);
		assert_near(st->bytes_s, st->iops * 32768, 1e-9);
		assert_true(st->mean_us < st->p99_us);
		assert_true(!i || st->t_us > st[-1].t_us);
	}
	model_free(m);
}

/* What a screen sees in the middle of a run. */
static void halfway(void **state)
{
	struct synth_opts o;
	struct model *m;
	struct m_run *run;
	double share = 0;
	int all;

	(void)state;
	synth_defaults(&o);
	o.close = false;
	all = synth_events(&o);
	for (int part = 1; part <= 8; part++) {
		o.limit = all * part / 8;
		m = folded(&o);
		run = model_run(m);
		assert_non_null(run);
		assert_true(run->done_share >= share);
		assert_true(run->done_share <= 1);
		share = run->done_share;
		if (part == 4) {
			assert_string_equal(run->state, "running");
			assert_true(share > 0.35 && share < 0.65);
			/* About half of 3 x (4 + 3 + 7 + 80) s. */
			assert_true(run->left_s > 100 && run->left_s < 180);
			assert_false(m->closed);
		}
		model_free(m);
	}
	assert_true(share == 1);
}

/* ---- single events ------------------------------------------------------ */

static int64_t next_n;

static int apply(struct model *m, const char *text, struct err *err)
{
	char line[8192], body[8000];
	json_t *j;
	int rc;

	next_n++;
	snprintf(body, sizeof(body), "%s", text);
	for (char *c = body; *c; c++)
		if (*c == '\'')
			*c = '"';
	snprintf(line, sizeof(line),
		 "{\"a\":\"t\",\"i\":1,\"n\":%lld,\"t\":%lld,%s}",
		 (long long)next_n, (long long)next_n * 1000, body);
	rc = event_decode(line, strlen(line), &j, err);
	if (rc)
		fail_msg("%s: %s", line, err->text);
	rc = model_apply(m, j, err);
	json_decref(j);
	return rc;
}

#define PLAN                                                              \
	"'e':'run','run':'r','title':'T','plan':{'series':[{'name':'A'}," \
	"{'name':'B'}],'phases':[{'kind':'point','series':0,"             \
	"'length_us':4000000,'warmup_us':1000000},{'kind':'rest',"        \
	"'length_us':5000000},{'kind':'point','series':1,"                \
	"'length_us':5000000}]}"

#define HIST                                                         \
	"{'n':2,'sum_ns':6000000,'min_ns':2000000,'max_ns':4000000," \
	"'b':[1908,1,128,1]}"

static void duplicates(void **state)
{
	struct model *m;
	struct err err;
	json_t *j;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	j = json_pack("{s:s,s:s,s:i,s:i,s:i,s:s}", "e", "note", "a", "x", "i",
		      1, "n", 5, "t", 9, "text", "once");
	assert_int_equal(model_apply(m, j, &err), 0);
	assert_int_equal(model_apply(m, j, &err), -EALREADY);
	assert_int_equal(m->lines, 1);
	assert_int_equal(m->revision, 1);
	json_object_set_new(j, "i", json_integer(2));
	assert_int_equal(model_apply(m, j, &err), 0);
	json_object_set_new(j, "a", json_string("y"));
	assert_int_equal(model_apply(m, j, &err), 0);
	json_object_set_new(j, "n", json_integer(4));
	assert_int_equal(model_apply(m, j, &err), -EALREADY);
	assert_int_equal(m->lines, 3);
	json_decref(j);
	model_free(m);
}

static void wrong_shapes(void **state)
{
	static const char *const bad[] = {
		"'e':'cluster','name':'c'",
		"'e':'cluster','name':'c','domains':[3]",
		"'e':'cluster','name':'c','domains':[{'name':'n','drives':"
		"[{'name':'d'}]}]",
		"'e':'cluster','name':'c','domains':[{'name':'n','link':"
		"{'rate_bytes_s':-4}}]",
		"'e':'policy','name':'','raid':1",
		"'e':'policy','name':'p','raid':1.5",
		"'e':'policy','name':'p','raid':-5",
		"'e':'vdisk','name':'v'",
		"'e':'vdisk','name':'v','state':'ok','members':[1,2,3,4,5,6,7,"
		"8,9,0,1,2,3,4,5,6,7,8]",
		"'e':'run','run':'r','plan':[]",
		"'e':'run','run':'r'",
		"'e':'run_state','run':'nobody','state':'done'",
		"'e':'phase','run':'nobody','phase':0,'kind':'point'",
		"'e':'sample','run':'nobody','phase':0,'series':0,'from_us':0,"
		"'len_us':1000000,'read':{'ops':1},'write':{'ops':0}",
		"'e':'usage','links':[{}]",
		"'e':'usage','cpu_busy':'much'",
		"'e':'note'",
		"'e':'log','text':5",
	};
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		err.text[0] = '\0';
		assert_int_equal(apply(m, bad[i], &err), -EINVAL);
		assert_true(strlen(err.text) > 10);
		assert_int_equal(m->ignored, i + 1);
	}
	assert_int_equal(m->domains + m->policies + m->vdisks + m->runs, 0);
	assert_int_equal(apply(m, "'e':'of the future','x':[1]", &err), 0);
	assert_int_equal(m->ignored, array_len(bad) + 1);
	model_free(m);
}

static void wrong_order(void **state)
{
	struct model *m;
	struct err err;
	struct m_run *run;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(apply(m, PLAN, &err), 0);
	run = model_run(m);
	assert_int_equal(apply(m,
			       "'e':'phase_end','run':'r','phase':0,"
			       "'status':'done'",
			       &err),
			 -EINVAL);
	assert_int_equal(apply(m,
			       "'e':'phase','run':'r','phase':3,'kind':"
			       "'rest'",
			       &err),
			 -EINVAL);
	assert_int_equal(apply(m,
			       "'e':'phase','run':'r','phase':0,'kind':"
			       "'point','series':2",
			       &err),
			 -EINVAL);
	/* A sample before its phase is in the strip, in no point. */
	assert_int_equal(apply(m,
			       "'e':'sample','run':'r','phase':0,'series':"
			       "0,'from_us':0,'len_us':1000000,'read':"
			       "{'ops':2,'bytes':8192,'svc':" HIST "}",
			       &err),
			 0);
	assert_int_equal(m->strips, 1);
	assert_int_equal(run->series[0].points, 0);
	/* The end of a phase was lost: its point is cut. */
	assert_int_equal(apply(m,
			       "'e':'phase','run':'r','phase':0,'kind':"
			       "'point','series':0,'point':0,'length_us':"
			       "4000000,'warmup_us':1000000",
			       &err),
			 0);
	assert_int_equal(run->series[0].point[0].state, POINT_WARM);
	assert_int_equal(apply(m,
			       "'e':'phase','run':'r','phase':2,'kind':"
			       "'point','series':1,'point':0,'length_us':"
			       "5000000",
			       &err),
			 0);
	assert_int_equal(run->series[0].point[0].state, POINT_CUT);
	assert_true(isnan(run->series[1].point[0].asked_iops));
	assert_int_equal(apply(m,
			       "'e':'run_state','run':'r','state':'failed',"
			       "'reason':'gone'",
			       &err),
			 0);
	assert_int_equal(run->series[1].point[0].state, POINT_CUT);
	assert_string_equal(m->line[m->lines - 1].level, "error");
	/* Resumed: the same run goes on, its phase begins anew. */
	assert_int_equal(apply(m, PLAN ",'resumed_from':2", &err), 0);
	assert_int_equal(m->runs, 1);
	run = model_run(m);
	assert_string_equal(run->state, "running");
	assert_int_equal(apply(m,
			       "'e':'phase','run':'r','phase':2,'kind':"
			       "'point','series':1,'point':0,'length_us':"
			       "5000000",
			       &err),
			 0);
	assert_int_equal(run->series[1].points, 1);
	assert_int_equal(run->series[1].point[0].state, POINT_WARM);
	model_free(m);
}

/* Two series in one interval add up in the strip; bad histograms are out. */
static void strip_adds_up(void **state)
{
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m, PLAN, &err);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			apply(m,
			      "'e':'sample','run':'r','phase':0,'series':0,"
			      "'from_us':0,'len_us':500000,'read':{'ops':2,"
			      "'bytes':8192,'svc':" HIST "}",
			      &err),
			0);
	assert_int_equal(m->strips, 1);
	assert_true(m->strip[0].iops == 8);
	assert_true(m->strip[0].bytes_s == 32768);
	assert_true(m->strip[0].mean_us == 3000);
	assert_int_equal(m->strip[0].heat[10], 2); /* 1024 to 2047 us */
	assert_int_equal(m->strip[0].heat[11], 2);
	assert_int_equal(
		apply(m,
		      "'e':'sample','run':'r','phase':0,'series':0,"
		      "'from_us':500000,'len_us':500000,'read':{'ops':2,"
		      "'svc':{'n':3,'sum_ns':9,'min_ns':3,'max_ns':3,'b':"
		      "[3,1]}}",
		      &err),
		-EINVAL);
	assert_int_equal(m->strips, 1);
	model_free(m);
}

/* What is left of a step when it ends is counted, and no rate of the screen. */
static void strip_leaves_slices(void **state)
{
	const struct m_run *run;
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m,
	      "'e':'run','run':'r','title':'T','plan':{'interval_ms':500,"
	      "'series':[{'name':'A'}],'phases':[{'kind':'point','series':0,"
	      "'length_us':4000000}]}",
	      &err);
	apply(m,
	      "'e':'phase','run':'r','phase':0,'kind':'point','series':0,"
	      "'point':0,'length_us':4000000",
	      &err);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			apply(m,
			      i ? "'e':'sample','run':'r','phase':0,'series':0,"
				  "'from_us':500000,'len_us':6000,'read':{"
				  "'ops':2,'bytes':8192,'svc':" HIST "}"
				: "'e':'sample','run':'r','phase':0,'series':0,"
				  "'from_us':0,'len_us':500000,'read':{"
				  "'ops':2,'bytes':8192,'svc':" HIST "}",
			      &err),
			0);
	assert_int_equal(m->strips, 1);
	assert_true(m->strip[0].iops == 4);
	run = model_run(m);
	assert_int_equal(run->series[0].point[0].read.ops, 4);
	model_free(m);
}

/* By name, in whatever order they are told of. */
static void vdisks_in_order(void **state)
{
	static const char *const told[] = { "db10", "db2", "a", "db1" };
	static const char *const want[] = { "a", "db1", "db2", "db10" };
	struct model *m;
	char text[80];

	(void)state;
	assert_int_equal(model_new(&m), 0);
	for (size_t k = 0; k < array_len(told); k++) {
		snprintf(text, sizeof(text),
			 "'e':'vdisk','name':'%s','state':'healthy'", told[k]);
		assert_int_equal(apply(m, text, NULL), 0);
	}
	for (size_t k = 0; k < array_len(want); k++)
		assert_string_equal(m->vdisk[k].name, want[k]);
	model_free(m);
}

#define USAGE(busy, steal)                                                    \
	"'e':'usage','len_us':1000000,'cpu_busy':" busy ",'cpu_steal':" steal \
	",'links':[],'drives':[]"

/* A full host is counted while a point is measured, stolen time with it. */
static void host_full(void **state)
{
	const struct m_point *p;
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m, PLAN, &err);
	apply(m,
	      "'e':'phase','run':'r','phase':0,'kind':'point','series':0,"
	      "'length_us':4000000,'warmup_us':1000000",
	      &err);
	p = &model_run(m)->series[0].point[0];
	apply(m, USAGE("0.99", "0.0"), &err); /* warming up */
	assert_true(p->host_s == 0);
	apply(m,
	      "'e':'sample','run':'r','phase':0,'series':0,'from_us':1000000,"
	      "'len_us':500000,'cpu_wait':0.5,'read':{'ops':2,'svc':" HIST "}",
	      &err);
	assert_true(p->wait_of_s == 0.5 && p->wait_s == 0.25);
	apply(m, USAGE("0.5", "0.0"), &err);
	apply(m, USAGE("0.7", "0.28"), &err);
	apply(m, USAGE("0.94", "null"), &err);
	apply(m, USAGE("0.96", "null"), &err);
	apply(m, USAGE("null", "null"), &err); /* not known: not counted */
	assert_true(p->host_s == 4 && p->host_full_s == 2);
	apply(m, "'e':'phase_end','run':'r','phase':0,'status':'done'", &err);
	apply(m, USAGE("0.99", "0.0"), &err);
	assert_true(p->host_s == 4);
	model_free(m);
}

#define NET(nics) "'e':'usage','len_us':1000000,'nics':[" nics "]"

/* Interfaces and disks: known by a host event, with the newest figures, which
 * a new description keeps. */
static void host_parts(void **state)
{
	static const char host[] =
		"'e':'host','name':'h','distribution':'D','sockets':2,"
		"'clock':{'source':'tsc','synced':false},"
		"'nics':[{'name':'eth0','line_bytes_s':125000000,"
		"'line_by':'tbf','mtu':1500,'virtual':true},{'name':'eth1'}],"
		"'disks':[{'name':'sda','size_bytes':1024,'media':'ssd',"
		"'mounts':['/','/b'],'used_percent':3}]";
	const struct m_host *h;
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	assert_int_equal(apply(m, host, &err), 0);
	h = &m->host[0];
	assert_int_equal(h->nics, 2);
	assert_int_equal(h->sockets, 2);
	assert_int_equal(h->clock_synced, 0);
	assert_true(h->nic[0].line_bytes_s == 125e6 && h->nic[0].is_virtual);
	assert_true(isnan(h->nic[1].line_bytes_s) && isnan(h->nic[0].share));
	assert_string_equal(h->disk[0].mounts, "/, /b");
	assert_int_equal(h->disk[0].used_percent, 3);
	assert_int_equal(h->disk[0].temperature_c, -1);
	apply(m,
	      "'e':'usage','len_us':1000000,'cpu_busy':0.5,'nics':[{'name':"
	      "'eth0','rx_bytes_s':5,'share':0.25,'drops':2},{'name':'new'}],"
	      "'disks':[{'name':'sda','queue':1.5}]",
	      &err);
	assert_true(h->nic[0].share == 0.25 && h->nic[0].drops == 2);
	assert_true(h->disk[0].queue == 1.5 && isnan(h->disk[0].busy));
	assert_int_equal(apply(m, host, &err), 0);
	h = &m->host[0];
	assert_true(h->nic[0].share == 0.25 && h->cpu_busy == 0.5);
	assert_true(h->disk[0].queue == 1.5);
	apply(m, NET("{'name':'eth1','share':0.5}"), &err);
	assert_true(isnan(h->nic[0].share) && h->nic[1].share == 0.5);
	assert_int_equal(apply(m, "'e':'host','name':'h','nics':[{}]", &err),
			 -EINVAL);
	assert_int_equal(
		apply(m, "'e':'host','name':'h','disks':[{'name':3}]", &err),
		-EINVAL);
	assert_int_equal(m->host[0].nics, 2);
	model_free(m);
}

/* As a vDisk event says, and gone with the next that does not. */
static void vdisk_export(void **state)
{
	static const char plain[] = "'e':'vdisk','name':'db1','uuid':'u',"
				    "'raid':5,'state':'healthy'";
	struct model *m;
	struct err err;
	char text[400];

	(void)state;
	assert_int_equal(model_new(&m), 0);
	snprintf(text, sizeof(text),
		 "%s,'export':{'uri':'nbd+unix:///?socket=x','state':'up',"
		 "'restarts':2,'read_only':true}",
		 plain);
	assert_int_equal(apply(m, text, &err), 0);
	assert_string_equal(m->vdisk[0].export.uri, "nbd+unix:///?socket=x");
	assert_true(m->vdisk[0].export.restarts == 2 &&
		    m->vdisk[0].export.read_only);
	snprintf(text, sizeof(text), "%s,'export':{'uri':3}", plain);
	assert_int_equal(apply(m, text, &err), -EINVAL);
	assert_int_equal(apply(m, plain, &err), 0);
	assert_string_equal(m->vdisk[0].export.state, "");
	model_free(m);
}

/* The busiest interface of a point: its mean share, and how long it was full;
 * the next point begins anew. */
static void net_full(void **state)
{
	static const char point[] =
		"'e':'phase','run':'r','phase':0,'kind':'point','series':0,"
		"'length_us':4000000,'warmup_us':1000000";
	const struct m_point *p;
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m, PLAN, &err);
	apply(m, "'e':'host','name':'h','nics':[{'name':'a'},{'name':'b'}]",
	      &err);
	apply(m, point, &err);
	p = &model_run(m)->series[0].point[0];
	apply(m, NET("{'name':'a','share':1}"), &err); /* warming up */
	assert_true(isnan(p->net_share));
	apply(m,
	      "'e':'sample','run':'r','phase':0,'series':0,'from_us':1000000,"
	      "'len_us':500000,'read':{'ops':2,'svc':" HIST "}",
	      &err);
	apply(m, NET("{'name':'a','share':0.5},{'name':'b','share':0.9}"),
	      &err);
	apply(m, NET("{'name':'a','share':0.7},{'name':'b'}"), &err);
	apply(m, NET("{'name':'a'}"), &err); /* not known: not counted */
	assert_true(fabs(p->net_share - 0.8) < 1e-9 && p->net_full == 0.5);
	assert_string_equal(p->net_nic, "a");
	model_free(m);
}

/* 1 to 32 in flight are six levels of 1.1 s, before any was run; then a point
 * of 3.6 s. */
static void time_left(void **state)
{
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m,
	      "'e':'run','run':'r','title':'T','plan':{'series':[{'name':'A'}],"
	      "'phases':[{'kind':'rest','length_us':1000000},{'kind':'max',"
	      "'series':0,'step_us':700000,'warmup_us':400000,"
	      "'outstanding_max':32},{'kind':'point','series':0,"
	      "'length_us':3000000,'warmup_us':600000}]}",
	      &err);
	apply(m, "'e':'phase','run':'r','phase':0,'kind':'rest'", &err);
	assert_near(model_run(m)->left_s, 1 + 6 * 1.1 + 3.6, 0.001);
	model_free(m);
}

#define STATE(s) "'e':'run_state','run':'r','state':'" s "'"
#define WARM(from)                                                    \
	"'e':'sample','run':'r','phase':0,'series':0,'from_us':" from \
	",'len_us':500000,'warm':true,'read':{'ops':0}"

/* Of five seconds one was run; two more went by in a pause. */
static void pause_takes_no_time(void **state)
{
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m, PLAN, &err);
	apply(m,
	      "'e':'phase','run':'r','phase':0,'kind':'point','series':0,"
	      "'length_us':4000000,'warmup_us':1000000",
	      &err);
	apply(m, WARM("500000"), &err);
	assert_near(model_run(m)->left_s, 14.0, 0.0001);
	apply(m, STATE("paused"), &err);
	apply(m, WARM("2500000"), &err);
	assert_near(model_run(m)->left_s, 14.0, 0.0001);
	next_n += 1999;
	apply(m, STATE("running"), &err);
	assert_near((double)model_run(m)->series[0].point[0].held_us, 2001000.0,
		    0.001);
	apply(m, WARM("3500000"), &err);
	assert_near(model_run(m)->left_s, 13.0, 0.0001);
	model_free(m);
}

static void rings(void **state)
{
	struct model *m;
	struct err err;
	char text[128];

	(void)state;
	assert_int_equal(model_new(&m), 0);
	for (int i = 0; i < 3 * MODEL_LOG + 7; i++) {
		snprintf(text, sizeof(text), "'e':'note','text':'line %d'", i);
		assert_int_equal(apply(m, text, &err), 0);
	}
	assert_int_equal(m->lines, MODEL_LOG);
	assert_string_equal(m->line[MODEL_LOG - 1].text, "line 6006");
	assert_string_equal(m->line[0].text, "line 4007");
	apply(m, PLAN, &err);
	for (int i = 0; i < 2 * MODEL_STRIP + 5; i++) {
		snprintf(text, sizeof(text),
			 "'e':'sample','run':'r','phase':0,'from_us':%d,"
			 "'len_us':1000,'read':{'ops':%d}",
			 i * 1000, i);
		assert_int_equal(apply(m, text, &err), 0);
	}
	assert_int_equal(m->strips, MODEL_STRIP);
	assert_true(m->strip[MODEL_STRIP - 1].iops == 7204000);
	assert_true(m->strip[0].iops == 3605000);
	model_free(m);
}

static void terminal_is_safe(void **state)
{
	struct model *m;
	struct err err;

	(void)state;
	assert_int_equal(model_new(&m), 0);
	apply(m, "'e':'note','text':'a\\u001b]0;x\\u0007b\\u009b2J'", &err);
	assert_string_equal(m->line[0].text, "a]0;xb2J");
	apply(m, "'e':'policy','name':'g\\u001b[31mold','raid':6", &err);
	assert_string_equal(m->policy[0].name, "g[31mold");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_session),
		cmocka_unit_test(points),
		cmocka_unit_test(strip_and_heat),
		cmocka_unit_test(halfway),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(wrong_shapes),
		cmocka_unit_test(wrong_order),
		cmocka_unit_test(strip_adds_up),
		cmocka_unit_test(strip_leaves_slices),
		cmocka_unit_test(vdisks_in_order),
		cmocka_unit_test(host_full),
		cmocka_unit_test(host_parts),
		cmocka_unit_test(net_full),
		cmocka_unit_test(vdisk_export),
		cmocka_unit_test(time_left),
		cmocka_unit_test(pause_takes_no_time),
		cmocka_unit_test(rings),
		cmocka_unit_test(terminal_is_safe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
