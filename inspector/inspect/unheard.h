/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_UNHEARD_H
#define ES_UNHEARD_H

/*
 * Clients whose requests were given to a node that then heard nothing of the sockets it was to make.
 * Something is wrong with that node, or with the client: the nodes' packet filters refuse it, or it cannot be
 * answered. Only the inspecting node can tell, since it knows what became of the client's requests on several
 * nodes. If one node has heard the client and another has not, the other one is told
 * (inspector/health/vanishing.h). If two nodes have not heard the client, and no node has, the client is its
 * own affair: nothing is held against the nodes, and for a while its requests are not handed over.
 *
 * Bounded, and one worker's: a full set forgets the client about which nothing was noted for the longest
 * time.
 */
#include <stdatomic.h>
#include "inspector/packet/packet.h"
#include "inspector/policy/node_set.h"
#include "kmod/core/siphash.h"

#define ES_UNHEARD_CLIENTS  256
#define ES_UNHEARD_WAYS	    4
#define ES_UNHEARD_REQUESTS 4
#define ES_UNHEARD_SUSPECTS 8
#define ES_EVIDENCE_ENTRIES 64 /* a power of two */

#define ES_UNHEARD_KEEP_MS 30000 /* for how long what was noted of a client counts */
#define ES_UNHEARD_OWN_MS  60000 /* for how long a client is its own affair */

/* A node does not say earlier that it has heard nothing of a request (ES_SETTLED_VANISHED_MS). */
#define ES_UNHEARD_ASK_MS    1200
#define ES_UNHEARD_ANSWER_MS 1000

/* After so many requests of which nothing was heard anywhere, the next one goes to another node. */
#define ES_UNHEARD_ELSEWHERE 2

/* How often other clients' requests are asked about, on a node that has not heard some client. */
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
 * @heard: the nodes that have heard it
 * @vanished: @count requests of which their nodes have heard nothing; @is_told: the node was told
 * @asking: about one request, @flow_hash and @seq, that was given to @node: to be asked at @due_ms, or an
 * answer is waited for until then
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

/**
 * struct es_unheard_suspect - a node that has not heard some client of @service: until @until_ms it is asked
 * about others' requests, the next time from @sample_ms on
 */
struct es_unheard_suspect {
	__u64 until_ms;
	__u64 sample_ms;
	unsigned int service;
	unsigned int node;
};

/**
 * struct es_evidence - what a node is told about itself
 * @is_heard: it has heard a client; else it has heard nothing of @request, whose client another node has
 * heard
 */
struct es_evidence {
	__u64 address;
	__u64 prefix;
	__u64 request;
	unsigned int service;
	unsigned int node;
	int is_heard;
};

/* struct es_evidence_ring - from the worker to the control thread; evidence that finds no room is lost */
struct es_evidence_ring {
	_Atomic unsigned int written;
	_Atomic unsigned int taken;
	struct es_evidence entry[ES_EVIDENCE_ENTRIES];
};

/* struct es_unheard - all zeros at first; @until_ms: from then on, nothing that is noted counts */
struct es_unheard {
	__u64 until_ms;
	struct es_unheard_client client[ES_UNHEARD_CLIENTS];
	struct es_unheard_suspect suspect[ES_UNHEARD_SUSPECTS];
	struct es_evidence_ring evidence;
};

/* es_unheard_find() - the entry of a client; NULL: nothing is noted. @key: the cluster's ring key */
struct es_unheard_client *es_unheard_find(struct es_unheard *unheard, const struct es_sipkey *key,
					  unsigned int service, const struct es_addr *client, __u64 now_ms);

/* es_unheard_get() - the same, or a new entry */
struct es_unheard_client *es_unheard_get(struct es_unheard *unheard, const struct es_sipkey *key,
					 unsigned int service, const struct es_addr *client, __u64 now_ms);

/* es_unheard_is_own() - is the client its own affair? */
static inline int es_unheard_is_own(const struct es_unheard_client *client, __u64 now_ms)
{
	return client && client->own_until_ms > now_ms;
}

/* es_unheard_vanished() - @node has heard nothing of @request. Copies of a request count once. */
void es_unheard_vanished(struct es_unheard *unheard, struct es_unheard_client *client, unsigned int node,
			 __u64 request, __u64 now_ms);

/* es_unheard_heard() - @node has heard the client */
void es_unheard_heard(struct es_unheard *unheard, struct es_unheard_client *client, unsigned int node,
		      __u64 now_ms);

/* es_unheard_samples() - is @node to be asked about a request that it gets now, whoever's it is? */
int es_unheard_samples(struct es_unheard *unheard, unsigned int service, unsigned int node, __u64 now_ms);

/**
 * es_unheard_is_doubtful() - should another node get a request of the client, too, to show whether the first
 * one is why?
 */
int es_unheard_is_doubtful(const struct es_unheard_client *client);

/* es_unheard_nodes() - the nodes that have not heard the client */
struct es_node_set es_unheard_nodes(const struct es_unheard_client *client);

/* es_evidence_take() - the control thread's. Returns 0, or -ENOENT. */
int es_evidence_take(struct es_evidence_ring *ring, struct es_evidence *ret_evidence);

#endif
