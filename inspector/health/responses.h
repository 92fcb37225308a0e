/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_RESPONSES_H
#define ES_HEALTH_RESPONSES_H

/*
 * A server's answers, and how long they take. The datapath tells the status of each response that is
 * complete, and how long ago its request was given to the server. Requests that get no response that can be
 * read are not among them. By Little's law the requests in hand, added up over the time, are the times that
 * all requests took, added up: a mean of all.
 */
#include "inspector/health/durations.h"

/* By the first digit of the status. */
enum es_response_class {
	ES_RESPONSE_2XX,
	ES_RESPONSE_3XX,
	ES_RESPONSE_4XX,
	ES_RESPONSE_5XX,
	ES_RESPONSE_CLASSES
};

extern const char *const es_response_class_name[ES_RESPONSE_CLASSES];

/**
 * struct es_responses - of one service on this node, since the daemon's start
 * @count: by class; @bytes: of all of them, with their heads; @durations: of those whose time is known;
 * @busy_s: request-seconds that were spent
 * @active: requests in hand at @at_ns, when they were counted last; 0: never
 */
struct es_responses {
	unsigned long long count[ES_RESPONSE_CLASSES];
	unsigned long long bytes;
	struct es_durations durations;
	double busy_s;
	unsigned int active;
	unsigned long long at_ns;
};

/*
 * es_responses_add() - one of @bytes is complete, which took so long, 0: not known; a status that has no
 * class does not count
 */
void es_responses_add(struct es_responses *responses, unsigned int status, unsigned int bytes,
		      unsigned long long took_ns);

/* es_responses_busy() - so many requests are in hand at @now_ns, later than the last time */
void es_responses_busy(struct es_responses *responses, unsigned int active, unsigned long long now_ns);

/* es_responses_total() - of all classes */
unsigned long long es_responses_total(const struct es_responses *responses);

#endif
