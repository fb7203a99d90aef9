/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the event stream says so far. A model is a fold of events, live or from
 * a file: screens and analysis see nothing else, so a replay shows what was
 * seen live.
 *
 * Unknown numbers are NAN (double) or -1 (int64), never 0.
 * Strings that came from outside hold no control characters.
 *
 * Threads: one at a time. Pointers into it are good until the next
 * model_apply().
 */
#ifndef BACKEND_MODEL_H
#define BACKEND_MODEL_H

#include <jansson.h>

#include "engine/hist.h"

#define MODEL_NAME 64
#define MODEL_TEXT 192
#define MODEL_STRIP 3600 /* newest intervals kept for strip and heat map */
#define MODEL_LOG 2000

struct m_shape {
	bool set;
	double rate_bytes_s, rate_iops, latency_us; /* NAN: no limit */
};

/* What each of several agents said of its own I/O to a thing. */
struct m_parts {
	struct m_part *at;
	size_t count;
};

struct m_drive {
	char name[MODEL_NAME], path[MODEL_TEXT], kind[16], state[16];
	char reason[MODEL_TEXT];
	int64_t size_bytes, free_bytes;
	struct m_shape shape;
	/* newest usage, of all agents */
	double read_iops, write_iops, read_bytes_s, write_bytes_s;
	double busy, queue, latency_us;
	struct m_parts parts;
};

struct m_domain {
	char name[MODEL_NAME];
	bool own; /* its node's own agent has told of it */
	struct m_shape link;
	double link_read_bytes_s, link_write_bytes_s, link_busy;
	struct m_parts parts;
	struct m_drive *drive;
	size_t drives;
};

/* An interface of a host. */
struct m_nic {
	char name[MODEL_NAME], driver[MODEL_NAME], state[16], address[32];
	char line_by[16]; /* driver, tbf */
	bool is_virtual;
	int64_t mtu;
	double line_bytes_s; /* NAN not known */
	/* newest usage; share of the line rate, in its busier direction */
	double rx_bytes_s, tx_bytes_s, share;
	int64_t drops, errors;
};

/* A block device of a host's kernel, whoever uses it. */
struct m_disk {
	char name[MODEL_NAME], model[MODEL_NAME], serial[16], media[16];
	char scheduler[32], content[MODEL_NAME], cluster[MODEL_NAME];
	char holders[MODEL_TEXT], mounts[MODEL_TEXT]; /* "sda1 and 2 more" */
	bool removable, read_only;
	int64_t size_bytes;
	/* of NVMe, -1 elsewhere */
	int64_t used_percent, spare_percent, temperature_c, warning;
	int64_t written_bytes, power_on_hours, media_errors;
	/* newest usage */
	double read_iops, write_iops, read_bytes_s, write_bytes_s;
	double busy, queue, latency_us;
};

struct m_host {
	char agent[MODEL_NAME], name[MODEL_NAME], kernel[MODEL_NAME];
	char cpu[MODEL_TEXT], io[MODEL_NAME], version[16];
	char distribution[MODEL_NAME], clock_source[32];
	int64_t cores, sockets, mem_bytes, pid;
	int clock_synced; /* 1 yes, 0 no, -1 not known */
	int64_t clock_error_us;
	struct m_nic *nic;
	size_t nics;
	struct m_disk *disk;
	size_t disks;
	/* of the point that is measured: how long its busiest interface's share
	 * is known, that share times this, and how long it was full */
	struct {
		int64_t point_t_us; /* when that point began */
		double s, share_s, full_s;
	} net;
	double cpu_busy, cpu_steal;
	int64_t mem_used_bytes;
	int64_t usage_t_us; /* of the newest usage; -1 none */
};

/* A node as the console sees it. */
struct m_node {
	char name[MODEL_NAME], agent[MODEL_NAME];
	char state[16]; /* up, connecting, lost, refused */
	char why[MODEL_TEXT], via[MODEL_TEXT], version[32];
	int64_t t_us;      /* since when it is so */
	bool offset_known; /* these three are */
	int64_t offset_us; /* its clock less the console's */
	int64_t offset_err_us, rtt_us;
};

