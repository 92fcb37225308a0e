// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Notes what became of clients' requests on each node, and what follows: the node is told, or the client is
 * its own affair.
 */
#include <errno.h>
#include <string.h>
#include "inspector/inspect/unheard.h"
#include "kmod/core/flow.h"

/* The part of an address that one client may change at will does not identify it. */
static struct es_addr address_of(const struct es_addr *client)
{
	struct es_addr part = *client;

	if (!es_addr_is_v4(client))
		part.w[2] = part.w[3] = 0;
	return part;
}

static struct es_addr network_of(const struct es_addr *client)
{
	struct es_addr part = address_of(client);

	if (es_addr_is_v4(client))
		part.w[3] &= es_htonl(0xffffff00);
	return part;
}

static __u64 key_of(__u64 address, unsigned int service)
{
	__u64 key = address ^ (service + 1) * 0x9e3779b97f4a7c15ULL;

	return key ? key : 1;
}

static int is_over(const struct es_unheard_client *c, __u64 now_ms)
{
	return now_ms - c->at_ms >= ES_UNHEARD_KEEP_MS && !es_unheard_is_own(c, now_ms);
}

static struct es_unheard_client *set_of(struct es_unheard *u, __u64 key)
{
	return &u->client[(key >> 32) % (ES_UNHEARD_CLIENTS / ES_UNHEARD_WAYS) * ES_UNHEARD_WAYS];
}

static struct es_unheard_client *find(struct es_unheard *u, __u64 key, __u64 now_ms)
{
	struct es_unheard_client *set = set_of(u, key);

	for (unsigned int i = 0; i < ES_UNHEARD_WAYS; i++)
		if (set[i].at_ms && set[i].key == key && !is_over(&set[i], now_ms))
			return &set[i];
	return NULL;
}

static void note(struct es_unheard *u, struct es_unheard_client *c, __u64 now_ms)
{
	c->at_ms = now_ms;
	if (u->until_ms < now_ms + ES_UNHEARD_KEEP_MS)
		u->until_ms = now_ms + ES_UNHEARD_KEEP_MS;
	if (u->until_ms < c->own_until_ms)
		u->until_ms = c->own_until_ms;
}

struct es_unheard_client *es_unheard_find(struct es_unheard *u, const struct es_sipkey *key,
					  unsigned int service, const struct es_addr *client, __u64 now_ms)
{
	struct es_addr address;

	if (now_ms >= u->until_ms)
		return NULL;
	address = address_of(client);
	return find(u, key_of(es_addr_hash(key, &address), service), now_ms);
}

struct es_unheard_client *es_unheard_get(struct es_unheard *u, const struct es_sipkey *key,
					 unsigned int service, const struct es_addr *client, __u64 now_ms)
{
	struct es_addr address = address_of(client), network = network_of(client);
	__u64 hash = es_addr_hash(key, &address);
	struct es_unheard_client *set, *c = find(u, key_of(hash, service), now_ms);

	if (c)
		return c;
	c = set = set_of(u, key_of(hash, service));
	for (unsigned int i = 1; i < ES_UNHEARD_WAYS; i++)
		if (set[i].at_ms < c->at_ms)
			c = &set[i];
	*c = (struct es_unheard_client){
		.key = key_of(hash, service),
		.address = hash,
		.prefix = es_addr_hash(key, &network),
		.service = service,
	};
	note(u, c, now_ms);
	return c;
}

static void tell(struct es_unheard *u, const struct es_evidence *e)
{
	struct es_evidence_ring *ring = &u->evidence;
	unsigned int written = atomic_load_explicit(&ring->written, memory_order_relaxed);

	if (written - atomic_load_explicit(&ring->taken, memory_order_acquire) >= ES_EVIDENCE_ENTRIES)
		return;
	ring->entry[written % ES_EVIDENCE_ENTRIES] = *e;
	atomic_store_explicit(&ring->written, written + 1, memory_order_release);
}

int es_evidence_take(struct es_evidence_ring *ring, struct es_evidence *ret)
{
	unsigned int taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);

	if (taken == atomic_load_explicit(&ring->written, memory_order_acquire))
		return -ENOENT;
	*ret = ring->entry[taken % ES_EVIDENCE_ENTRIES];
	atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
	return 0;
}

