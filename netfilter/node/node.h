/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_NODE_H
#define ES_NETFILTER_NODE_NODE_H

/*
 * A node: its tables, what is in force, and its hands. One thread at a time uses it: the engine's lock (engine.h) sees to
 * that. What the node does, it decides as the other datapaths do, by kmod/core/; what comes of it outside of its own
 * memory, its hands do, and so tests have other ones.
 */
#include "kmod/core/answer.h"
#include "kmod/core/challenges.h"
#include "kmod/core/decide.h"
#include "kmod/core/lease.h"
#include "kmod/core/node_ring.h"
#include "netfilter/node/left.h"
#include "netfilter/kernel/packet.h"
#include "netfilter/node/queue.h"
#include "netfilter/node/swallowed.h"
#include "netfilter/node/memory.h"

/* What the kernel is to do with a packet that it has given to this datapath. */
enum es_nf_fate {
	ES_NF_DROP,
	ES_NF_ACCEPT,
	ES_NF_DROP_OTHERS, /* it and, for a while, what follows of its flow (drop_by_flow.h) */
	ES_NF_DROP_GIVEN,  /* likewise, of which bare acknowledgements only */
	ES_NF_DROP_GONE,   /* as _OTHERS, of a connection that this node has given away */
};

/**
 * struct es_nf_found - what the kernel has for a flow
 * @socket: an enum es_socket; TIME_WAIT is none; @time_wait: but it is one; @is_old: or its server has closed it, nobody has it, and it
 * waits for its client's FIN: what a new connection of these ports ends (es_nf_node_end_old())
 * @listening: there is none, but a listening socket; @accept_full: whose queue is full
 * @received: of an established one: how many bytes it has got of its client; @unread: so many of them its server has not read
 * @sent, @acked: how many it has sent, as far as the kernel tells (4.19), and how many of these its client has acknowledged
 * @unacked: how many more than that its server has written; @is_open: both sides of it are
 * @heard_ms: when it was acknowledged something last, by CLOCK_MONOTONIC, and not too early
 * @rcv_wnd, @max_wnd: how wide its window, and its client's, are at the most
 */
struct es_nf_found {
	__u8 socket;
	__u8 listening;
	__u8 accept_full;
	__u8 is_open;
	__u8 time_wait;
	__u8 is_old;
	__u32 received;
	__u32 sent;
	__u64 acked;
	__u32 unread;
	__u32 unacked;
	__u32 heard_ms;
	__u32 rcv_wnd;
	__u32 max_wnd;
};

/**
 * struct es_nf_making - a connection that is being made, as its node has to know of it when it is made, or when it is certain that it is not
 * @made: called by es_nf_made(), with 0 or -errno; the rest is for this function
 * @seg: of the packet that it is made of; @h: of the message that has asked for it, if any has
 * @counter: to count by when it is made; @is_new: nothing was noted of it before
 */
struct es_nf_node;
struct es_nf_making {
	struct es_nf_node *node;
	void (*made)(const struct es_nf_making *making, int rc);
	struct es_flow flow;
	__u64 flow_hash;
	struct es_segment seg;
	struct es_tcp_options options;
	struct es_handover h;
	__u32 counter;
	__u8 is_new;
	__u8 was_unsure;
};

/**
 * struct es_nf_hands - how a node does something outside of its own memory; each returns 0 or -errno
 * @look: is there a socket? Where that cannot be found out, there is none that listens, either
 * @may_have_made: may there be a connection of the flow that was made here? Nobody is asked, so 0 is certain, and 1 is not
 * @frame: send a packet of @protocol to that MAC, on the public interface, when all that came together is decided
 * @send: send a packet of IPv4 to wherever it says
 * @answer: send a segment to the client that it names, by the stack; no rule and no connection tracking changes it
 * @rebuild: make a connection of the packet. @socket: of one that a program hands over, how its server has it (program_name.h);
 * NULL: of a client's request. Returns 0 also for a copy of the request that has just made it; -EINPROGRESS: es_nf_made() is called with
 * @making, which is copied, and with what comes of it; or -errno: there is no connection, and there will be none of this packet.
 * -ETIMEDOUT: though something listens, and as long as @is_withdrawn says so, that is certain
 * @is_making: has @rebuild told -EINPROGRESS of the flow, and is that not over? @look finds no socket then. 1 or 0
 * @keep: where one of the flow is being made, keep a segment of its client's, which is decided when that is made. 1; or 0: it is not kept
 * @give_up: where one of the flow is being made, it is not any more, and es_nf_made() is called
 * @inject: give a client's packet to the stack
 * @error: give the stack an ICMP error as the connection's socket must hear it (errors.h). -ENOENT: it is about no connection
 * that was made here
 * @hold: from now on, nothing that the flow's server says leaves this node; or it does again
 * @end: end the flow's connection, which expects @rcv_nxt; its client hears nothing
 * @end_old: end the flow's socket if it is of an old connection (struct es_nf_found's @is_old); nobody hears of it
 * @first: the first byte of the request of which the flow's connection was made here. -ENOENT: that is not known
 * @open: the state of the flow's connection, if that is known and both sides of it are open
 * @is_withdrawn: has nothing come of the attempt to make a connection of the request that begins with @seq, and can nothing come of it
 * any more? 1 or 0
 * @forget: the flow has no connection: what the connection tracking knows of it is of one that is gone
 * @prove: its client has acknowledged something: its packets need not come here any more (unproven.h)
 * @reset: send the client a RST with the number @seq
 * @reaches: does what the stack sends to the client with that mark leave at once (reach.h)? 1 or 0
 */
