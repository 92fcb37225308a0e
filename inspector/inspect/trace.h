/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TRACE_H
#define ES_TRACE_H

/*
 * Decisions for people who watch (`earshot trace`): each worker has a bounded ring for each watcher, chooses
 * decisions by the watcher's filter, and writes those that find room; the control thread reads. Neither waits
 * for the other. Without a watcher, a worker has no ring, and reads one pointer of its own for each decision.
 */
#include <stdatomic.h>
#include "inspector/config/config.h"
#include "inspector/handover/handover.h"
#include "inspector/inspect/tally.h"
#include "inspector/packet/packet.h"

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
 * struct es_trace_filter - a decision is shown if every field admits it; all zeros admit everything
 * @node, @service, @why, @decision: names with commas between them, one of which must match; "": any
 * @path: a prefix of the path
 * @client: a network's address, whose first @client_bits must be the client's; 0 bits admit all
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
 * Keys are node, service, client, path, why and decision. Names must be of @conf. Returns 0, or -EINVAL with
 * @err: what is wrong, and what would be accepted.
 */
int es_trace_filter_add(struct es_trace_filter *filter, const struct es_conf *conf, const char *text,
			struct es_conf_error *err);

/**
 * struct es_trace_entry - one decision
 * It has names, not numbers, since a reload may give the numbers to others before it is read.
 * @at_ns: CLOCK_MONOTONIC; @took_ns: from when the request was taken up until it was given to its node
 * @node: that serves it, "" if none does; @decision: of es_trace_decision_name()
 * @content: the name that a plugin has given it; "": the URI is its name
 * @text, @text_len: method and target as sent, any bytes; none if it is not HTTP/1.x; @is_cut: there is more
 * of it
 * @path_at: where in @text the path begins
 * @minor: of its version HTTP/1.x; -1: not known
 * @status, @bytes: of the answer, and of its body, if this node answers itself; else 0
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

/* es_trace_admits() - does @filter show the decision? */
int es_trace_admits(const struct es_trace_filter *filter, const struct es_trace_entry *entry);

/**
 * struct es_trace_ring - one worker's, for one watcher; all zeros: empty
 * @filter, @next: set before the worker gets the ring; from then on @next is the worker's
 * @written: counted by the worker; @taken: by the reader; @left_out: decisions that found no room
 */
struct es_trace_ring {
	struct es_trace_filter filter;
	struct es_trace_ring *next;
	_Atomic unsigned int written;
	_Atomic unsigned int taken;
	_Atomic unsigned long long left_out;
	struct es_trace_entry entry[ES_TRACE_ENTRIES];
};

/**
 * es_trace_put() - the worker's. Returns 1 if the entry is in the ring; 0 if the filter does not admit it;
 * -ENOBUFS without room.
 */
int es_trace_put(struct es_trace_ring *ring, const struct es_trace_entry *entry);

/* es_trace_take() - the reader's: copy the oldest entry. Returns 1, or 0 if there is none. */
int es_trace_take(struct es_trace_ring *ring, struct es_trace_entry *ret_entry);

/* es_trace_why() - the decision's reason, in a word of docs/json.md; @order: the decision's */
const char *es_trace_why(const struct es_conf *conf, const struct es_handover_order *order,
			 unsigned int decision);

/**
 * es_trace_why_name() - reason number @i of those that a decision may have under @conf; NULL: there are fewer
 */
const char *es_trace_why_name(const struct es_conf *conf, unsigned int i);

/* es_trace_request() - write method and target of the request that begins with @text into @entry */
void es_trace_request(struct es_trace_entry *entry, const char *text, size_t len);

#endif
