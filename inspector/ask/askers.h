/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASKERS_H
#define ES_ASKERS_H

/*
 * The processes of this machine that read requests themselves, and ask where to serve them (wire.h): the
 * control thread accepts them, and gives each to one worker.
 */
#include <ev.h>
#include "inspector/base/error.h"
#include "inspector/config/config.h"
#include "kmod/core/abi.h"
#include "kmod/core/load.h"

struct es_askers;
struct es_worker;

/**
 * es_askers_new() - listen at @path, which es_local_socket_share() gives to @conf's group, on @loop
 * @workers: @count of them, which do not run any more when es_askers_free() is called. Returns 0, or -errno
 * and @err.
 */
int es_askers_new(struct ev_loop *loop, const char *path, const struct es_conf *conf,
		  struct es_worker *const *workers, unsigned int count, struct es_askers **ret_askers,
		  struct es_conf_error *err);
void es_askers_free(struct es_askers **askers);

/*
 * es_askers_loads() - put what is in hand for them in the place of the connections that a datapath has
 * counted, of services of which every request is asked about
 */
void es_askers_loads(const struct es_askers *askers, const struct es_conf *conf, struct es_load_sums *sums);

/* es_askers_count() - how many processes are connected */
unsigned int es_askers_count(const struct es_askers *askers);

/* es_askers_begun() - requests that processes have begun to serve, but for connections' first ones */
unsigned long long es_askers_begun(const struct es_askers *askers);

/* es_askers_responses() - call @fn for each response that was told since the last call */
void es_askers_responses(struct es_askers *askers,
			 void (*fn)(void *ctx, const struct es_response_entry *entry), void *ctx);

#endif
