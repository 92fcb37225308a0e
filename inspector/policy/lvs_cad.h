/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LVS_CAD_H
#define ES_LVS_CAD_H

/*
 * The policies of LVS-CAD (section 5), of which CAHRD is made of the two others. Load is the sum of the costs
 * of the requests in progress, for a node of weight 100.
 */
#include "inspector/policy/stay.h"

/* struct es_xlard_r - the parameters */
struct es_xlard_r {
	double handoff_cost;
	double disk_cost;
	double capacity;
	double keep_s;
};

/* For new() and params of both policies with these parameters. */
extern const struct es_policy_param es_xlard_r_params[];
int es_xlard_r_new(const struct es_policy_settings *settings, void **ret_state);

/* es_load_if_given() - the node's load if it had @cost more; with @handoff_cost more still unless the
 * connection is there already. This is for a connection that is open: that has lasted. */
static inline double es_load_if_given(const struct es_request_view *request,
				      const struct es_cluster_view *view, unsigned int node, double cost,
				      double handoff_cost)
{
	double load = request->current < 0 ? es_view_measure(view, node, ES_MEASURE_LOAD)
					   : es_view_settled(view, node, ES_MEASURE_LOAD);

	return load +
	       (cost + ((int)node == request->current ? 0 : handoff_cost)) * 100 / view->node[node].weight;
}

/* es_least_if_given() - the target of @among (NULL: of all) with the least es_load_if_given(), by stay.h's
 * rule */
int es_least_if_given(const struct es_request_view *request, const struct es_cluster_view *view, double cost,
		      double handoff_cost, const struct es_node_set *among);

/* es_cawll_pick() - CAWLL; @handoff_cost is CAHRD's addition */
int es_cawll_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		  double handoff_cost);

/* es_xlard_r_pick() - xLARD/R */
int es_xlard_r_pick(const struct es_xlard_r *xlard, const struct es_request_view *request,
		    const struct es_cluster_view *view);

#endif
