/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLUSTER_H
#define ES_CLUSTER_H

/*
 * The cluster as the inspector sees it. A version of it is immutable: a change makes a new one, which every
 * worker takes between two packets. The state that changes all the time (which node refused a moment ago,
 * which one drains) is in struct es_health, shared by all workers and versions.
 */
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <earshot/ring.h>
#include "inspector/base/sockaddr.h"
#include "inspector/config/config.h"
#include "kmod/core/node_ring.h"
#include "inspector/policy/node_set.h"
#include "membership/node_state.h"

/**
 * struct es_health - for each node id, until when (CLOCK_MONOTONIC ns) it is no target, and an enum
 * es_node_state
 * A node that answered NACK or is unreachable is left alone for a while, if there are others; it still
 * inspects.
 * @unheard_until_ns: until when it is none for clients of IPv4, of IPv6: a message about one of them did not
 * arrive there. The other family's lose nothing by that.
 * @unserved_until_ns: likewise for one service alone: nothing listened there for its address of that family.
 * A node that serves one of its services no more is asked for the others as before.
 * @mistimed_until_ns: until when its clock is too far from this node's for it to take anything, be there
 * others or not
 * @unsure_until_ns: some node has refused for want of a lease
 * @drained: a bit for each service of which the node is drained
 * @lost_ns: when it was last lost, in other ways than by leaving in order; 0: never
 * @makes: of what its version makes a connection, ES_MAKES_*
 * @back_ns: since when it has served each service again, after it had not; 0: always
 * @understands: what its version says that it does, ES_WIRE_UNDERSTANDS_*; a node that is gone, what it said
 * last
 */
struct es_health {
	_Atomic unsigned long long suspended_until_ns[ES_NODES_MAX];
	_Atomic unsigned long long unheard_until_ns[ES_CONF_FAMILIES][ES_NODES_MAX];
	_Atomic unsigned long long unserved_until_ns[ES_CONF_SERVICES_MAX][ES_CONF_FAMILIES][ES_NODES_MAX];
	_Atomic unsigned long long mistimed_until_ns[ES_NODES_MAX];
	_Atomic unsigned long long unsure_until_ns;
	_Atomic unsigned long long lost_ns[ES_NODES_MAX];
	_Atomic unsigned char state[ES_NODES_MAX];
	_Atomic unsigned char understands[ES_NODES_MAX];
	_Atomic unsigned char makes[ES_NODES_MAX];
	_Atomic unsigned long long back_ns[ES_NODES_MAX][ES_CONF_SERVICES_MAX];
	_Atomic unsigned long long drained[ES_NODES_MAX];
};

#define ES_MAKES_OF_HANDSHAKES 1 /* of the ACK alone that completes a handshake (ES_NACK_MADE) */

struct es_plugins;
struct es_contents;
struct es_url_table;

/* struct es_share - a set of ring slots */
struct es_share {
	__u64 bits[ES_RING_SLOTS / 64];
};

/**
 * struct es_tenure - since when this node has its slots, and no other had them meanwhile
 * @since_ms: CLOCK_MONOTONIC, when the ring began to change that gave it the slot; 0: it does not inspect
 * there
 * @doubts_ms: since when there are doubts what a lost node has executed (kmod/core/firsts.h)
 */
struct es_tenure {
	uint64_t since_ms[ES_RING_SLOTS];
	uint64_t doubts_ms;
};

/**
 * struct es_cluster - one version
 * Nodes are in the order of the configuration, their index is the node id. Owns ring and table, not conf.
 * @contents: of services whose policies need them (policy/contents.h); not owned
 * @plugins: those of @conf, NULL if it has none; not owned
 * @urls: of services that have one (urls/url_table.h); not owned
 * @weight: 0 for a node that is not on this ring
 * @slots: the ring as the datapath looks it up; slots that this node gains or loses have a flag
 * @tenure: NULL: nothing is known, as without membership
 */
struct es_cluster {
	unsigned int epoch;
	unsigned int self;
	const struct es_conf *conf;
	struct es_ring *ring;
	struct es_node_ring *slots;
	struct es_tenure *tenure;
	unsigned int weight[ES_NODES_MAX];
	union es_sockaddr handover_address[ES_NODES_MAX];
	struct es_contents *contents[ES_CONF_SERVICES_MAX];
	struct es_plugins *plugins;
	struct es_url_table *urls[ES_CONF_SERVICES_MAX];
};

/**
 * es_cluster_new() - build ring and addresses
 * @conf: outlives the version
 * @weights: one for each node, 0: not on the ring; NULL: the configuration's
 * @may: the slots that this node inspects, and may go on with; NULL: all that the ring gives it
 * Returns 0 or -errno (of es_ring_new()).
 */
int es_cluster_new(const struct es_conf *conf, unsigned int self, unsigned int epoch,
		   const unsigned int *weights, const struct es_share *may, struct es_cluster **ret_cluster);
void es_cluster_free(struct es_cluster **cluster);

/* Does this node inspect the first requests of the flows at @hash? */
static inline int es_cluster_inspects(const struct es_cluster *cluster, __u64 hash)
{
	return es_ring_table_lookup(&cluster->slots->table, hash) == cluster->self;
}

/* The node whose slot @hash is, whether or not it inspects there yet; ES_NODE_NONE on an empty ring. */
static inline unsigned int es_cluster_owner(const struct es_cluster *cluster, __u64 hash)
{
	return es_ring_table_lookup(&cluster->slots->table, hash) & ES_RING_NODE;
}

