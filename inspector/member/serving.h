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

/**
 * struct es_serving - what was found
 * @refused: a bit for each service for which no connection may be made here (kmod/core/serving.h); where only
 * no server listens, the datapath sees that itself
 * @listening: a bit for each service for which something usable listens; @listens: the same of its addresses of
 * IPv4, of IPv6. Who asks by an address for which nothing listens is given to another node.
 * @failing: a bit for each service whose server fails its check, or is an outlier, whether or not it is refused
 * @yields: no check fails: all that are failing are outliers
 * @is_down: none of the services can be served
 * @trouble, @text: the first thing that is wrong, be it with one service; and in a line what it is, and what to
 * do
 */
struct es_serving {
	__u64 refused;
	__u64 listening;
	__u64 listens[ES_CONF_FAMILIES];
	__u64 failing;
	int yields;
	int is_down;
	enum es_trouble trouble;
	char text[320];
};

/* es_serving_look() - @packet_max: of the handover messages that nodes may send here */
void es_serving_look(const struct es_conf *conf, enum es_datapath_kind kind, unsigned int packet_max,
		     struct es_serving *ret);

/*
 * A rule that no look finds (a packet filter, address translation, whatever stands between us and the server)
 * swallows the packets that sockets are to be made of. The requests come again, and the datapath counts those
 * of whose sockets nothing was heard (handover_vanished).
 */
#define ES_VANISHING_LOOKS 4  /* of which the counts are added up */
#define ES_VANISHING_LEAST 3  /* so many are no chance */
#define ES_VANISHING_SHARE 4  /* nor is one part in so many of the requests that were taken meanwhile */
#define ES_VANISHING_S	   10 /* so long nothing is taken then; twice as long if it goes on */
#define ES_VANISHING_MAX_S 320

/**
 * struct es_vanishing - what was counted in the last looks, a second from one to the next
 * @vanished, @taken: counters at each of them, @count of which are known; @hold_s: of the last time
 * @until_s, @calm_s: by the monotonic clock, until when nothing is taken; and when it is forgotten that there was
 * anything
 */
struct es_vanishing {
	unsigned long long vanished[ES_VANISHING_LOOKS];
	unsigned long long taken[ES_VANISHING_LOOKS];
	unsigned int count;
	unsigned int hold_s;
	unsigned long long until_s;
	unsigned long long calm_s;
};

/**
 * es_vanishing_look() - once a second; @vanished, @taken: the counters by now
 * Returns whether connections vanish here. When the time is over, the next requests are the test: who loses is
 * given to another node after some seconds.
 */
int es_vanishing_look(struct es_vanishing *vanishing, unsigned long long vanished, unsigned long long taken,
		      unsigned long long now_s);

/**
 * es_serving_fails() - add to what was found that the server of @service fails its check (health/check.h)
 * @why: what the check says; @refuses: another node serves, so that nothing need be given to this server
 */
void es_serving_fails(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
		      const char *why, int refuses);

/**
 * es_serving_is_outlier() - add to what was found that the server of @service is an outlier (health/outlier.h)
 * @why: nothing is given to it, for that reason; NULL: it only claims a place
 */
void es_serving_is_outlier(struct es_serving *serving, const struct es_conf *conf, unsigned int service,
			   const char *why);

/* es_serving_vanishes() - add to what was found that connections vanish */
void es_serving_vanishes(struct es_serving *serving, const struct es_conf *conf);

/**
 * es_serving_away() - the services that a node did not serve, of those that it said are @failing
 * @trouble, @yields: what it said with them. While it only claims a place (health/outlier.h), it serves all of them.
 */
__u64 es_serving_away(__u64 failing, unsigned int trouble, int yields);

/* What a trouble is, in some words, "" for none: all that is known of another node's. */
const char *es_trouble_text(unsigned int trouble);

#endif
