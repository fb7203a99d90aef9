/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Agents that are none: a test program plays them when it is started as a link
 * starts `iodeck-agent attach`. What the one called NAME does, FAKE_NAME says
 * in the environment, words with blanks between:
 *
 *	dead     ends at once         silent   says nothing
 *	busy     has an owner         refuses  opens no cluster
 *	deaf     does not end with its console
 *	drops    ends when it is asked to export_open
 *	running  has a run            skew=US  its clock
 *	session=PATH                  its owner's
 *
 * ASK_NAME: a line that it asks once its cluster is open. CHECK_NAME: what it
 * says of its node, where that is not well: {"uid":1}. FAKE_LOG: a file of
 * all that agents were asked, "NAME {...}" a line.
 */
#ifndef TESTS_BACKEND_FAKE_AGENT_H
#define TESTS_BACKEND_FAKE_AGENT_H

/* From main(): plays one and does not return, or is not meant. */
void fake_agent(int argc, char *const argv[]);
/* FAKE_NAME; NULL: as any. */
void fake_is(const char *agent, const char *words);

#endif
