// SPDX-License-Identifier: GPL-2.0-or-later
/* The datagrams of a rollout: from fields to bytes and back, with the signature. */
#include <errno.h>
#include <string.h>
#include "inspector/base/datagram_mac.h"
#include "inspector/rollout/message.h"

#define HEADER sizeof(struct es_rollout_header)
#define MAC_AT offsetof(struct es_rollout_datagram, header.mac)

size_t es_rollout_put(struct es_rollout_datagram *datagram, const struct es_rollout_message *message,
		      const struct es_sipkey *key)
{
	size_t len = HEADER;

	memset(datagram, 0, sizeof(*datagram));
	datagram->header = (struct es_rollout_header){
		.magic = es_htonl(ES_LOADS_MAGIC),
		.version = ES_DATAGRAM_ROLLOUT,
		.source = (__u8)message->source,
		.target = (__u8)message->target,
		.kind = (__u8)message->kind,
		.rollout = (__be64)es_cpu_be64(message->rollout),
		.member = (__be64)es_cpu_be64(message->member),
		.total = es_htonl((__u32)message->total),
		.part = es_htons((__u16)message->part),
		.len = es_htons((__u16)message->len),
		.state = (__u8)message->state,
		.digest = (__be64)es_cpu_be64(message->digest),
	};
	if (message->text) {
		memcpy(datagram->text, message->text, message->len);
		len += message->len;
	}
	datagram->header.mac = es_datagram_mac(key, datagram, len, MAC_AT);
	return len;
}

int es_rollout_get(const void *data, size_t len, unsigned int self, unsigned int node_count,
		   const struct es_keys *keys, struct es_rollout_datagram *ret_datagram,
		   struct es_rollout_message *ret_message)
{
	const struct es_rollout_header *header = &ret_datagram->header;
	int has_text;

	if (len < HEADER || len > sizeof(*ret_datagram))
		return -EBADMSG;
	memset(ret_datagram, 0, sizeof(*ret_datagram));
	memcpy(ret_datagram, data, len);
	has_text = header->kind == ES_ROLLOUT_PART || header->kind == ES_ROLLOUT_STATE;
	if (header->magic != es_htonl(ES_LOADS_MAGIC) || header->version != ES_DATAGRAM_ROLLOUT ||
	    header->target != self || header->source == self || header->source >= node_count ||
	    len != HEADER + (has_text ? es_ntohs(header->len) : 0U) ||
	    !es_keys_have_signed(keys, ret_datagram, len, MAC_AT))
		return -EBADMSG;
	*ret_message = (struct es_rollout_message){
		.source = header->source,
		.target = header->target,
		.kind = (enum es_rollout_kind)header->kind,
		.state = (enum es_rollout_state)header->state,
		.rollout = es_cpu_be64((__u64)header->rollout),
		.member = es_cpu_be64((__u64)header->member),
		.digest = es_cpu_be64((__u64)header->digest),
		.total = es_ntohl(header->total),
		.part = es_ntohs(header->part),
		.len = es_ntohs(header->len),
		.text = has_text ? ret_datagram->text : NULL,
	};
	return 0;
}
