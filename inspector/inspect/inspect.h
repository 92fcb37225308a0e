/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_H
#define ES_INSPECT_H

/*
 * What a worker does with a packet: find out which request it belongs to, decide, hand over. One instance per
 * worker; time comes in with each call.
 */
#include "inspector/inspect/gather.h"
#include "inspector/handover/handover.h"
#include "inspector/handover/raw.h"
#include "inspector/inspect/hot.h"
#include "inspector/inspect/sampler.h"
#include "inspector/inspect/route.h"
#include "inspector/inspect/tally.h"
#include "inspector/inspect/trace.h"
#include "inspector/inspect/unheard.h"
#include "inspector/inspect/worker.h"
#include "kmod/core/strays.h"

#define ES_STRAY_GROUPS	    32
#define ES_STRAY_SOURCES    256
#define ES_STRAY_PACKET_MAX 101 /* both headers, IPv6 without extensions, and one byte */

/**
 * struct es_stray_case - a stray segment about which is asked
 * @seq: of its first byte; @is_earlier: if it is nobody's, it is a first request (earlier.c); @version: the inspector's
 * when it came
 */
struct es_stray_case {
	__u64 flow_hash;
	size_t len;
	uint32_t seq;
	uint32_t ack;
	uint32_t version;
	uint8_t is_earlier;
	uint8_t packet[ES_STRAY_PACKET_MAX];
};

enum es_stray_state {
	ES_STRAY_FREE,
	ES_STRAY_GATHERING,
	ES_STRAY_ASKED_AWAY, /* those that are no members */
	ES_STRAY_ASKED,	     /* one member, in one of the rounds */
};

/**
 * struct es_stray_group - strays of one service and one family about which is asked together
 * @id: of the questions about them; @node, @round: who is asked, and how often all were before
 * @away: the nodes that were no members when the first was asked
 * @open: a bit for each stray that no node has said to have; @said: that @node has said something about
 */
struct es_stray_group {
	enum es_stray_state state;
	uint32_t id;
	unsigned int service, is_v6, count, node, round;
	__u64 open, said;
	unsigned long long deadline_ns;
	uint8_t away[ES_NODES_MAX];
	struct es_stray_case stray[ES_STRAYS_MANY];
};

/* struct es_stray_budget - @bytes: that may be sent now; @since_ns: when that was so, 0: never */
struct es_stray_budget {
	double bytes;
	unsigned long long since_ns;
};

/* struct es_stray_source - @bytes: what questions about clients with addresses of this slot have cost in the
 * @second, beyond what they brought */
struct es_stray_source {
	unsigned int second;
	double bytes;
};

/**
 * struct es_strays - stray.c's
 * @id: of the last group that was asked about
 * @budget: of bytes on the cluster network, for flows that are not known to have existed, and for those that
 * are
 * @source: who has been asked about in this second
 */
struct es_strays {
	struct es_stray_group group[ES_STRAY_GROUPS];
	uint32_t id;
	struct es_stray_budget budget[2];
	struct es_stray_source source[ES_STRAY_SOURCES];
};

/* struct es_earlier - a segment of which all nodes have said that its connection is not theirs, under that @version */
struct es_earlier {
	__u64 flow_hash;
	uint32_t seq;
	uint32_t ack;
	uint32_t version;
	uint32_t is_noted;
};

#define ES_EARLIER_SLOTS     1024
#define ES_LAYER4_CASES	     256
#define ES_LAYER4_PACKET_MAX 100 /* both headers, IPv6 without extensions; longer ones are not repeated */

/**
 * struct es_layer4_case - the ACK of a handshake that was given to @node, which has not said that it has the connection
 * @attempt, @options: with which it was; @due_ns: when the node is told again, 0: free; @tries: how often it was
 */
struct es_layer4_case {
	__u64 flow_hash;
	unsigned long long due_ns;
	unsigned int service, node, attempt, tries;
	struct es_tcp_options options;
	size_t len;
	uint8_t packet[ES_LAYER4_PACKET_MAX];
};

