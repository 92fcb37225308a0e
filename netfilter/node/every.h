/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_EVERY_H
#define ES_NETFILTER_NODE_EVERY_H

/*
 * Connections here of services that inspect every request: their tracks (kmod/core/track.h), and what it
 * takes to read their sockets. A socket has numbers of its own. By sock_diag it tells how many bytes it
 * received, and how many of its own were acknowledged; counted from where the connection began here, that
 * gives the client's numbers. Each flow has a set of places; a new connection takes the one that was unused
 * the longest. A connection that loses its place stays here.
 */
#include "kmod/core/track.h"

#define ES_NF_CONNECTION_SETS 8192 /* a power of two; 6 MB, used pages only */
#define ES_NF_CONNECTION_WAYS 8

/**
 * struct es_nf_connection - zero: empty
 * @first_seq: of the first byte of the request that made it here; @first_ack: of the first byte of that
 * request's response
 * @sent_seq: after the last byte that was seen to leave
 * @used_ms: monotonic, when a packet of it was last seen
 */
struct es_nf_connection {
	__u64 flow_hash;
	__u32 first_seq;
	__u32 first_ack;
	__u32 sent_seq;
	__u32 used_ms;
	struct es_track track;
};
_Static_assert(sizeof(struct es_nf_connection) == 88, "no padding: it lies in a file");

struct es_nf_connection_set {
	struct es_nf_connection way[ES_NF_CONNECTION_WAYS];
};

static inline struct es_nf_connection_set *es_nf_connection_set(struct es_nf_connection_set *sets,
								__u64 flow_hash)
{
	return &sets[(__u32)(flow_hash >> 20) & (ES_NF_CONNECTION_SETS - 1)];
}

/* es_nf_connection_find() - the flow's newest connection, which may be over; NULL: none is known */
static inline struct es_nf_connection *es_nf_connection_find(struct es_nf_connection_set *sets,
							     __u64 flow_hash)
{
	struct es_nf_connection_set *set = es_nf_connection_set(sets, flow_hash);

	for (int i = 0; i < ES_NF_CONNECTION_WAYS; i++)
		if (set->way[i].flow_hash == flow_hash && flow_hash)
			return &set->way[i];
	return NULL;
}

/* es_nf_connection_forget() - before another connection of the same ports */
static inline void es_nf_connection_forget(struct es_nf_connection_set *sets, __u64 flow_hash)
{
	struct es_nf_connection *c = es_nf_connection_find(sets, flow_hash);

	if (c)
		*c = (struct es_nf_connection){};
}

/**
 * es_nf_connection_begin() - a connection was made here, from a request at @seq whose response begins at @ack
 * Its track is zero; the caller begins it.
 */
static inline struct es_nf_connection *
es_nf_connection_begin(struct es_nf_connection_set *sets, __u64 flow_hash, __u32 seq, __u32 ack, __u32 now_ms)
{
	struct es_nf_connection_set *set = es_nf_connection_set(sets, flow_hash);
	struct es_nf_connection *place = es_nf_connection_find(sets, flow_hash);

	for (int i = 0; !place && i < ES_NF_CONNECTION_WAYS; i++)
		if (!set->way[i].flow_hash)
			place = &set->way[i];
	if (!place) {
		place = &set->way[0];
		for (int i = 1; i < ES_NF_CONNECTION_WAYS; i++)
			if (now_ms - set->way[i].used_ms > now_ms - place->used_ms)
				place = &set->way[i];
	}
	*place = (struct es_nf_connection){
		.flow_hash = flow_hash,
		.first_seq = seq,
		.first_ack = ack,
		.sent_seq = ack,
		.used_ms = now_ms,
	};
	return place;
}

#endif
