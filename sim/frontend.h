/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_FRONTEND_H
#define ES_SIM_FRONTEND_H

/*
 * The inspectors: each with an instance of the policy, its own estimate of the loads and its own content
 * table. They know of each other what the ordered bus brings, some time later. A single one sees the nodes as
 * they are, as the papers' front-end does.
 */
#include "inspector/policy/load.h"
#include "sim/node.h"
#include "sim/workload.h"

struct es_frontend;

/* @nodes stay the caller's and are looked at in every decision. Returns 0 or -errno. */
int es_frontend_new(const struct es_sim_params *params, const struct es_sim_node *nodes,
		    struct es_frontend **ret_frontend);
void es_frontend_free(struct es_frontend **frontend);

/* es_frontend_inspector() - who inspects a request: of a new connection, the flow's place decides; later the
 * node that has it */
unsigned int es_frontend_inspector(const struct es_frontend *frontend, __u64 flow_hash, int current);

/*
 * es_frontend_route() - the node; -1 if there is none. @ret_why: why the connection moves, if it does. A
 * proposal waits for es_frontend_say().
 */
int es_frontend_route(struct es_frontend *frontend, unsigned int inspector, const struct es_sim_file *file,
		      __u64 size_bytes, __u64 flow_hash, int current, __u64 now_ns,
		      enum es_move_why *ret_why);

/* es_frontend_say() - put this inspector's proposals on the bus; returns 1 if there are any, which are to be
 * heard one bus delay later, 0 if not, or -ENOMEM */
int es_frontend_say(struct es_frontend *frontend, unsigned int inspector);

/* es_frontend_hear() - the oldest message that was said is delivered, to all */
void es_frontend_hear(struct es_frontend *frontend, __u64 now_ns);

/* es_frontend_publish() - the nodes' loads as they are now are put on the bus;
 * returns as es_frontend_say() */
int es_frontend_publish(struct es_frontend *frontend);

/* struct es_frontend_counts - of the first inspector's content table, and over all: @fallbacks: decisions
 * that the policy left to the ring */
struct es_frontend_counts {
	struct es_contents_counts contents;
	__u64 decisions;
	__u64 fallbacks;
	__u64 messages;
	int tables_differ;
};
void es_frontend_count(const struct es_frontend *frontend, struct es_frontend_counts *ret_counts);

#endif
