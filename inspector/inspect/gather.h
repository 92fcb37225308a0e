/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_GATHER_H
#define ES_GATHER_H

/*
 * Requests that span segments: the segments of a flow are kept, in and out of order, until the inspector can
 * decide. Bounded in flows and in bytes per flow. A flow that exceeds a bound is decided with what is here of
 * it, or forgotten (its client then repeats it); flows that may wait for longer than others are forgotten
 * first.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/handover/handover.h"
#include "inspector/http/head.h"
#include "kmod/core/types.h"

#define ES_GATHER_SEGMENTS 256

/* A request that is decided, and is about to leave, may have so many times the bytes. */
#define ES_GATHER_LEAVING_TIMES 4

/* struct es_gather_segment - one original packet of a flow; owned by its es_gather */
struct es_gather_segment {
	uint32_t seq;
	uint32_t payload_len;
	uint16_t len; /* of the IP packet */
	uint16_t header_len;
	uint8_t *bytes;
};

enum es_gather_leaving {
	ES_GATHER_STAYS = 0,
	ES_GATHER_LEAVING, /* the datapath is asked to end the socket */
	ES_GATHER_ENDING,  /* it does; and is asked whether the socket is gone */
};

/**
 * struct es_gather - a request so far
 * @has_first: the segment that proves the client ISN is here; nothing may be decided before
 * @order: what its message will say; @flow: an enum es_record_flow
 * @urgent: a segment has urgent data
 * @leaving: an enum es_gather_leaving: since @left_ms it is decided that the request goes to @target, once
 * the local socket has ended
 * @asked: the client was asked for more than it sends before it hears anything (es_inspect_ask()); @full: a
 * bound was met
 * @has_fin: the client has closed its side, and @fin_seq is the number after its last byte
 * @wanted: bytes of text that a rule has asked for before it decides; @longest: payload of the longest
 * segment
 * @is_patient: it may wait for longer than others (es_gather_wait()); @repeated: so its client has repeated
 * its first segment once
 * @acked: bytes of text that were acknowledged to the client (waited.c), which it therefore does not repeat;
 * all of them are in the first segment then (es_gather_merge())
 * @given: it is decided, and kept to be given again; how often it was
 * @text, @text_len: payload that is contiguous from the first byte on; @head: its scan so far
 */
struct es_gather {
	struct es_gather *hash_next;
	struct es_gather *older, *newer;
	__u64 flow_hash;
	uint32_t cookie;
	uint32_t first_seq;
	struct es_handover_order order;
	unsigned int target;
	uint8_t flow;
	uint8_t has_first;
	uint8_t urgent;
	uint8_t leaving;
	uint8_t has_fin;
	uint8_t asked;
	uint8_t full;
	uint8_t is_patient;
	uint8_t repeated;
	uint8_t given;
	uint32_t acked;
	uint32_t fin_seq;
	unsigned int count;
	unsigned int room;
	size_t bytes;
	double deadline;
	double left_ms;
	size_t wanted;
	size_t longest;
	char *text;
	size_t text_len;
	size_t text_room;
	struct es_http_head head;
	struct es_gather_segment *segment; /* @count of @room, in order of seq */
};

/* Is everything here that the client will ever send? */
static inline int es_gather_is_closed(const struct es_gather *g)
{
	return g->has_first && g->has_fin && g->first_seq + (uint32_t)g->text_len == g->fin_seq;
}

/**
 * es_gather_most() - how much of a request is gathered at most, if @bytes are kept
 * A client that is asked for more than it sends unheard is offered a window of this @scale, counted from the
 * request's first byte.
 */
static inline size_t es_gather_most(size_t bytes, unsigned int scale)
{
	size_t window = ((size_t)UINT16_MAX >> scale) << scale;

	return bytes < window ? bytes : window;
}

struct es_gather_table;

/**
 * es_gather_table_new() - at most @flows flows of at most @flow_bytes payload bytes
 * Returns 0 or -ENOMEM.
 */
int es_gather_table_new(unsigned int flows, size_t flow_bytes, struct es_gather_table **ret_table);
void es_gather_table_free(struct es_gather_table **table);

struct es_gather *es_gather_lookup(struct es_gather_table *table, __u64 flow_hash, uint32_t cookie);

/**
 * es_gather_insert() - begin to gather a flow
 * @deadline: time at which it must be decided (es_gather_oldest())
 * A full table frees es_gather_victim() for it, which may be of the same flow: @ret_evicted says so. Returns
 * NULL without memory.
 */
struct es_gather *es_gather_insert(struct es_gather_table *table, __u64 flow_hash, uint32_t cookie,
				   double deadline, int *ret_evicted);

enum es_gather_result {
	ES_GATHER_ADDED,
	ES_GATHER_REPEATED, /* it was here already, or is older than the request; the client waits */
	ES_GATHER_FULL,	    /* a bound is reached; the segment was not kept */
};

/**
 * es_gather_add() - keep a segment
 * @bytes: the packet, with @header_len bytes of headers; copied
 * Segments that begin before the first byte are dropped, those that are here already, too.
 */
enum es_gather_result es_gather_add(struct es_gather_table *table, struct es_gather *gather,
				    const uint8_t *bytes, size_t len, size_t header_len, uint32_t seq,
				    int is_first);

/**
 * es_gather_merge() - make one segment, the first one, of all the text that is here
 * @bytes: the packet, @len long, with headers as long as the first segment's
 * Returns 0, or -ENOMEM, and nothing has changed. */
int es_gather_merge(struct es_gather *gather, const uint8_t *bytes, size_t len);

/* es_gather_renew() - it waits until @deadline, which must not be before any other flow's */
void es_gather_renew(struct es_gather_table *table, struct es_gather *gather, double deadline);

/**
 * es_gather_wait() - it may wait for longer than others, until @deadline, which must not be before that of
 * any other such flow
 */
void es_gather_wait(struct es_gather_table *table, struct es_gather *gather, double deadline);

/* es_gather_remove() - free a flow that is decided or forgotten */
void es_gather_remove(struct es_gather_table *table, struct es_gather *gather);

/* The flow with the earliest deadline, or NULL. */
struct es_gather *es_gather_oldest(struct es_gather_table *table);

/* The flow with the earliest deadline among those that may wait for longer than others, or NULL. */
struct es_gather *es_gather_patient(struct es_gather_table *table);

unsigned int es_gather_count(const struct es_gather_table *table);

/*
 * The flow that the next es_gather_insert() forgets, or NULL: of those that may wait for longer, if there are
 * any, the oldest.
 */
struct es_gather *es_gather_victim(const struct es_gather_table *table);

#endif
