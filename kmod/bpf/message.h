/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_MESSAGE_H
#define ES_BPF_MESSAGE_H

/*
 * Handover messages at the target: is it one, is it authentic, is it fresh, and how it goes back as a NACK.
 */
#include <linux/ipv6.h>

#include "checksum.h"
#include "packet.h"
#include "maps.h"
#include "kmod/core/again.h"
#include "kmod/core/message.h"
#include "kmod/core/strays.h"
#include "kmod/core/wall.h"

#define ES_MAC_CHUNK 32

/* Is the envelope of IPv6? Valid until it is taken off. */
static __always_inline int es_message_is_v6(const struct __sk_buff *skb)
{
	return skb->protocol == es_htons(ETH_P_IPV6);
}

/* Offsets in the frame: the UDP header, the message's header after it, and the packet after that. */
static __always_inline __u32 es_message_udp_off(const struct __sk_buff *skb)
{
	return ETH_HLEN + (es_message_is_v6(skb) ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
}

static __always_inline __u32 es_message_header_off(const struct __sk_buff *skb)
{
	return es_message_udp_off(skb) + sizeof(struct udphdr);
}

static __always_inline __u32 es_message_packet_off(const struct __sk_buff *skb)
{
	return es_message_header_off(skb) + sizeof(struct es_handover);
}

/* @at: where the packet begins */
struct es_mac_loop {
	struct __sk_buff *skb;
	struct es_sipstate sip;
	__u64 tail;
	__u32 len;
	__u16 at;
	__u16 failed;
};

/* One chunk of the packet into the MAC; the last, partial word of the packet is left for the MAC's end. */
static long es_mac_step(__u32 i, void *data)
{
	struct es_mac_loop *loop = data;
	__u32 off = i * ES_MAC_CHUNK;
	__u64 words[ES_MAC_CHUNK / 8] = {};
	__u32 left;

	if (off >= loop->len)
		return 1;
	left = loop->len - off;
	if (left > ES_MAC_CHUNK)
		left = ES_MAC_CHUNK;
	asm volatile("" : "+r"(left)); /* or the compiler drops the check that the verifier wants */
	if (!left)
		return 1;
	if (bpf_skb_load_bytes(loop->skb, loop->at + off, words, left)) {
		loop->failed = 1;
		return 1;
	}
	for (__u32 w = 0; w < ES_MAC_CHUNK / 8; w++) {
		if ((w + 1) * 8 <= left) {
			es_siphash_word(&loop->sip, es_cpu_le64(words[w]));
		} else {
			if (w * 8 < left)
				loop->tail = es_cpu_le64(words[w]);
			break;
		}
	}
	return 0;
}

static __noinline int es_message_mac(struct __sk_buff *skb, const struct es_sipkey *key,
				     const struct es_handover *h, __be64 *ret_mac)
{
	struct es_mac_loop loop = {.skb = skb};

	if (!key || !h || !ret_mac)
		return -1;
	loop.len = es_ntohs(h->packet_len);
	if (loop.len > ES_MESSAGE_PACKET_MAX)
		return -1;
	loop.at = (__u16)es_message_packet_off(skb);
	es_handover_mac_begin(&loop.sip, key, h);
	bpf_loop(ES_MESSAGE_PACKET_MAX / ES_MAC_CHUNK, es_mac_step, &loop, 0);
	if (loop.failed)
		return -1;
	*ret_mac = es_handover_mac_end(&loop.sip, loop.tail, loop.len);
	return 0;
}

/*
 * es_decide_authentic() in a stack frame of its own. Returns the counter, ES_COUNT_handover_received if it
 * may be taken.
 */
static __noinline int es_message_authentic(const struct es_config *cfg, const struct es_handover *h)
{
	const struct es_state *state = es_state_get();
	struct es_message_verdict verdict;
	struct es_message_moment moment;

	if (!cfg || !h || !state)
		return ES_COUNT_handover_malformed;
	es_message_moment_get(state, cfg, h, bpf_ktime_get_coarse_ns(), bpf_ktime_get_ns(), &moment);
	es_decide_authentic(cfg, h, &moment, &verdict);
	return (int)verdict.counter;
}

/* Returns a counter to count and drop by, or ES_COUNT_handover_received. */
static __noinline int es_message_check(struct __sk_buff *skb, struct es_config *cfg,
				       const struct es_handover *h)
{
	struct es_replay_slot *slot;
	__be64 mac = 0;
	__u32 index;
	int fresh, counter;

	if (!cfg || !h)
		return ES_COUNT_handover_malformed;
	if (es_message_mac(skb, &cfg->handover_key[0], h, &mac))
		return ES_COUNT_handover_malformed;
	if (mac != h->mac && cfg->key_count > 1)
		es_message_mac(skb, &cfg->handover_key[1], h, &mac);
	if (mac != h->mac)
		return ES_COUNT_handover_bad_mac;
	counter = es_message_authentic(cfg, h);
	if (counter != ES_COUNT_handover_received)
		return counter;
	index = es_message_stream(h);
	if (skb->mark == ES_ASKED_MARK)
		return ES_COUNT_handover_received; /* again */
	slot = es_array_at(&es_replays, index);
	if (!slot)
		return ES_COUNT_handover_malformed;
	bpf_spin_lock(&slot->lock);
	fresh = es_message_accept(&slot->replay, h);
	bpf_spin_unlock(&slot->lock);
	return fresh ? ES_COUNT_handover_received : ES_COUNT_handover_replayed;
}

#define ES_MESSAGE_KEPT ES_STRAYS_KEPT

/*
 * Correct the lengths in the IPv6 and UDP headers of a message that was cut. The UDP checksum is made anew,
 * over the message's header as it is in the packet; es_message_store6() then corrects it for the answer's
 * header. Returns 0 or -1.
 */
static __noinline int es_message_cut6(struct __sk_buff *skb)
{
	const __u32 len = sizeof(struct udphdr) + sizeof(struct es_handover) + ES_MESSAGE_KEPT;
	const __u32 udp_off = ETH_HLEN + sizeof(struct ipv6hdr);
	union {
		struct in6_addr addr[2];
		struct {
			struct udphdr udp;
			__u8 rest[sizeof(struct es_handover) + ES_MESSAGE_KEPT];
		};
		__be32 words[(sizeof(struct udphdr) + sizeof(struct es_handover) + ES_MESSAGE_KEPT) / 4];
	} part;
	__u32 sum = es_htons(IPPROTO_UDP) + es_htons(len);
	__be16 udp_len = es_htons(len), check;

	if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, saddr), part.addr, sizeof(part.addr)))
		return -1;
	sum = (__u32)bpf_csum_diff((void *)0, 0, part.words, sizeof(part.addr), sum);
	if (bpf_skb_load_bytes(skb, udp_off, part.words, len))
		return -1;
	part.udp.len = udp_len;
	part.udp.check = 0;
	if (es_packet_csum_partial(skb)) {
		check = (__be16)es_csum_fold(sum);
	} else {
		sum = (__u32)bpf_csum_diff((void *)0, 0, part.words, len, sum);
		check = (__be16)~es_csum_fold(sum);
		if (!check)
			check = 0xffff; /* 0 would say that there is none */
	}
	return bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, payload_len), &udp_len,
				   sizeof(udp_len), 0) ||
			       bpf_skb_store_bytes(skb, udp_off + offsetof(struct udphdr, len), &udp_len,
						   sizeof(udp_len), 0) ||
			       bpf_skb_store_bytes(skb, udp_off + offsetof(struct udphdr, check), &check,
						   sizeof(check), 0)
		       ? -1
		       : 0;
}

