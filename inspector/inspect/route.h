/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROUTE_H
#define ES_ROUTE_H

/*
 * From a request to its node: puts a worker's knowledge of cluster and content into the views that a policy
 * sees (policy/policy.h), and asks the service's policy.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/rules/rules.h"
#include "inspector/handover/rejection.h"
#include "inspector/http/head.h"
#include "inspector/plugin/host.h"
#include "inspector/policy/load.h"
#include "inspector/policy/name.h"
#include "inspector/policy/policy.h"

/**
 * struct es_route_shared - what all workers of a node share; outlives them
 * @load: of each node; NULL: unknown
 * @rates: of clients; NULL: not counted
 */
struct es_route_shared {
	struct es_load *load;
	struct es_rates *rates;
};

struct es_router {
	const struct es_cluster *cluster;
	const struct es_health *health;
	const struct es_route_shared *shared;
	const struct es_policy *policy[ES_CONF_SERVICES_MAX];
	void *state[ES_CONF_SERVICES_MAX];
	struct es_policy_settings settings[ES_CONF_SERVICES_MAX];
	struct es_plugins_thread *plugins;
	struct es_rules *rules;
	struct es_random random;
	unsigned long long now_ns; /* of the loads in @node */
	struct es_node_view node[ES_NODES_MAX];
};

/* es_router_init() - returns 0 or -errno; on failure nothing is left behind. @shared may be NULL. */
int es_router_init(struct es_router *router, const struct es_cluster *cluster, const struct es_health *health,
		   const struct es_route_shared *shared);
void es_router_fini(struct es_router *router);

/* es_router_set_cluster() - use another version; with another configuration, policies start anew */
int es_router_set_cluster(struct es_router *router, const struct es_cluster *cluster);

/**
 * es_request_describe() - fill in the request's URI, name and content, by @head
 * @has_host: the host is part of the name
 * @name: where the name is, as long as @request is used
 */
void es_request_describe(struct es_request_view *request, const struct es_http_head *head, const char *text,
			 size_t len, int has_host, struct es_name *name);

#define ES_ROUTE_REJECT (-2)
#define ES_ROUTE_MORE	(-3)

/**
 * es_route() - the node for a request, by rules, plugins and @service's policy, in this order If no node is a
 * target, one that has refused something, or was not reached, a moment ago is one. Only plugins see a request
 * that is not HTTP/1.x. @request gets why its connection moves, if it does, and what rules and URL table know
 * of it, like its cost. The caller says with es_route_sent() if the request went to the node.
 * Returns the node; -1 if there is none; ES_ROUTE_REJECT and @ret_rejection if a rule refuses it;
 * ES_ROUTE_MORE if a plugin wants more of it, never if it is truncated.
 */
int es_route(struct es_router *router, unsigned int service, struct es_request_view *request,
	     unsigned long long now_ns, struct es_explain *explain, struct es_rejection *ret_rejection);

/**
 * es_route_again() - the node for a request that came back from the one that es_route() had named Rules and
 * plugins are asked again. The policy is not, since it does not learn that its choice has failed: the flow's
 * own place on the ring decides. Returns as es_route().
 */
int es_route_again(struct es_router *router, unsigned int service, struct es_request_view *request,
		   unsigned long long now_ns, struct es_rejection *ret_rejection);

/* es_route_weigh() - complete @request as es_route() does: what it costs, and what else is known of it */
void es_route_weigh(struct es_router *router, unsigned int service, struct es_request_view *request,
		    unsigned long long now_ns);

/**
 * es_route_is_layer4() - does nobody read the packets that clients send to @service? Neither its policy nor a
 * plugin wants to, or there is but ciphertext in them, and not even a ClientHello is wanted: then es_route()
 * says where requests go all the same.
 */
int es_route_is_layer4(const struct es_cluster *cluster, unsigned int service);

/**
 * es_route_layer4() - the node for a connection that nobody reads
 * By its client's address, if a rule says so, else by its own place on the ring. Returns the node, or -1.
 */
int es_route_layer4(struct es_router *router, unsigned int service, const struct es_request_view *request,
		    unsigned long long now_ns, struct es_explain *explain);

/**
 * es_route_home() - the node for a ClientHello whose ticket names @home, -1 for none
 * As es_route_layer4(), but @home comes before the connection's own place on the ring, if it is a target.
 */
int es_route_home(struct es_router *router, unsigned int service, const struct es_request_view *request,
		  int home, unsigned long long now_ns, struct es_explain *explain);

/**
 * es_route_fallback() - es_policy_fallback() instead of the policy; for a service that does not exist any
 * more, any node
 */
int es_route_fallback(struct es_router *router, unsigned int service, const struct es_request_view *request,
		      unsigned long long now_ns);

/**
 * es_route_is_over() - count a request that is about to be given to a node, if a rule limits its client's
 * rate
 * Returns 1, and @ret_rejection, if its client has no request left after all.
 */
int es_route_is_over(const struct es_router *router, const struct es_request_view *request,
		     unsigned long long now_ns, struct es_rejection *ret_rejection);

/* es_route_sent() - a request was given to @node */
void es_route_sent(struct es_router *router, unsigned int node, unsigned int cost, unsigned long long now_ns);

/* es_route_moved() - a connection that this node had was given to @node, with a request of @cost */
void es_route_moved(struct es_router *router, unsigned int node, unsigned int cost);

#endif
