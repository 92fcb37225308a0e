/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_VANISHING_H
#define ES_HEALTH_VANISHING_H

/*
 * Whether connections that are made on this node for a service are heard of again. A rule that no look finds
 * (a packet filter, address translation, whatever stands between us and the server) swallows the packets that
 * sockets are to be made of. The node itself cannot tell that from clients whom every node refuses, and who
 * could take them all out of service: the inspecting nodes can (inspector/inspect/unheard.h), and tell it of
 * requests that vanished here whose clients were heard elsewhere, and of some that were heard here. It goes
 * if it gets a place (place.h).
 */
#include "kmod/core/types.h"
#include "inspector/health/place.h"

#define ES_VANISHING_EVENTS    64
#define ES_VANISHING_REQUESTS  3     /* so many are no chance */
#define ES_VANISHING_NETWORKS  3     /* nor are clients of so many networks who were not heard */
#define ES_VANISHING_KEEP_MS   20000 /* so long a request that vanished counts */
#define ES_VANISHING_LATELY_MS 8000  /* the last one is no older; and what was heard counts so long */
#define ES_VANISHING_WAIT_MS   3000  /* so long it is waited for what is heard after the first one */

#define ES_VANISHING_OUT_S     10
#define ES_VANISHING_OUT_MAX_S 320

/*
 * struct es_vanishing_event - @address, @prefix: hashes of a client's address and network; @request: 0: it
 * was heard
 */
struct es_vanishing_event {
	__u64 at_ms;
	__u64 address;
	__u64 prefix;
	__u64 request;
};

/* struct es_vanishing - of one service; all zeros at first; @event: the last ones, @count of them ever */
struct es_vanishing {
	struct es_place place;
	struct es_vanishing_event event[ES_VANISHING_EVENTS];
	unsigned long long count;
};

/*
 * es_vanishing_note() - what an inspecting node tells, at @event->at_ms; a request that is known counts once
 */
void es_vanishing_note(struct es_vanishing *vanishing, const struct es_vanishing_event *event);

/* es_vanishing_is_bad() - are connections made here not heard of, as far as is known at @now_ms? */
int es_vanishing_is_bad(const struct es_vanishing *vanishing, unsigned long long now_ms);

/*
 * es_vanishing_look() - what follows, about once a second; of the limits of vanishing, @max_out is the
 * service's
 */
enum es_place_news es_vanishing_look(struct es_vanishing *vanishing, unsigned int max_out,
				     const struct es_place_others *others, unsigned long long now_ms);

#endif
