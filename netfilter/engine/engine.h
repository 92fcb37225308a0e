/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ENGINE_H
#define ES_NETFILTER_ENGINE_ENGINE_H

/*
 * The datapath in user space: a node (node.h), the kernel's queue (capture.h), and the thread that takes packets out of
 * one and has them decided by the other. All functions are for one thread, another than the engine's own.
 */
#include "kmod/core/node_ring.h"
#include "netfilter/node/queue.h"
#include "netfilter/node/memory.h"
#include "netfilter/kernel/why.h"

struct es_nf_engine;

/**
 * struct es_nf_engine_params
 * @path: of the tables' file (memory.h); @responses: struct es_nf_node's; @zone: struct es_nf_hook_device's; the rest as of struct es_datapath_params
 */
struct es_nf_engine_params {
	const char *path;
	struct es_nf_ring *responses;
	unsigned int workers;
	size_t queue_bytes;
	unsigned int decision_sets;
	__u16 zone;
};

/* es_nf_engine_new() - with its tables; no packet comes yet. Returns 0 or -errno, with @why. */
int es_nf_engine_new(const struct es_nf_engine_params *params, struct es_nf_engine **ret_engine,
		     struct es_nf_why *why);

/*
 * es_nf_engine_free() - end the thread; the rules stay, and what they catch is dropped. Takes NULL.
 * Where nodes have leases, so are packets of connections that are not proven; unless this node's lease has no end.
 */
void es_nf_engine_free(struct es_nf_engine **engine);

/**
 * es_nf_engine_configure() - put both in force, at once
 * When it returns, no packet is being decided by what was in force before. Where the engine is attached, the rules
 * follow. Returns 0 or -errno.
 */
int es_nf_engine_configure(struct es_nf_engine *engine, const struct es_config *config,
			   const struct es_node_ring *ring);

/**
 * es_nf_engine_attach() - set the rules and take packets
 * To these interfaces, whatever the configuration says, which is to say the same soon. Again: to others.
 * Returns 0 or -errno, with @why.
 */
int es_nf_engine_attach(struct es_nf_engine *engine, unsigned int public_ifindex,
			unsigned int cluster_ifindex, struct es_nf_why *why);

const struct es_nf_memory *es_nf_engine_memory(const struct es_nf_engine *engine);

/* es_nf_engine_queue_fd(), es_nf_engine_wake_fd() - of a worker's ring buffer (queue.h), owned by the engine */
int es_nf_engine_queue_fd(const struct es_nf_engine *engine, unsigned int worker);
int es_nf_engine_wake_fd(const struct es_nf_engine *engine, unsigned int worker);

/* es_nf_engine_connections(), es_nf_engine_end_unproven() - es_nf_unproven_walk(), es_nf_unproven_end() of its node */
void es_nf_engine_connections(struct es_nf_engine *engine,
			      void (*fn)(void *ctx, const struct es_connection_entry *entry), void *ctx);
unsigned int es_nf_engine_end_unproven(struct es_nf_engine *engine);

/**
 * es_nf_engine_end_stranger() - end a connection that may have been made by a daemon that noted none, if it is unproven
 * @end: called with @ctx if it is, and ends its socket. Returns 1 if it did; 0: nothing was to do; or what @end returns.
 */
int es_nf_engine_end_stranger(struct es_nf_engine *engine, const struct es_flow *flow,
			      int (*end)(const void *ctx), const void *ctx);

/**
 * es_nf_engine_track() - what is known of the requests on a connection that is here
 * As it is just being written, so for those who look on. Returns 0, or -ENOENT: nothing is.
 */
int es_nf_engine_track(const struct es_nf_engine *engine, const struct es_flow *flow,
		       struct es_track *ret_track);

/**
 * es_nf_engine_end_late() - end a socket that is here still, if its connection should have left
 * @end: called with @ctx then, while nothing is decided: what es_nf_engine_track() has told may be of a connection that was here
 * before. Returns 1 if it should have left; 0: it should not.
 */
int es_nf_engine_end_late(struct es_nf_engine *engine, const struct es_flow *flow,
			  int (*end)(const void *ctx), const void *ctx);

/* es_nf_engine_connection() - es_nf_connection_read(); by any thread */
int es_nf_engine_connection(struct es_nf_engine *engine, const struct es_flow *flow,
			    struct es_connection_state *ret_state, __u32 *ret_ahead);

/**
 * es_nf_engine_leave() - the flow's connection has another node now, and its socket is about to vanish; by any thread
 * What its client sends from now on is decided about as another node's. Returns 0 or -errno.
 */
int es_nf_engine_leave(struct es_nf_engine *engine, const struct es_flow *flow);

/* es_nf_engine_counters() - ES_COUNTER_COUNT values */
void es_nf_engine_counters(struct es_nf_engine *engine, unsigned long long *ret_values);

#endif
