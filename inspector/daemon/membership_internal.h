/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_MEMBERSHIP_INTERNAL_H
#define ES_DAEMON_MEMBERSHIP_INTERNAL_H

/*
 * The structures and functions that the files of membership share: membership.c (the bus, the group, when to
 * join), ring.c (what the group's decisions do to datapath and workers), lease.c, silence.c, sign_of_life.c,
 * service_drains.c, cluster_link.c, story.c, and those that answer for it: membership_state.c and
 * membership_report.c.
 */
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/daemon/by_hand.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/membership.h"
#include "inspector/self/cluster_link.h"
#include "inspector/self/public_link.h"
#include "kmod/core/lease.h"

#define ES_STORY_MAX 16

/**
 * struct es_story - what was said of the nodes (story.c)
 * @has_ring: this node has served a ring since it was silent: what is new since then is news
 * @is_in, @is_draining, @weight: of each node, as last said
 * @told: what a ring may follow from, not said yet, @count of it; @since_ms: the first of it
 */
struct es_story {
	int has_ring;
	int is_quorate;
	uint8_t is_in[ES_NODES_MAX];
	uint8_t is_draining[ES_NODES_MAX];
	uint16_t weight[ES_NODES_MAX];
	uint64_t since_ms;
	unsigned int count;
	struct {
		enum es_event_kind kind;
		unsigned int node;
		char text[320];
	} told[ES_STORY_MAX];
};

/**
 * struct es_membership
 * @share: the slots that this node inspects now; @tenure: since when; @weights: of the ring in force
 * @stopped_ms: when the last ring began to change
 * @is_silent: the lease was taken back, or never given
 * @is_dropped: the content tables know that the node is gone
 * @cluster_link_waited: the weight of this node was 0 for @cluster_link when it joined;
 * @cluster_link_zero_ms: until then, it need not ask for that again
 * @was_deaf: the public network was not heard when it was last looked at
 * @must_end: others may have taken over: end what is unproven before the lease begins again
 * @has_lease: it was given, and nobody has noticed yet that it is over; @bus_ns: when the message was sent by
 * which the bus renewed it last; @bus_until_ns: so long that holds without grants, 0: noticed that it is
 * over; @lapse: so many messages of this node must come back that were sent after @lapse_ns, each after the
 * one before had, since the bus's part ran out in @lapse_epoch
 * @suspended_ns: for so long this machine had been suspended at the last look; 0: there was none yet
 * @until_restart: this node's draining is none that lasts
 * @counted_in: this node's state when its connections were counted; @counted: that count's number, as told
 */
struct es_membership {
	struct es_daemon *daemon;
	struct es_bus *bus;
	struct es_group group;
	struct es_share share;
	struct es_tenure tenure;
	uint64_t stopped_ms;
	unsigned int weights[ES_NODES_MAX];
	struct es_public_link link;
	struct es_cluster_link cluster_link;
	int cluster_link_waited;
	uint64_t cluster_link_zero_ms;
	struct es_story story;
	struct es_daemon_by_hand by_hand;
	uint8_t counted_in;
	uint8_t was_in; /* the ring, when the group changed last */
	unsigned int counted;
	struct ev_io io;
	struct ev_timer tick;
	uint64_t load_at_ms, server_at_ms, leave_until_ms;
	unsigned int lease_ms;
	int is_silent;
	char missing[ES_GROUP_TEXT_SIZE]; /* es_membership_missing() */
	int was_deaf;
	int must_end;
	int until_restart;
	int has_lease;
	unsigned long long bus_ns;
	unsigned long long bus_until_ns;
	uint64_t grants_at_ms;
	unsigned int lapse;
	unsigned long long lapse_ns;
	uint32_t lapse_epoch;
	long long suspended_ns;
	int must_rejoin;
	int has_left; /* in order, so the others wait for what this node has: its lease stays what it is */
	uint8_t is_dropped[ES_NODES_MAX];
	char why[ES_GROUP_TEXT_SIZE];
	void (*leave_done)(struct es_daemon *daemon);
};

static inline uint64_t es_membership_now_ms(void)
{
	return es_clock_now_ns() / 1000000;
}

/*
 * silence.c: this node takes nothing new any more. The connections that it has go on until the lease is over,
 * and then those stand still whose request another node may be asked for.
 */
void es_membership_silence(struct es_membership *membership, const char *why);

/* sign_of_life.c: tell the others how busy this node is; the lease begins anew when that comes back. */
void es_membership_load_send(struct es_membership *membership);

/* membership_state.c: do all workers go on? A node whose workers hang must not look alive. */
int es_membership_workers_go_on(const struct es_membership *membership);

/*
 * This node has left in order: it takes nothing new and keeps what it has, without end. Nothing changes that
 * any more: a report of its own that comes back late would let the lease end, and all that waits for an
 * answer with it.
 */
void es_lease_keep(struct es_membership *membership);

/* The lease is over, now if it was not before. */
void es_lease_end(struct es_membership *membership);

/*
 * Has the lease run out, without a word of anybody, or the machine been suspended? Then others may have taken
 * over, as when one was lost.
 */
void es_lease_watch(struct es_membership *membership);

/* Our own ES_WIRE_LOAD came back: since it was sent, the others had us among them. */
void es_lease_renew(struct es_membership *membership, const void *payload, size_t len);

/* Another node has granted a lease. A lease that is over begins anew by the bus alone. */
void es_lease_granted(struct es_membership *membership);

/* This node was not on a ring that may come into force: its lease is over, and others may have its share. */
void es_lease_take_back(struct es_membership *membership);

/* grants.c: ask the others for a lease, and tell them what this node grants, if it is time. */
void es_membership_grants_tick(struct es_membership *membership);

/*
 * story.c: what becomes of the nodes, as events. Those that a new ring follows from are told with it;
 * es_story_tick() tells those that none follows from in time.
 */
void es_story_changed(struct es_membership *membership);
void es_story_serve(struct es_membership *membership, uint32_t epoch);
void es_story_silence(struct es_membership *membership);
void es_story_quorum(struct es_membership *membership, int is_quorate);
void es_story_tick(struct es_membership *membership);

/*
 * cluster_link.c: may this node join, may it take a share of the ring? es_cluster_watch_view() is for each
 * view, before the group has it.
 */
int es_cluster_watch_may_join(struct es_membership *membership);
void es_cluster_watch_view(struct es_membership *membership, unsigned int count);
void es_cluster_watch_tick(struct es_membership *membership);

/* struct es_group_ops of the same names */
void es_ring_on_stop(void *ctx, uint32_t epoch, const unsigned int *weights);
void es_ring_on_serve(void *ctx, uint32_t epoch);
void es_ring_on_proofs(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count);
void es_ring_on_changed(void *ctx);

#endif
