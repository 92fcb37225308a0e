/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_KEEPER_H
#define ES_KEEPER_H

/*
 * The keeper: a small process beside the daemon that sees it die, whatever kills it, and hang. It reads the
 * workers' marks in the datapath's memory (kmod/core/poison.h) and tells the other nodes at once what the
 * daemon was inspecting, before any of them has taken its share of the ring over and gets the same request.
 *
 * A call into a plugin that does not return it has the worker leave (plugin/guard.h); a worker that hangs
 * elsewhere ends the daemon, so that it can be started again. Only time in which the worker runs, or waits of
 * its own accord, counts for that: not that in which a busy machine does not let it run, or a debugger.
 */
#include <sys/types.h>
#include "inspector/cluster/cluster.h"
#include "inspector/datapath/datapath.h"
#include "inspector/config/keyfile.h"

struct es_keeper;

/* es_keeper_start() - returns 0 or -errno; the calling process is the one that is kept */
int es_keeper_start(struct es_state *state, unsigned int workers, const struct es_cluster *cluster,
		    const struct es_keys *keys, struct es_keeper **ret_keeper);

/* es_keeper_tell() - another version of the cluster, or other keys; NULL is no keeper */
void es_keeper_tell(struct es_keeper *keeper, const struct es_cluster *cluster, const struct es_keys *keys);

pid_t es_keeper_pid(const struct es_keeper *keeper);

/* es_keeper_stop() - the daemon ends in order. Returns when the process is gone. */
void es_keeper_stop(struct es_keeper **keeper);

#endif
