// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Questions and answers of nodes that tell each other how they are: their datagrams, and how parts become a
 * text.
 */
#include <errno.h>
#include <string.h>
#include "inspector/base/datagram_mac.h"
#include "inspector/peers/snapshots.h"

#define HEADER sizeof(struct es_snapshot_header)
#define MAC_AT offsetof(struct es_snapshot_message, header.mac)

static void header_make(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			unsigned long long number, enum es_snapshot_kind kind)
{
	memset(message, 0, sizeof(*message));
	message->header.magic = es_htonl(ES_LOADS_MAGIC);
	message->header.version = ES_DATAGRAM_SNAPSHOT;
	message->header.source = (__u8)self;
	message->header.target = (__u8)target;
	message->header.kind = (__u8)kind;
	message->header.number = (__be64)es_cpu_be64(number);
}

size_t es_snapshot_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
		       unsigned long long number, const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_ASK);
	message->header.mac = es_datagram_mac(key, message, HEADER, MAC_AT);
	return HEADER;
}

/* 0: a message of that kind has no text. */
static size_t max_of(enum es_snapshot_kind kind)
{
	switch (kind) {
	case ES_SNAPSHOT_PART:
		return ES_SNAPSHOT_MAX;
	case ES_SNAPSHOT_SETTINGS:
		return ES_SNAPSHOT_TEXT_MAX;
	case ES_SNAPSHOT_HISTORY:
	case ES_SNAPSHOT_CRASH:
		return ES_SNAPSHOT_HISTORY_MAX;
	default:
		return 0;
	}
}

/* Part @part of @text, in a message whose header is made already. */
static size_t part_make(struct es_snapshot_message *message, const char *text, size_t len, unsigned int part,
			const struct es_sipkey *key)
{
	size_t at = (size_t)part * ES_SNAPSHOT_PART_BYTES, size;

	if (len > max_of((enum es_snapshot_kind)message->header.kind) || at >= len)
		return 0;
	size = len - at < ES_SNAPSHOT_PART_BYTES ? len - at : ES_SNAPSHOT_PART_BYTES;
	message->header.total = es_htons((__u16)len);
	message->header.len = es_htons((__u16)size);
	message->header.part = (__u8)part;
	memcpy(message->text, text + at, size);
	message->header.mac = es_datagram_mac(key, message, HEADER + size, MAC_AT);
	return HEADER + size;
}

size_t es_snapshot_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			unsigned long long number, const char *text, size_t len, unsigned int part,
			const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_PART);
	return part_make(message, text, len, part, key);
}

size_t es_snapshot_settings_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				unsigned long long number, unsigned long long known,
				const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_ASK_SETTINGS);
	message->header.known = (__be64)es_cpu_be64(known);
	message->header.mac = es_datagram_mac(key, message, HEADER, MAC_AT);
	return HEADER;
}

size_t es_snapshot_settings_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				 unsigned long long number, const char *text, size_t len, unsigned int part,
				 const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_SETTINGS);
	return part_make(message, text, len, part, key);
}

size_t es_snapshot_history_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			       unsigned long long number, const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_ASK_HISTORY);
	message->header.mac = es_datagram_mac(key, message, HEADER, MAC_AT);
	return HEADER;
}

size_t es_snapshot_history_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				unsigned long long number, const char *text, size_t len, unsigned int part,
				const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_HISTORY);
	return part_make(message, text, len, part, key);
}

size_t es_snapshot_crash_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			     unsigned long long number, const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_ASK_CRASH);
	message->header.mac = es_datagram_mac(key, message, HEADER, MAC_AT);
	return HEADER;
}

size_t es_snapshot_crash_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			      unsigned long long number, const char *text, size_t len, unsigned int part,
			      const struct es_sipkey *key)
{
	header_make(message, self, target, number, ES_SNAPSHOT_CRASH);
	return part_make(message, text, len, part, key);
}

unsigned long long es_snapshot_digest(const char *text)
{
	unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash;
}

int es_snapshot_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
		     const struct es_keys *keys, struct es_snapshot_message *ret_message)
{
	const struct es_snapshot_header *header = &ret_message->header;

	if (len < HEADER || len > sizeof(*ret_message))
		return -EBADMSG;
	memset(ret_message, 0, sizeof(*ret_message));
	memcpy(ret_message, data, len);
	if (header->magic != es_htonl(ES_LOADS_MAGIC) || header->version != ES_DATAGRAM_SNAPSHOT ||
	    header->target != self || header->source == self || header->source >= node_count ||
	    len != HEADER + es_ntohs(header->len) || !es_keys_have_signed(keys, ret_message, len, MAC_AT))
		return -EBADMSG;
	return 0;
}

void es_snapshot_expect(struct es_snapshot_inbox *inbox, unsigned long long number)
{
	inbox->number = number;
	inbox->total = 0;
	inbox->got = 0;
}

int es_snapshot_take(struct es_snapshot_inbox *inbox, const struct es_snapshot_message *message)
{
	const struct es_snapshot_header *header = &message->header;
	unsigned int total = es_ntohs(header->total), len = es_ntohs(header->len), parts, before = inbox->got;
	size_t at = (size_t)header->part * ES_SNAPSHOT_PART_BYTES;

	if (!inbox->number || es_cpu_be64((__u64)header->number) != inbox->number || !total ||
	    total > max_of((enum es_snapshot_kind)header->kind) || (inbox->total && inbox->total != total) ||
	    at >= total || len != (total - at < ES_SNAPSHOT_PART_BYTES ? total - at : ES_SNAPSHOT_PART_BYTES))
		return -EBADMSG;
	parts = (total + ES_SNAPSHOT_PART_BYTES - 1) / ES_SNAPSHOT_PART_BYTES;
	memcpy(inbox->text + at, message->text, len);
	inbox->total = total;
	inbox->got |= 1U << header->part;
	return inbox->got != before && inbox->got == (1U << parts) - 1;
}
