/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_QUEUE_H
#define ES_BPF_QUEUE_H

/*
 * The way of a packet to the inspector: a copy in the worker's ring buffer. The packet itself ends here,
 * since a first request never goes up this node's stack as it is.
 */
#include "packet.h"
#include "checksum.h"
#include "maps.h"

/*
 * The ring buffer's own wake-up is an interrupt that the CPU sends to itself, which in a virtual machine
 * costs more than all the rest. So it is not used for packets from the network. A worker that is awake is not
 * woken: it says so in es_worker_state.awake, and looks once more after it has taken that back. One that
 * sleeps is woken through a packet socket (inspector/datapath/wake.h): the packet, which ends here anyway,
 * goes to lo as a frame of that socket's protocol. The waker sets the flag, so that a burst wakes once.
 */
static __always_inline int es_queue_must_wake(__u32 *awake)
{
	/* Behind the submit, which is a full barrier. */
	if (*(volatile __u32 *)awake)
		return 0;
	*(volatile __u32 *)awake = 1;
	return 1;
}

/* Returns the program's verdict. A worker that cannot be woken looks by itself, 20 ms later at most. */
static __always_inline int es_queue_wake(struct __sk_buff *skb, __u32 worker)
{
	__u8 eth[ETH_HLEN] = {};

	eth[ES_WAKE_WORKER_OFF] = (__u8)worker;
	eth[2 * ETH_ALEN] = ES_WAKE_PROTOCOL >> 8;
	eth[2 * ETH_ALEN + 1] = ES_WAKE_PROTOCOL & 0xff;
	if (bpf_skb_store_bytes(skb, 0, eth, sizeof(eth), 0))
		return TC_ACT_SHOT;
	return (int)bpf_redirect(ES_LOOPBACK_IFINDEX, BPF_F_INGRESS);
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
                                                                                                             \
		if (!r)                                                                                      \
			return -1;                                                                           \
		if (len < 40 || len > (size) || bpf_skb_load_bytes(skb, ETH_HLEN, r->packet, len)) {         \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);                                            \
			return -1;                                                                           \
		}                                                                                            \
		r->record = *record;                                                                         \
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);                                                     \
		return es_queue_must_wake(awake);                                                            \
	}
ES_QUEUE_RECORD(small, ES_RECORD_SMALL)
ES_QUEUE_RECORD(large, ES_RECORD_LARGE)
ES_QUEUE_RECORD(max, ES_RECORD_MAX)

/**
 * es_queue_push() - copy the packet to the flow's worker
 * Returns 0; 1 if the caller has to wake the worker; -1 if there is no room.
 */
static __noinline int es_queue_push(struct __sk_buff *skb, struct es_record *record, __u32 worker)
{
	struct es_state *state = es_state_get();
	__u32 *awake;
	void *ring;

	if (!record || !state || worker >= ES_WORKERS_MAX)
		return -1;
	awake = &state->worker[worker].awake;
	ring = es_array_at(&es_queues, worker);
	if (!ring)
		return -1;
	record->csum_partial = (__u8)es_packet_csum_partial(skb);
	record->gso_size = (__u16)skb->gso_size;
	if (record->len <= ES_RECORD_SMALL)
		return es_queue_push_small(ring, skb, record, awake);
	if (record->len <= ES_RECORD_LARGE)
		return es_queue_push_large(ring, skb, record, awake);
	/* Only on a connection whose socket is here does a client send so much at once. */
	return es_queue_push_max(ring, skb, record, awake);
}

/* es_queue_push() where the packet is still needed: the ring buffer wakes. Returns 0 or -1. */
static __always_inline int es_queue_push_and_wake(struct __sk_buff *skb, struct es_record *record,
						  __u32 worker)
{
	int rc = es_queue_push(skb, record, worker);
	__u64 *nothing;
	void *ring;

	if (rc <= 0)
		return rc;
	ring = es_array_at(&es_queues, worker);
	if (!ring)
		return -1;
	nothing = bpf_ringbuf_reserve(ring, sizeof(*nothing), 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
