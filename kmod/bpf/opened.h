/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_OPENED_H
#define ES_BPF_OPENED_H

/*
 * A packet from an envelope that is for a socket enters once more at the public interface (again.h): packet
 * filters, rp_filter and conntrack see a client's packet where clients' packets arrive, whichever node has
 * heard it. All of it goes by one queue of the kernel's, so nothing overtakes the packet that makes its
 * socket.
 */
#include "message.h"
#include "rebuild.h"
#include "kmod/core/flow.h"

/* If the packet has not come by then, it never will. */
#define ES_REBUILT_PENDING_NS 1000000000ULL

/* Take the envelope off: what is left is the client's packet @pkt behind our Ethernet header. */
static __always_inline int es_message_open(struct __sk_buff *skb, const struct es_packet *pkt)
{
	__be16 protocol = pkt->is_v6 ? es_htons(ETH_P_IPV6) : es_htons(ETH_P_IP);
	__s32 room = -(__s32)(es_message_packet_off(skb) - ETH_HLEN);

	if (skb->protocol == protocol)
		return (int)bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0);
	return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC,
				   pkt->is_v6 ? ES_DECAP_L3_IPV6 : ES_DECAP_L3_IPV4) ||
	       bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &protocol, sizeof(protocol), 0);
}

/* A function of its own, for its stack. */
static __noinline __u64 es_handover_flow(const struct es_config *cfg, const struct es_packet *pkt)
{
	struct es_flow flow;

	if (!cfg || !pkt)
		return 0;
	es_packet_flow(pkt, &flow);
	return es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
}

/*
 * Send the packet, whose envelope is off, to the public interface; the caller drops it. A copy of its head,
 * since that tells whether there was room. Returns 0 or -1. A function of its own, for its stack.
 */
static __noinline int es_opened_send(struct __sk_buff *skb, __u32 mark)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg)
		return -1;
	skb->mark = mark;
	return bpf_clone_redirect(skb, cfg->public_ifindex, BPF_F_INGRESS) ? -1 : 0;
}

/**
 * es_opened_make() - have a socket made from the packet of a message
 * @rebuilt: what is noted of it, pending
 * Returns 0, and it is counted when that is done; or -1, and it is counted, nothing is noted, and
 * ES_SETTLED_MAKE is for the caller to undo.
 */
static __always_inline int es_opened_make(struct __sk_buff *skb, const struct es_packet *pkt,
					  const struct es_rebuilt_key *key, const struct es_rebuilt *rebuilt)
{
	if (es_rebuilt_note(key->flow_hash, key->seq, rebuilt) || es_message_open(skb, pkt)) {
		es_count(ES_COUNT_rebuild_refused);
	} else {
		if (!es_opened_send(skb, ES_OPENED_MAKE_MARK))
			return 0;
		es_count(ES_COUNT_opened_lost);
	}
	bpf_map_delete_elem(&es_rebuilts, key);
	return -1;
}

static __always_inline __u8 es_rebuilt_is_pending(const struct es_rebuilt *rebuilt, __u64 now_ns)
{
	return rebuilt->is_pending && now_ns - rebuilt->at_ns < ES_REBUILT_PENDING_NS;
}

#endif
