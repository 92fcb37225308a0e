/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_QUEUE_H
#define ES_BPF_QUEUE_H

/*
 * The way of a packet to the inspector: a copy in the worker's ring buffer. The packet itself ends here,
 * since a first request never goes up this node's stack as it is.
 */
#include "packet.h"
#include "maps.h"

/* Reserve, fill, submit: @size is a constant, as the ring buffer wants it. */
#define ES_QUEUE_RECORD(name, size)                                                                          \
	struct es_queue_##name {                                                                             \
		struct es_record record;                                                                     \
		__u8 packet[size];                                                                           \
	};                                                                                                   \
	static __always_inline int es_queue_push_##name(void *ring, struct __sk_buff *skb,                   \
							const struct es_record *record)                      \
	{                                                                                                    \
		struct es_queue_##name *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);                        \
		__u32 len = record->len;                                                                     \
                                                                                                             \
		if (!r)                                                                                      \
			return -1;                                                                           \
		if (len < 40 || len > (size) || bpf_skb_load_bytes(skb, ETH_HLEN, r->packet, len)) {         \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);                                            \
			return -1;                                                                           \
		}                                                                                            \
		r->record = *record;                                                                         \
		bpf_ringbuf_submit(r, 0);                                                                    \
		return 0;                                                                                    \
	}
ES_QUEUE_RECORD(small, ES_RECORD_SMALL)
ES_QUEUE_RECORD(large, ES_RECORD_LARGE)

/**
 * es_queue_push() - copy the packet to the flow's worker
 * A merged packet beyond the promised window is cut there; the client sends the rest again, to the socket.
 */
static __noinline int es_queue_push(struct __sk_buff *skb, struct es_record *record, __u32 worker)
{
	void *ring;

	if (!record)
		return -1;
	ring = bpf_map_lookup_elem(&es_queues, &worker);
	if (!ring)
		return -1;
	record->csum_partial = (__u8)es_packet_csum_partial(skb);
	record->gso_size = (__u16)skb->gso_size;
	if (record->len <= ES_RECORD_SMALL)
		return es_queue_push_small(ring, skb, record);
	if (record->len > ES_RECORD_LARGE)
		record->len = ES_RECORD_LARGE;
	return es_queue_push_large(ring, skb, record);
}

#endif
