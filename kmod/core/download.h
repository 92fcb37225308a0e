/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_DOWNLOAD_H
#define ES_CORE_DOWNLOAD_H

/*
 * Long responses, with which another node can go on when this one is lost (inspector/cluster/downloads.h). It
 * must know what the client has asked for, and what it was promised. So the datapath keeps the head of each
 * request whose message says ES_REQUEST_F_TELL, and when the head of its response promises many bytes, the
 * daemon is told both heads.
 */
#include "track.h"

/* A response is long if so many bytes of its body are still to come when its head has been read. */
#define ES_DOWNLOAD_LEAST 262144

/* So many bytes of a head are kept: one that is longer is not told whole. */
#define ES_DOWNLOAD_HEAD_MAX 1024

#define ES_DOWNLOAD_REQUESTS   2048   /* heads of requests that are kept */
#define ES_DOWNLOAD_RING_BYTES 262144 /* of the daemon's ring: a hundred responses */

/**
 * struct es_download_request - the first bytes of the request that ends at @next_request_seq
 * @len: of @head
 */
struct es_download_request {
	__u32 next_request_seq;
	__u16 len;
	__u16 pad;
	__u8 head[ES_DOWNLOAD_HEAD_MAX];
};

/**
 * struct es_download_entry - a long response, as the datapath tells it
 * @track: when its head has been read; @response_seq: of its first byte; @tsval: the timestamp of the moment
 * @request: its @len is 0 if it is not known
 * @len: of @response, its first bytes; track.response.head says how long its head is
 */
struct es_download_entry {
	struct es_track track;
	struct es_flow flow;
	__u32 response_seq;
	__u32 tsval;
	__u16 len;
	__u16 pad;
	struct es_download_request request;
	__u8 response[ES_DOWNLOAD_HEAD_MAX];
};
_Static_assert(__builtin_offsetof(struct es_download_entry, request) % 8 == 0 &&
		       sizeof(struct es_download_request) % 8 == 0,
	       "it is copied by words");

/*
 * es_download_begins() - may the response be a long one, whose first byte is the first that is read now?
 */
static __always_inline int es_download_begins(const struct es_track *t)
{
	return (t->request_flags & (ES_REQUEST_F_TELL | ES_REQUEST_F_LONG)) == ES_REQUEST_F_TELL &&
	       !t->response_bytes;
}

/* es_download_is_long() - and is it, now that bytes were read? */
static __always_inline int es_download_is_long(const struct es_track *t)
{
	return t->response.phase == ES_RESPONSE_BODY && t->response.left >= ES_DOWNLOAD_LEAST;
}

#endif
