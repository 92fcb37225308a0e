/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SAMPLER_H
#define ES_SAMPLER_H

/*
 * Picks the requests whose responses are measured: those whose length is not known for sure, each path once
 * in a while, and only so many a second. Bounded: a path that shares its place with another one is measured
 * more often, which does no harm. One worker's; used by its thread only.
 */
#include "inspector/policy/policy.h"

#define ES_SAMPLER_PLACES     1024 /* a power of two */
#define ES_SAMPLER_AGAIN_NS   10000000000ULL
#define ES_SAMPLER_PER_SECOND 200

struct es_sampler {
	unsigned long long second;
	unsigned int asked; /* in this second */
	struct {
		__u64 url_key;
		unsigned long long at_ns;
	} place[ES_SAMPLER_PLACES];
};

/* es_sampler_wants() - measure this one? If so, it counts as asked for. */
int es_sampler_wants(struct es_sampler *sampler, const struct es_request_view *request,
		     unsigned long long now_ns);

#endif
