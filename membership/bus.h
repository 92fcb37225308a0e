/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_BUS_H
#define ES_MEMBERSHIP_BUS_H

/*
 * corosync.h in a thread of its own. Corosync's libraries wait without limit for a corosync that does not go
 * on (stopped, swapped out, starved): only this thread waits for it. It hands over views, messages and losses
 * in the order in which corosync gave them, and what this node sends goes the other way, in order. Nothing
 * here blocks, but es_bus_free() for at most a second. All functions are for one thread, the owner's.
 */
#include "membership/corosync.h"

struct es_bus;

/* es_bus_new() - starts the thread. @ops are called by es_bus_dispatch() only. Returns 0 or -errno. */
int es_bus_new(const struct es_corosync_ops *ops, void *ctx, struct es_bus **ret_bus);

/* es_bus_free() - sends what waits and leaves the group, if corosync answers within a second */
void es_bus_free(struct es_bus **bus);

/* The descriptor to wait for: readable when es_bus_dispatch() has something to do. */
int es_bus_fd(const struct es_bus *bus);

/* es_bus_want() - whether to join the group as soon as there is a quorum. Not wanting does not leave it. */
void es_bus_want(struct es_bus *bus, int is_wanted);

/* es_bus_dispatch() - report what has arrived, and send what the reports have led to */
void es_bus_dispatch(struct es_bus *bus);

/*
 * es_bus_send() - put a message on the bus, after those before it, with the next es_bus_flush(). Without a
 * bus it is dropped, and so is what was sent before a loss of the bus and has not left since. If too much
 * waits already, the bus is given up, and @lost follows.
 */
void es_bus_send(struct es_bus *bus, enum es_wire_type type, const void *payload, size_t len);
void es_bus_flush(struct es_bus *bus);

/*
 * es_bus_rejoin() - leave the group, and join it again while that is wanted; events of the time before are
 * not reported any more
 */
void es_bus_rejoin(struct es_bus *bus);

/**
 * struct es_bus_state
 * @is_joined: @view was called, and nothing has ended that since
 * @token_ms: the token timeout in force, 0 while it is not known; it may change while corosync runs
 * @vote_late_ms: es_corosync_vote_late_ms(), known with @token_ms
 * @hangs_ms: for how long a call to corosync has not returned
 * @why: why we are not in the group, "" if there is no reason to tell
 */
struct es_bus_state {
	int is_connected;
	int is_quorate;
	int is_joined;
	unsigned int token_ms;
	unsigned int vote_late_ms;
	unsigned int hangs_ms;
	char why[256];
};
void es_bus_state(struct es_bus *bus, struct es_bus_state *ret_state);

#endif
