/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In the place of nbd_conn.c where there is no libnbd. */
#include "engine/bdev/nbd_conn.h"

struct nbd_conn {
	char unused;
};

bool nbd_conn_can(void)
{
	return false;
}

int nbd_conn_new(struct reactor *r, const struct bdev_nbd_target *target,
		 void (*event)(void *arg), void *arg, struct nbd_conn **conn,
		 struct err *err)
{
	(void)r, (void)target, (void)event, (void)arg, (void)conn;
	return err_set(err, -ENOTSUP, "built without libnbd");
}

void nbd_conn_free(struct nbd_conn *c)
{
	(void)c;
}

enum nbd_conn_state nbd_conn_state(const struct nbd_conn *c)
{
	(void)c;
	return NBD_CONN_OVER;
}

const char *nbd_conn_why(const struct nbd_conn *c)
{
	(void)c;
	return "built without libnbd";
}

void nbd_conn_facts(const struct nbd_conn *c, struct nbd_conn_facts *facts)
{
	(void)c;
	*facts = (struct nbd_conn_facts) { 0 };
}

void nbd_conn_send(struct nbd_conn *c, struct nbd_conn_cmd *cmd)
{
	(void)c, (void)cmd;
}

struct nbd_conn_cmd *nbd_conn_answered(struct nbd_conn *c)
{
	(void)c;
	return NULL;
}

void nbd_conn_bye(struct nbd_conn *c)
{
	(void)c;
}
