/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_EARLIER_H
#define ES_INSPECT_EARLIER_H

/* First requests on connections that began before this node listened (earlier.c). */
#include "inspector/inspect/stray.h"

#define ES_EARLIER_SLOTS 1024

/**
 * struct es_earlier - a segment of which every node has said, under that @version, that it does not have its
 * connection
 */
struct es_earlier {
	__u64 flow_hash;
	uint32_t seq;
	uint32_t ack;
	uint32_t version;
	uint32_t is_noted;
};

/* es_inspect_is_earlier() - is it a stray that is a first request unless some node has its connection? */
static inline int es_inspect_is_earlier(unsigned int flow)
{
	return flow == ES_FLOW_EARLIER || flow == ES_FLOW_EARLIER_DOUBTFUL;
}

/* es_inspect_earlier_note() - no node has the connection of such a segment */
void es_inspect_earlier_note(struct es_inspector *in, const struct es_stray_case *stray);

/* es_inspect_earlier_is_nobodys() - has this very segment been noted so? */
int es_inspect_earlier_is_nobodys(struct es_inspector *in, __u64 flow_hash, const struct es_segment *seg);

#endif
