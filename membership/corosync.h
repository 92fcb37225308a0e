/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_COROSYNC_H
#define ES_MEMBERSHIP_COROSYNC_H

/*
 * The bus that group.h needs, made of corosync's CPG and quorum: views and messages in one order, and only
 * while this node's partition has the quorum. The caller waits for the descriptors. Any function may block
 * for as long as corosync does not run on, so bus.h calls them in a thread of their own.
 */
#include <stddef.h>
#include <stdint.h>
#include "membership/group.h"

struct es_corosync;

/**
 * struct es_corosync_ops - the events of the bus
 * @view: as es_group_view(); the bus is usable from the first one on
 * @datagram: messages of one member, to be taken apart with es_wire_next()
 * @lost: no quorum, or no corosync: nothing more is reported until the next @view. @why: for the operator
 */
struct es_corosync_ops {
	void (*view)(void *ctx, struct es_group_id self, const struct es_group_id *members,
		     unsigned int count, const struct es_group_leaver *leavers, unsigned int leaver_count);
	void (*datagram)(void *ctx, struct es_group_id from, const void *data, size_t len);
	void (*lost)(void *ctx, const char *why);
};

/* es_corosync_new() - not connected yet. Returns 0 or -ENOMEM. */
int es_corosync_new(const struct es_corosync_ops *ops, void *ctx, struct es_corosync **ret_corosync);

/* es_corosync_free() - leaves the group */
void es_corosync_free(struct es_corosync **corosync);

/**
 * es_corosync_connect() - connect to the corosync of this machine, if we are not; call it now and then
 * Joins the group as soon as there is a quorum. Returns 0, or -ENOTCONN and why not in @why.
 */
int es_corosync_connect(struct es_corosync *corosync, char *why, size_t size);

/* The descriptors to wait for, -1 if there is none now: quorum and group. */
void es_corosync_fds(const struct es_corosync *corosync, int ret_fds[2]);

/* es_corosync_dispatch() - take what is there, and send what waits */
void es_corosync_dispatch(struct es_corosync *corosync);

/* es_corosync_send() - put a message on the bus, after those before it. Without a bus it is
 * dropped; if too much waits already, the bus is given up, and @lost follows. */
void es_corosync_send(struct es_corosync *corosync, enum es_wire_type type, const void *payload, size_t len);

/* es_corosync_flush() - send what waits, as far as the bus takes it. Returns whether something is left. */
int es_corosync_flush(struct es_corosync *corosync);

/* es_corosync_give_up() - close the connection; @lost follows, if there was a @view */
void es_corosync_give_up(struct es_corosync *corosync, const char *why);

/* es_corosync_rejoin() - leave the group; the next es_corosync_connect() joins it again */
void es_corosync_rejoin(struct es_corosync *corosync);

/* Milliseconds of the token timeout in force, 0 without a connection; it may change while corosync runs. */
unsigned int es_corosync_token_ms(struct es_corosync *corosync);

/*
 * es_corosync_vote_late_ms() - for so long a cut off node may count a quorum device's vote that another one
 * has already; 0: there is no device. Corosync-qnetd gives a vote away when it has heard nothing for 1 to 1.5
 * heartbeats (dpd_interval_coefficient); corosync-qdevice notices at the second one that is not answered.
 * Source: corosync-qdevice 3.0.3, qnetd-client-dpd-timer.c, qdevice-net-echo-request-timer.c, and
 * qdevice-net-instance.c for the heartbeat.
 */
unsigned int es_corosync_vote_late_ms(struct es_corosync *corosync);

struct es_corosync_state {
	int is_connected;
	int is_quorate;
	int is_joined;
};
void es_corosync_state(const struct es_corosync *corosync, struct es_corosync_state *ret_state);

#endif
