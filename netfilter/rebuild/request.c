// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the request from which a connection is made, and makes the packets that go with it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include "kmod/core/checksum.h"
#include "netfilter/kernel/compose.h"
#include "netfilter/kernel/packet.h"
#include "netfilter/rebuild/request.h"

#define ES_TIMESTAMPS 10 /* bytes of the option, without padding */

static int is_fragment(const __u8 *packet)
{
	return packet[0] >> 4 == 4 && (packet[6] & 0x3f || packet[7]);
}

int es_nf_request_read(struct es_nf_request *request)
{
	const __u8 *packet = request->packet;
	struct es_packet pkt;
	size_t ip_len;

	if (es_nf_packet_tcp(packet, request->len, &pkt, &request->seg) || is_fragment(packet))
		return -EBADMSG;
	ip_len = es_packet_ip_len(&pkt);
	if (ip_len + ES_NF_TCP_LEN + pkt.options_len + request->seg.len != request->len)
		return -EBADMSG;
	es_packet_flow(&pkt, &request->flow);
	request->socket = request->flow;
	request->ip_len = (__u16)ip_len;
	request->window = es_ntohs(es_nf_be16(packet + ip_len + offsetof(struct tcphdr, window)));
	/* Options that a node would refuse do not occur in requests; reading them does no harm. */
	(void)es_nf_packet_options(packet, &pkt, &request->seg);
	return 0;
}

int es_nf_request_is_all(const struct es_nf_request *request)
{
	const char *line = (const char *)request->packet + request->len - request->seg.len;
	const char *end = line + request->seg.len, *next;

	if (request->seg.len < 9 || (memcmp(line, "GET ", 4) != 0 && memcmp(line, "HEAD ", 5) != 0))
		return 0;
	for (; (next = memmem(line, (size_t)(end - line), "\r\n", 2)); line = next + 2) {
		size_t len = (size_t)(next - line);

		if (!len)
			return next + 2 == end;
		if ((len > 15 && !strncasecmp(line, "Content-Length:", 15)) ||
		    (len > 18 && !strncasecmp(line, "Transfer-Encoding:", 18)))
			return 0;
	}
	return 0;
}

/* Each option is padded to four bytes. */
static size_t put_options(const struct es_nf_request *request, __u8 *out)
{
	const struct es_tcp_options *o = &request->options;
	__u16 least = request->seg.is_v6 ? ES_TCP_MSS_MIN_V6 : ES_TCP_MSS_MIN;
	__u16 mss = o->mss < least ? least : o->mss;
	__u8 *at = out;

	at = mempcpy(at, (__u8[]){2, 4, (__u8)(mss >> 8), (__u8)mss}, 4);
	if (o->sack_ok)
		at = mempcpy(at, (__u8[]){1, 1, 4, 2}, 4);
	if (o->tstamp_ok && request->seg.has_ts) {
		es_timestamp_option_write(at, request->seg.tsval,
					  request->seg.tsecr + ES_REBUILD_CLOCK_AHEAD_MS);
		at += ES_TIMESTAMP_OPTION_LEN;
	}
	if (o->wscale_ok)
		at = mempcpy(at, (__u8[]){1, 3, 3, o->snd_wscale}, 4);
	return (size_t)(at - out);
}

size_t es_nf_request_syn(const struct es_nf_request *request, __u8 ret_packet[ES_NF_MADE_MAX])
{
	__u8 options[ES_TCP_OPTIONS_MAX];
	size_t options_len = put_options(request, options), len = sizeof(struct tcphdr) + options_len;
	struct tcphdr *tcp = es_nf_compose(&request->flow, request->packet, len, len, ret_packet);

	tcp->seq = htonl(request->seg.seq - 1);
	tcp->ack_seq = htonl(request->seg.ack - 1);
	tcp->syn = 1;
	if (request->options.ecn_ok)
		tcp->ece = tcp->cwr = 1;
	/*
	 * The hook copies the window into the handshake's last packet, whose window is scaled. So it is the
	 * request's.
	 */
	tcp->window = htons(request->window);
	memcpy(tcp + 1, options, options_len);
	return es_nf_compose_end(&request->flow, tcp, len);
}

/* The TCP header's timestamp option, ES_TIMESTAMPS bytes; NULL if there is none. */
static __u8 *find_timestamps(struct tcphdr *tcp)
{
	__u8 *option = (__u8 *)(tcp + 1), *end = (__u8 *)tcp + tcp->doff * 4U;

	while (option < end && *option) {
		size_t len = *option == 1 ? 1 : option + 1 < end ? option[1] : 0;

		if (!len || len > (size_t)(end - option) || (*option != 1 && len < 2))
			return NULL;
		if (*option == 8 && len == ES_TIMESTAMPS)
			return option;
		option += len;
	}
	return NULL;
}

/* Overwrites the option with NOPs, and updates the checksum (RFC 1624). */
static void blank(struct tcphdr *tcp, __u8 *option)
{
	__u16 old[ES_TIMESTAMPS / 2], new[ES_TIMESTAMPS / 2], difference;
	__u32 sum = 0;

	memcpy(old, option, sizeof(old));
	memset(option, 1, ES_TIMESTAMPS);
	memcpy(new, option, sizeof(new));
	for (size_t i = 0; i < ES_TIMESTAMPS / 2; i++)
		sum += (__u32)(__u16)~old[i] + new[i];
	difference = es_csum_fold(sum);
	if ((size_t)(option - (__u8 *)tcp) % 2)
		difference = __builtin_bswap16(difference);
	tcp->check = (__u16)~es_csum_fold((__u32)(__u16)~tcp->check + difference);
}

/*
 * Writes the IP header without IPv6 extension headers: those were for the way here, and have no maximum
 * length. TCP's checksum does not cover them. Returns its length.
 */
static size_t put_ip(const struct es_nf_request *request, __u8 *out)
{
	struct ipv6hdr *ip = (struct ipv6hdr *)out;

	if (!request->seg.is_v6)
		return (size_t)((__u8 *)mempcpy(out, request->packet, request->ip_len) - out);
	memcpy(ip, request->packet, sizeof(*ip));
	ip->nexthdr = IPPROTO_TCP;
	ip->payload_len = htons((__u16)(request->len - request->ip_len));
	return sizeof(*ip);
}

size_t es_nf_request_begin(const struct es_nf_request *request, __u8 ret_headers[ES_NF_MADE_MAX])
{
	size_t ip_len = put_ip(request, ret_headers), len = request->len - request->seg.len - request->ip_len;
	struct tcphdr *tcp = (struct tcphdr *)(ret_headers + ip_len);
	__u8 *timestamps;

	memcpy(tcp, request->packet + request->ip_len, len);
	timestamps = find_timestamps(tcp);
	if (timestamps)
		blank(tcp, timestamps);
	return ip_len + len;
}

size_t es_nf_reset(const struct es_flow *flow, __u32 seq, __u8 ret_packet[ES_NF_MADE_MAX])
{
	struct tcphdr *tcp = es_nf_compose(flow, NULL, sizeof(*tcp), sizeof(*tcp), ret_packet);

	tcp->seq = htonl(seq);
	tcp->rst = 1;
	return es_nf_compose_end(flow, tcp, sizeof(*tcp));
}
