/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_NODE_H
#define ES_NETFILTER_NODE_NODE_H

/*
 * A node: its memory, the configuration in force, and its hands. One thread at a time uses it, by the
 * engine's lock (engine.h). It decides as the other datapaths do, by kmod/core/. Its hands do everything that
 * happens outside of its memory, so tests can replace them.
 */
#include "kmod/core/answer.h"
#include "kmod/core/challenges.h"
#include "kmod/core/decide.h"
#include "kmod/core/lease.h"
#include "kmod/core/node_ring.h"
#include "netfilter/kernel/packet.h"
#include "netfilter/node/left.h"
#include "netfilter/node/memory.h"
#include "netfilter/node/queue.h"
#include "netfilter/node/swallowed.h"

/* The fates of a packet that the kernel has given to this datapath. */
enum es_nf_fate {
	ES_NF_DROP,
	ES_NF_ACCEPT,
	ES_NF_DROP_OTHERS, /* drop it and, for a while, all of its flow (drop_by_flow.h) */
	ES_NF_DROP_GIVEN,  /* likewise, but only bare acknowledgements of its flow */
	ES_NF_DROP_GONE,   /* likewise, but the flow's connection was given away by this node */
};

/**
 * struct es_nf_found - what the kernel has for a flow
 * @socket: an enum es_socket; a socket in TIME_WAIT is not counted, but sets @time_wait
 * @is_old: it is in TIME_WAIT, or its server has closed it, no process has it, and it waits for the client's
 * FIN: a new connection of these ports ends it (es_nf_node_end_old())
 * @listening: there is no socket, or one that @is_old, and one that listens; @accept_full: the queue of that
 * is full
 * The rest is about an established socket:
 * @received: bytes received from the client; @unread: the part that the server has not read
 * @sent: bytes sent, where the kernel tells (4.19); @acked: bytes that the client has acknowledged
 * @unacked: bytes written and not acknowledged; @is_open: neither side has closed
 * @heard_ms: when the client last acknowledged something, by CLOCK_MONOTONIC; never too early
 * @rcv_wnd, @max_wnd: upper bounds of its window, and of its client's
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
 * struct es_nf_making - what a node must know of a connection that is being made, once it is made or
 * certainly fails
 * @made: called by es_nf_made(), with 0 or -errno; the rest is for this function
 * @seg: the packet from which it is made; @h: the message that asked for it, if any
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
 * struct es_nf_hands - how a node acts outside of its own memory; each returns 0 or -errno unless it says
 * otherwise
 * @look: is there a socket? If that cannot be found out, there is none, and none listens
 * @may_have_made: may the flow have a connection that was made here? It asks nobody, so 0 is certain, and 1
 * is not
 * @frame: send a packet of @protocol to that MAC by the public interface, after all of the batch is decided
 * @send: send an IPv4 packet to its destination address
 * @answer: send a segment through the stack to the client that it names; neither rules nor conntrack change
 * it
 * @rebuild: make a connection from the packet, after es_nf_make_begins(). @socket: the flow of the server's
 * socket, if a program hands over (program_name.h), or NULL. Returns 0, also for a copy of the request that
 * has just made it; -EINPROGRESS: es_nf_made() will be called with @making, which is copied, and the result;
 * or -errno: there is no connection, and this packet will make none. -ETIMEDOUT: although something listens;
 * certain as long as @is_withdrawn says so
 * @is_making: has @rebuild returned -EINPROGRESS for the flow, without an end so far? @look finds no socket
 * then. Returns 1 or 0
 * @keep: if the flow's connection is being made, keep a client's segment, to be decided afterwards. Returns
 * 1; or 0: not kept
 * @give_up: stop making the flow's connection, if it is being made; calls es_nf_made()
 * @inject: give a client's packet to the stack
 * @error: give the stack an ICMP error as the connection's socket must receive it (errors.h). -ENOENT: it is
 * not about a connection made here
 * @hold: from now on, nothing that the flow's server sends leaves this node; or it does again
 * @end: end the flow's connection, whose socket expects @rcv_nxt; its client hears nothing
 * @end_old: end the flow's socket if it @is_old (struct es_nf_found); nobody hears of it
 * @first: sequence number of the first byte of the request from which the flow's connection was made.
 * -ENOENT: unknown
 * @open: the state of the flow's connection, if it is known, and neither side has closed
 * @is_withdrawn: is it certain that no connection came of the request that begins at @seq, and that none
 * will? Returns 1 or 0
 * @forget: the flow has no connection: delete what conntrack knows of a former one
 * @prove: the client has acknowledged something: the connection's packets need not come here any more
 * (unproven.h)
 * @reset: send the client a RST with the number @seq
 * @reaches: would a packet from the stack with that mark leave for the client at once (reach.h)? Returns 1 or
 * 0
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
 * @is_configured: config and ring are valid; @has_every: a service inspects every request; @queue: one for
 * each worker
 * @now_ns: CLOCK_MONOTONIC, set before each packet
 * @swallowed: swallowed.h; @left: left.h; @challenges: kmod/core/challenges.h
 * @responses: of struct es_response_entry, not owned; NULL: nobody wants them
 * @remembers: the kernel understands ES_NF_DROP_OTHERS, _GIVEN and _GONE
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
 * @path: the memory's file; @hands: copied; @workers: how many; @queue_bytes: of each worker's queue;
 * @decision_sets: as for es_nf_memory_open()
 */
struct es_nf_node_params {
	const char *path;
	const struct es_nf_hands *hands;
	unsigned int workers;
	size_t queue_bytes;
	unsigned int decision_sets;
};

/* es_nf_node_new() - Returns 0; -EBUSY: another process has the memory; or -errno. */
int es_nf_node_new(const struct es_nf_node_params *params, struct es_nf_node **ret_node);
void es_nf_node_free(struct es_nf_node **node);

/* es_nf_node_configure() - put both in force, for the next packet on */
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
 * es_nf_node_look() - what the kernel has for a flow, including the server's socket of a program's connection
 * (program_name.h) Sets all of @ret_found. Returns 0 or -errno.
 */
int es_nf_node_look(const struct es_nf_node *node, const struct es_flow *flow, struct es_nf_found *ret_found);

/*
 * es_nf_node_end_old() - end what an old connection of the flow has left, and give up an attempt; @found: of
 * es_nf_node_look()
 */
void es_nf_node_end_old(const struct es_nf_node *node, const struct es_flow *flow,
			const struct es_nf_found *found);

/* es_nf_service_find() - the index of the service with that address and port, or -1 */
int es_nf_service_find(const struct es_nf_node *node, const struct es_addr *address, __be16 port);
int es_nf_is_service_address(const struct es_nf_node *node, const struct es_addr *address);

#endif
