/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_CHALLENGES_H
#define ES_CORE_CHALLENGES_H

/*
 * Open connections whose clients were asked whether they still have them. A request that begins another
 * connection of the same ports says that the client has forgotten the one that is here, on the word of a
 * cookie; and a cookie can be guessed. So the client is asked by a keep-alive probe (RFC 9293, 3.8.4) in the
 * numbers of the connection that is here. One that still has that answers with an acknowledgement that the
 * socket accepts. One that has begun anew answers in other numbers, or with a RST, which ends the old
 * connection. The request comes again meanwhile: that its client repeats it is the clock.
 *
 * Time is told by two clocks: the milliseconds of the notes, and the one by which the kernel notes when a
 * socket was last acknowledged something, whose unit need not be known.
 *
 * One entry a slot, the newest: who loses his to another flow is asked again. Any CPU writes, none locks. An
 * entry that two have written at once names one flow and the other's time, and both were asked just now.
 */
#include "types.h"

#define ES_CHALLENGES 4096 /* a power of two; 96 KB */

/*
 * So long a client has for each answer, and so seldom it is asked. It is asked twice: a client answers what
 * it cannot take twice a second at most (RFC 5961, 7; Linux's tcp_invalid_ratelimit), and it may just have
 * done so, as a guess brings it a SYN-ACK before. Behind the first question, every such answer is one to
 * that.
 */
#define ES_CHALLENGE_WAIT_MS 550
#define ES_CHALLENGE_ASKED   2

/* After so long without another repetition, it is asked anew. */
#define ES_CHALLENGE_HOLD_MS 30000

/* More units than are in that of any clock by which sockets note something. */
#define ES_CHALLENGE_SPAN 65536

/**
 * struct es_challenge - a client that was asked
 * @at_ms: last, monotonic; @mark: first, by the sockets' clock; @asked: how often. All zero: empty.
 */
struct es_challenge {
	__u64 flow_hash;
	__u32 at_ms;
	__u32 mark;
	__u32 asked;
	__u32 pad;
};
_Static_assert(sizeof(struct es_challenge) == 24, "no padding but this");

enum es_challenged {
	ES_CHALLENGE_NONE = 0, /* it cannot be asked: there is no socket, or one of no whole connection */
	ES_CHALLENGE_DUE,      /* it is to be asked now */
	ES_CHALLENGE_AGAIN,    /* it has not answered, and is to be asked once more */
	ES_CHALLENGE_WAITS,    /* it was, and may still answer */
	ES_CHALLENGE_ALIVE,    /* it has answered */
	ES_CHALLENGE_SILENT,   /* it has not */
};

static __always_inline __u32 es_challenge_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_CHALLENGES - 1);
}

/* es_challenge_look() - @heard: when the flow's socket was acknowledged something, by its own clock */
static __always_inline enum es_challenged es_challenge_look(const struct es_challenge *slot, __u64 flow_hash,
							    __u32 heard, __u32 now_ms)
{
	const volatile struct es_challenge *c = slot;
	__u32 age_ms = now_ms - c->at_ms;
	int is_alive;

	if (c->flow_hash != flow_hash || age_ms >= ES_CHALLENGE_HOLD_MS)
		return ES_CHALLENGE_DUE;
	is_alive = heard - c->mark < ES_CHALLENGE_SPAN;
	if (age_ms < ES_CHALLENGE_WAIT_MS)
		return is_alive ? ES_CHALLENGE_ALIVE : ES_CHALLENGE_WAITS;
	if (is_alive)
		return ES_CHALLENGE_DUE;
	return c->asked < ES_CHALLENGE_ASKED ? ES_CHALLENGE_AGAIN : ES_CHALLENGE_SILENT;
}

/*
 * It is asked now, as es_challenge_look() has said; @clock: the sockets'. es_challenge_forget(): it could not
 * be.
 */
static __always_inline void es_challenge_note(struct es_challenge *slot, __u64 flow_hash,
					      enum es_challenged challenged, __u32 clock, __u32 now_ms)
{
	volatile struct es_challenge *c = slot;

	if (challenged == ES_CHALLENGE_AGAIN && c->flow_hash == flow_hash) {
		c->asked++;
	} else {
		c->flow_hash = flow_hash;
		c->mark = clock;
		c->asked = 1;
	}
	c->at_ms = now_ms;
}

static __always_inline void es_challenge_forget(struct es_challenge *slot)
{
	volatile struct es_challenge *c = slot;

	c->flow_hash = 0;
}

#endif