/* If another node has heard the client, a request that vanished is held against its node. */
static void tell_vanished(struct es_unheard *u, struct es_unheard_client *c)
{
	if (es_node_set_is_empty(c->heard))
		return;
	for (unsigned int i = 0; i < c->count; i++) {
		if (c->vanished[i].is_told)
			continue;
		c->vanished[i].is_told = 1;
		tell(u, &(struct es_evidence){.address = c->address,
					      .prefix = c->prefix,
					      .request = c->vanished[i].request,
					      .service = c->service,
					      .node = c->vanished[i].node});
	}
}

static struct es_unheard_suspect *suspect_of(struct es_unheard *u, unsigned int service, unsigned int node,
					     __u64 now_ms)
{
	for (unsigned int i = 0; i < ES_UNHEARD_SUSPECTS; i++)
		if (u->suspect[i].until_ms > now_ms && u->suspect[i].service == service &&
		    u->suspect[i].node == node)
			return &u->suspect[i];
	return NULL;
}

static void suspect(struct es_unheard *u, unsigned int service, unsigned int node, __u64 now_ms)
{
	struct es_unheard_suspect *s = suspect_of(u, service, node, now_ms);

	if (!s) {
		s = &u->suspect[0];
		for (unsigned int i = 1; i < ES_UNHEARD_SUSPECTS; i++)
			if (u->suspect[i].until_ms < s->until_ms)
				s = &u->suspect[i];
		*s = (struct es_unheard_suspect){.service = service, .node = node};
	}
	s->until_ms = now_ms + ES_UNHEARD_KEEP_MS;
}

struct es_node_set es_unheard_nodes(const struct es_unheard_client *c)
{
	struct es_node_set nodes = {};

	for (unsigned int i = 0; c && i < c->count; i++)
		es_node_set_add(&nodes, c->vanished[i].node);
	return nodes;
}

int es_unheard_is_doubtful(const struct es_unheard_client *c)
{
	return es_node_set_is_empty(c->heard) && c->count >= ES_UNHEARD_ELSEWHERE;
}

static int is_noted(const struct es_unheard_client *c, unsigned int node, __u64 request)
{
	for (unsigned int i = 0; i < c->count; i++)
		if (c->vanished[i].request == request && c->vanished[i].node == node)
			return 1;
	return 0;
}

void es_unheard_vanished(struct es_unheard *u, struct es_unheard_client *c, unsigned int node, __u64 request,
			 __u64 now_ms)
{
	if (es_unheard_is_own(c, now_ms)) {
		c->own_until_ms = now_ms + ES_UNHEARD_OWN_MS;
		note(u, c, now_ms);
		return;
	}
	/*
	 * On a node that has also heard the client, a filter refuses it when it asks for too much, or a
	 * packet was lost.
	 */
	if (is_noted(c, node, request) || es_node_set_has(c->heard, node))
		return;
	suspect(u, c->service, node, now_ms);
	if (c->count == ES_UNHEARD_REQUESTS)
		memmove(&c->vanished[0], &c->vanished[1], sizeof(c->vanished[0]) * --c->count);
	c->vanished[c->count].request = request;
	c->vanished[c->count].node = (__u8)node;
	c->vanished[c->count++].is_told = 0;
	if (es_node_set_is_empty(c->heard) && es_node_set_count(es_unheard_nodes(c)) > 1) {
		c->own_until_ms = now_ms + ES_UNHEARD_OWN_MS;
		c->count = 0;
	}
	note(u, c, now_ms);
	tell_vanished(u, c);
}

void es_unheard_heard(struct es_unheard *u, struct es_unheard_client *c, unsigned int node, __u64 now_ms)
{
	unsigned int kept = 0;

	c->own_until_ms = 0;
	es_node_set_add(&c->heard, node);
	for (unsigned int i = 0; i < c->count; i++)
		if (c->vanished[i].node != node)
			c->vanished[kept++] = c->vanished[i];
	c->count = kept;
	note(u, c, now_ms);
	tell_vanished(u, c);
	if (suspect_of(u, c->service, node, now_ms))
		tell(u, &(struct es_evidence){.address = c->address,
					      .prefix = c->prefix,
					      .service = c->service,
					      .node = node,
					      .is_heard = 1});
}

int es_unheard_samples(struct es_unheard *u, unsigned int service, unsigned int node, __u64 now_ms)
{
	struct es_unheard_suspect *s = now_ms < u->until_ms ? suspect_of(u, service, node, now_ms) : NULL;

	if (!s || s->sample_ms > now_ms)
		return 0;
	s->sample_ms = now_ms + ES_UNHEARD_SAMPLE_MS;
	return 1;
}
