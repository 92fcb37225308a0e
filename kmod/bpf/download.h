/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_DOWNLOAD_H
#define ES_BPF_DOWNLOAD_H

/*
 * Tells the daemon of long responses, with the heads of what was asked and answered (kmod/core/download.h).
 */
#include "maps.h"
#include "packet.h"
#include "kmod/core/download.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ES_DOWNLOAD_REQUESTS);
	__type(key, __u64); /* of the flow */
	__type(value, struct es_download_request);
} es_requests SEC(".maps");

/* Where a request is put together: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct es_download_request);
} es_request_made SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ES_DOWNLOAD_RING_BYTES);
} es_downloads SEC(".maps");

/* Copy @len bytes at @off, as many as there is room for. Returns how many, 0 if that fails. */
static __always_inline __u32 es_download_copy(struct __sk_buff *skb, __u32 off, __u32 len, __u8 *to)
{
	if (len > ES_DOWNLOAD_HEAD_MAX)
		len = ES_DOWNLOAD_HEAD_MAX;
	asm volatile("" : "+r"(len)); /* or the compiler drops the check that the verifier wants */
	if (!len || len > ES_DOWNLOAD_HEAD_MAX || bpf_skb_load_bytes(skb, off, to, len))
		return 0;
	return len;
}

/* All of it, by words: clang makes no memcpy() of so many bytes. */
static __always_inline void es_download_request_copy(volatile __u64 *to, const __u64 *from)
{
	for (__u32 i = 0; i < sizeof(struct es_download_request) / sizeof(*to); i++)
		to[i] = from[i];
}

/* Keep the head of a request, whose first segment is in a message. A function of its own, for its stack. */
static __noinline int es_download_asked(struct __sk_buff *skb, const struct es_handover *h,
					const struct es_packet *pkt, __u64 flow_hash, __u32 len)
{
	struct es_download_request *made = es_array_at(&es_request_made, 0);
	__u64 key = flow_hash;

	if (!made || !h || !pkt)
		return 0;
	made->next_request_seq = es_ntohl(h->next_request_seq);
	made->len = (__u16)es_download_copy(
		skb, es_packet_tcp_off(pkt) + (__u32)sizeof(struct tcphdr) + pkt->options_len, len,
		made->head);
	return (int)bpf_map_update_elem(&es_requests, &key, made, BPF_ANY);
}

/*
 * Tell the daemon of a long response, whose first byte is at @off. It looks by itself; nobody is woken.
 * If there is no room, nobody goes on with it.
 */
static __noinline int es_download_answered(struct __sk_buff *skb, struct es_track *t,
					   const struct es_packet *pkt, __u32 tsval, __u32 off)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	const struct es_download_request *request;
	struct es_download_entry *entry;
	struct es_packet client;
	__u64 key;

	if (!cfg || !t || !pkt)
		return 0;
	entry = bpf_ringbuf_reserve(&es_downloads, sizeof(*entry), 0);
	if (!entry)
		return 0;
	es_packet_turn(pkt, &client);
	es_packet_flow(&client, &entry->flow);
	key = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &entry->flow);
	t->request_flags |= ES_REQUEST_F_LONG;
	entry->track = *t;
	entry->response_seq = t->response_seq - t->response_bytes;
	entry->tsval = tsval;
	entry->len = (__u16)es_download_copy(skb, off, t->response.head, entry->response);
	request = bpf_map_lookup_elem(&es_requests, &key);
	if (request && request->next_request_seq == t->next_request_seq)
		es_download_request_copy((volatile __u64 *)&entry->request, (const __u64 *)request);
	else
		entry->request.len = 0;
	bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