/* es_cluster_share() - all slots that this node inspects */
void es_cluster_share(const struct es_cluster *cluster, struct es_share *ret_share);

/* es_tenure_set() - it inspects what is in @share, from @now_ms on where it did not before */
void es_tenure_set(struct es_tenure *tenure, const struct es_share *share, uint64_t now_ms);

/* es_cluster_set_tenure() - before the version is in force; takes a copy. Returns 0 or -ENOMEM. */
int es_cluster_set_tenure(struct es_cluster *cluster, const struct es_tenure *tenure);

/* Since when this node has the slot at @hash; UINT64_MAX: that is not known. */
static inline uint64_t es_cluster_since_ms(const struct es_cluster *cluster, __u64 hash)
{
	uint64_t since_ms = cluster->tenure ? cluster->tenure->since_ms[hash >> 48] : 0;

	return since_ms ? since_ms : UINT64_MAX;
}

/* es_cluster_has_doubts() - may a lost node have been given something at @hash that this node knows not of?
 */
static inline int es_cluster_has_doubts(const struct es_cluster *cluster, __u64 hash)
{
	return !cluster->tenure || es_cluster_since_ms(cluster, hash) >= cluster->tenure->doubts_ms;
}

/* May @node be given requests now, of whatever service, whoever sent them: on the ring, up and not suspended?
 */
int es_cluster_is_target(const struct es_cluster *cluster, const struct es_health *health, unsigned int node,
			 unsigned long long now_ns);

/* May it be given those of @service from clients of @family, as es_conf_service_of() has it? */
int es_cluster_is_target_of(const struct es_cluster *cluster, const struct es_health *health,
			    unsigned int node, unsigned int service, unsigned int family,
			    unsigned long long now_ns);

/* May it be given what no other node wants of theirs? A node that drains, or has weight 0, and has not just
 * refused something. */
int es_cluster_is_last_resort(const struct es_cluster *cluster, const struct es_health *health,
			      unsigned int node, unsigned int service, unsigned int family,
			      unsigned long long now_ns);

/**
 * es_cluster_first_suspended() - the node that was left alone first of those that may serve when no other
 * does
 * A target, or one that drains, but for having refused something or not having been reached a moment ago; not
 * one of @but. Returns -1 if there is none.
 */
int es_cluster_first_suspended(const struct es_cluster *cluster, const struct es_health *health,
			       unsigned int service, unsigned int family, struct es_node_set but,
			       unsigned long long now_ns);

void es_health_suspend(struct es_health *health, unsigned int node, unsigned long long until_ns);

/* es_health_suspend_for() - for clients of @family alone */
void es_health_suspend_for(struct es_health *health, unsigned int node, unsigned int family,
			   unsigned long long until_ns);

/* es_health_suspend_service() - for clients of @family of that service alone */
void es_health_suspend_service(struct es_health *health, unsigned int node, unsigned int service,
			       unsigned int family, unsigned long long until_ns);

/* es_health_renumber() - services have other numbers: no node is left alone for a service any more */
void es_health_renumber(struct es_health *health);

void es_health_set_mistimed(struct es_health *health, unsigned int node, unsigned long long until_ns);

/*
 * es_health_set_unsure() - a node is about to be suspended that has lost its lease: membership is changing
 * Who finds all nodes suspended finds this, too, whichever worker it is.
 */
void es_health_set_unsure(struct es_health *health, unsigned long long until_ns);
int es_health_is_unsure(const struct es_health *health, unsigned long long now_ns);

/* es_health_set_lost() - what was given to the node before may have been executed there,
 * and nobody is told */
void es_health_set_lost(struct es_health *health, unsigned int node, unsigned long long at_ns);
unsigned long long es_health_lost_ns(const struct es_health *health, unsigned int node);

static inline enum es_node_state es_health_state(const struct es_health *health, unsigned int node)
{
	return (enum es_node_state)atomic_load_explicit(&health->state[node], memory_order_relaxed);
}

static inline int es_health_is_drained(const struct es_health *health, unsigned int node,
				       unsigned int service)
{
	return atomic_load_explicit(&health->drained[node], memory_order_relaxed) >> service & 1;
}

static inline void es_health_set_state(struct es_health *health, unsigned int node, enum es_node_state state)
{
	atomic_store_explicit(&health->state[node], (unsigned char)state, memory_order_release);
}

/* es_health_change_state() - the same; one that is up again at @now_ns is back with all services */
void es_health_change_state(struct es_health *health, unsigned int node, enum es_node_state state,
			    unsigned long long now_ns);

/*
 * es_health_is_back() - @node serves again those of @services (bits) that it did not until @now_ns; 0: it
 * always has
 */
void es_health_is_back(struct es_health *health, unsigned int node, __u64 services,
		       unsigned long long now_ns);

/**
 * es_health_share() - what part of its share @node has of @service at @now_ns, if it begins slowly
 * Grows evenly from ES_HEALTH_SHARE_FIRST to 1 in @slow_start_s; 0: it is 1.
 */
#define ES_HEALTH_SHARE_FIRST 0.05
double es_health_share(const struct es_health *health, unsigned int node, unsigned int service,
		       unsigned int slow_start_s, unsigned long long now_ns);

#endif
