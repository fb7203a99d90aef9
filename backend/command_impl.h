/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of commands share; each command's function by its table. */
#ifndef BACKEND_COMMAND_IMPL_H
#define BACKEND_COMMAND_IMPL_H

#include "backend/command.h"
#include "backend/deck_impl.h"
#include "backend/text.h"

#define COMMAND(name)                                                        \
	int name(struct deck *deck, const struct command *command, int argc, \
		 char *const argv[], struct outcome *outcome)

/* command_vdisk.c */
COMMAND(do_vdisk_create);
COMMAND(do_vdisk_set);
COMMAND(do_vdisk_delete);
COMMAND(do_vdisk_move);
COMMAND(do_vdisk_verify);
COMMAND(do_vdisk_export);
COMMAND(do_vdisk_unexport);
COMMAND(do_vdisk_list);
COMMAND(do_vdisk_show);
COMMAND(do_policy_create);
COMMAND(do_policy_set);
COMMAND(do_policy_delete);
COMMAND(do_policy_list);
/* command_clean.c */
COMMAND(do_node_clean);
/* command_node.c */
COMMAND(do_node_check);
COMMAND(do_node_list);
/* command_cluster.c */
COMMAND(do_drive_list);
COMMAND(do_drive_probe);
COMMAND(do_drive_claim);
COMMAND(do_drive_release);
COMMAND(do_drive_set);
COMMAND(do_link_set);
COMMAND(do_agent_status);
COMMAND(do_agent_stop);
/* command_fault.c */
COMMAND(do_fault);
COMMAND(do_fault_node);
/* command_lab.c */
COMMAND(do_lab_up);
COMMAND(do_lab_down);
COMMAND(do_lab_status);
COMMAND(do_lab_fail);
COMMAND(do_lab_cut);
COMMAND(do_lab_slow);
COMMAND(do_lab_heal);
/* command_run.c */
COMMAND(do_workload_list);
COMMAND(do_workload_show);
COMMAND(do_suite_list);
COMMAND(do_suite_show);
COMMAND(do_run);
COMMAND(do_demo);
COMMAND(do_pause);
COMMAND(do_resume);
COMMAND(do_stop);
COMMAND(do_note);
/* command_session.c */
COMMAND(do_session_list);
COMMAND(do_open);
COMMAND(do_live);
COMMAND(do_play);
COMMAND(do_speed);
COMMAND(do_seek);
COMMAND(do_step);
COMMAND(do_show);
COMMAND(do_compare);
COMMAND(do_overlay);
/* command_console.c */
COMMAND(do_help);
COMMAND(do_screen);
COMMAND(do_set);
COMMAND(do_quit);
COMMAND(do_completion);

/* Shorthands over command_arg() and units.h; checked by command_check(). */
#define ARG(name) command_arg(command, argc, argv, name)
double arg_number(const char *value, const char *kind, double unset);
/* Adds policy, raid, ftt, stripe_unit_bytes, layout and compression, those of
 * the arguments that are set. */
void arg_policy(const struct command *command, int argc, char *const argv[],
		json_t *body);

json_t *number_or_null(double value);
json_t *shape_json(const struct m_shape *shape);

#endif
