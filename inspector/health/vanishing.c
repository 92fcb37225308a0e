// SPDX-License-Identifier: GPL-2.0-or-later
/* Judges by what other nodes tell whether connections vanish here. It knows neither clock nor cluster. */
#include "inspector/health/vanishing.h"

static unsigned int known(const struct es_vanishing *v)
{
	return v->count < ES_VANISHING_EVENTS ? (unsigned int)v->count : ES_VANISHING_EVENTS;
}

void es_vanishing_note(struct es_vanishing *v, const struct es_vanishing_event *event)
{
	for (unsigned int i = 0; event->request && i < known(v); i++)
		if (v->event[i].request == event->request)
			return;
	v->event[v->count++ % ES_VANISHING_EVENTS] = *event;
}

static int is_since(const struct es_vanishing_event *e, unsigned long long now_ms, unsigned int ms)
{
	return now_ms - e->at_ms < ms;
}

/* Was the client of what vanished heard here after that? */
static int is_heard_since(const struct es_vanishing *v, const struct es_vanishing_event *e)
{
	for (unsigned int i = 0; i < known(v); i++)
		if (!v->event[i].request && v->event[i].address == e->address &&
		    v->event[i].at_ms >= e->at_ms)
			return 1;
	return 0;
}

static int counts(const struct es_vanishing *v, const struct es_vanishing_event *e, unsigned long long now_ms)
{
	if (!e->request)
		return is_since(e, now_ms, ES_VANISHING_LATELY_MS);
	return is_since(e, now_ms, ES_VANISHING_KEEP_MS) && !is_heard_since(v, e);
}

/* struct tally - clients and their networks, each once */
struct tally {
	unsigned int vanished, requests, networks, heard;
	unsigned long long first_ms, last_ms;
};

static void add(const struct es_vanishing *v, unsigned int at, unsigned long long now_ms, struct tally *t)
{
	const struct es_vanishing_event *e = &v->event[at];
	int is_new_client = 1, is_new_network = 1;

	for (unsigned int i = 0; i < at; i++) {
		const struct es_vanishing_event *before = &v->event[i];

		if (!before->request != !e->request || !counts(v, before, now_ms))
			continue;
		is_new_client &= before->address != e->address;
		is_new_network &= before->prefix != e->prefix;
	}
	if (!e->request) {
		t->heard += (unsigned int)is_new_client;
		return;
	}
	t->requests++;
	t->vanished += (unsigned int)is_new_client;
	t->networks += (unsigned int)is_new_network;
	if (t->requests == 1 || e->at_ms < t->first_ms)
		t->first_ms = e->at_ms;
	if (e->at_ms > t->last_ms)
		t->last_ms = e->at_ms;
}

/*
 * Where nobody is heard, nothing is lost with the node, so a few requests of anybody will do. Else most
 * clients must be lost here, and clients of several networks: no one can bring that about by being refused
 * here alone.
 */
int es_vanishing_is_bad(const struct es_vanishing *v, unsigned long long now_ms)
{
	struct tally t = {};

	for (unsigned int i = 0; i < known(v); i++)
		if (counts(v, &v->event[i], now_ms))
			add(v, i, now_ms, &t);
	if (t.requests < ES_VANISHING_REQUESTS || now_ms - t.first_ms < ES_VANISHING_WAIT_MS ||
	    now_ms - t.last_ms >= ES_VANISHING_LATELY_MS)
		return 0;
	return !t.heard || (t.networks >= ES_VANISHING_NETWORKS && t.heard <= t.vanished);
}

enum es_place_news es_vanishing_look(struct es_vanishing *v, unsigned int max_out,
				     const struct es_place_others *others, unsigned long long now_ms)
{
	const struct es_place_limits limits = {max_out, ES_VANISHING_OUT_S, ES_VANISHING_OUT_MAX_S};
	enum es_place_news news;
	int is_bad;

	if (v->place.state != ES_PLACE_OUT) {
		is_bad = es_vanishing_is_bad(v, now_ms);
		if (!is_bad)
			es_place_is_well(&v->place, now_ms);
		if (is_bad && v->place.state == ES_PLACE_IN)
			return es_place_claim(&v->place, &limits, others, now_ms);
	}
	news = es_place_look(&v->place, &limits, others, now_ms);
	/*
	 * Only what is told after it has come back decides, and not what its clients have repeated meanwhile.
	 */
	if (news == ES_PLACE_RETURNS || news == ES_PLACE_RECALLED)
		v->count = 0;
	return news;
}
