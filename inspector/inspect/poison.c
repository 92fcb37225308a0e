// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Marks, the table of requests that have ended daemons, and the message about them. The workers, the keeper
 * and daemon/poison.c write and read these.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "inspector/inspect/poison.h"
#include "inspector/packet/packet.h"

#define TCP_HEADER     20
#define MESSAGE_AGE_NS (120ULL * 1000000000ULL)
#define MAC_WORDS      (offsetof(struct es_poison_message, mac) / 8)

void es_mark_set(struct es_mark *mark, __u64 flow_hash, unsigned int service, const uint8_t *packet,
		 size_t len)
{
	if (!mark)
		return;
	mark->flow_hash = flow_hash;
	mark->service = (__u8)service;
	mark->len = (__u16)(len > UINT16_MAX ? UINT16_MAX : len);
	memcpy(mark->packet, packet, len < ES_MARK_BYTES ? len : ES_MARK_BYTES);
	if (!++mark->count)
		mark->count = 1;
	__atomic_store_n(&mark->busy, mark->count, __ATOMIC_RELEASE);
}

void es_mark_clear(struct es_mark *mark)
{
	if (mark)
		__atomic_store_n(&mark->busy, 0, __ATOMIC_RELEASE);
}

__u64 es_poison_request(const struct es_sipkey *key, const uint8_t *packet, size_t len)
{
	size_t ip_len = es_ip_header_len(packet, len), header;
	const uint8_t *at;
	struct es_sipstate sip;
	__u64 word = 0, hash;
	size_t left;

	/* As much of the packet as a mark keeps; the more headers, the less of the request. */
	if (len > ES_MARK_BYTES)
		len = ES_MARK_BYTES;
	if (!ip_len || len < ip_len + TCP_HEADER)
		return 0;
	header = ip_len + (packet[ip_len + 12] >> 4) * 4U;
	at = packet + header;
	if (header >= len)
		return 0;
	left = len - header < ES_POISON_REQUEST_BYTES ? len - header : ES_POISON_REQUEST_BYTES;
	es_siphash_init(&sip, key);
	len = left;
	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	word = 0;
	memcpy(&word, at, left);
	hash = es_siphash_final(&sip, es_cpu_le64(word), (__u32)len);
	return hash ? hash : 1;
}

int es_poison_of_mark(const struct es_mark *mark, const struct es_sipkey *key, struct es_poison *ret_poison)
{
	size_t len = mark->len < ES_MARK_BYTES ? mark->len : ES_MARK_BYTES;
	const uint8_t *packet = mark->packet;
	size_t ip_len = es_ip_header_len(packet, len);
	struct es_addr service;

	if (!__atomic_load_n(&mark->busy, __ATOMIC_ACQUIRE) || !len)
		return -ENOENT;
	memset(ret_poison, 0, sizeof(*ret_poison));
	ret_poison->flow_hash = mark->flow_hash;
	ret_poison->request = es_poison_request(key, packet, len);
	ret_poison->service = mark->service;
	/* With many options of IPv6, the TCP header may lie beyond what is kept. */
	if (!ip_len || len < ip_len + TCP_HEADER)
		return 0;
	es_ip_addresses(packet, &ret_poison->client, &service);
	memcpy(&ret_poison->client_port, packet + ip_len, sizeof(ret_poison->client_port));
	return 0;
}

static int is_known(const struct es_poison *poison, unsigned long long now_ns)
{
	__u64 at_ns = __atomic_load_n(&poison->at_ns, __ATOMIC_ACQUIRE);

	/* A table that was taken over could have another boot's clock: never, but the check costs nothing. */
	return at_ns && at_ns <= now_ns && now_ns - at_ns < ES_POISON_HOLD_NS;
}

static int is_same(const struct es_poison *poison, __u64 flow_hash, __u64 request)
{
	return poison->flow_hash == flow_hash || (request && poison->request == request);
}

static void storm_watch(struct es_poisons *poisons, unsigned long long now_ns)
{
	unsigned int recent = 0;

	for (unsigned int i = 0; i < ES_POISONS; i++)
		recent += is_known(&poisons->poison[i], now_ns) &&
			  now_ns - poisons->poison[i].at_ns < ES_POISON_STORM_NS;
	poisons->storm_until_ns = recent >= ES_POISON_STORM ? now_ns + ES_POISON_STORM_NS : 0;
}

