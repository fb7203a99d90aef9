/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of commands, in the order of help. */
#include "backend/command_impl.h"

#define END                                                       \
	{                                                         \
		NULL, NULL, false, false, false, NULL, NULL, NULL \
	}
#define NEED true
#define MAY false
#define POSITIONAL(name, kind, need, help)                      \
	{                                                       \
		name, kind, need, true, false, NULL, NULL, help \
	}
#define NAMED(name, kind, unset, help)                             \
	{                                                          \
		name, kind, false, false, false, NULL, unset, help \
	}
#define FLAG(name, help)                                            \
	{                                                           \
		name, "flag", false, false, false, NULL, NULL, help \
	}

#define POLICY_ARGS                                                          \
	{                                                                    \
		"raid", "word",    false, false,                             \
		false,  "0|1|5|6", NULL,  "RAID level."                      \
	},                                                                   \
		{ "ftt",                                                     \
		  "word",                                                    \
		  false,                                                     \
		  false,                                                     \
		  false,                                                     \
		  "0|1|2|3",                                                 \
		  "what the level has: 1, 1, 2",                             \
		  "Failures to tolerate." },                                 \
		NAMED("k", "word", "by the level and the domains there are", \
		      "Members that hold data, beside parity."),             \
		NAMED("stripe_unit", "bytes", "64K in place, 128K log",      \
		      "What lies on one member before the next begins."),    \
		{ "layout",                                                  \
		  "word",                                                    \
		  false,                                                     \
		  false,                                                     \
		  false,                                                     \
		  "log|inplace",                                             \
		  "log",                                                     \
		  "How blocks lie on the drives; a vDisk keeps its own." },  \
	{                                                                    \
		"compression", "word", false, false, false, "none|lz4|zstd", \
			"none", "Of each block, in the log layout."          \
	}

/* ---- running ---------------------------------------------------------------
 */

static const struct command_arg run_args[] = {
	POSITIONAL("SUITE", "suite", NEED, "A suite's name or file."),
	{ "vdisk", "vdisk", false, false, true, NULL, "every vDisk",
	  "The vDisk that series without one are run on; may be repeated." },
	NAMED("seconds", "seconds", "as the suite says", "Seconds a point."),
	NAMED("warmup", "seconds", "as the suite says",
	      "Seconds before each point that are not counted."),
	{ "mode", "word", false, false, false, "percent|ramp",
	  "as the suite says",
	  "Curves by shares of the maximum, or by outstanding I/Os." },
	NAMED("percent", "word", "as the suite says",
	      "Shares of the maximum, with commas: 10,50,100."),
	NAMED("outstanding", "word", "as the suite says",
	      "Depths of a ramp, with commas: 1,4,16."),
	NAMED("early_ci", "number", "as the suite says",
	      "End a point once its 95 % interval is narrower, in percent."),
	NAMED("session", "file", "a new one in session_dir",
	      "The session file to record to; it must not exist."),
	{ "silent", "word", false, false, false, "wait|continue|stop",
	  "as the suite says",
	  "What is done about a node that is not heard of." },
	FLAG("together", "Load these vDisks at once, in one series."),
	FLAG("no-prefill", "Leave out prefill phases."),
	FLAG("plan", "Show what would run and what it would write, and stop."),
	FLAG("headless", "Without the console, also on a terminal."),
	END,
};
static const struct command_arg demo_args[] = {
	NAMED("seconds", "seconds", "3", "Seconds a point."),
	NAMED("session", "file", "a new one in session_dir",
	      "The session file to record to; it must not exist."),
	FLAG("headless", "Without the console, also on a terminal."),
	END,
};
static const struct command_arg resume_args[] = {
	POSITIONAL("FILE", "file", MAY,
		   "A session whose run was interrupted, to go on with."),
	FLAG("headless", "Without the console, also on a terminal."),
	END,
};
static const struct command_arg note_args[] = {
	{ "TEXT", "word", true, true, true, NULL, NULL, "What to note." },
	END,
};
static const struct command_arg workload_args[] = {
	POSITIONAL("NAME", "workload", NEED, "A workload of the library."),
	END,
};
static const struct command_arg suite_args[] = {
	POSITIONAL("NAME", "suite", NEED, "A suite's name or file."),
	{ "vdisk", "vdisk", false, false, true, NULL, "every vDisk",
	  "The vDisk that series without one are run on; may be repeated." },
	END,
};