struct m_policy {
	char name[MODEL_NAME], layout[16], compression[8];
	int raid, ftt;
	int64_t stripe_unit_bytes;
};

/*
 * Bytes by cause, of a vDisk of the log layout: what users wrote, and what
 * went to its members. -1 unknown.
 */
struct m_written {
	int64_t user, stored; /* users', before and after compression */
	int64_t log, destage, bypass, clean, rebuild, checkpoint;
};

/* Write amplification: bytes to members for a byte of users', by cause. NAN
 * where nobody wrote, or it is not known. */
struct m_amp {
	double log, destage, bypass, clean, rebuild, checkpoint, all;
};

/* The newest vdisk_usage; all unknown in the in-place layout. */
struct m_vdisk_log {
	int64_t t_us;             /* when it was so; -1: never told */
	int64_t opened_t_us;      /* since when `written` and counts count */
	struct m_written written; /* since then */
	int64_t blocks_mapped;    /* of 4 KiB: written and not discarded */
	int64_t stored_bytes;     /* what these take, compressed */
	int64_t space_bytes;      /* what segments can hold of such bytes */
	int64_t buffer_bytes, buffer_max_bytes; /* in the log alone */
	int64_t zero_blocks;
	int64_t checkpoints, segments_cleaned;
	int64_t reads_degraded, reads_repaired, reads_hedged;
	int64_t scrub_passes, scrub_bytes, scrub_found, scrub_repaired,
		scrub_lost;
	double scrub_progress; /* of the pass under way; NAN not known */
	int64_t blocks_lost, replayed;
	int64_t opening_us; /* how long the opening took; 0: just made */
	double free_share;  /* of slots for segments */
	double log_fill;    /* of the log's zone slots */
	double victim_live; /* of segments cleaned lately */
	double compliance;  /* share stored as the policy says */
	double ratio;       /* compression of all that is stored, >= 1 */
};

/* What lies between two of them. */
struct m_vdisk_strip {
	int64_t t_us, len_us;                           /* of its end */
	struct m_written written;                       /* in it */
	double log_fill, free_share, compliance, ratio; /* at its end */
};

/* A stretch of time in which a vDisk was not healthy. */
struct m_span {
	int64_t from_us, to_us; /* to: -1 it lasts */
	char state[16];
};
#define MODEL_SPANS 16

struct m_member {
	int slot;
	char domain[MODEL_NAME], drive[MODEL_NAME];
	char role[16], state[16];
};

struct m_vdisk {
	char agent[MODEL_NAME]; /* that tells of it: its owner */
	char owner[MODEL_NAME]; /* the node; "": there is one agent */
	int64_t term;           /* the owner's; -1 */
	bool hearsay; /* others have components of it, it says nothing */
	char name[MODEL_NAME], uuid[40], policy[MODEL_NAME];
	char layout[16], compression[8]; /* "log", "lz4"; "" not told */
	char state[16], reason[MODEL_TEXT];
	int raid, ftt, k, m, failures_left;
	int64_t size_bytes, stripe_unit_bytes, epoch;
	int64_t memory_bytes; /* of the agent's, once all is written */
	double progress, rate_bytes_s, left_bytes;
	/* given to others by NBD; state "" where it is not */
	struct {
		char uri[MODEL_TEXT], state[16], key[MODEL_TEXT];
		bool read_only;
		int64_t restarts;
	} export;
	struct m_member member[16];
	size_t members;
	struct m_vdisk_log log;
	struct m_vdisk_strip *strip; /* newest MODEL_STRIP or more, in order */
	size_t strips;
	struct m_span span[MODEL_SPANS]; /* the newest, in order */
	size_t spans;
};

/* One direction of one point: what was measured, warm-up left out. */
struct m_dir {
	int64_t ops, bytes, errors;
	struct hist svc, rsp; /* rsp.count 0 in closed loop: svc counts */
};

