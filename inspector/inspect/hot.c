// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts the content that is asked for most, by name, in sets chosen by hash. */
#include <stdint.h>
#include "inspector/inspect/hot.h"

#define ES_HOT_HALVE_NS 60000000000ULL

static void es_hot_halve(struct es_hot *hot, unsigned long long now_ns)
{
	if (now_ns - hot->halved_ns < ES_HOT_HALVE_NS)
		return;
	for (unsigned int i = 0; i < ES_HOT_SETS && hot->halved_ns; i++)
		for (unsigned int k = 0; k < ES_HOT_WAYS; k++)
			hot->place[i][k].requests /= 2;
	hot->halved_ns = now_ns;
}

static void es_hot_name(struct es_hot_content *place, const struct es_request_view *request)
{
	size_t len = request->name_len < ES_HOT_URI_SIZE ? request->name_len : ES_HOT_URI_SIZE - 1;

	for (size_t i = 0; i < len; i++) {
		char c = request->name[i];

		place->uri[i] = c;
		if (c <= ' ' || c > '~')
			place->uri[i] = '?';
	}
	place->uri[len] = 0;
	if (len < request->name_len)
		__builtin_memcpy(place->uri + len - 3, "...", 3);
}

void es_hot_seen(struct es_hot *hot, unsigned int service, const struct es_request_view *request,
		 unsigned long long now_ns)
{
	struct es_hot_content *set = hot->place[request->content % ES_HOT_SETS], *least = set;

	es_hot_halve(hot, now_ns);
	for (unsigned int k = 0; k < ES_HOT_WAYS; k++) {
		if (set[k].requests && set[k].content == request->content && set[k].service == service) {
			set[k].requests += set[k].requests < UINT32_MAX;
			return;
		}
		if (set[k].requests < least->requests)
			least = &set[k];
	}
	if (least->requests) {
		least->requests--;
		return;
	}
	least->content = request->content;
	least->service = (__u8)service;
	least->requests = 1;
	es_hot_name(least, request);
}

const char *es_hot_find(const struct es_hot *hot, unsigned int service, __u64 content)
{
	const struct es_hot_content *set = hot->place[content % ES_HOT_SETS];

	for (unsigned int k = 0; k < ES_HOT_WAYS; k++)
		if (set[k].requests && set[k].content == content && set[k].service == service)
			return set[k].uri;
	return NULL;
}

static void es_hot_add(const struct es_hot_content *place, struct es_hot_content *entries, size_t size,
		       size_t *count)
{
	for (size_t i = 0; i < *count; i++) {
		if (entries[i].content == place->content) {
			entries[i].requests += place->requests;
			return;
		}
	}
	if (*count < size)
		entries[(*count)++] = *place;
}

void es_hot_collect(const struct es_hot *hot, unsigned int service, struct es_hot_content *entries,
		    size_t size, size_t *count)
{
	for (unsigned int i = 0; i < ES_HOT_SETS; i++)
		for (unsigned int k = 0; k < ES_HOT_WAYS; k++)
			if (hot->place[i][k].requests && hot->place[i][k].service == service)
				es_hot_add(&hot->place[i][k], entries, size, count);
}
