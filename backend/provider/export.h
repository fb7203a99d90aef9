/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A vDisk given to others by NBD: an nbdkit with a plugin of ours, which is a
 * client of the serve.h over the vDisk.
 *
 *   VM, fio, qemu-img --NBD--> nbdkit + plugin --sockets--> serve --> vDisk
 *
 * It ends with the vDisk, first: when export_stop() is done, nbdkit is reaped
 * and nothing of its clients flies any more.
 */
#ifndef BACKEND_PROVIDER_EXPORT_H
#define BACKEND_PROVIDER_EXPORT_H

#include <jansson.h>

#include "backend/agent/reply.h"

struct p_export;
struct p_vdisk;

/* {socket?, address?, port?, tls?, read_only?}: answers once it is served, or
 * why it is not. Of an open vDisk that has no export. */
void export_start(struct p_vdisk *v, const json_t *request,
		  struct reply *reply);
/* done(arg) once, now where there is no export. */
void export_stop(struct p_vdisk *v, void (*done)(void *arg), void *arg);
/* Of an event: uri, state, restarts, ..; NULL where there is none. */
json_t *export_json(const struct p_vdisk *v);
/* What passed through it since the last call, len_s ago; NULL: none. */
json_t *export_usage(struct p_vdisk *v, double len_s);

#endif