/*
 * A node of a run that several run, and what it does in a point. BEGUN: its
 * intervals are waited for. GONE: it is not heard of any more, or has ended:
 * what it has not told is missing. OUT: it takes no part; the others' intervals
 * count without it.
 */
enum m_part_state { PART_IDLE, PART_TO_COME, PART_BEGUN, PART_GONE, PART_OUT };
struct m_point_node {
	enum m_part_state state;
	bool failed;         /* it ended, and not as it should */
	int64_t late_us;     /* begun behind what was agreed; -1 unknown */
	int64_t missing;     /* intervals that lack it, and do not count */
	double max_iops;     /* of a search, its own; NAN */
	int64_t outstanding; /* ... and at this depth; -1 */
};
struct m_run_node {
	char name[MODEL_NAME], agent[MODEL_NAME];
	char state[16], reason[MODEL_TEXT];
	int waits_at; /* before this phase, while it is waiting */
	bool out;     /* the console has given it up */
};

enum m_point_state { POINT_WARM, POINT_RUN, POINT_DONE, POINT_CUT };

struct m_interval {
	int64_t t_us;                 /* of its end */
	double iops, mean_us, p99_us; /* service time of all */
};

struct m_point {
	int phase, point;  /* indices in the plan */
	char kind[16];     /* max, point, ramp */
	double percent;    /* NAN when not of a curve */
	double asked_iops; /* NAN closed loop */
	int64_t outstanding;
	int64_t begun_t_us, warmup_us, length_us;
	int64_t paused_t_us; /* since when it is paused; 0: it is not */
	int64_t held_us;     /* how long it was paused before */
	enum m_point_state state;
	double measured_s; /* of counted intervals */
	int64_t scheduled; /* open loop: arrivals due; -1 closed loop */
	int64_t backlog;   /* at its end */
	bool generator_bound;
	/* of the time while it was measured (or sought): what is known of the
	 * host's CPU, and how much of that it was full */
	double host_s, host_full_s;
	/* the host whose busiest interface had the greatest share of its line
	 * rate in that time: that share, NAN where none is known, of how much
	 * of the time it was at its limit, the interface, whose agent's */
	double net_share, net_full;
	char net_nic[16], net_agent[MODEL_NAME];
	/* how long the load's own thread was ready and had no CPU, of how long
	 * that is known */
	double wait_s, wait_of_s;
	struct m_dir read, write;
	struct m_interval *interval; /* counted ones, in order */
	size_t intervals;
	bool degraded, rebuilding; /* its vDisk, at some moment of it */
	/* by its vDisk while it was measured, in the log layout; ratio of all
	 * that was stored at its end */
	double written_s; /* 0: nothing is known */
	struct m_written written;
	double ratio;
	char marks[MODEL_TEXT]; /* faults while it ran, "; " between */
	/* of a run over nodes, by the run's nodes; NULL else */
	struct m_point_node *node;
	bool node_out;       /* one takes no part that should */
	int64_t missing;     /* intervals that a node is missing in */
	int64_t skew_us;     /* the latest node's late_us; -1 unknown */
	int64_t skew_err_us; /* clocks compared may be off so much; -1 */
};

struct m_series {
	/* vdisk: the first of those it loads at once */
	char name[MODEL_NAME], vdisk[MODEL_NAME], setup[MODEL_NAME];
	char vdisks_text[2 * MODEL_TEXT]; /* "db1, db2 and 4 more" */
	int vdisks;
	char workload[MODEL_NAME], workload_title[MODEL_NAME];
	/* its vDisk as it was when the series' newest phase began: how many
	 * drives hold data (or copies, or parity), of how many the cluster has;
	 * -1 not known */
	int raid, k, m, drives, drives_all;
	char policy[MODEL_NAME], vdisk_state[16], layout[16], compression[8];
	int64_t stripe_unit_bytes, size_bytes; /* -1 not known */
	int domains;
	/* as set when the series' newest phase began, where all were alike */
	struct m_shape link, drive_shape;
	bool links_differ, drives_differ;
	double max_iops; /* closed loop; NAN until found */
	int64_t max_outstanding;
	struct m_point *point; /* in order of running; kind max first */
	size_t points;
};

