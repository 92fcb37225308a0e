/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DOWNLOADS_H
#define ES_DOWNLOADS_H

/*
 * Long responses (kmod/core/download.h), a node's own or those of which others have told it. When a node is
 * lost, its clients wait for the rest of such a response, and say nothing by which another node could know
 * that. So the one that was told asks the client how much it has (RFC 9293, 3.10.7.4: a segment from before
 * is answered with an acknowledgment), makes a socket that goes on there, asks its own server for the rest,
 * and gives the connection on as an idle one (cluster/directory.h); see resume/. A client whose response
 * cannot be gone on with gets a RST at once.
 *
 * Nothing is told of a response that is short, and nothing while it lasts: the owner tells when its head has
 * left, repeats that from time to time, and takes it back when it is over. The bytes that a client gets can
 * only be those of the same content: by its strong validator (RFC 9110, 8.8.1), which the survivor's server
 * must confirm.
 *
 * Bounded: when it is full, the one that was told first goes. For one thread.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/download.h"
#include "kmod/core/node_ring.h"

#define ES_DOWNLOADS_MAX 2048

/* One that is not told again for so long is forgotten. */
#define ES_DOWNLOAD_LIFE_NS 60000000000ULL

#define ES_DOWNLOAD_ETAG_SIZE 80

/* The connection ends with the response. */
#define ES_DOWNLOAD_F_CLOSES 0x01
/* Another node may go on with it; else it can only tell the client. */
#define ES_DOWNLOAD_F_RESUMES 0x02

/**
 * struct es_download - a long response that is under way
 * @next_request_seq: the client's sequence number behind its request
 * @response_seq: our sequence number of the first byte of the response; @head_len: bytes of its head
 * @length: of its body; @first: the place of its first byte in the whole content, of @total bytes
 * @owner: the node that sends it; @service: its index there
 * @requests, @moves: of the connection so far (struct es_track)
 * @tsval: its owner's timestamps when it was told, in ms
 * @etag: with its quotes; @request: its head, @request_len bytes. Both only with ES_DOWNLOAD_F_RESUMES
 */
struct es_download {
	struct es_flow flow;
	struct es_tcp_options options;
	__u32 next_request_seq;
	__u32 response_seq;
	__u32 head_len;
	__u32 requests;
	__u32 tsval;
	__u64 length;
	__u64 first;
	__u64 total;
	__u16 moves;
	__u16 request_len;
	__u8 service;
	__u8 owner;
	__u8 flags;
	char etag[ES_DOWNLOAD_ETAG_SIZE];
	char request[ES_DOWNLOAD_HEAD_MAX];
};

/* es_download_end_seq() - behind the last byte of the response */
static inline __u32 es_download_end_seq(const struct es_download *download)
{
	return download->response_seq + download->head_len + (__u32)download->length;
}

/**
 * struct es_download_kept - one in the table
 * @told_ns: when its owner has told it last, or this node others: @download.tsval is of that moment
 * @keeper: of an own one: the nodes that were told; @is_seen: the last look has found it
 * @is_resumed: this node goes on with it in another's place
 */
struct es_download_kept {
	struct es_download download;
	__u64 flow_hash;
	unsigned long long told_ns;
	__u16 keeper[2];
	__u8 is_seen;
	__u8 is_resumed;
};

struct es_downloads;

/* es_downloads_new() - of @entries at the most. Returns 0 or -ENOMEM. */
int es_downloads_new(unsigned int entries, struct es_downloads **ret_downloads);
void es_downloads_free(struct es_downloads **downloads);

/*
 * es_downloads_keep() - put in, in place of what was known of the flow. Returns it, NULL: there is no memory.
 */
struct es_download_kept *es_downloads_keep(struct es_downloads *downloads, __u64 flow_hash,
					   const struct es_download *download, unsigned long long now_ns);

/* es_downloads_find() - the one of this flow; NULL: there is none */
struct es_download_kept *es_downloads_find(struct es_downloads *downloads, __u64 flow_hash);

/* es_downloads_drop() - forget one */
void es_downloads_drop(struct es_downloads *downloads, struct es_download_kept *kept);
void es_downloads_clear(struct es_downloads *downloads);

/* es_downloads_each() - the next one after @kept, NULL for the first; NULL: there is none. @kept may be
 * dropped meanwhile if the next one is asked for before. */
struct es_download_kept *es_downloads_each(struct es_downloads *downloads,
					   const struct es_download_kept *kept);

/* es_downloads_count() - entries now; @ret_bytes: the memory that they take; 0 of NULL */
unsigned int es_downloads_count(const struct es_downloads *downloads, size_t *ret_bytes);

#endif
