/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ENGINE_H
#define ES_NETFILTER_ENGINE_ENGINE_H

/*
 * The datapath in user space: a node (node.h), the kernel's queues (batch.h), and the thread that has the
 * node decide about the queues' packets. One thread, other than the engine's own, calls these functions,
 * unless they say otherwise.
 */
#include "kmod/core/node_ring.h"
#include "netfilter/kernel/why.h"
#include "netfilter/node/memory.h"
#include "netfilter/node/queue.h"

struct es_nf_engine;

/**
 * struct es_nf_engine_params
 * @path: the node's memory file (memory.h); @responses: as in struct es_nf_node; @zone: as in struct
 * es_nf_hook_device
 * @workers, @queue_bytes, @decision_sets: as in struct es_nf_node_params
 */
struct es_nf_engine_params {
	const char *path;
	struct es_nf_ring *responses;
	unsigned int workers;
	size_t queue_bytes;
	unsigned int decision_sets;
	__u16 zone;
};

/* es_nf_engine_new() - opens the memory; no packet arrives yet. Returns 0 or -errno, with @why. */
int es_nf_engine_new(const struct es_nf_engine_params *params, struct es_nf_engine **ret_engine,
		     struct es_nf_why *why);

/*
 * es_nf_engine_free() - end the thread. The rules stay, and the kernel drops the packets that they queue.
 * Takes NULL. Where nodes have leases, packets of unproven connections are among these, unless this node's
 * lease has no end.
 */
void es_nf_engine_free(struct es_nf_engine **engine);

/**
 * es_nf_engine_configure() - put configuration and ring in force, at once
 * When it returns, no packet is being decided by the former ones. If the engine is attached, the rules
 * follow. Returns 0 or -errno.
 */
int es_nf_engine_configure(struct es_nf_engine *engine, const struct es_config *config,
			   const struct es_node_ring *ring);

/**
 * es_nf_engine_attach() - set the rules and take packets, at these interfaces
 * The configuration must soon name the same interfaces. May be called again, for others. Returns 0 or -errno,
 * with @why.
 */
int es_nf_engine_attach(struct es_nf_engine *engine, unsigned int public_ifindex,
			unsigned int cluster_ifindex, struct es_nf_why *why);

const struct es_nf_memory *es_nf_engine_memory(const struct es_nf_engine *engine);

/* es_nf_engine_queue_fd(), es_nf_engine_wake_fd() - a worker's ring buffer (queue.h), owned by the engine */
int es_nf_engine_queue_fd(const struct es_nf_engine *engine, unsigned int worker);
int es_nf_engine_wake_fd(const struct es_nf_engine *engine, unsigned int worker);

/*
 * es_nf_engine_connections() - es_nf_unproven_walk() over its node; es_nf_engine_end_unproven() -
 * es_nf_unproven_end()
 */
void es_nf_engine_connections(struct es_nf_engine *engine,
			      void (*fn)(void *ctx, const struct es_connection_entry *entry), void *ctx);
unsigned int es_nf_engine_end_unproven(struct es_nf_engine *engine);

/**
 * es_nf_engine_end_stranger() - end an unproven connection, which a daemon may have made that noted none
 * @end: called with @ctx if it is unproven; ends its socket. Returns 1 if it did; 0: there was nothing to do;
 * or what @end returns.
 */
int es_nf_engine_end_stranger(struct es_nf_engine *engine, const struct es_flow *flow,
			      int (*end)(const void *ctx), const void *ctx);

/**
 * es_nf_engine_track() - what is known of the requests on a connection here
 * For display only: the engine's thread may be writing it. Returns 0, or -ENOENT: nothing is known.
 */
int es_nf_engine_track(const struct es_nf_engine *engine, const struct es_flow *flow,
		       struct es_track *ret_track);

/**
 * es_nf_engine_end_late() - end a socket that is still here although its connection should have left
 * @end: called with @ctx in that case, while no packet is decided. es_nf_engine_track() may have described a
 * former connection. Returns 1 if it should have left, else 0.
 */
int es_nf_engine_end_late(struct es_nf_engine *engine, const struct es_flow *flow,
			  int (*end)(const void *ctx), const void *ctx);

/* es_nf_engine_connection() - es_nf_connection_read(); for any thread */
int es_nf_engine_connection(struct es_nf_engine *engine, const struct es_flow *flow,
			    struct es_connection_state *ret_state, __u32 *ret_ahead);

/**
 * es_nf_engine_leave() - the flow's connection has another node now, and its socket is about to vanish; for
 * any thread Packets of its client are decided as another node's from now on. Returns 0 or -errno.
 */
int es_nf_engine_leave(struct es_nf_engine *engine, const struct es_flow *flow);

/* es_nf_engine_counters() - ES_COUNTER_COUNT values, with what the kernel has dropped for this datapath */
void es_nf_engine_counters(struct es_nf_engine *engine, unsigned long long *ret_values);

#endif
