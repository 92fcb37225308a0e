/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SETS_H
#define ES_SETS_H

/*
 * The steps that all policies with server sets share. Each explains itself, and none changes anything in a
 * dry run.
 *
 * The papers do not say this, as their nodes are always there: only those of a set's nodes that may be given
 * the request are looked at, and only those are counted when it is to shrink. So a set keeps a node that is
 * away, for when it is back, and never loses the last one that is not.
 */
#include "inspector/policy/stay.h"

/* A set that has changed rests for so long: nothing goes back on what loads say that are older than it. */
#define ES_SET_REST_NS 1000000000ULL

/* es_set_lookup() - the request's set. Returns 1; 0 if it has none yet; -1 if it cannot have one: there is no
 * table, or the content is not known. */
int es_set_lookup(const struct es_request_view *request, const struct es_cluster_view *view,
		  struct es_content_set *ret_set);

/* es_set_find() - es_set_lookup() for a policy that gives new content to the node that @stay picks of all.
 * Returns 1 if there is a set to choose from; else 0, and @ret_node is what it has picked, -1 if there is no
 * target. */
int es_set_find(const struct es_request_view *request, const struct es_cluster_view *view,
		const struct es_stay *stay, struct es_content_set *ret_set, int *ret_node);

/* es_set_targets() - those of @nodes that may be given the request */
struct es_node_set es_set_targets(const struct es_request_view *request, const struct es_cluster_view *view,
				  struct es_node_set nodes);

/* es_set_may_change() - has it rested since it was changed? Where loads are not late there is no need to. */
int es_set_may_change(const struct es_cluster_view *view, const struct es_content_set *set);

/* es_set_least() - as es_policy_least(), by es_view_at_most() */
int es_set_least(const struct es_request_view *request, const struct es_cluster_view *view,
		 enum es_measure measure, const struct es_node_set *among);

/* es_set_serve() - the node of @nodes, the targets of @set, that serves the request, by stay.h's rule; -1 if
 * there is none */
int es_set_serve(const struct es_request_view *request, const struct es_cluster_view *view,
		 const struct es_stay *stay, const struct es_content_set *set, struct es_node_set nodes);

/* Any node of a set that is not empty: the one with the lowest id. */
unsigned int es_set_first(struct es_node_set nodes);

/* es_set_change() - proposes a change of the request's set; @from as in es_contents_propose() */
void es_set_change(const struct es_request_view *request, const struct es_cluster_view *view,
		   enum es_content_op op, unsigned int node, unsigned int from);

/* es_set_most() - the node of @nodes, all targets, with the most of @measure if each had @more of it; of
 * several the lowest id; -1 if there is none */
int es_set_most(const struct es_cluster_view *view, enum es_measure measure, double more,
		struct es_node_set nodes);

/**
 * es_set_shrink() - takes @most out of a set that was not changed for more than @keep_s seconds
 * @set: as it was looked up; @nodes: its targets, with what this request has added. The papers write lastMod
 * at the end of an iteration, so a set that was old before this request may gain a node and lose another one.
 */
void es_set_shrink(const struct es_request_view *request, const struct es_cluster_view *view,
		   const struct es_content_set *set, struct es_node_set nodes, int most, double keep_s,
		   const char *keep_name);

#endif
