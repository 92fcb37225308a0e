/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_URL_INFO_H
#define ES_URL_INFO_H

/*
 * All that can be known of a piece of content before it is asked for: Yang and Luo's record of the URL table
 * (section 4.1: location, size, type, priority) with what CAP and LVS-CAD need besides.
 */
#include "inspector/policy/node_set.h"

/* How many pieces of content a node may know this of. */
#define ES_URL_ENTRIES_MIN 1024u
#define ES_URL_ENTRIES_MAX (4u << 20)

enum es_url_field {
	ES_URL_SIZE = 1 << 0,
	ES_URL_KIND = 1 << 1,
	ES_URL_CLASS = 1 << 2,
	ES_URL_COST = 1 << 3,
	ES_URL_PRIORITY = 1 << 4,
	ES_URL_NODES = 1 << 5,
};

enum es_priority {
	ES_PRIORITY_NORMAL = 0,
	ES_PRIORITY_HIGH,
	ES_PRIORITY_LOW,
	ES_PRIORITY_COUNT,
};

/**
 * struct es_url_info - @has: which fields (enum es_url_field) say something
 * @class: an enum es_request_class; @cost: response packets
 * @nodes: those that have the content; @backup: those that serve it if none of them can; @only: none but
 * these two may, even if none of them can
 */
struct es_url_info {
	__u32 has;
	__u32 cost;
	__u64 size_bytes;
	struct es_node_set nodes;
	struct es_node_set backup;
	__u8 is_dynamic;
	__u8 class;
	__u8 priority;
	__u8 only;
};

/* es_url_info_put() - the fields @which of @from, as far as it has them, replace those of @to */
static inline void es_url_info_put(struct es_url_info *to, const struct es_url_info *from, __u32 which)
{
	which &= from->has;
	if (which & ES_URL_SIZE)
		to->size_bytes = from->size_bytes;
	if (which & ES_URL_KIND)
		to->is_dynamic = from->is_dynamic;
	if (which & ES_URL_CLASS)
		to->class = from->class;
	if (which & ES_URL_COST)
		to->cost = from->cost;
	if (which & ES_URL_PRIORITY)
		to->priority = from->priority;
	if (which & ES_URL_NODES) {
		to->nodes = from->nodes;
		to->backup = from->backup;
		to->only = from->only;
	}
	to->has |= which;
}

#endif
