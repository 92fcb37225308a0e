/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STAY_H
#define ES_STAY_H

/*
 * The one rule by which a connection's next request stays where the connection is. A policy says which nodes
 * are as good as each other for the request, as far as content goes, and by what they are to be compared; the
 * connection's node pays nothing for moving, each other one what a move costs. Ties stay.
 *
 * Loads are late, and all inspectors see the same ones. Were they compared as they are at this moment, every
 * fluctuation would move connections, and all nodes would send them to the same one. So for a connection that
 * is open, loads are those that have lasted (ten times settle_ms, load.h); what would be gained must be a
 * fifth of what the connection's node has beyond what the move costs; and only a node with more than the mean
 * gives any away: two that have too much do not fill the third one twice. Each move counts at once at both
 * its ends, so they stop when enough have moved. With settle_ms = 0, which is for those who see the nodes as
 * they are, nothing of this is done.
 */
#include "inspector/policy/policy.h"

/* So much of what the connection's node has must a move gain beyond its cost: of nodes that differ by less,
 * none has a quarter more than the mean. */
#define ES_STAY_SLACK 0.2

/* A disk that was busy for a smaller share of the time has time for what the node lacks in memory. */
#define ES_STAY_DISK_IDLE 0.1

/**
 * struct es_stay - what is compared
 * @measure: by what
 * @add: what the request adds to any node
 * @cost: what moving an open connection costs, in @measure's units
 * @is_of_set: about a change of a set, and not about the connection: by es_view_at_most(), and no more than
 * the cost is asked for
 */
struct es_stay {
	int is_of_set;
	enum es_measure measure;
	double add;
	double cost;
};

/* es_view_lasting(), es_view_settled() - as es_view_measure(), of a load that has lasted; for connections
 * that are open, longer yet */
double es_view_lasting(const struct es_cluster_view *view, unsigned int node, enum es_measure measure);
double es_view_settled(const struct es_cluster_view *view, unsigned int node, enum es_measure measure);

/* es_view_at_least(), es_view_at_most() - what both have: the load that has lasted, and that of this moment.
 * A mean does not know yet what was decided since, so what many requests may each change needs both. */
double es_view_at_least(const struct es_cluster_view *view, unsigned int node, enum es_measure measure);
double es_view_at_most(const struct es_cluster_view *view, unsigned int node, enum es_measure measure);

/**
 * es_stay_pick() - the node of @among (NULL: of all) that the request is given to; -1 if none is a target
 * Of several that are alike the connection's; else as es_policy_least(). A first request goes by the loads of
 * this moment.
 */
int es_stay_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		 const struct es_stay *stay, const struct es_node_set *among);

/* es_stay_requests() - what is compared where a policy counts requests, with the service's handover_cost */
struct es_stay es_stay_requests(const struct es_cluster_view *view);

/**
 * es_stay_among() - the node for content that @homes serve, all of them targets
 * A node that had it until lately (@former) has it still, and stays as good for a connection that is there.
 * So does any whose disk is idle, where moving costs something: content that fits into the memory of each
 * node moves nothing.
 */
int es_stay_among(const struct es_request_view *request, const struct es_cluster_view *view,
		  const struct es_stay *stay, struct es_node_set homes, struct es_node_set former);

/* es_stay_or_go_home() - the same for content with one fixed node */
int es_stay_or_go_home(const struct es_request_view *request, const struct es_cluster_view *view,
		       unsigned int home);

/* es_stay_why() - why a connection leaves @request's node, which is not -1; @said: what the policy says */
enum es_move_why es_stay_why(const struct es_request_view *request, const struct es_cluster_view *view,
			     enum es_move_why said);

/* es_stay_may_read() - whatever the connection's node lacks in memory, its disk is idle: no reason to move */
int es_stay_may_read(const struct es_request_view *request, const struct es_cluster_view *view);

/* es_stay_is_free() - moving costs something, and the connection's node may have the request: for policies
 * to which all nodes are alike */
int es_stay_is_free(const struct es_request_view *request, const struct es_cluster_view *view);

#endif
