/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_POLICY_H
#define ES_POLICY_H

/*
 * A policy picks the processing node of a request. The interface is small on purpose: all that a policy may
 * know comes in through the two views, time and randomness included, so the same code runs in the daemon, in
 * unit tests and in the simulator, and a trace replays to the same decisions.
 *
 * An instance belongs to one worker and one service and is used by that worker only. All inspectors of the
 * cluster must know alike which nodes serve which content: that is not in the instance but in the content
 * table (contents.h).
 */
#include <math.h>
#include <stddef.h>
#include <earshot/ring.h>
#include "inspector/policy/explain.h"
#include "inspector/policy/node_set.h"
#include "inspector/policy/random.h"
#include "inspector/policy/contents.h"

struct es_http_head;

/* The resource that a request needs most; CAP's classes N, CB, DB, DCB. */
enum es_request_class {
	ES_CLASS_NORMAL = 0,
	ES_CLASS_CPU,
	ES_CLASS_DISK,
	ES_CLASS_DISK_CPU,
	ES_CLASS_COUNT,
};

/* Why a request moves its connection to another node. */
enum es_move_why {
	ES_MOVE_LOCALITY = 0, /* its content is there */
	ES_MOVE_LOAD,	      /* there is less to do */
	ES_MOVE_DRAIN,	      /* the node may not be given requests any more */
	ES_MOVE_RULE,	      /* a rule or a plugin says so */
	ES_MOVE_HOME,	      /* its content was here, and went there lately */
	ES_MOVE_WHY_COUNT,
};

/**
 * struct es_request_view - the request to be routed
 * @flow_hash: the flow's place on the ring
 * @uri, @uri_len: path and query as sent; NULL if they are not known in full, and @content is 0 then
 * @name, @name_len: of the content (name.h); known if @uri is
 * @content: what the table knows the content as: a hash of @name, the same on all nodes; never 0 for a known
 * URI
 * @is_named: a plugin has said what @content is, and @name is only for people; there need be no @uri
 * @current: the node that has the connection; -1 before its first request
 * @why: of a decision that moves it, why; whoever asks the policy fills it in
 * @url_key: what the URL table knows an observed path as (urls/url_table.h); 0 if its size is known for
 * sure
 * @size_bytes: of the response, 0 if not known; @cost: what serving it takes, in response packets (LVS-CAD
 * section 5.1), at least 1
 * @is_dynamic, @class: what kind of content it is
 * @client: its address, NULL if not known; @client_port: its port
 * @allowed: nodes that the rules before the policy leave; only if @has_allowed; @takes_backups: backup nodes
 * among them, too
 * @avoid: nodes that are none for it
 * @head, @text, @len: the head as scanned and the gathered bytes, from the request's first on; NULL in the
 * simulator. @truncated: the bytes are not the whole head (a bound or the time was reached).
 * @attempts: how many nodes have been given it in vain; @before: if any, the last of them
 * @rate: of the rule that counts it (rules/rates.h); NULL: none does
 */
struct es_rate_limit;

struct es_request_view {
	__u64 flow_hash;
	const char *uri;
	size_t uri_len;
	const char *name;
	size_t name_len;
	__u64 content;
	int is_named;
	int current;
	enum es_move_why why;
	__u64 url_key;
	__u64 size_bytes;
	unsigned int cost;
	int is_dynamic;
	enum es_request_class class;
	const struct es_addr *client;
	unsigned int client_port;
	int has_allowed;
	int takes_backups;
	struct es_node_set allowed;
	struct es_node_set avoid;
	const struct es_http_head *head;
	const char *text;
	size_t len;
	int truncated;
	unsigned int attempts;
	unsigned int before;
	const struct es_rate_limit *rate;
};

/**
 * struct es_node_view - one node
 * @weight: percent of an ordinary node's, 0 if it is not on the ring; of a node that begins slowly, less than
 * that
 * @withheld: the part of its share that such a node does not get yet, 0..1; for policies that go by content
 * and not by weight (es_view_takes())
 * @is_target: may be given requests now
 * @is_backup: may be given requests, and is no target all the same: it is a backup node, and another one
 * serves
 * @is_draining: wants no more (it drains, or its weight is 0), and serves all the same
 * @active: requests that it serves at this moment; where only first requests are inspected, its connections.
 * An estimate (load.h).
 * @idle: of these, connections on which nothing goes on (kmod/core/load.h), so that no request is in hand;
 * for admission
 * @load: the sum of those requests' costs
 * @active_lasting, @load_lasting: the same two as means of what the node has said for a while (settle_ms);
 * for what should not change with each fluctuation
 * @active_settled, @load_settled: over ten times as long; for connections that are open
 * Connections that have moved since are counted in.
 * @capacity: requests in hand with which it is busy (capacity.h); 0: not known
 * @cpu, @disk: shares of the last moment in which it was busy, 0..1
 */
