/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/chores.h"

#include <pthread.h>
#include <stdlib.h>

struct chores {
	struct reactor *reactor;
	unsigned pending;
	void (*idle)(void *arg);
	void *idle_arg;
};

struct chore {
	struct task task;
	struct chores *chores;
	pthread_t thread;
	bool threaded;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

int chores_new(struct reactor *r, struct chores **chores)
{
	*chores = calloc(1, sizeof(**chores));
	if (!*chores)
		return -ENOMEM;
	(*chores)->reactor = r;
	return 0;
}

void chores_free(struct chores *c)
{
	id_assert(!c || !c->pending);
	free(c);
}

static void chore_over(struct task *task)
{
	struct chore *job = container_of(task, struct chore, task);
	struct chores *c = job->chores;

	if (job->threaded)
		pthread_join(job->thread, NULL);
	job->done(job->arg);
	free(job);
	if (!--c->pending && c->idle) {
		void (*idle)(void *arg) = c->idle;

		c->idle = NULL;
		idle(c->idle_arg);
	}
}

static void *chore_main(void *arg)
{
	struct chore *job = arg;

	job->work(job->arg);
	reactor_send(job->chores->reactor, &job->task);
	return NULL;
}

void chores_start(struct chores *c, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg)
{
	struct chore *job = calloc(1, sizeof(*job));

	id_assert(job);
	*job = (struct chore) { .task.fn = chore_over,
				.chores = c,
				.threaded = true,
				.work = work,
				.done = done,
				.arg = arg };
	c->pending++;
	if (!pthread_create(&job->thread, NULL, chore_main, job))
		return;
	job->threaded = false;
	work(arg);
	reactor_post(c->reactor, &job->task);
}

void chores_drain(struct chores *c, void (*idle)(void *arg), void *arg)
{
	if (!c->pending) {
		idle(arg);
		return;
	}
	c->idle = idle;
	c->idle_arg = arg;
}
