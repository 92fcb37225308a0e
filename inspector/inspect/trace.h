/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TRACE_H
#define ES_TRACE_H

/*
 * Decisions for somebody who watches (`earshot trace`): each worker has a bounded ring for each watcher, chooses by
 * the watcher's filter and writes what there is room for; the control thread reads. Nobody waits for anybody. Where
 * nobody watches, a worker has no ring, and looks at one pointer of its own for each decision.
 */
#include <stdatomic.h>
#include "inspector/config/config.h"
#include "inspector/handover/handover.h"
#include "inspector/handover/packet.h"
#include "inspector/inspect/tally.h"

#define ES_TRACE_ENTRIES 1024 /* of a ring; a power of two */
#define ES_TRACE_TEXT	 1024
#define ES_TRACE_PREFIX	 256
#define ES_TRACE_LIST	 256

/* Beside those of enum es_tally_decision: a rule or plugin refused it. */
#define ES_TRACE_REJECT	   ES_TALLY_DECISION_COUNT
#define ES_TRACE_DECISIONS (ES_TALLY_DECISION_COUNT + 1)

/* es_trace_decision_name() - "first", "stay", "move", "again" or "reject" */
const char *es_trace_decision_name(unsigned int decision);

/**
 * struct es_trace_filter - what is shown: what all that are given admit; all zeroes admits everything
 * @node, @service, @why, @decision: names with commas between them, of which one must be it; "": any
 * @path: what the path begins with
 * @client: the network's address, all of whose first @client_bits are the client's; 0 admits all
 */
struct es_trace_filter {
	char node[ES_TRACE_LIST];
	char service[ES_TRACE_LIST];
	char why[ES_TRACE_LIST];
	char decision[ES_TRACE_LIST];
	char path[ES_TRACE_PREFIX];
	struct es_addr client;
	unsigned int client_bits;
};

/**
 * es_trace_filter_add() - narrow @filter by "KEY=VALUE"
 * Keys are node, service, client, path, why and decision. Names must be of @conf. Returns 0, or -EINVAL with @err:
 * what is wrong, and what would be accepted.
 */
int es_trace_filter_add(struct es_trace_filter *filter, const struct es_conf *conf, const char *text,
			struct es_conf_error *err);

/**
 * struct es_trace_entry - one decision
 * Names and not numbers, since a reload may give the numbers to others before it is read.
 * @at_ns: CLOCK_MONOTONIC; @took_ns: from when the request was taken up until it was given to its node
 * @node: who serves it, "" if nobody does; @decision: as of es_trace_decision_name()
 * @content: what a plugin has named it; "": the URI's
 * @text, @text_len: method and target as sent, any bytes; none where it is no HTTP/1.x; @is_cut: there is more of it
 * @path_at: where in @text the path begins
 * @minor: of its version HTTP/1.x; -1: not known
 * @status, @bytes: of the answer, and of its body, if this node gives it itself; else 0
 */
struct es_trace_entry {
	unsigned long long at_ns;
	unsigned long long took_ns;
	struct es_addr client;
	uint16_t client_port;
	uint8_t decision;
	uint8_t is_cut;
	uint16_t text_len;
	uint16_t path_at;
	uint16_t status;
	int8_t minor;
	uint32_t bytes;
	char service[ES_CONF_NAME_SIZE];
	char node[ES_CONF_NAME_SIZE];
	char why[ES_CONF_NAME_SIZE];
	char content[112];
	char text[ES_TRACE_TEXT];
};

/* es_trace_admits() - is the decision one that @filter shows? */
int es_trace_admits(const struct es_trace_filter *filter, const struct es_trace_entry *entry);

/**
 * struct es_trace_ring - one worker's, for one watcher; zeroes are an empty one
 * @filter, @next: set before the worker gets it; @next is the worker's then
 * @written: by the worker; @taken: by the reader; @left_out: for which there was no room
 */
struct es_trace_ring {
	struct es_trace_filter filter;
	struct es_trace_ring *next;
	_Atomic unsigned int written;
	_Atomic unsigned int taken;
	_Atomic unsigned long long left_out;
	struct es_trace_entry entry[ES_TRACE_ENTRIES];
};

/* es_trace_put() - the worker's: if its filter admits it. Returns 1 if it is in the ring; -ENOBUFS if that has no room; else 0. */
int es_trace_put(struct es_trace_ring *ring, const struct es_trace_entry *entry);

/* es_trace_take() - the reader's: the oldest one is copied. Returns 1, or 0: there is none. */
int es_trace_take(struct es_trace_ring *ring, struct es_trace_entry *ret_entry);

/* es_trace_why() - why it was decided so, in a word of docs/json.md; @order is that of the decision */
const char *es_trace_why(const struct es_conf *conf, const struct es_handover_order *order,
			 unsigned int decision);

/* es_trace_why_name() - reason number @i of those that a decision may have under @conf; NULL: there are fewer */
const char *es_trace_why_name(const struct es_conf *conf, unsigned int i);

/* es_trace_request() - method and target of what begins with @text, into @entry */
void es_trace_request(struct es_trace_entry *entry, const char *text, size_t len);

#endif