struct es_node_view {
	double weight;
	double withheld;
	int is_target;
	int is_backup;
	int is_draining;
	double active;
	double idle;
	double load;
	double active_lasting;
	double load_lasting;
	double active_settled;
	double load_settled;
	double capacity;
	double cpu;
	double disk;
};

/**
 * struct es_cluster_view - the nodes, and what else a decision may depend on
 * @self: the node that decides; @count: of node ids
 * @ring: the content ring
 * @now_ns: a monotonic clock
 * @contents: for the policies that need them; the table of the service
 * @settings: of the service; NULL: all of them 0
 * @why: NULL, or what gets the reason why the connection moves, where the policy knows better than that it is
 * the content
 * @explain: NULL, or what gets the reasons. With it nothing may change: no instance, no table, no random
 * number.
 */
struct es_cluster_view {
	unsigned int self;
	unsigned int count;
	const struct es_node_view *node;
	const struct es_ring *ring;
	unsigned long long now_ns;
	struct es_random *random;
	struct es_contents *contents;
	const struct es_policy_settings *settings;
	enum es_move_why *why;
	struct es_explain *explain;
};

/* May @node be given this request? */
static inline int es_view_is_target(const struct es_request_view *request, const struct es_cluster_view *view,
				    unsigned int node)
{
	return node < view->count &&
	       (view->node[node].is_target || (view->node[node].is_backup && request->takes_backups)) &&
	       view->node[node].weight > 0 &&
	       (!request->has_allowed || es_node_set_has(request->allowed, node));
}

/*
 * Does @node take the content at @hash already? A node that begins slowly takes more and more of it, and
 * keeps that.
 */
static inline int es_view_takes(const struct es_cluster_view *view, unsigned int node, __u64 hash)
{
	return (double)(hash * 0x9e3779b97f4a7c15ULL >> 32) / 4294967296.0 >= view->node[node].withheld;
}

#define ES_POLICY_PARAMS_MAX 8

/* A parameter's value that follows from the nodes' capacity: "auto". */
#define ES_PARAM_AUTO ((double)NAN)

/**
 * struct es_policy_param - one of a policy's parameters, named as in its paper
 * @value: the paper's, and the default unless @may_be_auto: then that is "auto", and this is "paper"
 * @at_most: the parameter that this one must not exceed, or NULL
 */
struct es_policy_param {
	const char *name;
	const char *description;
	double value;
	double min;
	double max;
	const char *at_most;
	int may_be_auto;
};

/* es_policy_param_default() - the value if nobody says another */
static inline double es_policy_param_default(const struct es_policy_param *param)
{
	return param->may_be_auto ? ES_PARAM_AUTO : param->value;
}

/* es_policy_param_parse() - a number within its bounds, "auto" or "paper". Returns 0 or -EINVAL. */
int es_policy_param_parse(const struct es_policy_param *param, const char *text, double *ret_value);

/* es_policy_param_text() - the value as people write it */
#define ES_PARAM_TEXT_SIZE 64
const char *es_policy_param_text(double value, char ret_text[ES_PARAM_TEXT_SIZE]);

/* es_policy_param_expects() - "0..1e+06", and the words */
const char *es_policy_param_expects(const struct es_policy_param *param, char ret_text[ES_PARAM_TEXT_SIZE]);

/**
 * struct es_policy_settings - of one service
 * @param: in the order of the policy's list
 * @load_bound: percent of the mean load, 0: none
 * @handover_cost: what moving an open connection must gain at least, in requests; 0: it costs nothing
 * @content_off_disk: no disk has what a node lacks in memory
 * @settle_ms: load counts, for open connections and for what has a node already, as a mean over so long; 0:
 * as it is at this moment
 */
struct es_policy_settings {
	double param[ES_POLICY_PARAMS_MAX];
	unsigned int load_bound;
	unsigned int handover_cost;
	int content_off_disk;
	unsigned int settle_ms;
};

static inline unsigned int es_view_settle_ms(const struct es_cluster_view *view)
{
	return view->settings ? view->settings->settle_ms : 0;
}

/*
 * Has @node's disk, busy for a smaller share of the time than @idle, time for what the node lacks in memory?
 */
