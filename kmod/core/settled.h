/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_SETTLED_H
#define ES_CORE_SETTLED_H

/*
 * Requests that were given to this node, and what has become of them: a socket, or a refusal. Messages are
 * lost, late and doubled, a client repeats its request and the sender passes that on, and a listener or a
 * lease may be there for one copy and not for the next. Still, at most one socket may come of one request, on
 * all nodes together:
 *
 *   The sender numbers its attempts (struct es_handover's @attempt). One attempt is one node's, and there is
 * a next one only after that node has refused this one. A refusal is a promise, noted before it is sent:
 * nothing is made here of this attempt, or of one before it. A request of which a socket was made is never
 * refused, and no second one is made of it.
 *
 * So a node that has refused may still serve the request, if the sender gives it the next attempt.
 *
 * A node that has ended the socket of a request unheard, since another node could have that request by now,
 * makes another one when the sender asks for it: its client waits, and nobody else may know of it. But not of
 * a request that must not be executed twice (ES_HANDOVER_F_UNSAFE), whatever sender and ring know of that
 * node: it may have executed it.
 *
 * A set is read and written under a lock of the caller's. The oldest entry of a full one makes room.
 */
#include "types.h"

#define ES_SETTLED_WAYS 7

enum es_settled_as {
	ES_SETTLED_NOT = 0,
	ES_SETTLED_MADE, /* a socket, if the kernel did not think better of it: nothing was heard of it yet */
	ES_SETTLED_BUILT,   /* a socket, which may be gone since */
	ES_SETTLED_REFUSED, /* up to and including an attempt */
	ES_SETTLED_ENDED,   /* a socket, which was ended unheard; its server may have executed the request */
};

/* So long the kernel may take to make a socket; if there is none then, there never will be. */
#define ES_SETTLED_MADE_MS 4000

/* A socket of which nothing was heard for so long is probably none: some rule has dropped its packet. */
#define ES_SETTLED_VANISHED_MS 1000

/*
 * For how long a request is remembered whose cookie lives for @cookie_s seconds. As long as that is valid,
 * the sender passes on what comes again; and such a message lives for two minutes, by clocks that differ by
 * two minutes at most (handover.h). Nothing that is older can ask for a socket.
 */
static __always_inline __u32 es_settled_hold_ms(__u32 cookie_s)
{
	return (cookie_s + 240) * 1000;
}

/**
 * struct es_settled - one request
 * @request: es_settled_request(), 0: no entry; @at_ms: monotonic; @attempt: of ES_SETTLED_REFUSED
 */
struct es_settled {
	__u64 request;
	__u32 at_ms;
	__u8 as;
	__u8 attempt;
	__u8 pad[2];
};
_Static_assert(sizeof(struct es_settled) == 16, "no padding");

struct es_settled_set {
	struct es_settled way[ES_SETTLED_WAYS];
};

/* How many sets a node has whose decision table has @decision_sets: about as many entries. */
static __always_inline __u32 es_settled_sets(__u32 decision_sets)
{
	return decision_sets / 2;
}

static __always_inline __u32 es_settled_index(__u64 flow_hash, __u32 sets)
{
	return (__u32)(flow_hash >> 20) & (sets - 1);
}

#define ES_SETTLED_SPREAD	  0x9e3779b97f4a7c15ULL
#define ES_SETTLED_SPREAD_INVERSE 0x9937733dU /* of its lower half, modulo 2^32 */

/* es_settled_request() - names the request of flow @flow_hash whose first byte is @seq; never 0 */
static __always_inline __u64 es_settled_request(__u64 flow_hash, __u32 seq)
{
	return (flow_hash ^ (__u64)seq * ES_SETTLED_SPREAD) | 1;
}

enum es_settled_step {
	ES_SETTLED_LOOK,   /* what is known of it? */
	ES_SETTLED_MAKE,   /* make a socket of this attempt, if that may be: the answer is ES_SETTLED_NOT then
			    */
	ES_SETTLED_REFUSE, /* promise not to, if that is true: the answer is ES_SETTLED_REFUSED then */
	ES_SETTLED_SEEN,   /* the socket is there, or was */
	ES_SETTLED_UNDO,   /* it could not be made */
	ES_SETTLED_FORGET, /* nothing came of it, and nothing will */
	ES_SETTLED_END,	   /* its socket was ended unheard: the client is served anew, if that may be */
};

/**
 * struct es_settled_answer - what held before ES_SETTLED_MAKE, and holds after everything else
 * @attempt: of ES_SETTLED_REFUSED; @is_recent: since less than ES_SETTLED_MADE_MS
 * @has_vanished: a socket was to be made more than ES_SETTLED_VANISHED_MS ago, and nothing was heard of it;
 * also of an entry that is over
 * @forgot: an entry that would still have been needed made room: the table is too small
 */
struct es_settled_answer {
	__u8 as;
	__u8 attempt;
	__u8 is_recent;
	__u8 forgot;
	__u8 has_vanished;
};

/* Is there, or was there, a socket of this request? */
static __always_inline int es_settled_is_built(const struct es_settled_answer *answer)
{
	return answer->as == ES_SETTLED_MADE || answer->as == ES_SETTLED_BUILT;
}

