/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_H
#define ES_INSPECT_H

/*
 * What a worker does with a packet: find out which request it belongs to, decide, hand over. One instance per
 * worker; time comes in with each call.
 */
#include "inspector/gather.h"
#include "inspector/handover.h"
#include "inspector/hot.h"
#include "inspector/sampler.h"
#include "inspector/route.h"
#include "inspector/worker.h"

#define ES_STRAYS_WAITING   256
#define ES_STRAY_PACKET_MAX 81 /* both headers, and one byte */

/* struct es_stray_case - a stray segment, until those have answered that may not be there */
struct es_stray_case {
	__u64 flow_hash;
	unsigned long long deadline_ns;
	struct es_handover_order order;
	size_t len;
	int is_here;
	uint8_t packet[ES_STRAY_PACKET_MAX];
};

/**
 * struct es_strays - inspect_stray.c's
 * @waiting: a queue in order of their deadlines; @first: its head; @count: so many
 * @since_ns: the second in which they are limited; @seen: so many in it
 */
struct es_strays {
	struct es_stray_case waiting[ES_STRAYS_WAITING];
	unsigned int first, count;
	unsigned long long since_ns;
	unsigned int seen;
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
	int reply_fd;		  /* raw socket, for answers to clients that no node serves */
	unsigned long long now_ns;
	struct es_strays strays;
	_Atomic unsigned long long count[ES_WORKER_COUNTER_COUNT];
	_Atomic unsigned long long sent_to[ES_NODES_MAX];
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

/* es_inspect_skip() - count a packet that came too late to be inspected */
void es_inspect_skip(struct es_inspector *in);

/* es_inspect_forget() - forget all that is being gathered: the datapath may have served it meanwhile */
void es_inspect_forget(struct es_inspector *in);

/* es_inspect_messages() - take NACKs and errors from the sender's socket */
void es_inspect_messages(struct es_inspector *in);

/* es_inspect_deadlines() - decide, or forget, what was gathered for too long */
void es_inspect_deadlines(struct es_inspector *in);

#endif
