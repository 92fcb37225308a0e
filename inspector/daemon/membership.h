/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_MEMBERSHIP_H
#define ES_DAEMON_MEMBERSHIP_H

/*
 * Membership that changes: ties the group (membership/group.h) and its bus (membership/bus.h) to the
 * ring, the workers, the datapath and its lease. Static clusters have none of it.
 */
#include <ev.h>
#include "inspector/cluster/cluster.h"
#include "membership/bus.h"
#include "membership/group.h"

struct es_daemon;
struct es_daemon_by_hand;
struct es_membership;

/**
 * es_membership_new() - this node is silent from now on, until it is a member
 * Joins as soon as corosync and quorum allow it. Returns 0 or -errno.
 */
int es_membership_new(struct es_daemon *daemon, struct es_membership **ret_membership);

/* es_membership_free() - leaves the bus, whatever that costs; see es_membership_leave() */
void es_membership_free(struct es_membership **membership);

/**
 * es_membership_leave() - leave in order; @done(daemon) when the others have taken over, at the latest after
 * some seconds
 */
void es_membership_leave(struct es_membership *membership, void (*done)(struct es_daemon *daemon));

/* es_membership_expect() - before @next is in force: nodes that it adds are not there yet */
void es_membership_expect(struct es_membership *membership, const struct es_conf *next);

/* es_membership_hears() - is @node heard on the clients' network, whatever the cluster network says? */
int es_membership_hears(const struct es_membership *membership, unsigned int node);

/* es_membership_is_silent() - has this node no lease? */
int es_membership_is_silent(const struct es_membership *membership);

/* es_membership_reloaded() - the configuration is another one now: tell the others */
void es_membership_reloaded(struct es_membership *membership);

/* es_membership_weights() - of the ring in force, for a version of the cluster made for another reason */
const unsigned int *es_membership_weights(const struct es_membership *membership);
const struct es_share *es_membership_share(const struct es_membership *membership);
const struct es_tenure *es_membership_tenure(const struct es_membership *membership);

/* es_membership_drain_until_restart() - what drains this node next ends with the daemon. Returns 0 if it is
 * draining already, then nothing changes. */
int es_membership_drain_until_restart(struct es_membership *membership);

/*
 * es_membership_serving() - whether this node can serve (daemon/serving.h) has changed: tell the others soon
 */
void es_membership_serving(struct es_membership *membership);

/* es_membership_by_hand() - what operators have set (by_hand.h) */
struct es_daemon_by_hand *es_membership_by_hand(struct es_membership *membership);

/* es_membership_is_unkept() - es_by_hand_is_unkept() of that */
int es_membership_is_unkept(const struct es_membership *membership);

/*
 * es_membership_is_cut_off() - this node is a member without a share for long: it hears nobody on the cluster
 * network
 */
int es_membership_is_cut_off(const struct es_membership *membership);

/**
 * es_membership_lacks() - why the ring in force is without @node
 * Returns @text, or NULL: the node is a member that takes its part.
 */
const char *es_membership_lacks(const struct es_membership *membership, unsigned int node, char *text,
				size_t size);

struct es_grant_wire;

/* es_membership_grant_heard() - @node asks for a lease, or grants one */
void es_membership_grant_heard(struct es_membership *membership, unsigned int node,
			       const struct es_grant_wire *grant);

/* es_membership_send() - to all members, this node too */
void es_membership_send(struct es_membership *membership, enum es_wire_type type, const void *payload,
			size_t len);

/*
 * es_membership_missing() - why this node cannot be a member, whatever it hears: an interface is gone; "": it
 * can
 */
void es_membership_missing(struct es_membership *membership, const char *text);

const struct es_group *es_membership_group(const struct es_membership *membership);

/* es_membership_report() - as es_report_membership() wants it */
struct es_report_membership;
void es_membership_report(const struct es_membership *membership, struct es_report_membership *ret_report);

/*
 * es_membership_rebind() - the public interface is another one, struct es_network says which. Returns 0 or
 * -errno.
 */
int es_membership_rebind(struct es_membership *membership);

#endif
