// SPDX-License-Identifier: GPL-2.0-or-later
/* The datagrams by which nodes tell each other of their idle connections. */
#include <errno.h>
#include <string.h>
#include "inspector/peers/kept_words.h"

#define HEADER offsetof(struct es_kept_message, word)

static void word_put(struct es_kept_wire *wire, const struct es_kept_word *word)
{
	const struct es_kept *kept = &word->kept;
	const struct es_tcp_options *o = &kept->options;

	memcpy(wire->client, &kept->flow.client, sizeof(wire->client));
	memcpy(wire->service_address, &kept->flow.service, sizeof(wire->service_address));
	wire->client_port = kept->flow.client_port;
	wire->service_port = kept->flow.service_port;
	wire->seq = es_htonl(kept->seq);
	wire->ack = es_htonl(kept->ack);
	wire->requests = es_htonl(kept->requests);
	wire->moves = es_htons(kept->moves);
	wire->mss = es_htons(o->mss);
	wire->what = (__u8)word->what;
	wire->service = kept->service;
	wire->owner = kept->owner;
	wire->snd_wscale = o->snd_wscale;
	wire->rcv_wscale = o->rcv_wscale;
	wire->options =
		(__u8)((o->wscale_ok ? ES_HANDOVER_F_WSCALE : 0) | (o->sack_ok ? ES_HANDOVER_F_SACK : 0) |
		       (o->tstamp_ok ? ES_HANDOVER_F_TS : 0) | (o->ecn_ok ? ES_HANDOVER_F_ECN : 0));
}

/* Returns 0, or -1 for one without sense, such as options that no kernel makes a socket with. */
static int word_get(const struct es_kept_wire *wire, unsigned int owner, struct es_kept_word *ret)
{
	struct es_kept *kept = &ret->kept;

	memset(ret, 0, sizeof(*ret));
	if (wire->what < ES_KEPT_KEEP || wire->what > ES_KEPT_ANSWERED ||
	    wire->snd_wscale > ES_TCP_WSCALE_MAX || wire->rcv_wscale > ES_TCP_WSCALE_MAX)
		return -1;
	ret->what = (enum es_kept_what)wire->what;
	memcpy(&kept->flow.client, wire->client, sizeof(wire->client));
	memcpy(&kept->flow.service, wire->service_address, sizeof(wire->service_address));
	kept->flow.client_port = wire->client_port;
	kept->flow.service_port = wire->service_port;
	kept->seq = es_ntohl(wire->seq);
	kept->ack = es_ntohl(wire->ack);
	kept->requests = es_ntohl(wire->requests);
	kept->moves = es_ntohs(wire->moves);
	kept->service = wire->service;
	kept->owner = wire->what == ES_KEPT_ORPHAN ? wire->owner : (__u8)owner;
	kept->options = (struct es_tcp_options){
		.mss = es_ntohs(wire->mss),
		.snd_wscale = wire->snd_wscale,
		.rcv_wscale = wire->rcv_wscale,
		.wscale_ok = !!(wire->options & ES_HANDOVER_F_WSCALE),
		.sack_ok = !!(wire->options & ES_HANDOVER_F_SACK),
		.tstamp_ok = !!(wire->options & ES_HANDOVER_F_TS),
		.ecn_ok = !!(wire->options & ES_HANDOVER_F_ECN),
	};
	return 0;
}

size_t es_kept_message_make(struct es_kept_message *message, unsigned int self, unsigned int target,
			    __u64 sequence, __u64 wall_ns, const struct es_kept_word *words,
			    unsigned int count, const struct es_sipkey *key)
{
	size_t len = HEADER + count * sizeof(message->word[0]);

	memset(message, 0, sizeof(*message));
	es_flow_datagram_init(&message->header, ES_DATAGRAM_KEPT, self, target, sequence, wall_ns);
	message->header.count = es_htons((__u16)count);
	for (unsigned int i = 0; i < count; i++)
		word_put(&message->word[i], &words[i]);
	es_flow_datagram_sign(&message->header, len, key);
	return len;
}

int es_kept_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			 const struct es_keys *keys, __u64 wall_ns, __u64 *heard,
			 struct es_kept_word *ret_words)
{
	struct es_kept_message message = {};
	unsigned int count, taken = 0;

	if (len < HEADER || len > sizeof(message))
		return -EBADMSG;
	memcpy(&message, data, len);
	count = es_ntohs(message.header.count);
	if (count > ES_KEPT_WORDS_MAX || len != HEADER + count * sizeof(message.word[0]) ||
	    !es_flow_datagram_is_new(&message.header, len, ES_DATAGRAM_KEPT, self, node_count, keys, wall_ns,
				     heard))
		return -EBADMSG;
	for (unsigned int i = 0; i < count; i++)
		if (!word_get(&message.word[i], message.header.source, &ret_words[taken]) &&
		    ret_words[taken].kept.owner < node_count)
			taken++;
	return (int)taken;
}
