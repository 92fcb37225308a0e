/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_COOKIE_H
#define ES_CORE_COOKIE_H

/*
 * Cookies: the stateless handshake ("fast TCP module handshaking", LVS-CAD section 3). Any node makes them,
 * any node checks them. The 32 bits of the SYN-ACK's ISN are
 *
 *	31..29  slot      low bits of the wall-clock slot the cookie was made in
 *	28..18  ISN tag   11 bits of MAC over flow, slot, client ISN and options
 *	17..10  options   MSS class (2), window scale (4, 15 = not offered), SACK (1), ECN (1)
 *	 9..0   flow tag  10 bits of MAC over flow, slot and options
 *
 * Naming the slot instead of trying every slot that is still valid makes a check one MAC, not four; 21 bits
 * of MAC of which half the 8 slot numbers are acceptable are worth the same 2^-22 as 24 bits tried against
 * four slots. The flow tag alone tells a later segment of a first request (whose client ISN is not known from
 * the segment) from the rest. Where the client has timestamps, the SYN-ACK's TSval is another 32 bits of the
 * same MAC, which the client echoes in its first segments: 53 bits in all.
 *
 * Against a forger, that is. A client's own later segments all acknowledge cookie + 1 until the server's
 * first byte, and only the ISN tag (and the TSval) tells them from the first: 1 in 2,048 looks like one
 * without timestamps. es_decide_is_later(), the inspector and the SYNs that were heard (syns.h) know better,
 * and while many such segments come, a cookie alone is not believed (guesses.h).
 *
 * MSS is in the four classes of the kernel's own syncookies; rounding down is safe, never up.
 */
#include "flow.h"
#include "tcp.h"

#define ES_COOKIE_SLOTS_VALID	  3 /* this slot and the two before */
#define ES_COOKIE_WSCALE_NONE	  15
#define ES_COOKIE_OPTIONS(cookie) ((__u8)((cookie) >> 10))

enum es_cookie_state {
	ES_COOKIE_INVALID, /* not a cookie of this flow */
	ES_COOKIE_FLOW,	   /* of this flow and in time, but made for another client ISN than asked */
	ES_COOKIE_VALID,
	ES_COOKIE_EXPIRED, /* authentic, but too old */
};

static __always_inline __u16 es_cookie_mss(__u32 cls)
{
	return cls == 0 ? 536 : cls == 1 ? 1300 : cls == 2 ? 1440 : 1460;
}

/* The column of IPv6: its lower classes are tunnels, the lowest what every link takes. */
static __always_inline __u16 es_cookie_mss6(__u32 cls)
{
	return cls == 0 ? ES_TCP_MSS_MIN_V6 : cls == 1 ? 1360 : cls == 2 ? 1420 : 1440;
}

/* @cls: of the MSS, 0 to 3 */
static __always_inline __u8 es_cookie_options_pack_class(const struct es_tcp_options *o, __u8 cls)
{
	__u8 wscale = o->wscale_ok ? o->snd_wscale : ES_COOKIE_WSCALE_NONE;

	return (__u8)(cls | wscale << 2 | (o->sack_ok ? 1 : 0) << 6 | (o->ecn_ok ? 1 : 0) << 7);
}

/* For a flow of IPv4. */
static __always_inline __u8 es_cookie_options_pack(const struct es_tcp_options *o)
{
	return es_cookie_options_pack_class(o, o->mss >= 1460	? 3
					       : o->mss >= 1440 ? 2
					       : o->mss >= 1300 ? 1
								: 0);
}

/* For a flow of IPv6. */
static __always_inline __u8 es_cookie_options_pack6(const struct es_tcp_options *o)
{
	return es_cookie_options_pack_class(o, o->mss >= 1440	? 3
					       : o->mss >= 1420 ? 2
					       : o->mss >= 1360 ? 1
								: 0);
}

