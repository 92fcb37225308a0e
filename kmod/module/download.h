/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_DOWNLOAD_H
#define ES_MODULE_DOWNLOAD_H

/*
 * Tells the daemon of long responses, with the heads of what was asked and answered (kmod/core/download.h).
 *
 * Ring buffer and table are made when a daemon asks for the ring. An older one does not: nothing is kept for
 * it, and no response is said to be told. Bounded: ES_DOWNLOAD_WAYS heads of requests in each set; a full set
 * loses the oldest, with whose response nobody goes on then.
 */
#include "kmod/core/download.h"
#include "node.h"
#include "packet.h"

#define ES_DOWNLOAD_WAYS 8
#define ES_DOWNLOAD_SETS (ES_DOWNLOAD_REQUESTS / ES_DOWNLOAD_WAYS)

/* struct es_download_way - @flow_hash: 0: it is free; @at: of the counter of its set when it was written */
struct es_download_way {
	u64 flow_hash;
	u64 at;
	struct es_download_request request;
};

struct es_download_set {
	spinlock_t lock;
	u64 count;
	struct es_download_way way[ES_DOWNLOAD_WAYS];
};

/* es_downloads_ring() - the ring, made with its table if it is not there yet. Under es_net.lock. Returns 0 or
 * -ENOMEM. */
int es_downloads_ring(struct es_node *node, struct es_ringbuf **ret_ring);

/* es_download_asked() - keep the head of the request whose first segment @pkt is, in a message @h */
void es_download_asked(const struct es_node *node, const struct sk_buff *skb, const struct es_handover *h,
		       const struct es_packet *pkt, u64 flow_hash, u32 len);

/**
 * es_download_answered() - tell the daemon of a long response, whose first byte is at @off in the packet
 * @t: its connection's, whose bucket is locked; @client: client and service, as on the way in
 * It looks by itself; nobody is woken. If there is no room, nobody goes on with it.
 */
void es_download_answered(const struct es_node *node, const struct sk_buff *skb, struct es_track *t,
			  const struct es_packet *client, u64 flow_hash, u32 tsval, u32 off);

#endif
