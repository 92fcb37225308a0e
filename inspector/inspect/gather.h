/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_GATHER_H
#define ES_GATHER_H

/*
 * First requests that span segments: the segments of a flow are kept, in and out of order, until the
 * inspector can decide. Bounded in flows and in bytes per flow; who exceeds a bound is decided with what is
 * there, or forgotten (the client then retransmits). Those that may wait for longer are the first to be forgotten.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/handover/handover.h"
#include "inspector/http/head.h"
#include "kmod/core/types.h"

#define ES_GATHER_SEGMENTS 256

/* A request that is decided keeps so many times as much until it leaves. */
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
 * struct es_gather - the first request of one flow so far
 * @has_first: the segment that proves the client ISN is here; only then may anything be decided
 * @order: what its message will say; @flow: an enum es_record_flow
 * @urgent: some segment has urgent data
 * @leaving: an enum es_gather_leaving: it is decided, and waits for the local socket to be ended before it
 * goes to @target; since @left_ms
 * @asked: the client has been asked for more than it sends unheard (es_inspect_ask()); @full: a bound was met
 * @has_fin: the client has closed its side, behind @fin_seq
 * @wanted: bytes of text that a rule has asked for before it decides; @longest: segment's payload
 * @is_patient: es_gather_wait() says so; @repeated: the client has repeated its first segment, and it was waited on
 * @acked: bytes of text that the client was told to be here (waited.c), so that it does not send them again; all of them are in
 * the first segment then (es_gather_merge()); @given: it is decided, and kept to be given again, so often
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

/* Is all here that the client will ever send? */
static inline int es_gather_is_closed(const struct es_gather *g)
{
	return g->has_first && g->has_fin && g->first_seq + (uint32_t)g->text_len == g->fin_seq;
}

/* es_gather_most() - as much of a request is gathered at most, for which @bytes are kept: a client that is asked for more than it
 * sends unheard is offered a window of this @scale, which counts from the request's first byte */
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
 * A full table forgets the flow that waits for longest, of those that may do so for longer if there are any: @ret_evicted
 * says so. Returns NULL without memory.
 */
struct es_gather *es_gather_insert(struct es_gather_table *table, __u64 flow_hash, uint32_t cookie,
				   double deadline, int *ret_evicted);

enum es_gather_result {
	ES_GATHER_ADDED,
	ES_GATHER_REPEATED, /* it was here already, or is older than the request: the client waits for an
			       answer */
	ES_GATHER_FULL,	    /* a bound is reached; the segment was not kept */
};

/**
 * es_gather_add() - keep a segment (its bytes are copied)
 * @payload: points into @bytes
 * Segments that begin before the first byte, now or earlier, are dropped.
 */
enum es_gather_result es_gather_add(struct es_gather_table *table, struct es_gather *gather,
				    const uint8_t *bytes, size_t len, size_t header_len, uint32_t seq,
				    int is_first);

/**
 * es_gather_merge() - the text that is here becomes one segment, the first one
 * @bytes: the packet, @len long, whose headers are as long as that one's. Returns 0 or -ENOMEM, and nothing has changed.
 */
int es_gather_merge(struct es_gather *gather, const uint8_t *bytes, size_t len);

/* es_gather_renew() - it waits for longer: until @deadline, which no other flow's is behind */
void es_gather_renew(struct es_gather_table *table, struct es_gather *gather, double deadline);

/* es_gather_wait() - it may wait for longer than others, until @deadline, which no other such flow's is behind; until
 * es_gather_renew() */
void es_gather_wait(struct es_gather_table *table, struct es_gather *gather, double deadline);

/* es_gather_remove() - the flow is decided or forgotten; frees it and its segments */
void es_gather_remove(struct es_gather_table *table, struct es_gather *gather);

/* The flow with the earliest deadline, or NULL. */
struct es_gather *es_gather_oldest(struct es_gather_table *table);

/* Of those that may wait for longer the one with the earliest deadline, or NULL. */
struct es_gather *es_gather_patient(struct es_gather_table *table);

unsigned int es_gather_count(const struct es_gather_table *table);

/* Whom the next es_gather_insert() forgets, or NULL. */
struct es_gather *es_gather_victim(const struct es_gather_table *table);

#endif
