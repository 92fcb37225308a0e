/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DOWNLOAD_WORDS_H
#define ES_DOWNLOAD_WORDS_H

/*
 * A node tells another one of a long response of its own (cluster/downloads.h), one in a datagram, or that it
 * is over.
 */
#include "inspector/cluster/downloads.h"
#include "inspector/peers/flow_datagram.h"

/* struct es_download_word - @is_over: of @download only the flow matters */
struct es_download_word {
	int is_over;
	struct es_download download;
};

/* struct es_download_wire - @options: ES_HANDOVER_F_*; @etag: zeros behind its end */
struct es_download_wire {
	__be32 client[4];
	__be32 service_address[4];
	__be16 client_port;
	__be16 service_port;
	__be32 next_request_seq;
	__be32 response_seq;
	__be32 head_len;
	__be32 requests;
	__be32 tsval;
	__be32 spare;
	__be16 moves;
	__be16 mss;
	__be64 length;
	__be64 first;
	__be64 total;
	__u8 is_over;
	__u8 service;
	__u8 snd_wscale;
	__u8 rcv_wscale;
	__u8 options;
	__u8 flags;
	__be16 request_len;
	char etag[ES_DOWNLOAD_ETAG_SIZE];
};
_Static_assert(sizeof(struct es_download_wire) == 176, "no padding");

/* struct es_download_message - after the word, the head of the request */
struct es_download_message {
	struct es_flow_datagram header;
	struct es_download_wire word;
	char request[ES_DOWNLOAD_HEAD_MAX];
};
_Static_assert(offsetof(struct es_download_message, word) == sizeof(struct es_flow_datagram), "no padding");
_Static_assert(sizeof(struct es_download_message) <= ES_DATAGRAM_MAX, "it is received whole");

/* es_download_message_make() - as es_kept_message_make(), of one word. Returns its bytes. */
size_t es_download_message_make(struct es_download_message *message, unsigned int self, unsigned int target,
				__u64 sequence, __u64 wall_ns, const struct es_download_word *word,
				const struct es_sipkey *key);

/* es_download_message_read() - as es_kept_message_read(), of one word. Returns 0 or -EBADMSG. */
int es_download_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			     const struct es_keys *keys, __u64 wall_ns, __u64 *heard,
			     struct es_download_word *ret_word);

#endif
