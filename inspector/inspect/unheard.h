/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_UNHEARD_H
#define ES_UNHEARD_H

/*
 * Clients whose requests were given to a node that then heard nothing of the sockets it was to make. Either something is wrong
 * with that node, or with the client: the nodes' packet filters refuse it, or it cannot be answered. Only the inspecting node can
 * tell, since it knows what became of the client's requests on several nodes. Where one node heard the client and another did
 * not, that other node is told (inspector/health/vanishing.h). A client whom two nodes did not hear, and none did, is
 * its own affair: nothing is held against the nodes, and for a while its requests are handed to nobody any more.
 *
 * Bounded, and one worker's: of a full set, the client goes of whom nothing was noted for the longest time.
 */
#include <stdatomic.h>
#include "inspector/handover/packet.h"
#include "inspector/policy/node_set.h"
#include "kmod/core/siphash.h"

#define ES_UNHEARD_CLIENTS  256
#define ES_UNHEARD_WAYS	    4
#define ES_UNHEARD_REQUESTS 4
#define ES_UNHEARD_SUSPECTS 8
#define ES_EVIDENCE_ENTRIES 64 /* a power of two */

#define ES_UNHEARD_KEEP_MS 30000 /* so long what was noted of a client counts */
#define ES_UNHEARD_OWN_MS  60000 /* so long a client is its own affair */

/* A node says no sooner that it heard nothing of a request (ES_SETTLED_VANISHED_MS). */
#define ES_UNHEARD_ASK_MS    1200
#define ES_UNHEARD_ANSWER_MS 1000

/* Of so many requests of which nothing was heard anywhere, the next one goes to another node. */
#define ES_UNHEARD_ELSEWHERE 2

/* So often it is asked about others' requests on a node that some client was not heard on. */
#define ES_UNHEARD_SAMPLE_MS 250

#define ES_UNHEARD_PACKET_MAX 101 /* both headers, IPv6 without extensions, and one byte */

enum es_unheard_asking {
	ES_UNHEARD_IDLE,
	ES_UNHEARD_WAITS, /* until a second has passed */
	ES_UNHEARD_ASKED,
};

/**
 * struct es_unheard_client
 * @key: of its address and the service; @at_ms: when something was last noted, 0: the entry is free
 * @own_until_ms: until then it is its own affair
 * @address, @prefix: hashes of its address (IPv6: of its /64) and of its network (/24, /64)
 * @heard: the nodes of which its sockets have spoken; @vanished: requests of which nothing was heard on their nodes, @count of them;
 * @is_told: the node was told
 * @asking: about one request of its, @flow_hash and @seq, given to @node, at @due_ms; or an answer is waited for until then
 */
struct es_unheard_client {
	__u64 key;
	__u64 at_ms;
	__u64 own_until_ms;
	__u64 address;
	__u64 prefix;
	struct es_node_set heard;
	struct {
		__u64 request;
		__u8 node;
		__u8 is_told;
	} vanished[ES_UNHEARD_REQUESTS];
	unsigned int count;
	unsigned int service;
	enum es_unheard_asking asking;
	unsigned int node;
	__u64 flow_hash;
	__u64 due_ms;
	uint32_t seq;
	size_t len;
	uint8_t packet[ES_UNHEARD_PACKET_MAX];
};

/* struct es_unheard_suspect - a node on which some client of @service was not heard until @until_ms; of it others are asked,
 * the next one from @sample_ms on */
struct es_unheard_suspect {
	__u64 until_ms;
	__u64 sample_ms;
	unsigned int service;
	unsigned int node;
};

/**
 * struct es_evidence - what a node is told of itself
 * @is_heard: a request was heard there; else nothing was heard of @request, and another node has heard its client
 */
struct es_evidence {
	__u64 address;
	__u64 prefix;
	__u64 request;
	unsigned int service;
	unsigned int node;
	int is_heard;
};

/* struct es_evidence_ring - from the worker to the control thread; what finds no room is lost */
struct es_evidence_ring {
	_Atomic unsigned int written;
	_Atomic unsigned int taken;
	struct es_evidence entry[ES_EVIDENCE_ENTRIES];
};

/* struct es_unheard - all zeros at first; @until_ms: nothing of it counts any more then */
struct es_unheard {
	__u64 until_ms;
	struct es_unheard_client client[ES_UNHEARD_CLIENTS];
	struct es_unheard_suspect suspect[ES_UNHEARD_SUSPECTS];
	struct es_evidence_ring evidence;
};

/* es_unheard_find() - what is noted of the client of a flow; NULL: nothing. @key: the cluster's ring key */
struct es_unheard_client *es_unheard_find(struct es_unheard *unheard, const struct es_sipkey *key,
					  unsigned int service, const struct es_addr *client, __u64 now_ms);

/* es_unheard_get() - the same, and else a new entry */
struct es_unheard_client *es_unheard_get(struct es_unheard *unheard, const struct es_sipkey *key,
					 unsigned int service, const struct es_addr *client, __u64 now_ms);

/* es_unheard_is_own() - is the client its own affair? */
static inline int es_unheard_is_own(const struct es_unheard_client *client, __u64 now_ms)
{
	return client && client->own_until_ms > now_ms;
}

/* es_unheard_vanished() - nothing was heard of @request on @node. Copies of a request count once. */
void es_unheard_vanished(struct es_unheard *unheard, struct es_unheard_client *client, unsigned int node,
			 __u64 request, __u64 now_ms);

/* es_unheard_heard() - a socket of the client's spoke on @node */
void es_unheard_heard(struct es_unheard *unheard, struct es_unheard_client *client, unsigned int node,
		      __u64 now_ms);

/* es_unheard_samples() - is a request of anybody's, given to @node now, to be asked about? */
int es_unheard_samples(struct es_unheard *unheard, unsigned int service, unsigned int node, __u64 now_ms);

/* es_unheard_is_doubtful() - should the client's requests go to another node, too, so that it shows whether the node is why? */
int es_unheard_is_doubtful(const struct es_unheard_client *client);

/* es_unheard_nodes() - on which nodes was nothing heard of the client? */
struct es_node_set es_unheard_nodes(const struct es_unheard_client *client);

/* es_evidence_take() - the control thread's. Returns 0, or -ENOENT. */
int es_evidence_take(struct es_evidence_ring *ring, struct es_evidence *ret_evidence);

#endif