/**
 * struct es_layer4 - layer4.c's
 * @next: where the next one goes: the oldest makes room
 * @unserved_ns: until when it is known that this node does not serve a service, for clients of IPv4, of IPv6
 */
struct es_layer4 {
	struct es_layer4_case given[ES_LAYER4_CASES];
	unsigned int next;
	unsigned long long unserved_ns[ES_CONF_SERVICES_MAX][ES_CONF_FAMILIES];
};

/* struct es_left - a connection that was sent to its content's home, by request for @content and with @moves */
struct es_left {
	__u64 flow_hash;
	__u64 content;
	uint32_t at_ms;
	uint16_t moves;
};

#define ES_LEFT_SLOTS 1024

/* struct es_beyond - segments that wait until they are sent again to @node (beyond.c); more than fit are left to their clients */
#define ES_BEYOND_MAX 256
struct es_beyond_segment {
	unsigned long long due_ns;
	uint8_t *bytes;
	size_t len;
	uint8_t node;
	uint8_t service;
	uint8_t attempt;
};

struct es_beyond {
	unsigned int count;
	struct es_beyond_segment segment[ES_BEYOND_MAX];
};

struct es_inspector {
	const struct es_worker_params *params;
	struct es_keys keys;
	const struct es_cluster *cluster;
	struct es_decision_table decisions;
	struct es_gather_table *gathers;
	struct es_handover_sender *sender;
	struct es_router router;
	struct es_hot hot;
	struct es_sampler sampler;
	struct es_http_head head; /* of a request that came in one segment */
	struct es_name name;	  /* of the request that is being decided */
	struct es_raw raw;	  /* for answers to clients that no node serves */
	unsigned long long now_ns;
	unsigned long long began_ns; /* when this packet, or this request, was taken up */
	struct es_strays strays;
	struct es_unheard unheard;
	struct es_earlier earlier[ES_EARLIER_SLOTS];
	uint32_t version; /* counts the versions of the cluster, and with them its rings */
	struct es_layer4 layer4;
	struct es_left left[ES_LEFT_SLOTS];
	struct es_beyond beyond;
	__u32 swept; /* the set of the decision table that is looked through next */
	_Atomic unsigned long long count[ES_WORKER_COUNTER_COUNT];
	struct es_tally *tally; /* NULL: for tests that do not look */
	struct es_trace_ring
		*traces; /* of those who watch, set in the worker's thread; theirs. NULL: nobody does */
	struct es_trace_ring *log; /* the request log's, likewise; NULL: there is none */
};

/* es_inspector_init() - returns 0 or -errno; on failure nothing is left behind */
int es_inspector_init(struct es_inspector *in, const struct es_worker_params *params,
		      const struct es_cluster *cluster);
void es_inspector_fini(struct es_inspector *in);

/* es_inspector_set_cluster() - use another version and other keys; with another configuration, policies start
 * anew */
int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys);

/* es_inspector_learn() - where requests of flows that this node now inspects have gone already */
void es_inspector_learn(struct es_inspector *in, const struct es_proof *proofs, size_t count);

/* es_inspect_record() - one packet from the datapath; @packet has record->len bytes */
void es_inspect_record(struct es_inspector *in, const struct es_record *record, const uint8_t *packet);

/**
 * es_inspect_late() - es_inspect_record() of one that has lain for so long that the datapath has done without
 * us A request may have come again since, and been served: it is counted only. But of one whose socket was to
 * be ended, nobody else knows.
 */
void es_inspect_late(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes);

/* es_inspect_forget() - forget what is being gathered and the datapath may have served meanwhile */
void es_inspect_forget(struct es_inspector *in);

/* es_inspect_messages() - take NACKs and errors from the sender's socket */
void es_inspect_messages(struct es_inspector *in);

/* es_inspect_deadlines() - decide, or forget, what was gathered for too long */
void es_inspect_deadlines(struct es_inspector *in);

#endif
