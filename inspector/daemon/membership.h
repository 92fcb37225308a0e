/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_MEMBERSHIP_H
#define ES_DAEMON_MEMBERSHIP_H

/*
 * Membership that changes: ties the group (membership/group.h) and its bus (membership/bus.h) to the
 * ring, the workers, the datapath and its lease. Static clusters have none of it.
 */
#include <ev.h>
#include "inspector/cluster/cluster.h"
#include "inspector/cluster/content_sync.h"
#include "membership/bus.h"
#include "membership/group.h"

struct es_daemon;
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

/* For the content tables: the way to the bus. Their context is the daemon. */
extern const struct es_content_sync_ops es_membership_sync_ops;

/* es_membership_expect() - before @next is in force: nodes that it adds are not there yet */
void es_membership_expect(struct es_membership *membership, const struct es_conf *next);

/* es_membership_is_silent() - has this node no lease? */
int es_membership_is_silent(const struct es_membership *membership);

/* es_membership_reloaded() - the configuration is another one now: tell the others */
void es_membership_reloaded(struct es_membership *membership);

/* es_membership_weights() - of the ring in force, for a version of the cluster made for another reason */
const unsigned int *es_membership_weights(const struct es_membership *membership);
const struct es_share *es_membership_share(const struct es_membership *membership);
const struct es_tenure *es_membership_tenure(const struct es_membership *membership);

/**
 * es_membership_set() - any node's state or weight, by an operator's word (member/by_hand.h)
 * Returns 0; -ENOTCONN without a group.
 */
struct es_wire_by_hand;
int es_membership_set(struct es_membership *membership, const struct es_wire_by_hand *by_hand);

/* es_membership_drain_until_restart() - what drains this node next ends with the daemon. Returns 0 if it is draining
 * already, then nothing changes. */
int es_membership_drain_until_restart(struct es_membership *membership);
/* es_membership_serving() - whether this node can serve (daemon/serving.h) has changed: tell the others soon */
void es_membership_serving(struct es_membership *membership);

/* es_membership_is_unkept() - es_by_hand_is_unkept() (by_hand.h) */
int es_membership_is_unkept(const struct es_membership *membership);

/* es_membership_is_cut_off() - this node is a member without a share for long: it hears nobody on the cluster network */
int es_membership_is_cut_off(const struct es_membership *membership);

/**
 * es_membership_lacks() - why the ring in force is without @node
 * Returns @text, or NULL: the node is a member that takes its part.
 */
const char *es_membership_lacks(const struct es_membership *membership, unsigned int node, char *text,
				size_t size);

const struct es_group *es_membership_group(const struct es_membership *membership);

/* es_membership_report() - as es_report_membership() wants it */
struct es_report_membership;
void es_membership_report(const struct es_membership *membership, struct es_report_membership *ret_report);

/* es_membership_rebind() - the public interface is another one, struct es_network says which. Returns 0 or -errno. */
int es_membership_rebind(struct es_membership *membership);

#endif