struct es_nf_hands {
	void *ctx;
	int (*look)(void *ctx, const struct es_flow *flow, struct es_nf_found *ret_found);
	int (*may_have_made)(void *ctx, const struct es_flow *flow);
	int (*frame)(void *ctx, const __u8 target[6], __u16 protocol, const void *bytes, size_t len);
	int (*send)(void *ctx, const void *packet, size_t len);
	int (*answer)(void *ctx, const void *packet, size_t len);
	int (*rebuild)(void *ctx, const __u8 *packet, size_t len, const struct es_flow *socket,
		       const struct es_nf_making *making, __u64 now_ns);
	int (*is_making)(void *ctx, const struct es_flow *flow);
	int (*keep)(void *ctx, const struct es_flow *flow, const struct es_segment *seg,
		    const struct es_nf_frame *frame);
	void (*give_up)(void *ctx, const struct es_flow *flow);
	int (*inject)(void *ctx, const __u8 *packet, size_t len);
	int (*error)(void *ctx, const __u8 *packet, size_t len);
	int (*hold)(void *ctx, const struct es_flow *flow, int is_held);
	int (*end)(void *ctx, const struct es_flow *flow, __u32 rcv_nxt);
	int (*end_old)(void *ctx, const struct es_flow *flow);
	int (*first)(void *ctx, const struct es_flow *flow, __u32 *ret_first_seq);
	int (*open)(void *ctx, const struct es_flow *flow, struct es_connection_state *ret_state);
	int (*is_withdrawn)(void *ctx, const struct es_flow *flow, __u32 seq);
	int (*forget)(void *ctx, const struct es_flow *flow);
	int (*prove)(void *ctx, const struct es_flow *flow);
	int (*reset)(void *ctx, const struct es_flow *flow, __u32 seq);
	int (*reaches)(void *ctx, const struct es_flow *flow, __u32 mark, __u64 now_ns);
};

/**
 * struct es_nf_node
 * @is_configured: config and ring are valid; @has_every: a service inspects every request; @queue: of each worker; @now_ns: CLOCK_MONOTONIC, set before each packet
 * @swallowed: swallowed.h; @challenges: kmod/core/challenges.h
 * @responses: of struct es_response_entry, not owned; NULL: nobody wants to know
 * @left: left.h
 * @remembers: the kernel understands ES_NF_DROP_OTHERS and those below it
 */
struct es_nf_node {
	struct es_nf_memory memory;
	struct es_nf_hands hands;
	struct es_nf_ring *queue[ES_WORKERS_MAX];
	struct es_nf_ring *responses;
	struct es_nf_swallowed swallowed[ES_NF_SWALLOWED];
	struct es_challenge challenges[ES_CHALLENGES];
	unsigned int workers;
	__u64 now_ns;
	int is_configured;
	int has_every;
	int remembers;
	struct es_config config;
	struct es_node_ring ring;
	struct es_nf_left left[ES_NF_LEFT];
};

/**
 * struct es_nf_node_params
 * @path: of the tables' file; @hands: copied; @workers, @queue_bytes, @decision_sets: as of struct es_datapath_params
 */
struct es_nf_node_params {
	const char *path;
	const struct es_nf_hands *hands;
	unsigned int workers;
	size_t queue_bytes;
	unsigned int decision_sets;
};

/* es_nf_node_new() - Returns 0; -EBUSY: another process has the tables; or -errno. */
int es_nf_node_new(const struct es_nf_node_params *params, struct es_nf_node **ret_node);
void es_nf_node_free(struct es_nf_node **node);

/* es_nf_node_configure() - both are in force from the next packet on */
void es_nf_node_configure(struct es_nf_node *node, const struct es_config *config,
			  const struct es_node_ring *ring);

static inline void es_nf_count(const struct es_nf_node *node, __u32 counter)
{
	if (counter < ES_COUNTER_COUNT)
		node->memory.counters[counter]++;
}

static inline __u64 es_nf_read64(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline __u32 es_nf_read32(const __u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Is this node's lease over? */
static inline int es_nf_is_silent(const struct es_nf_node *node)
{
	return es_lease_is_over(es_nf_read64(&node->memory.state->lease_ns), node->now_ns);
}

/* Does the ring give @hash to this node, and may it answer? */
static inline int es_nf_ring_is_mine(const struct es_nf_node *node, __u64 hash)
{
	return es_nf_read32(&node->memory.state->attached) && es_node_ring_answers(&node->ring, hash) &&
	       !es_nf_is_silent(node);
}

static inline struct es_decision_set *es_nf_decision_set(const struct es_nf_node *node, __u64 flow_hash)
{
	return &node->memory.decisions[es_decision_index(flow_hash, node->memory.decision_sets)];
}

static inline struct es_stray *es_nf_stray_slot(const struct es_nf_node *node, __u64 flow_hash)
{
	return &node->memory.strays[es_stray_index(flow_hash)];
}

/**
 * es_nf_node_look() - what the kernel has for a flow, whoever has the connection: a service's server, or that of a program (program_name.h)
 * Sets all of @ret_found. Returns 0 or -errno.
 */
int es_nf_node_look(const struct es_nf_node *node, const struct es_flow *flow, struct es_nf_found *ret_found);

/* es_nf_node_end_old() - what an old connection has left, or was to be, is not in the way of the one that its client begins; @found: what was found */
void es_nf_node_end_old(const struct es_nf_node *node, const struct es_flow *flow,
			const struct es_nf_found *found);

/* es_nf_service_find() - the index of the service at that address, or -1 */
int es_nf_service_find(const struct es_nf_node *node, const struct es_addr *address, __be16 port);
int es_nf_is_service_address(const struct es_nf_node *node, const struct es_addr *address);

#endif
