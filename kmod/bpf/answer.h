/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_ANSWER_H
#define ES_BPF_ANSWER_H

/*
 * Answers without a socket: SYN-ACK, ACK and RST are written over the packet that asks for them and sent back
 * out of the interface it came from; a RST for a socket of our own is written the same way and goes up the
 * stack.
 */
#include "packet.h"
#include "checksum.h"
#include "kmod/core/decide.h"

struct es_answer {
	__be32 saddr;
	__be32 daddr;
	__be16 sport;
	__be16 dport;
	__u32 seq;
	__u32 ack;
	__u16 window;
	__u8 flags;
	__u8 options_len; /* 0, 12 or 20 */
	__u8 options[ES_SYNACK_OPTIONS_LEN];
};

#define ES_ANSWER_MAX (sizeof(struct iphdr) + sizeof(struct tcphdr) + ES_SYNACK_OPTIONS_LEN)

/**
 * es_answer_write() - replace the packet's IP header and all behind it by @a
 * @a's options are zero behind options_len. A packet whose checksum is left to hardware keeps that state, and
 * its checksum field then holds the pseudo header's sum only; every other gets a full one.
 */
static __noinline int es_answer_write(struct __sk_buff *skb, const struct es_answer *a)
{
	__u8 buf[ES_ANSWER_MAX] = {};
	struct iphdr *ip = (struct iphdr *)buf;
	struct tcphdr *th = (struct tcphdr *)(buf + sizeof(*ip));
	__u32 options_len, tcp_len, sum;

	if (!a)
		return -1;
	options_len = a->options_len ? (a->options_len == ES_TIMESTAMP_OPTION_LEN ? ES_TIMESTAMP_OPTION_LEN
										  : ES_SYNACK_OPTIONS_LEN)
				     : 0;
	tcp_len = sizeof(*th) + options_len;
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = es_htons(sizeof(*ip) + tcp_len);
	ip->frag_off = es_htons(0x4000); /* DF */
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = a->saddr;
	ip->daddr = a->daddr;
	ip->check = ~es_csum_fold(es_csum_words((__u16 *)ip, sizeof(*ip) / 2));
	th->source = a->sport;
	th->dest = a->dport;
	th->seq = es_htonl(a->seq);
	th->ack_seq = es_htonl(a->ack);
	th->window = es_htons(a->window);
	((__u8 *)th)[12] = (__u8)(tcp_len / 4 << 4);
	((__u8 *)th)[13] = a->flags;
	__builtin_memcpy(th + 1, a->options, ES_SYNACK_OPTIONS_LEN);

	sum = (a->saddr & 0xffff) + (a->saddr >> 16) + (a->daddr & 0xffff) + (a->daddr >> 16) +
	      es_htons(IPPROTO_TCP) + es_htons(tcp_len);
	if (es_packet_csum_partial(skb)) {
		th->check = es_csum_fold(sum);
	} else {
		/* Unused option bytes are zero and add nothing. */
		sum += es_csum_words((__u16 *)th, (sizeof(*th) + ES_SYNACK_OPTIONS_LEN) / 2);
		th->check = ~es_csum_fold(sum);
	}
	if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(*ip) + tcp_len, 0))
		return -1;
	if (options_len == 0)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, buf, sizeof(*ip) + sizeof(*th),
						BPF_F_RECOMPUTE_CSUM);
	if (options_len == ES_TIMESTAMP_OPTION_LEN)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, buf,
						sizeof(*ip) + sizeof(*th) + ES_TIMESTAMP_OPTION_LEN,
						BPF_F_RECOMPUTE_CSUM);
	return (int)bpf_skb_store_bytes(skb, ETH_HLEN, buf, ES_ANSWER_MAX, BPF_F_RECOMPUTE_CSUM);
}

/* Back to who sent the frame. The cluster MAC is never a source: switches would learn it. */
static __always_inline int es_answer_address(struct __sk_buff *skb, const struct es_config *cfg)
{
	__u8 mac[2 * ETH_ALEN];

	if (bpf_skb_load_bytes(skb, ETH_ALEN, mac, ETH_ALEN))
		return -1;
	__builtin_memcpy(mac + ETH_ALEN, cfg->public_mac, ETH_ALEN);
	return (int)bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0);
}

static __always_inline void es_answer_to(const struct es_packet *pkt, struct es_answer *ret)
{
	__builtin_memset(ret, 0, sizeof(*ret));
	ret->saddr = pkt->daddr;
	ret->daddr = pkt->saddr;
	ret->sport = pkt->dport;
	ret->dport = pkt->sport;
}

/**
 * es_answer_send() - make the packet @a and send it to the client
 * Returns the program's verdict.
 */
static __always_inline int es_answer_send(struct __sk_buff *skb, const struct es_config *cfg,
					  const struct es_answer *a)
{
	if (es_answer_address(skb, cfg) || es_answer_write(skb, a)) {
		es_count(ES_COUNT_answer_failed);
		return TC_ACT_SHOT;
	}
	return (int)bpf_redirect(skb->ifindex, 0);
}

static __always_inline void es_answer_synack(const struct es_config *cfg, const struct es_packet *pkt,
					     const struct es_segment *seg, const struct es_verdict *v,
					     struct es_answer *ret)
{
	es_answer_to(pkt, ret);
	ret->seq = v->cookie;
	ret->ack = seg->seq + 1;
	ret->window = (__u16)cfg->synack_window;
	ret->flags = ES_TCP_SYN | ES_TCP_ACK | (v->options.ecn_ok ? ES_TCP_ECE : 0);
	ret->options_len = ES_SYNACK_OPTIONS_LEN;
	es_synack_options_write(ret->options, &v->options, cfg->mss, v->tsval, seg->tsval);
}

/* Feed the socket that this packet met a RST that it must accept: exactly the byte it expects, no timestamp.
 */
static __noinline int es_answer_end_old(struct __sk_buff *skb, const struct es_packet *pkt, __u32 rcv_nxt)
{
	struct es_answer rst = {};

	if (!pkt)
		return TC_ACT_SHOT;
	rst.saddr = pkt->saddr;
	rst.daddr = pkt->daddr;
	rst.sport = pkt->sport;
	rst.dport = pkt->dport;
	rst.seq = rcv_nxt;
	rst.flags = ES_TCP_RST;
	if (es_answer_write(skb, &rst)) {
		es_count(ES_COUNT_answer_failed);
		return TC_ACT_SHOT;
	}
	bpf_skb_change_type(skb, PACKET_TYPE_HOST);
	return TC_ACT_OK;
}

#endif
