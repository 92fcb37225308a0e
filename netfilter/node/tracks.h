/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_TRACKS_H
#define ES_NETFILTER_NODE_TRACKS_H

/*
 * Later requests on connections here, of services that inspect every request: what becomes of a client's
 * segment (kmod/core/track.h), and what must be true for a connection to leave. The counterpart of
 * kmod/bpf/tracks.h.
 */
#include "kmod/core/decide.h"
#include "netfilter/node/node.h"

/**
 * es_nf_track_made() - a connection was made here from the request @seg (es_nf_make())
 * Returns it; the caller begins its track, and then calls es_nf_track_begun(). NULL if its service does not
 * inspect every request.
 */
struct es_nf_connection *es_nf_track_made(const struct es_nf_node *node, __u32 service, __u64 flow_hash,
					  const struct es_segment *seg);

/* es_nf_track_begun() - if the connection stays, count why */
void es_nf_track_begun(const struct es_nf_node *node, const struct es_nf_connection *c);

/*
 * es_nf_track_is_inside() - is the segment inside of a body, or of a connection that stays? Then its socket
 * need not be asked.
 */
static inline int es_nf_track_is_inside(const struct es_nf_connection *c, const struct es_segment *seg)
{
	const struct es_track *t = &c->track;

	return !es_track_is_leaving(t) &&
	       (t->pin ||
		(es_seq_before(seg->seq + seg->len, t->next_request_seq) && !(seg->flags & ES_TCP_URG)));
}

/**
 * es_nf_track_view() - set @v->track for a segment whose socket is @found; call it if es_view_reads_track()
 * Returns the connection if the inspector may have to know of it, else NULL.
 */
struct es_nf_connection *es_nf_track_view(const struct es_nf_node *node, const struct es_nf_found *found,
					  struct es_view *v);

/*
 * es_nf_track_is_ending() - is the flow's newest connection one that has left, so that its socket was to end?
 */
int es_nf_track_is_ending(const struct es_nf_node *node, const struct es_flow *flow);

/* es_nf_track_socket() - the socket's state in the client's numbers */
void es_nf_track_socket(const struct es_nf_connection *c, const struct es_nf_found *found,
			struct es_track_socket *ret_socket);

#endif
