/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_PROGRAMS_H
#define ES_INSPECTOR_PROGRAMS_H

/*
 * Handovers that programs ask for (docs/programs.md): a thread that takes the connections' descriptors over a
 * Unix socket (libearshot/wire.h), moves them, and answers.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/base/error.h"
#include "inspector/datapath/datapath.h"
#include "inspector/config/keyfile.h"

struct es_programs;

/**
 * struct es_programs_params - what the thread needs; all outlives it
 * @path: of the socket, which es_local_socket_share() gives to its group
 * @packet_max: bytes of the longest packet that fits into a handover message; may change at any time
 * @note: remembers that @node has the connection whose first request began with @first_seq, for what its
 * client repeats (es_worker_learn()); called from the thread
 */
struct es_programs_params {
	const char *path;
	struct es_datapath *datapath;
	const _Atomic unsigned int *packet_max;
	void (*note)(void *ctx, __u64 flow_hash, __u32 cookie, __u32 first_seq, unsigned int node);
	void *note_ctx;
};

/* es_programs_new() - listen and start the thread. @cluster stays the caller's. Returns 0, or -errno and
 * @err. */
int es_programs_new(const struct es_programs_params *params, const struct es_cluster *cluster,
		    const struct es_keys *keys, struct es_programs **ret_programs, struct es_conf_error *err);

/* es_programs_set_cluster() - use another version; the old one may be freed then. Returns 0 or -errno. */
int es_programs_set_cluster(struct es_programs *programs, const struct es_cluster *cluster,
			    const struct es_keys *keys);

/* es_programs_free() - take no more, finish what is under way (seconds at worst), remove the socket */
void es_programs_free(struct es_programs **programs);

#endif