/* Likewise for IPv4, whose messages have no UDP checksum. */
static __noinline int es_message_cut4(struct __sk_buff *skb)
{
	const __u32 len = sizeof(struct udphdr) + sizeof(struct es_handover) + ES_MESSAGE_KEPT;
	__be16 udp_len = es_htons(len), ip_len = es_htons(sizeof(struct iphdr) + len), old_ip_len;

	return bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, tot_len), &old_ip_len,
				  sizeof(old_ip_len)) ||
			       bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), old_ip_len,
						   ip_len, sizeof(ip_len)) ||
			       bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct iphdr, tot_len), &ip_len,
						   sizeof(ip_len), 0) ||
			       bpf_skb_store_bytes(
				       skb, ETH_HLEN + sizeof(struct iphdr) + offsetof(struct udphdr, len),
				       &udp_len, sizeof(udp_len), 0)
		       ? -1
		       : 0;
}

/*
 * es_message_cut() - keep the first ES_MESSAGE_KEPT bytes of the message's packet, for its answer. Returns 0
 * or -1.
 */
__noinline int es_message_cut(struct __sk_buff *skb)
{
	if (bpf_skb_change_tail(skb, es_message_packet_off(skb) + ES_MESSAGE_KEPT, 0))
		return -1;
	return es_message_is_v6(skb) ? es_message_cut6(skb) : es_message_cut4(skb);
}

/* Addresses and ports change places. A function of its own, for its stack. Returns 0 or -1. */
static __noinline int es_message_turn(struct __sk_buff *skb)
{
	struct {
		__u8 mac[2][ETH_ALEN];
		__be32 addr[2];
		__be16 port[2];
	} in, out;

	if (bpf_skb_load_bytes(skb, 0, in.mac, sizeof(in.mac)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + 12, in.addr, sizeof(in.addr)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct iphdr), in.port, sizeof(in.port)))
		return -1;
	__builtin_memcpy(out.mac[0], in.mac[1], ETH_ALEN);
	__builtin_memcpy(out.mac[1], in.mac[0], ETH_ALEN);
	out.addr[0] = in.addr[1];
	out.addr[1] = in.addr[0];
	out.port[0] = in.port[1];
	out.port[1] = in.port[0];
	return bpf_skb_store_bytes(skb, 0, out.mac, sizeof(out.mac), 0) ||
			       bpf_skb_store_bytes(skb, ETH_HLEN + 12, out.addr, sizeof(out.addr), 0) ||
			       bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(struct iphdr), out.port,
						   sizeof(out.port), 0)
		       ? -1
		       : 0;
}

