/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_NODE_H
#define ES_MODULE_NODE_H

/*
 * A node: the datapath of one network namespace and all that it owns. It outlives the daemon, as the tc
 * programs do; it ends with ES_CMD_REMOVE, with its namespace or with the module.
 *
 * Lifetime. es_net.node is set and cleared under es_net.lock. Hooks get the node as their private pointer;
 * es_node_free() takes them off, waits for a grace period (they run under rcu_read_lock()) and only then
 * frees. Whatever else reads a node holds es_net.lock. Version and queues are replaced under RCU.
 */
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>

#include "kmod/core/challenges.h"
#include "kmod/core/control.h"
#include "kmod/core/counters.h"
#include "kmod/core/decisions.h"
#include "kmod/core/firsts.h"
#include "kmod/core/handover.h"
#include "kmod/core/lease.h"
#include "kmod/core/replay.h"
#include "kmod/core/resets.h"
#include "kmod/core/settled.h"
#include "kmod/core/strays.h"
#include "kmod/core/syns.h"
#include "kmod/core/node_ring.h"
#include "queue.h"
#include "table.h"
#include "tracks.h"

/* struct es_version - configuration and ring that are in force together */
struct es_version {
	struct rcu_head rcu;
	struct es_config config;
	struct es_node_ring ring;
};

/* Anti-replay window of one sender: source node * ES_STREAMS_MAX + stream. */
struct es_replay_slot {
	spinlock_t lock;
	struct es_replay replay;
};

/* A set of notes on what has become of requests. A node has es_settled_sets() of these sets. */
struct es_settled_slot {
	spinlock_t lock;
	struct es_settled_set set;
};

/* A ring buffer for each worker, one for the lengths of responses, and one for long ones (download.h). */
#define ES_RINGBUFS	     (ES_WORKERS_MAX + 2)
#define ES_RINGBUF_LENGTHS   ES_WORKERS_MAX
#define ES_RINGBUF_DOWNLOADS (ES_WORKERS_MAX + 1)

struct es_download_set;

/* The places of a node's hooks on interfaces. */
enum es_device_hook { ES_HOOK_CLUSTER, ES_HOOK_LO, ES_HOOK_PUBLIC, ES_HOOK_DEVICES };

struct es_node {
	struct net *net;
	struct es_module_params params;
	struct es_version __rcu *version;
	struct es_table *state_table;
	struct es_state *state;
	struct es_table *decision_table;
	struct es_decision_set *decisions;
	struct es_table *kept_table;	   /* kept.h; NULL until a daemon asks for it, and then for good */
	struct es_download_set *downloads; /* download.h; the same */
	struct es_ringbuf __rcu *queue[ES_RINGBUFS];
	struct es_replay_slot *replays;
	struct es_reset *resets;
	struct es_settled_slot *settled;
	struct es_stray *strays;
	struct es_challenge *challenges;
	struct es_overheard *syns;
	struct es_overheard *firsts;
	struct es_overheard *heard_flows;
	struct es_tracks *tracks;
	u64 __percpu *counters;
	/* Under rtnl and es_net.lock: an interface that goes takes its hook along. */
	struct nf_hook_ops device_ops[ES_HOOK_DEVICES];
	struct net_device *device[ES_HOOK_DEVICES];
	struct nf_hook_ops stack_ops[4]; /* two of each family */
	int stack_hooked;
};

/* struct es_net - what each network namespace has, node or not */
struct es_net {
	struct mutex lock;
	struct es_node *node;
};

extern struct pernet_operations es_net_operations;

/* es_net_of() - that of @net, while es_net_operations are registered */
struct es_net *es_net_of(struct net *net);

/**
 * es_node_new() - a node without configuration: nothing is attached
 * @params: checked by the caller. Returns 0, -ENOMEM.
 */
int es_node_new(struct net *net, const struct es_module_params *params, struct es_node **ret_node);

/* es_node_free() - take its hooks off, wait until nobody runs in them, free. Takes NULL. Under rtnl. */
void es_node_free(struct es_node **node);

/* es_node_renew() - take @params over, with new ring buffers for its workers. Returns 0 or -ENOMEM. */
int es_node_renew(struct es_node *node, const struct es_module_params *params);

/* es_node_detach() - take its hooks off. Under rtnl. */
void es_node_detach(struct es_node *node);

/* es_device_unhook() - take off that one, if it is there. Under rtnl. */
void es_device_unhook(struct es_node *node, enum es_device_hook at);

/* es_node_device_gone() - take the hooks off @dev. Under rtnl. */
void es_node_device_gone(struct es_node *node, const struct net_device *dev);

/* es_node_configure() - put @version in force; takes it over. */
void es_node_configure(struct es_node *node, struct es_version *version);

/* Valid in hooks: they run under rcu_read_lock(). NULL before the first configuration. */
static inline const struct es_version *es_version_get(const struct es_node *node)
{
	return rcu_dereference(node->version);
}

static inline void es_count(const struct es_node *node, u32 counter)
{
	if (counter < ES_COUNTER_COUNT)
		this_cpu_inc(node->counters[counter]);
}

/* Is this node's lease over? */
static inline int es_is_silent(const struct es_node *node)
{
	return es_lease_is_over(READ_ONCE(node->state->lease_ns), ktime_get_coarse_ns());
}

/* A node that takes no new flow takes none from others either. */
static inline int es_handover_is_silent(const struct es_node *node)
{
	return es_lease_refuses(READ_ONCE(node->state->lease_ns), READ_ONCE(node->state->attached),
				ktime_get_coarse_ns());
}

/* Does the ring give @hash to this node, and may it answer? */
static inline int es_ring_is_mine(const struct es_node *node, const struct es_version *version, u64 hash)
{
	return READ_ONCE(node->state->attached) && es_node_ring_answers(&version->ring, hash) &&
	       !es_is_silent(node);
}

static inline struct es_reset *es_reset_slot(const struct es_node *node, u64 flow_hash)
{
	return &node->resets[es_reset_index(flow_hash)];
}

static inline struct es_challenge *es_challenge_slot(const struct es_node *node, u64 flow_hash)
{
	return &node->challenges[es_challenge_index(flow_hash)];
}

static inline struct es_stray *es_stray_slot(const struct es_node *node, u64 flow_hash)
{
	return &node->strays[es_stray_index(flow_hash)];
}

static inline struct es_overheard *es_syn_slot(const struct es_node *node, u64 key)
{
	return &node->syns[es_overheard_index(key, ES_SYNS)];
}

static inline struct es_overheard *es_heard_flow_slot(const struct es_node *node, u64 key)
{
	return &node->heard_flows[es_overheard_index(key, ES_HEARD_FLOWS)];
}

static inline struct es_overheard *es_first_slot(const struct es_node *node, u64 key)
{
	return &node->firsts[es_overheard_index(key, ES_FIRSTS)];
}

/* Set entry of the decision table for @flow_hash, NULL if there is no table. */
static inline const struct es_decision_set *es_decision_set_of(const struct es_node *node, u64 flow_hash)
{
	return &node->decisions[es_decision_index(flow_hash, node->params.decision_sets)];
}

#endif
