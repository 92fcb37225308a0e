/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_PLACES_H
#define ES_SERVE_PLACES_H

/*
 * How many clients of a service a worker has at a time, so that their memory is bounded, and whose turn it is
 * to go when another one comes. Clients that ask nothing, and those that wait for their next idea, must not
 * keep out one that wants something: they go, the longest there first. Where all are being served nobody is
 * accepted, so the kernel keeps who comes, and a connection that another node moves here is not lost.
 */
#include <stddef.h>

/*
 * The memory of a place: the bytes that wait in both directions, a handshake, and the kernel's own. A stream
 * of HTTP/2 takes one, too.
 */
#define ES_PLACES_BYTES (128u << 10)
/* A handshake, and a state that arrives, have so long in any case. */
#define ES_PLACES_YOUNG_NS 1000000000ULL

enum es_place_kind {
	ES_PLACE_NONE, /* it takes none: it leaves, and all is said */
	ES_PLACE_NEW,  /* nothing was asked yet */
	ES_PLACE_IDLE, /* it may ask once more */
	ES_PLACE_BUSY, /* it has asked, and stays */
	ES_PLACE_KINDS,
};

/**
 * struct es_place - a client's
 * @since_ns: when it came
 * @oust: end it, which calls es_places_leave(), or es_places_put() with ES_PLACE_NONE
 */
struct es_place {
	struct es_place *next, *previous;
	enum es_place_kind kind;
	unsigned long long since_ns;
	void (*oust)(struct es_place *place);
};

/**
 * struct es_places - of a service, in a worker
 * @most: at a time, 0: any number; @streams: open streams of HTTP/2 among those that are taken
 * @first, @last: of each kind, in the order in which they became it; @count of them
 */
struct es_places {
	unsigned int most;
	unsigned int streams;
	struct es_place *first[ES_PLACE_KINDS], *last[ES_PLACE_KINDS];
	unsigned int count[ES_PLACE_KINDS];
};

/**
 * es_places_share() - how many a worker may have
 * @wanted: on the node, 0: as many as fit into half of @memory bytes
 * @files: that a process may have open; a client takes up to two. Divided by @services without @wanted
 */
unsigned int es_places_share(unsigned int wanted, unsigned int workers, unsigned int services,
			     unsigned long long memory, unsigned long long files);

/* es_places_put() - @place is of @kind from now on; nothing happens if it was before */
void es_places_put(struct es_places *places, struct es_place *place, enum es_place_kind kind);

static inline void es_places_leave(struct es_places *places, struct es_place *place)
{
	es_places_put(places, place, ES_PLACE_NONE);
}

/* es_places_may_come() - may one more be accepted? Somebody may have to go for it: es_places_settle(). */
int es_places_may_come(const struct es_places *places, unsigned long long now_ns);

/* es_places_are_in_use() - are all of them, and more, by clients and streams that are being served? */
static inline int es_places_are_in_use(const struct es_places *places)
{
	return places->most && places->count[ES_PLACE_BUSY] + places->streams > places->most;
}

/*
 * es_places_settle() - as many go as there are too many, if they may. Not from within a client's callback.
 */
void es_places_settle(struct es_places *places, unsigned long long now_ns);

#endif
