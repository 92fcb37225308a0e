// SPDX-License-Identifier: GPL-2.0-only
/*
 * The heads of requests whose responses may be long, and the ring of those that are. The counterpart of
 * kmod/bpf/download.h.
 */
#include "download.h"
#include "memory.h"

static struct es_download_set *es_download_set_of(struct es_download_set *sets, u64 flow_hash)
{
	return &sets[(u32)(flow_hash >> 16) & (ES_DOWNLOAD_SETS - 1)];
}

/* The table, which stays when it is there. Returns 0 or -ENOMEM. */
static int es_downloads_table(struct es_node *node)
{
	struct es_download_set *sets;

	if (node->downloads)
		return 0;
	sets = es_memory_zalloc(sizeof(*sets) * ES_DOWNLOAD_SETS);
	if (!sets)
		return -ENOMEM;
	for (u32 i = 0; i < ES_DOWNLOAD_SETS; i++)
		spin_lock_init(&sets[i].lock);
	smp_store_release(&node->downloads, sets);
	return 0;
}

int es_downloads_ring(struct es_node *node, struct es_ringbuf **ret_ring)
{
	struct es_ringbuf *ring = rcu_dereference_protected(node->queue[ES_RINGBUF_DOWNLOADS], 1);
	int rc;

	if (!ring) {
		rc = es_ringbuf_new(ES_DOWNLOAD_RING_BYTES, &ring);
		if (rc)
			return rc;
		/* Whoever sees the ring finds the table. */
		rc = es_downloads_table(node);
		if (rc) {
			es_ringbuf_put(ring);
			return rc;
		}
		rcu_assign_pointer(node->queue[ES_RINGBUF_DOWNLOADS], ring);
	}
	*ret_ring = ring;
	return 0;
}

/* Copy @len bytes at @off, as many as there is room for. Returns how many, 0 if that fails. */
static u16 es_download_copy(const struct sk_buff *skb, u32 off, u32 len, u8 *to)
{
	len = min_t(u32, len, ES_DOWNLOAD_HEAD_MAX);
	return skb_copy_bits(skb, (int)off, to, (int)len) ? 0 : (u16)len;
}

/* The flow's place, or the oldest. Under the set's lock. */
static struct es_download_way *es_download_place(struct es_download_set *set, u64 flow_hash)
{
	struct es_download_way *place = &set->way[0];

	for (u32 i = 0; i < ES_DOWNLOAD_WAYS; i++) {
		if (set->way[i].flow_hash == flow_hash)
			return &set->way[i];
		if (set->way[i].at < place->at)
			place = &set->way[i];
	}
	return place;
}

void es_download_asked(const struct es_node *node, const struct sk_buff *skb, const struct es_handover *h,
		       const struct es_packet *pkt, u64 flow_hash, u32 len)
{
	struct es_download_set *sets = smp_load_acquire(&node->downloads), *set;
	struct es_download_way *way;

	if (!sets)
		return;
	set = es_download_set_of(sets, flow_hash);
	spin_lock_bh(&set->lock);
	way = es_download_place(set, flow_hash);
	way->flow_hash = flow_hash;
	way->at = ++set->count;
	way->request.next_request_seq = ntohl(h->next_request_seq);
	way->request.len = es_download_copy(
		skb, pkt->off + es_packet_ip_len(pkt) + (u32)sizeof(struct tcphdr) + pkt->options_len, len,
		way->request.head);
	spin_unlock_bh(&set->lock);
}

/* The head of the request that ends there, into @ret; its length is 0 if it is not known. */
static void es_download_request_of(struct es_download_set *sets, u64 flow_hash, u32 next_request_seq,
				   struct es_download_request *ret)
{
	struct es_download_set *set = es_download_set_of(sets, flow_hash);
	const struct es_download_way *way;

	spin_lock_bh(&set->lock);
	way = es_download_place(set, flow_hash);
	if (way->flow_hash == flow_hash && way->request.next_request_seq == next_request_seq)
		*ret = way->request;
	else
		ret->len = 0;
	spin_unlock_bh(&set->lock);
}

void es_download_answered(const struct es_node *node, const struct sk_buff *skb, struct es_track *t,
			  const struct es_packet *client, u64 flow_hash, u32 tsval, u32 off)
{
	struct es_ringbuf *ring = rcu_dereference(node->queue[ES_RINGBUF_DOWNLOADS]);
	struct es_download_entry *entry = ring ? es_ringbuf_reserve(ring, sizeof(*entry)) : NULL;

	if (!entry)
		return;
	es_packet_flow(client, &entry->flow);
	t->request_flags |= ES_REQUEST_F_LONG;
	entry->track = *t;
	entry->response_seq = t->response_seq - t->response_bytes;
	entry->tsval = tsval;
	entry->len = es_download_copy(skb, off, t->response.head, entry->response);
	es_download_request_of(smp_load_acquire(&node->downloads), flow_hash, t->next_request_seq,
			       &entry->request);
	es_ringbuf_commit(entry, 0);
}