static inline int es_view_may_read(const struct es_cluster_view *view, unsigned int node, double idle)
{
	return !(view->settings && view->settings->content_off_disk) && view->node[node].disk < idle;
}

static inline void es_view_why(const struct es_cluster_view *view, enum es_move_why why)
{
	if (view->why)
		*view->why = why;
}

#define ES_LOADS_IF_BOUND 2

/**
 * struct es_policy - one policy
 * @inspects: needs the request; without, the datapath serves at layer 4 and route() is never called
 * @needs_loads: uses the nodes' @active, @load, @cpu or @disk; others may find them old. ES_LOADS_IF_BOUND:
 * only with a load bound
 * @needs_contents: uses the content table
 * @params: ends with a name that is NULL; NULL if there are none
 * @new: makes an instance; returns 0 or -errno
 * @route: returns a node id that is a target, or -1 if there is none. Called for requests whose content is
 * known; the rest goes where es_policy_fallback() says.
 */
struct es_policy {
	const char *name;
	const char *description;
	int inspects;
	int needs_loads;
	int needs_contents;
	const struct es_policy_param *params;
	int (*new)(const struct es_policy_settings *settings, void **ret_state);
	void (*free)(void *state);
	int (*route)(void *state, const struct es_request_view *request, const struct es_cluster_view *view);
};

/* No request's cost is more. */
#define ES_REQUEST_COST_MAX 1000000u

/* es_request_ring_hash() - the place of a request's content on the content ring. Returns 0 or -errno. */
static inline int es_request_ring_hash(struct es_content_hasher *hasher,
				       const struct es_request_view *request, __u64 *ret_hash)
{
	__be64 content = (__be64)es_cpu_be64(request->content);

	return request->is_named ? es_content_ring_hash(hasher, &content, sizeof(content), ret_hash)
				 : es_content_ring_hash(hasher, request->name, request->name_len, ret_hash);
}

/* es_content_hash() - struct es_request_view's content for a name; the same everywhere and always */
__u64 es_content_hash(const char *name, size_t len);

/* es_policy_find() - the policy of that name, or NULL */
const struct es_policy *es_policy_find(const char *name);

/* All policies, NULL-terminated. */
const struct es_policy *const *es_policy_list(void);

/* es_policy_defaults() - each parameter's default, all else 0 */
void es_policy_defaults(const struct es_policy *policy, struct es_policy_settings *ret_settings);

/* es_policy_param_index() - of the parameter of that name, or -1 */
int es_policy_param_index(const struct es_policy *policy, const char *name);

/**
 * es_policy_contradiction() - a parameter of @param, in the policy's order, that exceeds the one that bounds
 * it
 * Returns its index and @ret_bound, that of the other; -1 if there is none.
 */
int es_policy_contradiction(const struct es_policy *policy, const double *param, int *ret_bound);

/**
 * es_policy_fallback() - the first target at or after the flow's own place on the ring
 * What every policy does with a request that it cannot judge. If none is, the last resort; else -1.
 */
int es_policy_fallback(const struct es_request_view *request, const struct es_cluster_view *view);

/**
 * es_policy_last_resort() - a node that wants no more and serves all the same (struct es_node_view's
 * @is_draining)
 * The first of @among (NULL: of all) on the ring from @position on; after those, one that has weight 0. -1 if
 * there is none.
 */
int es_policy_last_resort(const struct es_cluster_view *view, __u64 position,
			  const struct es_node_set *among);

/**
 * es_policy_least() - the target with the least of @measure in @among, divided by its weight
 * @among: NULL for all. If several have as little, the one that has the connection; else the one that comes
 * first after the target's place in the order of ids, so that idle nodes get the targets in turn. -1 if there
 * is none.
 */
enum es_measure { ES_MEASURE_ACTIVE, ES_MEASURE_LOAD };
int es_policy_least(const struct es_request_view *request, const struct es_cluster_view *view,
		    enum es_measure measure, const struct es_node_set *among);

/* es_policy_least_by() - the same by another value of a node than es_view_measure() */
typedef double (*es_measure_fn)(const struct es_cluster_view *view, unsigned int node,
				enum es_measure measure);
int es_policy_least_by(const struct es_request_view *request, const struct es_cluster_view *view,
		       es_measure_fn value_of, enum es_measure measure, const struct es_node_set *among);

/* A node's @measure, as if its weight were 100. */
static inline double es_view_measure(const struct es_cluster_view *view, unsigned int node,
				     enum es_measure measure)
{
	const struct es_node_view *n = &view->node[node];

	return (measure == ES_MEASURE_ACTIVE ? n->active : n->load) * 100 / n->weight;
}

#endif
