/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_IDLE_FLOWS_H
#define ES_IDLE_FLOWS_H

/*
 * The memory of what this node has told others of its idle connections (cluster/directory.h). Its
 * connections are looked through again and again; one that looks the same for a while is told to its keepers,
 * once, and again from time to time, since a datagram may be lost. Nothing is said of a busy one: its record
 * is not true any more, and no segment of its client's fits it. But if it is busy for long, its client may
 * have nothing to send, by which it would learn that its node is lost: so that is told, and taken back.
 */
#include "inspector/peers/kept_words.h"

#define ES_KEEPERS_MAX 2

/* So often it is told again. */
#define ES_IDLE_AGAIN_NS 15000000000ULL

enum es_idle_state {
	ES_IDLE_BUSY,
	ES_IDLE_WAITS, /* for long: ES_KEPT_WAITS says with which numbers */
	ES_IDLE_YES,
	ES_IDLE_NEVER, /* no other node can go on with it, whatever it does */
};

/* struct es_idle_flow - as one look has found it; @keeper: nodes, ES_NODE_NONE for none */
struct es_idle_flow {
	__u64 flow_hash;
	struct es_kept kept;
	enum es_idle_state state;
	__u16 keeper[ES_KEEPERS_MAX];
};

/* es_idle_tell_fn - @node is to be told */
typedef void (*es_idle_tell_fn)(void *ctx, unsigned int node, const struct es_kept_word *word);

struct es_idle_flows;

/* es_idle_flows_new() - @entries: so many connections at the most. Returns 0 or -ENOMEM. */
int es_idle_flows_new(unsigned int entries, es_idle_tell_fn tell, void *ctx,
		      struct es_idle_flows **ret_flows);
void es_idle_flows_free(struct es_idle_flows **flows);

/**
 * es_idle_flows_begin() - a look through all connections begins
 * @after_ns: a connection is idle when it has looked the same for so long
 * @most: so many are told now at the most; others wait for the next look
 */
void es_idle_flows_begin(struct es_idle_flows *flows, unsigned long long now_ns, unsigned long long after_ns,
			 unsigned int most);

/* es_idle_flows_see() - one of them */
void es_idle_flows_see(struct es_idle_flows *flows, const struct es_idle_flow *flow);

/* es_idle_flows_end() - those that were not seen are over */
void es_idle_flows_end(struct es_idle_flows *flows);

/* es_idle_flows_has_told() - do others know that it is idle, with just these numbers? 0 of NULL */
int es_idle_flows_has_told(const struct es_idle_flows *flows, __u64 flow_hash, __u32 seq, __u32 ack);

/* es_idle_flows_told() - how many connections are told now as idle; 0 of NULL */
unsigned int es_idle_flows_told(const struct es_idle_flows *flows);

/* es_idle_flows_waiting() - of how many connections it is told that their clients wait; 0 of NULL */
unsigned int es_idle_flows_waiting(const struct es_idle_flows *flows);

#endif
