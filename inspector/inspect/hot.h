/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HOT_H
#define ES_HOT_H

/*
 * The content that is asked for most, by name, for people: the content table knows only hashes. Bounded: a
 * set has four places, and content that has none wears down the count of the least popular one there until it
 * gets that place (Misra and Gries 1982, per set). Counts are halved every minute. One worker's; used by its
 * thread only.
 */
#include "inspector/policy/policy.h"

#define ES_HOT_SETS	128
#define ES_HOT_WAYS	4
#define ES_HOT_URI_SIZE 112

/* @requests: about how many there were lately; 0: the place is free. @uri: printable, cut if it is long */
struct es_hot_content {
	__u64 content;
	__u32 requests;
	__u8 service;
	char uri[ES_HOT_URI_SIZE];
};

struct es_hot {
	unsigned long long halved_ns;
	struct es_hot_content place[ES_HOT_SETS][ES_HOT_WAYS];
};

/* es_hot_seen() - count a request for content */
void es_hot_seen(struct es_hot *hot, unsigned int service, const struct es_request_view *request,
		 unsigned long long now_ns);

/* es_hot_find() - the name of content, or NULL if it is not among what is asked for most */
const char *es_hot_find(const struct es_hot *hot, unsigned int service, __u64 content);

/**
 * es_hot_collect() - add a service's content to @entries, which may have other workers' already
 * @size: room; @count: how many there are, updated
 */
void es_hot_collect(const struct es_hot *hot, unsigned int service, struct es_hot_content *entries,
		    size_t size, size_t *count);

#endif