/* Everything of @ret but tstamp_ok and rcv_wscale, which the segment and the configuration tell. */
static __always_inline void es_cookie_options_unpack(__u32 cookie, struct es_tcp_options *ret)
{
	__u8 options = ES_COOKIE_OPTIONS(cookie);
	__u8 wscale = (options >> 2) & 15;

	ret->mss = es_cookie_mss(options & 3);
	ret->wscale_ok = wscale != ES_COOKIE_WSCALE_NONE;
	ret->snd_wscale = ret->wscale_ok ? wscale : 0;
	ret->sack_ok = (options >> 6) & 1;
	ret->ecn_ok = (options >> 7) & 1;
}

/* The same of a flow of IPv6. */
static __always_inline void es_cookie_options_unpack6(__u32 cookie, struct es_tcp_options *ret)
{
	es_cookie_options_unpack(cookie, ret);
	ret->mss = es_cookie_mss6(ES_COOKIE_OPTIONS(cookie) & 3);
}

static __always_inline __u32 es_cookie_flow_tag(const struct es_sipkey *key, __u64 flow_hash, __u32 slot,
						__u8 options)
{
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	es_siphash_word(&sip, flow_hash);
	return (__u32)(es_siphash_final(&sip, (__u64)options << 32 | slot, 13) >> 54);
}

/* Bits 63..53 make the ISN tag, bits 31..0 the TSval. */
ES_VERIFIED_ONCE __u64 es_cookie_isn_mac(const struct es_sipkey *key, __u64 flow_hash, __u32 slot,
					 __u32 client_isn, __u8 options)
{
	struct es_sipstate sip;

	if (!key)
		return 0;
	es_siphash_init(&sip, key);
	es_siphash_word(&sip, flow_hash);
	es_siphash_word(&sip, (__u64)slot | (__u64)client_isn << 32);
	return es_siphash_final(&sip, options, 17);
}

/**
 * es_cookie_make_packed() - ISN and TSval of the SYN-ACK to a SYN; @options: packed, of either family
 * Idempotent within a slot: the same SYN gets the same cookie from every node.
 */
static __always_inline __u32 es_cookie_make_packed(const struct es_sipkey *key, __u64 flow_hash, __u32 slot,
						   __u32 client_isn, __u8 options, __u32 *ret_tsval)
{
	__u64 mac = es_cookie_isn_mac(key, flow_hash, slot, client_isn, options);

	*ret_tsval = (__u32)mac;
	return (slot & 7) << 29 | (__u32)(mac >> 53) << 18 | (__u32)options << 10 |
	       es_cookie_flow_tag(key, flow_hash, slot, options);
}

/**
 * es_cookie_check() - is @cookie (a segment's ack - 1) one that this cluster made for this flow?
 * @now: the current slot; one slot ahead is accepted too, for clocks that differ a little
 * @client_isn: the ISN that the segment would prove (its seq - 1 for a first segment)
 * @tsecr: the segment's echoed timestamp, or NULL if it has none
 */
static __always_inline enum es_cookie_state es_cookie_check(const struct es_sipkey *key, __u64 flow_hash,
							    __u32 now, __u32 cookie, __u32 client_isn,
							    const __u32 *tsecr)
{
	__u32 age = (now + 1 - (cookie >> 29)) & 7; /* 0: the next slot, 1: this one, ... */
	__u32 slot = now + 1 - age;
	__u64 mac;

	if ((cookie & 0x3ff) != es_cookie_flow_tag(key, flow_hash, slot, ES_COOKIE_OPTIONS(cookie)))
		return ES_COOKIE_INVALID;
	mac = es_cookie_isn_mac(key, flow_hash, slot, client_isn, ES_COOKIE_OPTIONS(cookie));
	if (((cookie >> 18) & 0x7ff) != (__u32)(mac >> 53) || (tsecr && *tsecr != (__u32)mac))
		return age <= ES_COOKIE_SLOTS_VALID ? ES_COOKIE_FLOW : ES_COOKIE_INVALID;
	return age <= ES_COOKIE_SLOTS_VALID ? ES_COOKIE_VALID : ES_COOKIE_EXPIRED;
}

#endif