/* ---- sessions --------------------------------------------------------------
 */

static const struct command_arg file_args[] = {
	POSITIONAL("FILE", "file", NEED, "A session file."),
	END,
};
static const struct command_arg show_args[] = {
	POSITIONAL("FILE", "file", NEED, "A session file."),
	NAMED("run", "word", "the last one", "Which run of the session."),
	END,
};
static const struct command_arg compare_args[] = {
	POSITIONAL("A", "file", NEED,
		   "FILE#SERIES: a session's or a CSV file's series."),
	POSITIONAL("B", "file", NEED, "The one to compare it with."),
	END,
};
static const struct command_arg overlay_args[] = {
	POSITIONAL("WHAT", "file", NEED,
		   "FILE#SERIES, or off to take all overlays away."),
	END,
};
static const struct command_arg speed_args[] = {
	POSITIONAL("FACTOR", "number", NEED, "0.25 to 64."),
	END,
};
static const struct command_arg seek_args[] = {
	POSITIONAL("TIME", "word", NEED,
		   "Seconds from the start, +5 or -5 from here, or end."),
	END,
};
static const struct command_arg step_args[] = {
	POSITIONAL("COUNT", "steps", MAY,
		   "How many events; negative: backwards. Default: 1."),
	END,
};

/* ---- cluster ---------------------------------------------------------------
 */

static const struct command_arg vdisk_create_args[] = {
	POSITIONAL("NAME", "word", NEED, "The new vDisk's name."),
	{ "size", "bytes", true, false, false, NULL, NULL, "Its size." },
	NAMED("policy", "policy", NULL, "A named policy."),
	POLICY_ARGS,
	NAMED("owner", "domain", "the node that owns least",
	      "Whose agent has it, in a cluster of several."),
	END,
};
static const struct command_arg vdisk_set_args[] = {
	POSITIONAL("NAME", "vdisk", NEED, "The vDisk."),
	NAMED("policy", "policy", NULL, "A named policy to move it to."),
	POLICY_ARGS,
	FLAG("wait", "End when the migration has ended, not when it begins."),
	END,
};
static const struct command_arg vdisk_export_args[] = {
	POSITIONAL("NAME", "vdisk", NEED, "The vDisk."),
	NAMED("socket", "word", "one beside the agent's",
	      "Path of the Unix socket to listen at, on the vDisk's node."),
	NAMED("address", "word", "the socket",
	      "Numeric address of that node to listen at instead."),
	NAMED("port", "int", "10809", "The port there."),
	FLAG("no-tls", "At an address: no key is needed, nothing is hidden."),
	FLAG("read-only", "Nothing may be written."),
	END,
};

static const struct command_arg vdisk_args[] = {
	POSITIONAL("NAME", "vdisk", NEED, "The vDisk."),
	END,
};
static const struct command_arg vdisk_move_args[] = {
	POSITIONAL("NAME", "vdisk", NEED, "The vDisk."),
	POSITIONAL("NODE", "domain", NEED, "The node that is to have it."),
	FLAG("force", "Take it from a node that cannot be asked."),
	END,
};
static const struct command_arg policy_args[] = {
	POSITIONAL("NAME", "policy", NEED, "The policy's name."),
	POLICY_ARGS,
	END,
};
static const struct command_arg policy_set_args[] = {
	POSITIONAL("NAME", "policy", NEED, "The policy's name."),
	POLICY_ARGS,
	FLAG("wait", "End when its vDisks have moved, not when they begin."),
	END,
};
static const struct command_arg policy_name_args[] = {
	POSITIONAL("NAME", "policy", NEED, "The policy's name."),
	END,
};
#define NODE_ARG                                \
	NAMED("node", "domain", "its only one", \
	      "The node that it is in; needed where the cluster has several.")