/* Likewise for IPv6. Neither function changes a checksum: the sum stays the same. */
static __noinline int es_message_turn6(struct __sk_buff *skb)
{
	struct {
		__u8 mac[2][ETH_ALEN];
		__be16 port[2];
		struct in6_addr addr[2];
	} in;
	const __u32 addr_off = ETH_HLEN + offsetof(struct ipv6hdr, saddr);
	const __u32 udp_off = ETH_HLEN + sizeof(struct ipv6hdr);

	if (bpf_skb_load_bytes(skb, 0, in.mac, sizeof(in.mac)) ||
	    bpf_skb_load_bytes(skb, addr_off, in.addr, sizeof(in.addr)) ||
	    bpf_skb_load_bytes(skb, udp_off, in.port, sizeof(in.port)))
		return -1;
	return bpf_skb_store_bytes(skb, 0, in.mac[1], ETH_ALEN, 0) ||
			       bpf_skb_store_bytes(skb, ETH_ALEN, in.mac[0], ETH_ALEN, 0) ||
			       bpf_skb_store_bytes(skb, addr_off, &in.addr[1], sizeof(in.addr[1]), 0) ||
			       bpf_skb_store_bytes(skb, addr_off + sizeof(in.addr[1]), &in.addr[0],
						   sizeof(in.addr[0]), 0) ||
			       bpf_skb_store_bytes(skb, udp_off, &in.port[1], sizeof(in.port[1]), 0) ||
			       bpf_skb_store_bytes(skb, udp_off + sizeof(in.port[1]), &in.port[0],
						   sizeof(in.port[0]), 0)
		       ? -1
		       : 0;
}

/*
 * Replace the header in the packet by @h, and correct the UDP checksum by the difference: IPv6 demands a
 * checksum (RFC 8200, 8.1), and the whole message is too long to be added up. Returns 0 or -1.
 */
static __noinline int es_message_store6(struct __sk_buff *skb, struct es_handover *h)
{
	const __u32 udp_off = ETH_HLEN + sizeof(struct ipv6hdr);
	struct es_handover old;
	__s64 diff;

	if (!h || bpf_skb_load_bytes(skb, udp_off + sizeof(struct udphdr), &old, sizeof(old)))
		return -1;
	diff = bpf_csum_diff((__be32 *)&old, sizeof(old), (__be32 *)h, sizeof(*h), 0);
	return diff < 0 || bpf_skb_store_bytes(skb, udp_off + sizeof(struct udphdr), h, sizeof(*h), 0) ||
			       bpf_l4_csum_replace(skb, udp_off + offsetof(struct udphdr, check), 0,
						   (__u64)diff, BPF_F_MARK_MANGLED_0)
		       ? -1
		       : 0;
}

static __always_inline int es_message_turn_and_store(struct __sk_buff *skb, struct es_handover *h)
{
	if (es_message_is_v6(skb))
		return es_message_turn6(skb) || es_message_store6(skb, h);
	return es_message_turn(skb) || bpf_skb_store_bytes(skb, es_message_header_off(skb), h, sizeof(*h), 0);
}

/**
 * es_message_answer() - turn the message round
 * @kind: ES_HANDOVER_NACK or _ANSWER; @reason: its field nack
 * Returns the program's verdict: out again to the sender, or up to the daemon if the sender is this node.
 */
__noinline int es_message_answer(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h,
				 __u32 kind, __u32 reason)
{
	struct es_state *state = es_state_get();
	__be64 mac = 0;

	if (!cfg || !h || !state)
		goto failed;
	es_message_answer_put(h, cfg->self, (__u8)kind, (__u8)reason,
			      bpf_ktime_get_coarse_ns() + state->wall_offset_ns,
			      __sync_fetch_and_add(&state->sequence, 1));
	if (es_message_mac(skb, &cfg->handover_key[0], h, &mac))
		goto failed;
	h->mac = mac;
	if (es_message_turn_and_store(skb, h))
		goto failed;
	if (h->target == cfg->self)
		return TC_ACT_OK;
	return (int)bpf_redirect(skb->ifindex, 0);
failed:
	es_count(ES_COUNT_answer_failed);
	return TC_ACT_SHOT;
}

static __always_inline int es_message_nack(struct __sk_buff *skb, struct es_config *cfg,
					   struct es_handover *h, __u32 reason)
{
	return es_message_answer(skb, cfg, h, ES_HANDOVER_NACK, reason);
}

#endif