struct m_phase {
	int phase; /* -1 none */
	char kind[16];
	int series;                               /* -1 none */
	int64_t begun_t_us, warmup_us, length_us; /* length 0: until done */
	int64_t done_bytes, total_bytes;          /* prefill; -1 */
	bool ended;
	char status[16], reason[MODEL_TEXT];
};

struct m_run {
	char id[MODEL_NAME], title[MODEL_NAME];
	char state[16], reason[MODEL_TEXT];
	int64_t begun_t_us, ended_t_us; /* -1 */
	json_t *plan;                   /* borrowed by readers */
	int phases;
	struct m_phase phase; /* the newest */
	double done_share;    /* 0..1 of the plan's time; NAN unknown */
	double left_s;        /* NAN unknown */
	struct m_series *series;
	size_t series_count;
	struct m_run_node *node; /* as in the plan; none: one agent runs it */
	int go_phase;     /* the newest that all were told to begin; -1 */
	int64_t go_at_us; /* ... by the console's clock */
	size_t nodes;
};

/* For strip and heat map: each interval of the run as a whole. */
#define MODEL_HEAT_ROWS 24
struct m_strip {
	int64_t t_us;
	double iops, read_iops, write_iops, bytes_s, mean_us, p99_us;
	int64_t inflight; /* at its end; -1 unknown */
	/* counts by latency: row i holds [2^i, 2^(i+1)) us, row 0 below 2 */
	uint32_t heat[MODEL_HEAT_ROWS];
};

struct m_line {
	int64_t t_us;
	char level[8]; /* info warn error note cmd fault */
	char text[MODEL_TEXT];
};

struct model {
	char session[MODEL_NAME], title[MODEL_NAME], version[16];
	int64_t first_t_us, t_us; /* of the first and newest event; -1 */
	bool closed;              /* an orderly end was read */
	char cluster[MODEL_NAME], cluster_title[MODEL_NAME];
	bool cluster_virtual;
	struct m_node *node; /* none of a cluster that is all here */
	size_t nodes;
	struct m_host *host;
	size_t hosts;
	struct m_domain *domain;
	size_t domains;
	struct m_policy *policy;
	size_t policies;
	struct m_vdisk *vdisk;
	size_t vdisks;
	struct m_run *run; /* every run of the session, in order */
	size_t runs;
	struct m_strip *strip; /* newest MODEL_STRIP, in order */
	size_t strips;
	struct m_line *line; /* newest MODEL_LOG, in order */
	size_t lines;
	uint64_t revision; /* grows with each event applied */
	uint64_t ignored;  /* events of unknown type or bad shape */
};

int model_new(struct model **model);
void model_free(struct model *model);
/*
 * Folds one event in. Unknown types are counted and ignored. Returns 0;
 * -EINVAL for an event of a known type with a wrong shape (counted, ignored,
 * err says what); -ENOMEM. Duplicates by (a, i, n) are dropped and return
 * -EALREADY.
 */
int model_apply(struct model *model, const json_t *event, struct err *err);

/* The newest run, or NULL. */
struct m_run *model_run(const struct model *model);
/* "n3 in 4 of 10 intervals, without n2": what a point lacks of its nodes; ""
 * nothing. Returns out. */
const char *model_silent_text(const struct m_run *run,
			      const struct m_point *point, char *out,
			      size_t size);
/* done, failed or stopped: nothing more comes of it. */
bool model_run_over(const struct m_run *run);
struct m_vdisk *model_vdisk(const struct model *model, const char *name);
struct m_domain *model_domain(const struct model *model, const char *name);
struct m_node *model_node(const struct model *model, const char *name);
/* What an agent said of the machine it is on, or NULL. */
struct m_host *model_host(const struct model *model, const char *agent);
void model_amp(const struct m_written *written, struct m_amp *amp);
/* Adds where both are known. */
void model_written_add(struct m_written *sum, const struct m_written *more);

#endif
