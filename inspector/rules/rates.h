/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RATES_H
#define ES_RATES_H

/*
 * How many requests each client may send (a rule's rate and burst): for a rule and a client's address, of
 * IPv6 its /64, the time at which what was admitted is used up (the generic cell rate algorithm, ITU-T
 * I.371). One table for all workers, without locks.
 *
 * Each node counts what it admits and what the others say that they have admitted, a moment ago
 * (daemon/rates.h). So if a client asks all N nodes in the same moment, each may admit a whole burst; but
 * what was admitted too much is missing afterwards, so that in the long run it is the rate of one node.
 *
 * A full set forgets the client that has used least. Addresses cannot be forged: a request has a connection.
 * A client with many, as a /48 of IPv6 has, can drive out others' entries, but those at their limit last; a
 * client that is forgotten begins anew.
 */
#include "inspector/base/prefix.h"
#include "kmod/core/flow.h"
#include "kmod/core/siphash.h"

#define ES_RATES_SETS	 16384 /* a power of two */
#define ES_RATES_WAYS	 4
#define ES_RATES_ENTRIES (ES_RATES_SETS * ES_RATES_WAYS)

struct es_rates;

/**
 * struct es_rate_limit - of a rule
 * @rule: the same for the same rule on all nodes, never 0; @by: an enum es_rules_by, for refusals; @name: the
 * rule's
 * @increment_ns: what a request uses up
 */
struct es_rate_limit {
	__u64 rule;
	unsigned int by;
	const char *name;
	unsigned long long increment_ns;
	unsigned int burst;
};

/* struct es_rate_word - what a node has admitted since it said so last */
struct es_rate_word {
	__u64 key;
	unsigned long long increment_ns;
	unsigned int count;
};

/*
 * es_rates_new() - @key: the same on all nodes, and secret: who knew it could choose addresses of one set.
 * Returns 0 or -ENOMEM.
 */
int es_rates_new(const struct es_sipkey *key, struct es_rates **ret_rates);
void es_rates_free(struct es_rates **rates);

/**
 * es_rates_is_over() - has @client none left?
 * Changes nothing. @ret_after_s: in so many seconds it has one
 */
int es_rates_is_over(struct es_rates *rates, const struct es_rate_limit *limit, const struct es_addr *client,
		     unsigned long long now_ns, unsigned int *ret_after_s);

/* es_rates_take() - the same, and if it has one, that is used */
int es_rates_take(struct es_rates *rates, const struct es_rate_limit *limit, const struct es_addr *client,
		  unsigned long long now_ns, unsigned int *ret_after_s);

/* es_rates_heard() - another node has admitted so many */
void es_rates_heard(struct es_rates *rates, const struct es_rate_word *word, unsigned long long now_ns);

/* es_rates_said() - what is to be told to the others, up to @max words; one thread's. Returns how many. */
unsigned int es_rates_said(struct es_rates *rates, struct es_rate_word *ret_words, unsigned int max);

/* es_rates_used() - entries that are not used up; @ret_forgotten: how many had to make room */
unsigned int es_rates_used(const struct es_rates *rates, unsigned long long now_ns,
			   unsigned long long *ret_forgotten);

#endif
