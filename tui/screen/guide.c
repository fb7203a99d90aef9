/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The demo's captions: what is being seen, and on which screen. The newest note
 * of the stream leads; what the run does and what the vDisks say adds to it.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/fmt.h"
#include "tui/screen/screen.h"

static const struct m_line *newest_note(const struct model *m)
{
	for (size_t i = m->lines; i-- > 0;)
		if (!strcmp(m->line[i].level, "note"))
			return &m->line[i];
	return NULL;
}

const struct m_vdisk *guide_trouble(const struct model *m)
{
	for (size_t i = 0; i < m->vdisks; i++)
		if (strcmp(m->vdisk[i].state, "healthy") != 0 &&
		    m->vdisk[i].state[0])
			return &m->vdisk[i];
	return NULL;
}

static const struct {
	const char *kind, *title, *text;
	enum screen_id screen;
} phase_caption[] = {
	{ "prefill", "Filling the vDisks",
	  "Every block is written once before anything is measured, so that "
	  "no read finds a hole.",
	  SCREEN_VDISKS },
	{ "max", "Looking for the maximum",
	  "The number of I/Os in flight doubles until IOPS gain less than "
	  "3 %. The points of the curve are shares of what is found.",
	  SCREEN_RUN },
	{ "point", "A curve grows",
	  "Each mark is a share of the maximum, asked for at a steady rate; "
	  "how high it stands is its latency. The hollow one is being "
	  "measured.",
	  SCREEN_RUN },
	{ "ramp", "A curve grows",
	  "Each point keeps more I/Os in flight than the one before.",
	  SCREEN_RUN },
	{ "rest", "A rest", "Queues empty before the next series begins.",
	  SCREEN_RUN },
	{ "link", "The links change",
	  "The same cluster behind links of another modelled speed: the limit "
	  "moves from the drives to the network.",
	  SCREEN_CLUSTER },
	{ "drive", "The drives change",
	  "Drives of the demo are held to a stated speed, so that every "
	  "machine shows the same story.",
	  SCREEN_CLUSTER },
	{ "fault", "A fault", "A drive is taken away while the run goes on.",
	  SCREEN_VDISKS },
	{ "wait", "Back to health",
	  "The missing member is rebuilt from the others while I/O goes on.",
	  SCREEN_VDISKS },
};

/* "RAID-5: a curve grows": whose turn it is. */
static void title_phase(const struct m_run *run, size_t at, char *title,
			size_t len)
{
	const char *name = phase_caption[at].title;
	int series = run->phase.series;

	if (series < 0 || series >= (int)run->series_count)
		snprintf(title, len, "%s", name);
	else
		snprintf(title, len, "%.24s: %c%s", run->series[series].name,
			 tolower((unsigned char)name[0]), name + 1);
}

static size_t phase_find(const char *kind)
{
	for (size_t i = 0; i < array_len(phase_caption); i++)
		if (!strcmp(phase_caption[i].kind, kind))
			return i;
	return SIZE_MAX;
}

static enum screen_id caption_before(const struct model *m, char *title,
				     size_t title_len, char *text,
				     size_t text_len)
{
	snprintf(title, title_len, "%s",
		 m->domains ? "A healthy cluster" : "Setting up");
	snprintf(text, text_len, "%s",
		 m->domains
			 ? "Each node is a fault domain with its own drives "
			   "behind its own link. A vDisk's members stand on "
			   "different nodes."
			 : "The agent starts and makes the cluster's drives.");
	return SCREEN_CLUSTER;
}

static enum screen_id caption_after(const struct m_run *run, char *title,
				    size_t title_len, char *text,
				    size_t text_len)
{
	bool done = !strcmp(run->state, "done");

	snprintf(title, title_len, "The run %s%s", done ? "is " : "",
		 !strcmp(run->state, "stopped") ? "was stopped" : run->state);
	snprintf(text, text_len,
		 "%s%sAll of it is recorded: 6 lists the sessions, Enter "
		 "replays one through these same screens.",
		 run->reason, *run->reason ? ". " : "");
	return SCREEN_COMPARE;
}

static void title_trouble(const struct m_vdisk *v, char *title, size_t len)
{
	char a[FMT_MAX];

	if (isfinite(v->progress))
		snprintf(title, len, "%.16s is %.12s: %s", v->name, v->state,
			 fmt_pct(a, v->progress));
	else
		snprintf(title, len, "%.16s is %.12s", v->name, v->state);
}

/* A fault belongs to vDisks for a while, then back to the curve. */
static enum screen_id screen_for(const struct model *m, int64_t now_us,
				 size_t phase)
{
	for (size_t i = m->lines; i-- > 0;)
		if (!strcmp(m->line[i].level, "fault")) {
			if (now_us - m->line[i].t_us < 6000000)
				return SCREEN_VDISKS;
			break;
		}
	return phase_caption[phase].screen;
}

static bool anything_begun(const struct m_run *run)
{
	for (size_t i = 0; i < run->series_count; i++)
		if (run->series[i].points)
			return true;
	return false;
}

enum screen_id guide_caption(const struct model *model, int64_t now_us,
			     char *title, size_t title_len, char *text,
			     size_t text_len)
{
	const struct m_run *run = model_run(model);
	const struct m_line *note = newest_note(model);
	const struct m_vdisk *v = guide_trouble(model);
	bool ours;
	size_t at;

	if (!run)
		return caption_before(model, title, title_len, text, text_len);
	if (run->ended_t_us >= 0)
		return caption_after(run, title, title_len, text, text_len);
	at = phase_find(run->phase.kind);
	/* A rest ahead of everything is for looking around. */
	if (at == SIZE_MAX ||
	    (!anything_begun(run) && at == phase_find("rest")))
		return caption_before(model, title, title_len, text, text_len);
	/* A note speaks until the story has gone on for a while. */
	ours = note && note->t_us >= run->begun_t_us &&
	       now_us - note->t_us < 20000000;
	title_phase(run, at, title, title_len);
	snprintf(text, text_len, "%s",
		 ours ? note->text : phase_caption[at].text);
	if (v)
		title_trouble(v, title, title_len);
	return screen_for(model, now_us, at);
}
