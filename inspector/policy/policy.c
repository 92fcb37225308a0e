// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared by policies: their parameters, the targets that are not chosen by content, and the hash of a
 * content's name.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/policy.h"
#include "kmod/core/siphash.h"

__u64 es_content_hash(const char *name, size_t len)
{
	/* No secret: two names that somebody made to collide share a server set, which harms nobody. */
	static const struct es_sipkey key;
	struct es_sipstate state;
	__u64 word = 0, hash;
	size_t at = 0;

	es_siphash_init(&state, &key);
	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, name + at, sizeof(word));
		es_siphash_word(&state, le64toh(word));
	}
	word = 0;
	memcpy(&word, name + at, len - at);
	hash = es_siphash_final(&state, le64toh(word), (__u32)len);
	return hash ? hash : 1;
}

void es_policy_defaults(const struct es_policy *policy, struct es_policy_settings *ret_settings)
{
	memset(ret_settings, 0, sizeof(*ret_settings));
	for (unsigned int i = 0; policy->params && policy->params[i].name; i++)
		ret_settings->param[i] = es_policy_param_default(&policy->params[i]);
}

int es_policy_param_index(const struct es_policy *policy, const char *name)
{
	for (int i = 0; policy->params && policy->params[i].name; i++)
		if (!strcmp(policy->params[i].name, name))
			return i;
	return -1;
}

int es_policy_param_parse(const struct es_policy_param *param, const char *text, double *ret_value)
{
	char *end;
	double value;

	if (param->may_be_auto && !strcmp(text, "auto")) {
		*ret_value = ES_PARAM_AUTO;
		return 0;
	}
	if (param->may_be_auto && !strcmp(text, "paper")) {
		*ret_value = param->value;
		return 0;
	}
	value = strtod(text, &end);
	if (!*text || *end || !(value >= param->min && value <= param->max))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

const char *es_policy_param_text(double value, char ret_text[ES_PARAM_TEXT_SIZE])
{
	if (isnan(value))
		return "auto";
	snprintf(ret_text, ES_PARAM_TEXT_SIZE, "%g", value);
	return ret_text;
}

const char *es_policy_param_expects(const struct es_policy_param *param, char ret_text[ES_PARAM_TEXT_SIZE])
{
	snprintf(ret_text, ES_PARAM_TEXT_SIZE, "%g..%g%s", param->min, param->max,
		 param->may_be_auto ? ", auto or paper" : "");
	return ret_text;
}

int es_policy_contradiction(const struct es_policy *policy, const double *param, int *ret_bound)
{
	for (int i = 0; policy->params && policy->params[i].name; i++) {
		int bound = policy->params[i].at_most
				    ? es_policy_param_index(policy, policy->params[i].at_most)
				    : -1;

		if (bound < 0 || !(param[i] > param[bound]))
			continue;
		*ret_bound = bound;
		return i;
	}
	return -1;
}

int es_policy_fallback(const struct es_request_view *request, const struct es_cluster_view *view)
{
	struct es_ring_walk walk;
	__u16 node;
	int last;

	es_ring_walk_init(&walk, view->ring, es_ring_flow_position(request->flow_hash));
	while (es_ring_walk_next(&walk, &node)) {
		if (es_view_is_target(request, view, node)) {
			es_explain(view, "the flow's own place on the ring: #%u", node);
			return node;
		}
	}
	/* Better a node that wants no more than an error. */
	last = es_policy_last_resort(view, es_ring_flow_position(request->flow_hash), NULL);
	if (last < 0)
		es_explain(view, "no node is a target");
	else
		es_explain(view, "no node is a target: #%d, which %s", last,
			   view->node[last].weight > 0 ? "drains" : "has weight 0");
	return last;
}

int es_policy_last_resort(const struct es_cluster_view *view, __u64 position, const struct es_node_set *among)
{
	unsigned int start = view->count ? (unsigned int)(position % view->count) : 0;
	struct es_ring_walk walk;
	__u16 node;

	es_ring_walk_init(&walk, view->ring, position);
	while (es_ring_walk_next(&walk, &node))
		if (node < view->count && view->node[node].is_draining &&
		    (!among || es_node_set_has(*among, node)))
			return node;
	/* A node of weight 0 is not on the ring. */
	for (unsigned int i = 0; i < view->count; i++) {
		unsigned int id = (start + i) % view->count;

		if (view->node[id].is_draining && (!among || es_node_set_has(*among, id)))
			return (int)id;
	}
	return -1;
}

int es_policy_least_by(const struct es_request_view *request, const struct es_cluster_view *view,
		       es_measure_fn value_of, enum es_measure measure, const struct es_node_set *among)
{
	unsigned int start = view->count ? (unsigned int)(request->content % view->count) : 0;
	double least = 0;
	int best = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		unsigned int node = (start + i) % view->count;
		double value;

		if ((among && !es_node_set_has(*among, node)) || !es_view_is_target(request, view, node))
			continue;
		value = value_of(view, node, measure);
		/* Exact: two nodes are alike only if nothing at all tells them apart. */
		if (best < 0 || value < least || (value <= least && (int)node == request->current)) {
			best = (int)node;
			least = value;
		}
	}
	return best;
}

int es_policy_least(const struct es_request_view *request, const struct es_cluster_view *view,
		    enum es_measure measure, const struct es_node_set *among)
{
	return es_policy_least_by(request, view, es_view_measure, measure, among);
}