int es_poison_note(struct es_poisons *poisons, const struct es_poison *poison, unsigned long long now_ns)
{
	struct es_poison *place = &poisons->poison[0];

	for (unsigned int i = 0; i < ES_POISONS; i++) {
		struct es_poison *p = &poisons->poison[i];

		if (is_known(p, now_ns) && is_same(p, poison->flow_hash, poison->request))
			return 0;
		if (p->at_ns < place->at_ns)
			place = p;
	}
	__atomic_store_n(&place->at_ns, 0, __ATOMIC_RELEASE);
	*place = *poison;
	place->at_ns = 0;
	__atomic_store_n(&place->at_ns, now_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&poisons->until_ns, now_ns + ES_POISON_HOLD_NS, __ATOMIC_RELEASE);
	storm_watch(poisons, now_ns);
	return 1;
}

void es_poison_forget(struct es_poisons *poisons, const struct es_poison *poison, unsigned long long now_ns)
{
	for (unsigned int i = 0; i < ES_POISONS; i++) {
		struct es_poison *p = &poisons->poison[i];

		if (!is_known(p, now_ns) || !is_same(p, poison->flow_hash, poison->request) ||
		    p->node != poison->node || p->kind != ES_POISON_HUNG)
			continue;
		__atomic_store_n(&p->at_ns, 0, __ATOMIC_RELEASE);
		storm_watch(poisons, now_ns);
	}
}

const struct es_poison *es_poison_find(const struct es_poisons *poisons, __u64 flow_hash, __u64 request,
				       unsigned long long now_ns)
{
	for (unsigned int i = 0; i < ES_POISONS; i++) {
		const struct es_poison *p = &poisons->poison[i];

		if (is_known(p, now_ns) && is_same(p, flow_hash, request))
			return p;
	}
	return NULL;
}

int es_poison_is_known(const struct es_poisons *poisons, const struct es_sipkey *key, __u64 flow_hash,
		       const uint8_t *packet, size_t len, unsigned long long now_ns)
{
	if (!poisons || now_ns >= __atomic_load_n(&poisons->until_ns, __ATOMIC_ACQUIRE))
		return 0;
	return es_poison_find(poisons, flow_hash, es_poison_request(key, packet, len), now_ns) != NULL;
}

static __be64 message_mac(const struct es_sipkey *key, const struct es_poison_message *message)
{
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	for (size_t i = 0; i < MAC_WORDS; i++) {
		__u64 word;

		memcpy(&word, (const __u8 *)message + i * sizeof(word), sizeof(word));
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	return (__be64)es_cpu_be64(es_siphash_final(&sip, 0, MAC_WORDS * 8));
}

void es_poison_message_make(const struct es_poison *poison, unsigned int self, const struct es_sipkey *key,
			    unsigned long long wall_ns, struct es_poison_message *ret_message)
{
	*ret_message = (struct es_poison_message){
		.magic = es_htonl(ES_LOADS_MAGIC),
		.version = ES_DATAGRAM_POISON,
		.source = (__u8)self,
		.service = poison->service,
		.wall_ns = (__be64)es_cpu_be64(wall_ns),
		.flow_hash = (__be64)es_cpu_be64(poison->flow_hash),
		.request = (__be64)es_cpu_be64(poison->request),
		.client = poison->client,
		.client_port = poison->client_port,
		.kind = poison->kind,
	};
	ret_message->mac = message_mac(key, ret_message);
}

static int is_authentic(const struct es_poison_message *message, const struct es_keys *keys)
{
	for (unsigned int i = 0; i < keys->count; i++)
		if (message_mac(&keys->key[i].handover, message) == message->mac)
			return 1;
	return 0;
}

int es_poison_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			   const struct es_keys *keys, unsigned long long wall_ns,
			   struct es_poison *ret_poison)
{
	struct es_poison_message m;
	__u64 sent_ns;

	if (len != sizeof(m))
		return -EBADMSG;
	memcpy(&m, data, sizeof(m));
	sent_ns = es_cpu_be64((__u64)m.wall_ns);
	if (m.magic != es_htonl(ES_LOADS_MAGIC) || m.version != ES_DATAGRAM_POISON || m.source == self ||
	    m.source >= node_count || !is_authentic(&m, keys) ||
	    (sent_ns < wall_ns ? wall_ns - sent_ns : sent_ns - wall_ns) > MESSAGE_AGE_NS)
		return -EBADMSG;
	*ret_poison = (struct es_poison){
		.flow_hash = es_cpu_be64((__u64)m.flow_hash),
		.request = es_cpu_be64((__u64)m.request),
		.client = m.client,
		.client_port = m.client_port,
		.service = m.service,
		.node = m.source,
		.kind = m.kind,
	};
	return 0;
}