/* Another CPU may have looked at the clock a moment later than this one. */
static __always_inline __u32 es_settled_age_ms(const struct es_settled *s, __u32 now_ms)
{
	__u32 age_ms = now_ms - s->at_ms;

	return age_ms <= 0xffffffffu - 1000 ? age_ms : 0;
}

static __always_inline int es_settled_is_over(const struct es_settled *s, __u32 now_ms, __u32 hold_ms)
{
	return es_settled_age_ms(s, now_ms) >= (s->as == ES_SETTLED_MADE ? ES_SETTLED_MADE_MS : hold_ms);
}

/* The request's entry, be it over or not; else an empty one, else the oldest. */
static __always_inline struct es_settled *es_settled_place(struct es_settled_set *set, __u64 request,
							   __u32 now_ms)
{
	struct es_settled *place = &set->way[0];
	__u64 worth = 0;

	for (int i = 0; i < ES_SETTLED_WAYS; i++) {
		struct es_settled *s = &set->way[i];
		__u64 w = s->request == request ? 2ULL << 32
			  : s->request		? es_settled_age_ms(s, now_ms)
						: 1ULL << 32;

		if (w > worth) {
			worth = w;
			place = s;
		}
	}
	return place;
}

/* Is it a request of flow @flow_hash, whatever its first byte? By chance once in 2^31. */
static __always_inline int es_settled_is_of(const struct es_settled *s, __u64 flow_hash)
{
	__u64 spread = s->request ^ flow_hash;

	/* The lowest bit was set, whatever it was. */
	for (__u32 bit = 0; bit < 2; bit++) {
		__u32 seq = (((__u32)spread & ~1u) | bit) * ES_SETTLED_SPREAD_INVERSE;

		if (s->request && es_settled_request(flow_hash, seq) == s->request)
			return 1;
	}
	return 0;
}

/**
 * es_settled_reset() - the kernel answers with a RST, in no socket's name, what has come for flow @flow_hash
 * If it should have made a socket of that, and none has spoken, it makes none any more: that is known at once
 * then, and not only after ES_SETTLED_MADE_MS. Under the lock of @set. Returns 1 if so.
 */
static __always_inline int es_settled_reset(struct es_settled_set *set, __u64 flow_hash, __u32 now_ms)
{
	int found = 0;

	for (int i = 0; i < ES_SETTLED_WAYS; i++) {
		struct es_settled *s = &set->way[i];

		if (s->as != ES_SETTLED_MADE || es_settled_is_over(s, now_ms, 0) ||
		    !es_settled_is_of(s, flow_hash))
			continue;
		s->at_ms = now_ms - ES_SETTLED_MADE_MS;
		found = 1;
	}
	return found;
}

/* es_settled_step() - under the lock of @set; @hold_ms: es_settled_hold_ms() */
static __always_inline struct es_settled_answer es_settled_step(struct es_settled_set *set, __u64 request,
								enum es_settled_step step, __u8 attempt,
								__u32 now_ms, __u32 hold_ms)
{
	struct es_settled *s = es_settled_place(set, request, now_ms);
	int is_known = s->request == request && !es_settled_is_over(s, now_ms, hold_ms);
	struct es_settled_answer answer = {};

	if (s->request == request && s->as == ES_SETTLED_MADE)
		answer.has_vanished = es_settled_age_ms(s, now_ms) >= ES_SETTLED_VANISHED_MS &&
				      es_settled_age_ms(s, now_ms) < hold_ms;
	if (is_known) {
		answer.as = s->as;
		answer.attempt = s->attempt;
		answer.is_recent = es_settled_age_ms(s, now_ms) < ES_SETTLED_MADE_MS;
	}
	switch (step) {
	case ES_SETTLED_MAKE:
		if (answer.as == ES_SETTLED_ENDED ||
		    (answer.as == ES_SETTLED_REFUSED && attempt > answer.attempt))
			answer.as = ES_SETTLED_NOT;
		if (answer.as != ES_SETTLED_NOT)
			return answer;
		break;
	case ES_SETTLED_REFUSE:
		if (answer.as == ES_SETTLED_MADE || answer.as == ES_SETTLED_BUILT)
			return answer;
		if (answer.as == ES_SETTLED_REFUSED && attempt < answer.attempt)
			attempt = answer.attempt;
		answer.as = ES_SETTLED_REFUSED;
		answer.attempt = attempt;
		break;
	case ES_SETTLED_SEEN:
		if (answer.as == ES_SETTLED_MADE)
			s->as = answer.as = ES_SETTLED_BUILT;
		return answer;
	case ES_SETTLED_UNDO:
	case ES_SETTLED_FORGET:
		if (answer.as == ES_SETTLED_MADE ||
		    (answer.as == ES_SETTLED_BUILT && step == ES_SETTLED_FORGET))
			s->request = answer.as = ES_SETTLED_NOT;
		return answer;
	case ES_SETTLED_END:
		/* Also if it was made so long ago that nothing more could be heard of it. */
		if (answer.as == ES_SETTLED_REFUSED)
			return answer;
		answer.as = ES_SETTLED_ENDED;
		break;
	default:
		return answer;
	}
	answer.forgot = s->request && s->request != request && !es_settled_is_over(s, now_ms, hold_ms);
	s->request = request;
	s->at_ms = now_ms;
	s->as = step == ES_SETTLED_MAKE ? ES_SETTLED_MADE : answer.as;
	s->attempt = attempt;
	return answer;
}

#endif