static const struct command_arg drive_path_args[] = {
	POSITIONAL("PATH", "file", NEED, "A directory or block device."),
	NODE_ARG,
	END,
};
static const struct command_arg drive_claim_args[] = {
	POSITIONAL("PATH", "file", NEED, "A directory or block device."),
	NAMED("cluster", "word", "the configured cluster's name",
	      "The cluster that may use it."),
	NAMED("destroy", "file", NULL,
	      "The path again, to overwrite what stands there."),
	NODE_ARG,
	END,
};
static const struct command_arg node_clean_args[] = {
	POSITIONAL("NODE", "word", NEED, "A node, or all."),
	FLAG("force", "Also while a run goes on there, or it does not answer."),
	END,
};
static const struct command_arg drive_release_args[] = {
	POSITIONAL("PATH", "file", NEED, "A drive that iodeck has."),
	FLAG("force", "Also when vDisks still have data on it."),
	NODE_ARG,
	END,
};

#define SHAPE_ARGS                                                             \
	NAMED("rate", "rate", "no limit", "Bytes a second at most."),          \
		NAMED("iops", "number", "no limit", "I/Os a second at most."), \
		NAMED("latency_us", "number", "0", "Microseconds added.")

static const struct command_arg drive_set_args[] = {
	POSITIONAL("DRIVE", "drive", NEED, "DOMAIN:DRIVE, or * for all."),
	SHAPE_ARGS,
	END,
};
static const struct command_arg link_set_args[] = {
	POSITIONAL("DOMAIN", "domain", NEED, "A fault domain, or * for all."),
	SHAPE_ARGS,
	END,
};
#define FAULT_ARGS                                                     \
	{ "STATE", "word",         true,                               \
	  true,    false,          "offline|online|slow|normal|stall", \
	  NULL,    "What happens." },                                  \
		POSITIONAL(                                            \
			"TIME", "seconds", MAY,                        \
			"With slow: added to each I/O; with stall: how long.")

static const struct command_arg fault_drive_args[] = {
	POSITIONAL("DRIVE", "drive", NEED, "DOMAIN:DRIVE."),
	FAULT_ARGS,
	END,
};
static const struct command_arg fault_domain_args[] = {
	POSITIONAL("DOMAIN", "domain", NEED, "A fault domain."),
	FAULT_ARGS,
	END,
};

static const struct command_arg fault_node_args[] = {
	POSITIONAL("NODE", "domain", NEED, "A node of a lab."),
	{ "STATE", "word", true, true, false, "stop|heal", NULL,
	  "What happens." },
	END,
};
static const struct command_arg fault_link_args[] = {
	POSITIONAL("NODE", "domain", NEED, "A node of a lab."),
	{ "STATE", "word", true, true, false, "cut|slow|heal", NULL,
	  "What happens." },
	POSITIONAL("RATE", "rate", MAY, "With slow: what it carries."),
	END,
};

/* ---- lab -------------------------------------------------------------------
 */

#define LAB_NAME_ARG \
	NAMED("name", "word", "lab", "Which one, where there are several.")

static const struct command_arg lab_up_args[] = {
	NAMED("nodes", "int", "3", "How many nodes, 1 to 64."),
	NAMED("link", "rate", "10Gbit", "What the link of each carries."),
	NAMED("drives", "int", "3", "How many drives a node has, 1 to 16."),
	NAMED("size", "bytes", "4G", "The most a drive may take."),
	NAMED("net", "word", "one that is free",
	      "The nodes' addresses, 256 private ones: 10.9.8.0/24."),
	LAB_NAME_ARG,
	END,
};
static const struct command_arg lab_args[] = { LAB_NAME_ARG, END };
static const struct command_arg lab_status_args[] = {
	NAMED("name", "word", "all", "Which one."),
	END,
};
static const struct command_arg lab_node_args[] = {
	POSITIONAL("NODE", "word", NEED, "A node, n1 on, or * for all."),
	LAB_NAME_ARG,
	END,
};
static const struct command_arg lab_slow_args[] = {
	POSITIONAL("NODE", "word", NEED, "A node, n1 on, or * for all."),
	POSITIONAL("RATE", "rate", NEED, "What its link carries from now on."),
	LAB_NAME_ARG,
	END,
};

