// SPDX-License-Identifier: GPL-2.0-or-later
/* Clients that have a place, and the one that has to go next; how a client ends is its owner's. */
#include "tls/serve/places.h"

/* So many of all places may be taken by clients that have asked nothing, before they go first. */
#define NEW_SHARE   4
#define FILES_SPARE 64 /* of a worker: listeners, the daemon, the server's connections that wait */

static unsigned long long least(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

unsigned int es_places_share(unsigned int wanted, unsigned int workers, unsigned int services,
			     unsigned long long memory, unsigned long long files)
{
	unsigned long long most = wanted ? wanted : memory / 2 / ES_PLACES_BYTES / services;

	most = (most + workers - 1) / workers;
	if (files > FILES_SPARE)
		most = least(most, (files - FILES_SPARE) / 2 / (wanted ? 1 : services));
	most = least(most, 1u << 24);
	return most ? (unsigned int)most : 1;
}

static void unlink_it(struct es_places *places, struct es_place *place)
{
	if (place->previous)
		place->previous->next = place->next;
	else
		places->first[place->kind] = place->next;
	if (place->next)
		place->next->previous = place->previous;
	else
		places->last[place->kind] = place->previous;
	places->count[place->kind]--;
}

void es_places_put(struct es_places *places, struct es_place *place, enum es_place_kind kind)
{
	if (kind == place->kind)
		return;
	if (place->kind != ES_PLACE_NONE)
		unlink_it(places, place);
	place->kind = kind;
	if (kind == ES_PLACE_NONE)
		return;
	place->next = NULL;
	place->previous = places->last[kind];
	if (place->previous)
		place->previous->next = place;
	else
		places->first[kind] = place;
	places->last[kind] = place;
	places->count[kind]++;
}

static unsigned int taken(const struct es_places *places)
{
	return places->count[ES_PLACE_NEW] + places->count[ES_PLACE_IDLE] + places->count[ES_PLACE_BUSY] +
	       places->streams;
}

/*
 * A handshake takes some round trips, so there are few of those that have asked nothing, unless somebody
 * makes many: then these go first. Returns NULL if nobody may go.
 */
static struct es_place *next_to_go(const struct es_places *places, unsigned long long now_ns)
{
	struct es_place *new_one = places->first[ES_PLACE_NEW], *idle = places->first[ES_PLACE_IDLE];

	if (new_one && now_ns - new_one->since_ns < ES_PLACES_YOUNG_NS)
		new_one = NULL;
	if (new_one && (!idle || places->count[ES_PLACE_NEW] > places->most / NEW_SHARE))
		return new_one;
	return idle;
}

int es_places_may_come(const struct es_places *places, unsigned long long now_ns)
{
	return !places->most || taken(places) < places->most || next_to_go(places, now_ns);
}

void es_places_settle(struct es_places *places, unsigned long long now_ns)
{
	struct es_place *place;

	while (places->most && taken(places) > places->most && (place = next_to_go(places, now_ns)) != NULL)
		place->oust(place);
}
