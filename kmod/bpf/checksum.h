/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_CHECKSUM_H
#define ES_BPF_CHECKSUM_H

/*
 * Who computes a packet's TCP checksum, and is it right where nobody has checked it yet?
 */
#include "packet.h"
#include "kmod/core/checksum.h"

static __always_inline __u32 es_packet_ip_summed(struct __sk_buff *skb)
{
	struct sk_buff *kskb = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kskb, ip_summed);
}

static __always_inline int es_packet_csum_partial(struct __sk_buff *skb)
{
	return es_packet_ip_summed(skb) == CHECKSUM_PARTIAL;
}

#define ES_CSUM_CHUNK	   128
#define ES_CSUM_CHUNKS_MAX (65536 / ES_CSUM_CHUNK)

/* @at, @left: of what is not added to @sum yet */
struct es_csum_scan {
	struct __sk_buff *skb;
	__u32 at;
	__u32 left;
	__u32 sum;
	__s32 rc;
};

static long es_csum_step(__u32 i, void *ctx)
{
	__u32 chunk[ES_CSUM_CHUNK / 4] = {};
	struct es_csum_scan *scan = ctx;
	__u32 n = scan->left < ES_CSUM_CHUNK ? scan->left : ES_CSUM_CHUNK;

	(void)i;
	if (!n)
		return 1;
	if (n > ES_CSUM_CHUNK || bpf_skb_load_bytes(scan->skb, scan->at, chunk, n)) {
		scan->rc = -1;
		return 1;
	}
	scan->sum = (__u32)bpf_csum_diff((void *)0, 0, chunk, sizeof(chunk), scan->sum);
	scan->at += n;
	scan->left -= n;
	return 0;
}

/**
 * es_packet_is_damaged() - is the TCP checksum wrong, and has nobody looked at it yet?
 * For a packet from which a socket is made without an inspector: the stack looks only when that is done.
 * @payload: its bytes
 * A global function, so that it is verified once.
 */
__noinline int es_packet_is_damaged(struct __sk_buff *skb, const struct es_packet *pkt, __u32 payload)
{
	__u32 summed = es_packet_ip_summed(skb);
	struct es_csum_scan scan = {.skb = skb};
	__u32 sum, len;

	if (!pkt)
		return 1;
	if (summed == CHECKSUM_UNNECESSARY || summed == CHECKSUM_PARTIAL)
		return 0;
	len = sizeof(struct tcphdr) + pkt->options_len + payload;
	scan.left = len;
	scan.at = es_packet_tcp_off(pkt);
	sum = es_htons(IPPROTO_TCP) + es_htons(len);
	scan.sum = (__u32)bpf_csum_diff((void *)0, 0, &sum, sizeof(sum), 0);
	if (pkt->is_v6) {
		scan.sum = (__u32)bpf_csum_diff((void *)0, 0, (__be32 *)&pkt->source, sizeof(pkt->source),
						scan.sum);
		scan.sum =
			(__u32)bpf_csum_diff((void *)0, 0, (__be32 *)&pkt->dest, sizeof(pkt->dest), scan.sum);
		goto payload;
	}
	sum = pkt->saddr;
	scan.sum = (__u32)bpf_csum_diff((void *)0, 0, &sum, sizeof(sum), scan.sum);
	sum = pkt->daddr;
	scan.sum = (__u32)bpf_csum_diff((void *)0, 0, &sum, sizeof(sum), scan.sum);
payload:
	bpf_loop(ES_CSUM_CHUNKS_MAX, es_csum_step, &scan, 0);
	return scan.rc || scan.left || es_csum_fold(scan.sum) != 0xffff;
}

#endif