/* ---- console ---------------------------------------------------------------
 */

static const struct command_arg help_args[] = {
	{ "TOPIC", "word", false, true, true, NULL, NULL,
	  "A command or a manual page." },
	END,
};
static const struct command_arg screen_args[] = {
	{ "NAME", "word", true, true, false,
	  "cluster|vdisks|workloads|run|compare|sessions|log|next|"
	  "previous",
	  NULL, "The screen to show." },
	END,
};
static const struct command_arg set_args[] = {
	{ "NAME=VALUE", "option", false, true, true, NULL, NULL,
	  "An option of iodeck.conf(5); without any, all are listed." },
	END,
};
static const struct command_arg completion_args[] = {
	{ "SHELL", "word", true, true, false, "bash|zsh|words", NULL,
	  "The shell whose script is printed; words answers the scripts." },
	{ "LINE", "word", false, true, true, NULL, NULL,
	  "With words: what has been typed so far." },
	END,
};
static const struct command_arg no_args[] = { END };

#define BOTH (CMD_SHELL | CMD_PROMPT)
#define ACTS (BOTH | CMD_ACTS)
#define LIVE (CMD_PROMPT | CMD_ACTS)

const struct command command_table[] = {
	{ "demo", ACTS, "Running",
	  "Shows a lab of six nodes on this machine, and a run on it.",
	  "iodeck(1)", demo_args, do_demo },
	{ "run", ACTS, "Running", "Runs a suite.", "iodeck(1)", run_args,
	  do_run },
	{ "pause", LIVE, "Running", "Holds the run, or a replay.", "iodeck(1)",
	  no_args, do_pause },
	{ "resume", ACTS, "Running",
	  "Goes on: after pause, with a lost agent, or in a session.",
	  "iodeck(1)", resume_args, do_resume },
	{ "stop", ACTS, "Running", "Ends the run; what it measured stays.",
	  "iodeck(1)", no_args, do_stop },
	{ "note", CMD_PROMPT, "Running", "Writes a note into the session.",
	  "iodeck(1)", note_args, do_note },
	{ "suite list", BOTH, "Running", "Lists the suites.",
	  "iodeck-workload(5)", no_args, do_suite_list },
	{ "suite show", BOTH, "Running", "Shows a suite's plan.",
	  "iodeck-workload(5)", suite_args, do_suite_show },
	{ "workload list", BOTH, "Running", "Lists the workloads.",
	  "iodeck-workload(5)", no_args, do_workload_list },
	{ "workload show", BOTH, "Running", "Shows one workload.",
	  "iodeck-workload(5)", workload_args, do_workload_show },

	{ "session list", BOTH, "Sessions and results", "Lists the sessions.",
	  "iodeck-session(5)", no_args, do_session_list },
	{ "replay", CMD_SHELL, "Sessions and results",
	  "Shows a session again, on the same screens.", "iodeck(1)", file_args,
	  do_open },
	{ "open", CMD_PROMPT, "Sessions and results",
	  "Shows a session again, on the same screens.", "iodeck(1)", file_args,
	  do_open },
	{ "show", BOTH, "Sessions and results",
	  "Prints what a session's run found.", "iodeck(1)", show_args,
	  do_show },
	{ "compare", BOTH, "Sessions and results",
	  "Compares two series, of sessions or of CSV files.", "iodeck(1)",
	  compare_args, do_compare },
	{ "overlay", CMD_PROMPT, "Sessions and results",
	  "Lays another series over the charts.", "iodeck(1)", overlay_args,
	  do_overlay },
	{ "play", CMD_PROMPT, "Sessions and results",
	  "Lets a replay run, or holds it.", "iodeck(1)", no_args, do_play },
	{ "speed", CMD_PROMPT, "Sessions and results",
	  "How fast a replay runs.", "iodeck(1)", speed_args, do_speed },
	{ "seek", CMD_PROMPT, "Sessions and results",
	  "Goes to a time of the replay.", "iodeck(1)", seek_args, do_seek },
	{ "step", CMD_PROMPT, "Sessions and results",
	  "Goes on by single events of the replay.", "iodeck(1)", step_args,
	  do_step },
	{ "live", CMD_PROMPT, "Sessions and results",
	  "Leaves the replay for the cluster.", "iodeck(1)", no_args, do_live },

	{ "vdisk list", BOTH, "Cluster and vDisks", "Lists the vDisks.",
	  "iodeck(1)", no_args, do_vdisk_list },
	{ "vdisk show", BOTH, "Cluster and vDisks",
	  "Shows a vDisk, its members and where they are.", "iodeck(1)",
	  vdisk_args, do_vdisk_show },
	{ "vdisk create", ACTS, "Cluster and vDisks", "Makes a vDisk.",
	  "iodeck-policy(7)", vdisk_create_args, do_vdisk_create },
	{ "vdisk set", ACTS, "Cluster and vDisks",
	  "Moves a vDisk to another policy.", "iodeck-policy(7)",
	  vdisk_set_args, do_vdisk_set },
	{ "vdisk move", ACTS, "Cluster and vDisks",
	  "Has a vDisk opened by another node.", "iodeck(1)", vdisk_move_args,
	  do_vdisk_move },
	{ "vdisk delete", ACTS, "Cluster and vDisks",
	  "Deletes a vDisk and its data.", "iodeck(1)", vdisk_args,
	  do_vdisk_delete },
	{ "vdisk verify", ACTS, "Cluster and vDisks",
	  "Reads all of a vDisk and checks parity or copies.",
	  "iodeck-policy(7)", vdisk_args, do_vdisk_verify },
	{ "vdisk export", ACTS, "Cluster and vDisks",
	  "Gives a vDisk to a VM, fio, qemu-img or others by NBD.",
	  "iodeck-vdisk(5)", vdisk_export_args, do_vdisk_export },
	{ "vdisk unexport", ACTS, "Cluster and vDisks", "Ends that.",
	  "iodeck-vdisk(5)", vdisk_args, do_vdisk_unexport },
	{ "policy list", BOTH, "Cluster and vDisks", "Lists the policies.",
	  "iodeck-policy(7)", no_args, do_policy_list },
	{ "policy create", ACTS, "Cluster and vDisks", "Makes a policy.",
	  "iodeck-policy(7)", policy_args, do_policy_create },
	{ "policy set", ACTS, "Cluster and vDisks",
	  "Changes a policy, and with it every vDisk that has it.",
	  "iodeck-policy(7)", policy_set_args, do_policy_set },
	{ "policy delete", ACTS, "Cluster and vDisks",
	  "Deletes a policy that no vDisk has.", "iodeck-policy(7)",
	  policy_name_args, do_policy_delete },
	{ "node list", BOTH, "Cluster and vDisks",
	  "Lists nodes, hosts and fault domains.", "iodeck(1)", no_args,
	  do_node_list },
	{ "node check", BOTH, "Cluster and vDisks",
	  "Looks at all nodes and the links between them.", "iodeck(1)",
	  no_args, do_node_check },
	{ "node clean", CMD_SHELL, "Cluster and vDisks",
	  "Takes iodeck off a node.", "iodeck(1)", node_clean_args,
	  do_node_clean },
	{ "drive list", BOTH, "Cluster and vDisks", "Lists the drives.",
	  "iodeck(1)", no_args, do_drive_list },
	{ "drive probe", BOTH, "Cluster and vDisks",
	  "Says whether a drive may be claimed, and why.", "iodeck(1)",
	  drive_path_args, do_drive_probe },
	{ "drive claim", ACTS, "Cluster and vDisks", "Gives a drive to iodeck.",
	  "iodeck(1)", drive_claim_args, do_drive_claim },
	{ "drive release", ACTS, "Cluster and vDisks",
	  "Takes a drive back from iodeck.", "iodeck(1)", drive_release_args,
	  do_drive_release },
	{ "drive set", ACTS, "Cluster and vDisks",
	  "Holds drives to a stated speed.", "iodeck(1)", drive_set_args,
	  do_drive_set },
	{ "link set", ACTS, "Cluster and vDisks",
	  "Holds the links of domains to a stated speed.", "iodeck(1)",
	  link_set_args, do_link_set },
	{ "fault drive", ACTS, "Cluster and vDisks",
	  "Pulls, slows or stalls a drive, or ends that.", "iodeck(1)",
	  fault_drive_args, do_fault },
	{ "fault domain", ACTS, "Cluster and vDisks",
	  "The same to all drives of a fault domain.", "iodeck(1)",
	  fault_domain_args, do_fault },
	{ "fault node", ACTS, "Cluster and vDisks",
	  "Stops a node of a lab, or starts it again.", "iodeck-lab(1)",
	  fault_node_args, do_fault_node },
	{ "fault link", ACTS, "Cluster and vDisks",
	  "Cuts or slows the link of a node of a lab, or ends that.",
	  "iodeck-lab(1)", fault_link_args, do_fault_node },
	{ "agent status", BOTH, "Cluster and vDisks",
	  "Says what the agent is doing.", "iodeck-agent(8)", no_args,
	  do_agent_status },
	{ "agent stop", ACTS, "Cluster and vDisks",
	  "Closes everything in order and ends the agent.", "iodeck-agent(8)",
	  no_args, do_agent_stop },

	{ "lab up", CMD_SHELL, "A lab for rehearsal",
	  "Makes nodes on this host, each with an sshd, a link and drives.",
	  "iodeck-lab(1)", lab_up_args, do_lab_up },
	{ "lab down", CMD_SHELL, "A lab for rehearsal",
	  "Removes a lab, and all that is left of one.", "iodeck-lab(1)",
	  lab_args, do_lab_down },
	{ "lab status", CMD_SHELL, "A lab for rehearsal",
	  "Lists labs and how their nodes are.", "iodeck-lab(1)",
	  lab_status_args, do_lab_status },
	{ "lab fail", CMD_SHELL, "A lab for rehearsal",
	  "Kills all that runs on a node, and takes it off the network.",
	  "iodeck-lab(1)", lab_node_args, do_lab_fail },
	{ "lab cut", CMD_SHELL, "A lab for rehearsal",
	  "Takes a node off the network; what runs there runs on.",
	  "iodeck-lab(1)", lab_node_args, do_lab_cut },
	{ "lab slow", CMD_SHELL, "A lab for rehearsal",
	  "Holds the link of a node to another rate.", "iodeck-lab(1)",
	  lab_slow_args, do_lab_slow },
	{ "lab heal", CMD_SHELL, "A lab for rehearsal",
	  "Ends what was done to a node.", "iodeck-lab(1)", lab_node_args,
	  do_lab_heal },

	{ "screen", CMD_PROMPT, "Console", "Shows a screen.", "iodeck(1)",
	  screen_args, do_screen },
	{ "set", CMD_PROMPT, "Console", "Sets options, or lists them.",
	  "iodeck.conf(5)", set_args, do_set },
	{ "help", BOTH, "Console", "Explains a command.", "iodeck(1)",
	  help_args, do_help },
	{ "completion", CMD_SHELL, "Console",
	  "Prints a shell's completion script.", "iodeck(1)", completion_args,
	  do_completion },
	{ "quit", CMD_PROMPT, "Console", "Leaves; a run goes on.", "iodeck(1)",
	  no_args, do_quit },
	{ NULL, 0, NULL, NULL, NULL, NULL, NULL },
};
