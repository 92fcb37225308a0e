/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_H
#define ES_INSPECT_H

/*
 * A worker's way with packets: find out which request a packet belongs to, decide, hand over. One instance
 * per worker; the caller sets the time (now_ns) before each call.
 */
#include "inspector/handover/handover.h"
#include "inspector/handover/raw.h"
#include "inspector/inspect/beyond.h"
#include "inspector/inspect/earlier.h"
#include "inspector/inspect/gather.h"
#include "inspector/inspect/held.h"
#include "inspector/inspect/hot.h"
#include "inspector/inspect/layer4.h"
#include "inspector/inspect/sampler.h"
#include "inspector/inspect/route.h"
#include "inspector/inspect/stray.h"
#include "inspector/inspect/survive.h"
#include "inspector/inspect/tally.h"
#include "inspector/inspect/trace.h"
#include "inspector/inspect/unheard.h"
#include "inspector/inspect/worker.h"

/**
 * struct es_left - a connection that a request for @content, its move number @moves, has sent to the home of
 * that content
 */
struct es_left {
	__u64 flow_hash;
	__u64 content;
	uint32_t at_ms;
	uint16_t moves;
};

#define ES_LEFT_SLOTS 1024

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
	struct es_http_head head; /* of a request that arrived in one segment */
	struct es_name name;	  /* of the request that is being decided */
	struct es_raw raw;	  /* for the inspector's own answers to clients */
	unsigned long long now_ns;
	unsigned long long began_ns; /* when this packet, or this request, was taken up */
	struct es_strays strays;
	struct es_unheard unheard;
	struct es_earlier earlier[ES_EARLIER_SLOTS];
	uint32_t version; /* counts the versions of the cluster, and so its rings */
	uint32_t conf_version;
	struct es_layer4 layer4;
	struct es_left left[ES_LEFT_SLOTS];
	struct es_beyond beyond;
	struct es_holds holds;
	__u32 swept; /* the set of the decision table that is looked through next */
	_Atomic unsigned long long count[ES_WORKER_COUNTER_COUNT];
	struct es_tally *tally; /* NULL: for tests that do not look */
	/*
	 * Set in the worker's thread, and owned by those who read them; NULL: nobody watches, there is no
	 * log.
	 */
	struct es_trace_ring *traces;
	struct es_trace_ring *log;
};

/* es_inspector_init() - returns 0 or -errno; on failure nothing is left behind */
int es_inspector_init(struct es_inspector *in, const struct es_worker_params *params,
		      const struct es_cluster *cluster);
void es_inspector_fini(struct es_inspector *in);

/* es_inspector_set_cluster() - use another version and other keys; with another configuration, policies start
 * anew */
int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys);

/**
 * es_inspector_learn() - where requests have gone already whose flows are this node's to inspect from now on
 */
void es_inspector_learn(struct es_inspector *in, const struct es_proof *proofs, size_t count);

/* es_inspect_record() - one packet from the datapath; @packet has record->len bytes */
void es_inspect_record(struct es_inspector *in, const struct es_record *record, const uint8_t *packet);

/**
 * es_inspect_late() - a packet that has lain in the ring while the datapath served without the daemon A
 * request may have been repeated and served since, so it is only counted. But nobody else knows of one whose
 * socket was to be ended: that goes on.
 */
void es_inspect_late(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes);

/**
 * es_inspect_forget() - forget the requests that are being gathered: the datapath may have served them
 * meanwhile
 */
void es_inspect_forget(struct es_inspector *in);

/* es_inspect_messages() - take NACKs and errors from the sender's socket */
void es_inspect_messages(struct es_inspector *in);

/* es_inspect_deadlines() - decide, or forget, what was gathered for too long */
void es_inspect_deadlines(struct es_inspector *in);

#endif
