/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/chores.h"

#include <pthread.h>
#include <stdlib.h>

struct chores {
	struct reactor *reactor;
	unsigned pending;
	pthread_mutex_t lock; /* of what follows */
	bool left;
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
	pthread_mutex_init(&(*chores)->lock, NULL);
	return 0;
}

void chores_free(struct chores *c)
{
	id_assert(!c || !c->pending);
	if (c)
		pthread_mutex_destroy(&c->lock);
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
	struct chores *c = job->chores;

	job->work(job->arg);
	pthread_mutex_lock(&c->lock);
	if (c->left)
		pthread_detach(job->thread);
	else
		reactor_send(c->reactor, &job->task);
	pthread_mutex_unlock(&c->lock);
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

void chores_leave(struct chores *c, uint64_t ns)
{
	uint64_t now, until;

	if (!c)
		return;
	until = reactor_now(c->reactor) + ns;
	while (c->pending && (now = reactor_now(c->reactor)) < until)
		reactor_run_once(c->reactor, until - now);
	if (!c->pending) {
		chores_free(c);
		return;
	}
	/* c stays, for those that still have it */
	pthread_mutex_lock(&c->lock);
	c->left = true;
	pthread_mutex_unlock(&c->lock);
}
