/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASKED_H
#define ES_ASKED_H

/*
 * Requests that a process of this machine reads itself, since the datapath sees but ciphertext of them
 * (earshot-tls), and about which it asks (inspector/ask/): decided as requests are that packets bring, by the
 * same rules, plugins and policy, counted and shown like them. No packet is touched, and no table of packets.
 */
#include "inspector/handover/handover.h"

struct es_inspector;
struct es_trace_entry;

/**
 * struct es_question - a request
 * @text, @len: its head, and of its body what is there
 * @moves: how often its connection has moved; @is_first: is it the connection's first request?
 */
struct es_question {
	struct es_flow flow;
	const char *text;
	size_t len;
	uint16_t moves;
	int is_first;
};

enum es_asked_word {
	ES_ASKED_STAY,
	ES_ASKED_MOVE,	 /* to a node */
	ES_ASKED_REJECT, /* its client gets an answer from here, and its connection ends */
	ES_ASKED_RESET,	 /* no node can serve it */
};

/**
 * struct es_asked - what was decided, and what is needed when it has become of it what it did
 * @service: -1: of none that is there, or whose requests are read
 * @conf_version: of the inspector, in which @service and @node are numbers
 * @shown: a decision that somebody watches, until it is known whether it is carried out; NULL: none
 */
struct es_asked {
	enum es_asked_word word;
	int service;
	unsigned int node;
	int is_first;
	uint32_t conf_version;
	uint64_t flow_hash;
	unsigned long long decided_ns;
	struct es_handover_order order;
	struct es_trace_entry *shown;
};

#define ES_ASKED_ANSWER_MAX 1208

/**
 * es_inspect_asked() - decide where a request is served
 * @answer: room for ES_ASKED_ANSWER_MAX bytes, which get a refusal's answer. Returns how many it has, 0 for
 * any other word.
 */
size_t es_inspect_asked(struct es_inspector *in, const struct es_question *question,
			struct es_asked *ret_asked, char *answer);

/* es_inspect_taken() - a request that another node has decided is served here: what does it cost? */
void es_inspect_taken(struct es_inspector *in, const struct es_question *question,
		      struct es_asked *ret_asked);

/* es_inspect_asked_moved(), _stayed() - a request that was to move did, or could not; frees @shown */
void es_inspect_asked_moved(struct es_inspector *in, struct es_asked *asked);
void es_inspect_asked_stayed(struct es_inspector *in, struct es_asked *asked);

/* es_asked_forget() - nothing becomes of it any more: free @shown */
void es_asked_forget(struct es_asked *asked);

#endif
