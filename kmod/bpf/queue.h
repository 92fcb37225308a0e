/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_QUEUE_H
#define ES_BPF_QUEUE_H

/*
 * The way of a packet to the inspector: a copy in the worker's ring buffer. The packet itself ends here,
 * since a first request never goes up this node's stack as it is.
 */
#include "packet.h"
#include "maps.h"

/*
 * A wake-up is an interrupt that the CPU sends to itself, which costs more than all the rest (above all in a
 * virtual machine). So a worker that is awake is not woken: it says so in es_state.awake, and looks once more
 * after it has taken that back. Who wakes it sets the flag, so that a burst wakes once.
 */
static __always_inline __u64 es_queue_flags(__u32 *awake)
{
	if (*(volatile __u32 *)awake)
		return BPF_RB_NO_WAKEUP;
	*(volatile __u32 *)awake = 1;
	return BPF_RB_FORCE_WAKEUP;
}

/* The worker may have gone to sleep between our look and the submit (a full barrier): wake it with an empty
 * record. */
static __always_inline void es_queue_wake_late(void *ring, __u32 *awake, __u64 flags)
{
	__u64 *nothing;

	if (flags == BPF_RB_FORCE_WAKEUP || *(volatile __u32 *)awake)
		return;
	*(volatile __u32 *)awake = 1;
	nothing = bpf_ringbuf_reserve(ring, sizeof(*nothing), 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

/* Reserve, fill, submit: @size is a constant, as the ring buffer wants it. */
#define ES_QUEUE_RECORD(name, size)                                                                          \
	struct es_queue_##name {                                                                             \
		struct es_record record;                                                                     \
		__u8 packet[size];                                                                           \
	};                                                                                                   \
	static __always_inline int es_queue_push_##name(void *ring, struct __sk_buff *skb,                   \
							const struct es_record *record, __u32 *awake)        \
	{                                                                                                    \
		struct es_queue_##name *r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);                        \
		__u32 len = record->len;                                                                     \
		__u64 flags;                                                                                 \
                                                                                                             \
		if (!r)                                                                                      \
			return -1;                                                                           \
		if (len < 40 || len > (size) || bpf_skb_load_bytes(skb, ETH_HLEN, r->packet, len)) {         \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);                                            \
			return -1;                                                                           \
		}                                                                                            \
		r->record = *record;                                                                         \
		flags = es_queue_flags(awake);                                                               \
		bpf_ringbuf_submit(r, flags);                                                                \
		es_queue_wake_late(ring, awake, flags);                                                      \
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
	struct es_state *state = es_state_get();
	__u32 *awake;
	void *ring;

	if (!record || !state || worker >= ES_WORKERS_MAX)
		return -1;
	awake = &state->awake[worker];
	ring = bpf_map_lookup_elem(&es_queues, &worker);
	if (!ring)
		return -1;
	record->csum_partial = (__u8)es_packet_csum_partial(skb);
	record->gso_size = (__u16)skb->gso_size;
	if (record->len <= ES_RECORD_SMALL)
		return es_queue_push_small(ring, skb, record, awake);
	if (record->len > ES_RECORD_LARGE)
		record->len = ES_RECORD_LARGE;
	return es_queue_push_large(ring, skb, record, awake);
}

#endif
