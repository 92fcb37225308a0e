// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Translates RSTs that leave.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/tcp.h>
#include <string.h>
#include "kmod/core/resets.h"
#include "netfilter/kernel/packet.h"
#include "netfilter/rebuild/request.h"
#include "netfilter/rebuild/resets.h"

/* The opposite direction. */
static struct es_flow back_of(const struct es_flow *flow)
{
	return (struct es_flow){
		.client = flow->service,
		.service = flow->client,
		.client_port = flow->service_port,
		.service_port = flow->client_port,
	};
}

int es_nf_resets_flow(const __u8 *packet, size_t len, struct es_flow *ret_flow)
{
	/* It goes the other way, but is read alike. */
	struct es_nf_request read = {.packet = packet, .len = len};
	int rc = es_nf_request_read(&read);

	if (rc || !(read.seg.flags & ES_TCP_RST))
		return -EBADMSG;
	*ret_flow = back_of(&read.flow);
	return 0;
}

int es_nf_resets_is_idle(const __u8 *packet, size_t len, const struct es_nf_entry *entry)
{
	struct es_nf_request read = {.packet = packet, .len = len};

	return !es_nf_request_read(&read) && !(read.seg.flags & ES_TCP_ACK) &&
	       (entry->state == TCP_CONNTRACK_TIME_WAIT || entry->state == TCP_CONNTRACK_CLOSE);
}

size_t es_nf_resets_translate(const __u8 *packet, size_t len, const struct es_nf_entry *entry,
			      __u8 ret_reset[ES_NF_RESET_MAX])
{
	struct es_nf_request read = {.packet = packet, .len = len};
	struct es_flow back;
	struct tcphdr *tcp;

	if (es_nf_request_read(&read) || entry->state < TCP_CONNTRACK_ESTABLISHED ||
	    entry->state >= TCP_CONNTRACK_CLOSE)
		return 0;
	back = back_of(&entry->flow);
	tcp = es_nf_compose(&back, packet, sizeof(*tcp), sizeof(*tcp), ret_reset);
	tcp->seq = htonl(read.seg.seq + (__u32)entry->offsets.server.after);
	tcp->rst = 1;
	if (read.seg.flags & ES_TCP_ACK) {
		tcp->ack = 1;
		tcp->ack_seq = htonl(read.seg.ack);
	}
	return es_nf_compose_end(&back, tcp, sizeof(*tcp));
}

/*
 * A RST that ends a connection has an ACK, and the number after the last byte sent. A RST sent in answer to a
 * packet for a closed connection has no ACK, and takes its number from that packet's acknowledgement.
 */
void es_nf_resets_span(const struct es_flow *flow, const __u8 *reset, __u32 *ret_first, __u32 *ret_under_way)
{
	struct tcphdr tcp;

	memcpy(&tcp, reset + (es_addr_is_v4(&flow->client) ? ES_NF_IP_LEN : ES_NF_IP6_LEN), sizeof(tcp));
	*ret_under_way = ES_RESET_UNDER_WAY;
	*ret_first = ntohl(tcp.seq) - (tcp.ack ? ES_RESET_UNDER_WAY : 0);
}

size_t es_nf_resets_make(const struct es_flow *flow, __u32 seq, __u8 ret_reset[ES_NF_RESET_MAX])
{
	const struct es_flow back = back_of(flow);
	struct tcphdr *tcp = es_nf_compose(&back, NULL, sizeof(*tcp), sizeof(*tcp), ret_reset);

	tcp->seq = htonl(seq);
	tcp->rst = 1;
	return es_nf_compose_end(&back, tcp, sizeof(*tcp));
}
