/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TALLY_H
#define ES_TALLY_H

/*
 * A worker's counters for the metrics: requests by service, node and decision, and how long deciding took.
 * Each worker has a table of its own and is its only writer; the control thread reads it at any time, without
 * a lock. Services, nodes and rules are those of one configuration: with another one, the worker gets another
 * table, which goes on with the counts of the same names.
 */
#include <stdatomic.h>
#include "inspector/config/config.h"

/* The kinds of decision about a request that goes to a node. */
#define ES_TALLY_DECISIONS(X)                                                                                \
	X(first, "the first of its connection")                                                              \
	X(stay, "a later one, which stays where its connection is")                                          \
	X(move, "a later one, with which its connection moves")                                              \
	X(again, "one whose node before refused it, or was lost")

/* The outcomes of a handover to another node. */
#define ES_TALLY_RESULTS(X)                                                                                  \
	X(sent, "its message was sent")                                                                      \
	X(refused, "one that was sent came back: the node refused it")                                       \
	X(unreachable, "one that was sent came back: nobody takes handovers there")                          \
	X(stayed, "none was sent: server or client had gone on, so the connection stayed")

enum es_tally_decision {
#define X(name, description) ES_TALLY_##name,
	ES_TALLY_DECISIONS(X)
#undef X
		ES_TALLY_DECISION_COUNT
};

enum es_tally_result {
#define X(name, description) ES_TALLY_##name,
	ES_TALLY_RESULTS(X)
#undef X
		ES_TALLY_RESULT_COUNT
};

extern const char *const es_tally_decision_name[ES_TALLY_DECISION_COUNT];
extern const char *const es_tally_result_name[ES_TALLY_RESULT_COUNT];

#define ES_HISTOGRAM_BOUNDS 12

/* Upper bounds of the buckets in nanoseconds; one more bucket, without a bound, follows the last one. */
extern const unsigned long long es_histogram_bound_ns[ES_HISTOGRAM_BOUNDS];

struct es_histogram {
	_Atomic unsigned long long bucket[ES_HISTOGRAM_BOUNDS + 1];
	_Atomic unsigned long long sum_ns;
};

#define ES_TALLY_CONTENTS 4096 /* whose nodes are remembered; a power of two */
#define ES_TALLY_PENDING  64

/**
 * struct es_tally - of one worker
 * @rules: how many reasons to refuse a request there are (enum es_rules_by)
 * @content: for content that was asked for lately, the node that got the last request; the worker's own
 * @pending: when the handovers that are not sent yet were decided; the worker's own
 * @count: the counters; es_tally_request() and its like know where each is
 */
struct es_tally {
	unsigned int services;
	unsigned int nodes;
	unsigned int rules;
	struct es_histogram decision;
	struct es_histogram handover;
	__u64 content[ES_TALLY_CONTENTS];
	unsigned int pending_count;
	unsigned long long pending[ES_TALLY_PENDING];
	_Atomic unsigned long long count[];
};

/**
 * es_tally_new() - a table for @conf's services, nodes and rules
 * @before, @before_conf: the table whose counts it goes on with, and its configuration; NULL: all begin at 0
 * Returns 0 or -ENOMEM.
 */
int es_tally_new(const struct es_conf *conf, const struct es_tally *before, const struct es_conf *before_conf,
		 struct es_tally **ret_tally);
void es_tally_free(struct es_tally **tally);

/* The worker's: count one. A table that is NULL, or has no such service, node or rule, counts nothing. */
void es_tally_decided(struct es_tally *tally, unsigned int service, unsigned int node,
		      enum es_tally_decision decision);
void es_tally_handed(struct es_tally *tally, unsigned int service, unsigned int node,
		     enum es_tally_result result);
void es_tally_rejected(struct es_tally *tally, unsigned int service, unsigned int rule);

/**
 * es_tally_content() - a request for the content with this hash goes to @node; a hit if the one before did,
 * too
 */
void es_tally_content(struct es_tally *tally, unsigned int service, __u64 content, unsigned int node);

/* es_tally_took() - a decision took so long */
void es_tally_took(struct es_tally *tally, unsigned long long ns);

/* es_tally_pending() - a handover that was decided at @at_ns waits to be sent */
void es_tally_pending(struct es_tally *tally, unsigned long long at_ns);

/* es_tally_sent() - those that waited have been sent */
void es_tally_sent(struct es_tally *tally);

/* Any thread that knows the table to be there: read one counter. */
unsigned long long es_tally_request(const struct es_tally *tally, unsigned int service, unsigned int node,
				    enum es_tally_decision decision);
unsigned long long es_tally_handover(const struct es_tally *tally, unsigned int service, unsigned int node,
				     enum es_tally_result result);
unsigned long long es_tally_rejection(const struct es_tally *tally, unsigned int service, unsigned int rule);
unsigned long long es_tally_hit(const struct es_tally *tally, unsigned int service);

/* es_histogram_read() - adds to @bucket, ES_HISTOGRAM_BOUNDS + 1 of them, and to @ret_sum_ns */
void es_histogram_read(const struct es_histogram *histogram, unsigned long long *bucket,
		       unsigned long long *ret_sum_ns);

#endif
