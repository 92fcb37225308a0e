// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the request from which a connection is made, and makes the packets that go with it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include "kmod/core/checksum.h"
#include "netfilter/compose.h"
#include "netfilter/request.h"

#define ES_TIMESTAMPS 10 /* bytes of the option, without what fills it up */

/* Returns what the IP header says the packet's length is, or 0 if it is none that begins a TCP packet. */
static size_t read_v4(const __u8 *packet, struct es_nf_request *ret)
{
	struct iphdr ip;

	memcpy(&ip, packet, sizeof(ip));
	if (ip.ihl != sizeof(ip) / 4 || ip.protocol != IPPROTO_TCP || ip.frag_off & htons(0x3fff))
		return 0;
	ret->ip_len = sizeof(ip);
	ret->flow.client = es_addr_from_v4(ip.saddr);
	ret->flow.service = es_addr_from_v4(ip.daddr);
	return ntohs(ip.tot_len);
}

static size_t read_v6(const __u8 *packet, struct es_nf_request *ret)
{
	struct ipv6hdr ip;

	memcpy(&ip, packet, sizeof(ip));
	if (ip.nexthdr != IPPROTO_TCP)
		return 0;
	ret->ip_len = sizeof(ip);
	memcpy(&ret->flow.client, &ip.saddr, sizeof(ret->flow.client));
	memcpy(&ret->flow.service, &ip.daddr, sizeof(ret->flow.service));
	return sizeof(ip) + ntohs(ip.payload_len);
}

static size_t read_ip(const __u8 *packet, size_t len, struct es_nf_request *ret)
{
	if (len >= sizeof(struct iphdr) && packet[0] >> 4 == 4)
		return read_v4(packet, ret);
	return len >= sizeof(struct ipv6hdr) && packet[0] >> 4 == 6 ? read_v6(packet, ret) : 0;
}

static void read_options(const __u8 *options, __u32 len, struct es_segment *seg)
{
	struct es_tcp_option_scan scan = {.len = len, .seg = *seg};

	memcpy(scan.block, options, len);
	es_tcp_options_parse(&scan);
	*seg = scan.seg;
}

int es_nf_request_read(struct es_nf_request *request)
{
	size_t total = read_ip(request->packet, request->len, request), header;
	const __u8 *at = request->packet + request->ip_len;
	struct tcphdr tcp;

	if (!total || total != request->len || total < request->ip_len + sizeof(tcp))
		return -EBADMSG;
	memcpy(&tcp, at, sizeof(tcp));
	header = tcp.doff * 4U;
	if (header < sizeof(tcp) || total < request->ip_len + header)
		return -EBADMSG;
	request->flow.client_port = tcp.source;
	request->flow.service_port = tcp.dest;
	request->window = ntohs(tcp.window);
	request->seg = (struct es_segment){
		.seq = ntohl(tcp.seq),
		.ack = ntohl(tcp.ack_seq),
		.len = (__u32)(total - request->ip_len - header),
		.flags = at[13],
		.is_v6 = !es_addr_is_v4(&request->flow.client),
	};
	read_options(at + sizeof(tcp), (__u32)(header - sizeof(tcp)), &request->seg);
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

/* Each with what fills it up to a whole word. */
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
		es_timestamp_option_write(at, request->seg.tsval, request->seg.tsecr + ES_NF_CLOCK_AHEAD_MS);
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
	/* The hook copies it into the handshake's last packet, where it is taken for scaled: as it is in the request. */
	tcp->window = htons(request->window);
	memcpy(tcp + 1, options, options_len);
	return es_nf_compose_end(&request->flow, tcp, len);
}

/* The timestamps in a TCP header, all @ES_TIMESTAMPS bytes of the option; NULL if there are none. */
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

/* Each byte by one that says nothing; with the checksum, by what changes (RFC 1624). */
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

size_t es_nf_request_begin(const struct es_nf_request *request, __u8 ret_headers[ES_NF_MADE_MAX])
{
	size_t len = request->len - request->seg.len;
	struct tcphdr *tcp = (struct tcphdr *)(ret_headers + request->ip_len);
	__u8 *timestamps;

	memcpy(ret_headers, request->packet, len);
	timestamps = find_timestamps(tcp);
	if (timestamps)
		blank(tcp, timestamps);
	return len;
}

size_t es_nf_request_ack(const struct es_nf_request *request, __u8 ret_packet[ES_NF_MADE_MAX])
{
	size_t len = request->len - request->ip_len - request->seg.len;
	struct tcphdr *tcp = es_nf_compose(&request->flow, request->packet, len, len, ret_packet);

	memcpy(tcp, request->packet + request->ip_len, len);
	tcp->fin = tcp->psh = tcp->urg = 0;
	return es_nf_compose_end(&request->flow, tcp, len);
}

size_t es_nf_reset(const struct es_flow *flow, __u32 seq, __u8 ret_packet[ES_NF_MADE_MAX])
{
	struct tcphdr *tcp = es_nf_compose(flow, NULL, sizeof(*tcp), sizeof(*tcp), ret_packet);

	tcp->seq = htonl(seq);
	tcp->rst = 1;
	return es_nf_compose_end(flow, tcp, sizeof(*tcp));
}
