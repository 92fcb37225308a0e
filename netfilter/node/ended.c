// SPDX-License-Identifier: GPL-2.0-or-later
/* Tells a connection's last packets from those of other nodes' connections, and of the next one. */
#include "kmod/core/view.h"
#include "netfilter/node/ended.h"
#include "netfilter/node/view.h"

static int es_nf_ended_has_cookie(const struct es_nf_node *node, __u32 service, const struct es_packet *pkt,
				  struct es_view *v)
{
	es_view_begin(v, &node->config, pkt);
	v->inspect = es_view_inspect(pkt, node->config.service[service].inspect);
	es_view_time(v, &node->config, node->memory.state, 0, node->now_ns);
	es_nf_view_heard(node, v);
	return es_decide_cookie(&node->config, v, v->seg.seq - 1) == ES_COOKIE_VALID;
}

int es_nf_ended_is_gone(const struct es_nf_node *node, const struct es_nf_frame *frame)
{
	const struct es_nf_hands *hands = &node->hands;
	struct es_nf_found found;
	struct es_view v = {};
	struct es_packet pkt;
	struct es_flow flow;
	__u32 first;
	int service;

	if (es_nf_packet_tcp(frame->bytes, frame->len, &pkt, &v.seg) || !v.seg.len ||
	    es_nf_packet_options(frame->bytes, &pkt, &v.seg))
		return 0;
	es_packet_flow(&pkt, &flow);
	service = es_nf_service_find(node, &flow.service, flow.service_port);
	if (service < 0 || es_nf_node_look(node, &flow, &found) || found.socket != ES_SOCKET_NONE)
		return 0;
	/* It repeats the request from which the connection was made, if the entry is there to tell. */
	if (!hands->first(hands->ctx, &flow, &first) && first == v.seg.seq)
		return 0;
	return !found.time_wait || !(v.seg.flags & ES_TCP_FIN) ||
	       es_nf_ended_has_cookie(node, (__u32)service, &pkt, &v);
}
