/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVING_H
#define ES_SERVING_H

/*
 * Can this node serve? A connection that is made here without what serving takes is never heard of again, so
 * that is looked at each second: whether the service's address is here, whether something listens that the
 * datapath can make connections for, and the settings with which it would drop what another node hands over.
 */
#include "inspector/config/config.h"
#include "inspector/datapath/datapath.h"
#include "membership/node_state.h"

/* struct es_serving_of - the first thing that is wrong with one service, and in a line what it is */
struct es_serving_of {
	enum es_trouble trouble;
	char text[256];
};

/**
 * struct es_serving - what was found
 * @elsewhere: a bit for each service that is not on this node, which lacks nothing of theirs. If it is given
 * a request of theirs all the same, it serves it if it can: the sender may have read a new configuration a
 * moment before.
 * @refused: a bit for each service for which no connection may be made here (kmod/core/serving.h); where only
 * no server listens, the datapath sees that itself
 * @absent: a bit for each service whose address of IPv4, of IPv6, is missing here: for its clients, none
 * either
 * @listening: a bit for each service for which something usable listens; @listens: the same of its addresses
 * of IPv4, of IPv6. A client of an address for which nothing listens is given to another node.
 * @lacks: a bit for each service for which nothing usable listens at one of its addresses, or whose address
 * is missing
 * @failing: a bit for each service whose server fails its check, or for which the node is out
 * (health/place.h) or claims to be, whether or not it is refused
 * @yields: it has, or claims, a place among those that are out, for one of them at least. Others count all of
 * them so: if that is wrong of one, fewer nodes go.
 * @is_open: what follows from a check is known in a moment, so people are not told yet
 * @inspects_only: no service is on this node
 * @is_down: none of the services that are here can be served
 * @trouble, @text: the first thing that is wrong, be it with one service; and in a line what it is, and what
 * to do; @of: of each service
 */
struct es_serving {
	__u64 elsewhere;
	__u64 refused;
	__u64 absent[ES_CONF_FAMILIES];
	__u64 listening;
	__u64 listens[ES_CONF_FAMILIES];
	__u64 lacks;
	__u64 failing;
	int yields;
	int is_open;
	int inspects_only;
	int is_down;
	enum es_trouble trouble;
	char text[320];
	struct es_serving_of of[ES_CONF_SERVICES_MAX];
};

/* How a service is here: up; degraded, it serves all the same; down; or a first check, or a place, is waited
 * for; or it is not on this node. */
enum es_serving_state {
	ES_SERVING_UP,
	ES_SERVING_DEGRADED,
	ES_SERVING_DOWN,
	ES_SERVING_PENDING,
	ES_SERVING_ELSEWHERE
};

const char *es_serving_state_name(enum es_serving_state state);

/* es_serving_state() - *@ret_text: why it is not up, in a line; "" if nothing is to be said */
enum es_serving_state es_serving_state(const struct es_serving *serving, unsigned int service,
				       const char **ret_text);

/* es_serving_look() - @packet_max: of the handover messages that nodes may send here; @self: this node */
void es_serving_look(const struct es_conf *conf, unsigned int self, enum es_datapath_kind kind,
		     unsigned int packet_max, struct es_serving *ret);

/**
 * es_serving_fails() - add to what was found that the server of @service fails its check
 * (health/server_check.h)
 * @why: what the check says; @refuses: another node serves, so that nothing need be given to this server
 */
void es_serving_fails(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
		      const char *why, int refuses);

/**
 * es_serving_is_kept() - likewise, and this node serves it all the same
 * @reason: why it does
 */
void es_serving_is_kept(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
			const char *why, const char *reason);

/**
 * es_serving_is_unchecked() - add to what was found that the first check of @service's server is not over yet
 * @refuses: as of es_serving_fails(). It is no trouble: a moment later it is one, or nothing.
 */
void es_serving_is_unchecked(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
			     int refuses);

/**
 * es_serving_claims() - add to what was found that the node claims a place for @service (health/place.h)
 * @refuses: it had no requests before, and goes on so
 */
void es_serving_claims(struct es_serving *serving, unsigned int service, int refuses);

/**
 * es_serving_is_out() - add to what was found that the node is out for @service (health/place.h)
 * @trouble: for which reason; @why: likewise, in words
 */
void es_serving_is_out(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
		       enum es_trouble trouble, const char *why);

/**
 * es_serving_spares() - nobody else serves @service: what makes no connection certain to be lost is no reason
 * to refuse it
 */
void es_serving_spares(struct es_serving *serving, unsigned int service);

/**
 * es_serving_away() - the services that a node did not serve, of those that it said are @failing
 * @trouble, @yields: what it said with them. While it only claims a place (health/place.h), or is kept, it
 * serves all of them.
 */
__u64 es_serving_away(__u64 failing, unsigned int trouble, int yields);

/* Does a node that says so wait for its first check, and has no other trouble? */
static inline int es_serving_waits(__u64 failing, unsigned int trouble, int yields)
{
	return failing && !yields && trouble == ES_TROUBLE_NONE;
}

/* A trouble in some words, "" for none: all that is known of another node's. */
const char *es_trouble_text(unsigned int trouble);

#endif
