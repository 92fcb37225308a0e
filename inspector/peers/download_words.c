// SPDX-License-Identifier: GPL-2.0-or-later
/* The datagrams by which nodes tell each other of their long responses. */
#include <errno.h>
#include <string.h>
#include "inspector/peers/download_words.h"

#define HEADER offsetof(struct es_download_message, request)

static void word_put(struct es_download_wire *wire, const struct es_download *d)
{
	const struct es_tcp_options *o = &d->options;

	memcpy(wire->client, &d->flow.client, sizeof(wire->client));
	memcpy(wire->service_address, &d->flow.service, sizeof(wire->service_address));
	wire->client_port = d->flow.client_port;
	wire->service_port = d->flow.service_port;
	wire->next_request_seq = es_htonl(d->next_request_seq);
	wire->response_seq = es_htonl(d->response_seq);
	wire->head_len = es_htonl(d->head_len);
	wire->requests = es_htonl(d->requests);
	wire->tsval = es_htonl(d->tsval);
	wire->moves = es_htons(d->moves);
	wire->mss = es_htons(o->mss);
	wire->length = (__be64)es_cpu_be64(d->length);
	wire->first = (__be64)es_cpu_be64(d->first);
	wire->total = (__be64)es_cpu_be64(d->total);
	wire->service = d->service;
	wire->snd_wscale = o->snd_wscale;
	wire->rcv_wscale = o->rcv_wscale;
	wire->options =
		(__u8)((o->wscale_ok ? ES_HANDOVER_F_WSCALE : 0) | (o->sack_ok ? ES_HANDOVER_F_SACK : 0) |
		       (o->tstamp_ok ? ES_HANDOVER_F_TS : 0) | (o->ecn_ok ? ES_HANDOVER_F_ECN : 0));
	wire->flags = d->flags;
	wire->request_len = es_htons(d->request_len);
	memcpy(wire->etag, d->etag, sizeof(wire->etag));
}

/* Returns 0, or -1 for one without sense, such as options that no kernel makes a socket with. */
static int word_get(const struct es_download_message *message, struct es_download_word *ret)
{
	const struct es_download_wire *wire = &message->word;
	struct es_download *d = &ret->download;

	memset(ret, 0, sizeof(*ret));
	if (wire->snd_wscale > ES_TCP_WSCALE_MAX || wire->rcv_wscale > ES_TCP_WSCALE_MAX ||
	    wire->etag[sizeof(wire->etag) - 1])
		return -1;
	ret->is_over = wire->is_over;
	memcpy(&d->flow.client, wire->client, sizeof(wire->client));
	memcpy(&d->flow.service, wire->service_address, sizeof(wire->service_address));
	d->flow.client_port = wire->client_port;
	d->flow.service_port = wire->service_port;
	d->next_request_seq = es_ntohl(wire->next_request_seq);
	d->response_seq = es_ntohl(wire->response_seq);
	d->head_len = es_ntohl(wire->head_len);
	d->requests = es_ntohl(wire->requests);
	d->tsval = es_ntohl(wire->tsval);
	d->moves = es_ntohs(wire->moves);
	d->length = es_cpu_be64((__u64)wire->length);
	d->first = es_cpu_be64((__u64)wire->first);
	d->total = es_cpu_be64((__u64)wire->total);
	d->service = wire->service;
	d->owner = message->header.source;
	d->flags = wire->flags;
	d->options = (struct es_tcp_options){
		.mss = es_ntohs(wire->mss),
		.snd_wscale = wire->snd_wscale,
		.rcv_wscale = wire->rcv_wscale,
		.wscale_ok = !!(wire->options & ES_HANDOVER_F_WSCALE),
		.sack_ok = !!(wire->options & ES_HANDOVER_F_SACK),
		.tstamp_ok = !!(wire->options & ES_HANDOVER_F_TS),
		.ecn_ok = !!(wire->options & ES_HANDOVER_F_ECN),
	};
	memcpy(d->etag, wire->etag, sizeof(d->etag));
	d->request_len = es_ntohs(wire->request_len);
	memcpy(d->request, message->request, d->request_len);
	return 0;
}

size_t es_download_message_make(struct es_download_message *message, unsigned int self, unsigned int target,
				__u64 sequence, __u64 wall_ns, const struct es_download_word *word,
				const struct es_sipkey *key)
{
	size_t len = HEADER + word->download.request_len;

	memset(message, 0, sizeof(*message));
	es_flow_datagram_init(&message->header, ES_DATAGRAM_DOWNLOAD, self, target, sequence, wall_ns);
	word_put(&message->word, &word->download);
	message->word.is_over = (__u8) !!word->is_over;
	memcpy(message->request, word->download.request, word->download.request_len);
	es_flow_datagram_sign(&message->header, len, key);
	return len;
}

int es_download_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			     const struct es_keys *keys, __u64 wall_ns, __u64 *heard,
			     struct es_download_word *ret_word)
{
	struct es_download_message message = {};

	if (len < HEADER || len > sizeof(message))
		return -EBADMSG;
	memcpy(&message, data, len);
	if (len != HEADER + es_ntohs(message.word.request_len) ||
	    !es_flow_datagram_is_new(&message.header, len, ES_DATAGRAM_DOWNLOAD, self, node_count, keys,
				     wall_ns, heard))
		return -EBADMSG;
	return word_get(&message, ret_word) ? -EBADMSG : 0;
}
