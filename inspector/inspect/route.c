// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks content rules, plugins and the policy, in this order, and shows each what it may see. */
#include <errno.h>
#include <string.h>
#include "inspector/inspect/route.h"
#include "inspector/policy/stay.h"

#define ES_RATE_STATUS 429 /* RFC 6585 section 4 */

static void es_router_policies_fini(struct es_router *router)
{
	es_plugins_thread_free(&router->plugins);
	for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX; i++) {
		if (router->policy[i] && router->policy[i]->free)
			router->policy[i]->free(router->state[i]);
		router->policy[i] = NULL;
		router->state[i] = NULL;
	}
	es_rules_free(&router->rules);
}

static int es_router_policies_init(struct es_router *router)
{
	const struct es_conf *conf = router->cluster->conf;
	int rc;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_policy *policy = es_policy_find(conf->services[i].policy);
		struct es_policy_settings *settings = &router->settings[i];

		if (!policy)
			return -ENOENT;
		es_policy_defaults(policy, settings);
		if (conf->services[i].parameters.count)
			memcpy(settings->param, conf->services[i].params, sizeof(settings->param));
		settings->load_bound = conf->services[i].load_bound;
		settings->handover_cost = conf->services[i].handover_cost;
		settings->content_off_disk = !conf->services[i].content_on_disk;
		settings->settle_ms = conf->inspector.settle_ms;
		rc = policy->new ? policy->new (settings, &router->state[i]) : 0;
		if (rc)
			return rc;
		router->policy[i] = policy;
	}
	rc = es_rules_new(conf, &router->rules);
	return rc ? rc : es_plugins_thread_new(router->cluster->plugins, &router->plugins);
}

int es_router_init(struct es_router *router, const struct es_cluster *cluster, const struct es_health *health,
		   const struct es_route_shared *shared)
{
	int rc;

	memset(router, 0, sizeof(*router));
	router->cluster = cluster;
	router->health = health;
	router->shared = shared;
	router->random.state = cluster->self;
	rc = es_router_policies_init(router);
	if (rc)
		es_router_fini(router);
	return rc;
}

void es_router_fini(struct es_router *router)
{
	es_router_policies_fini(router);
}

int es_router_set_cluster(struct es_router *router, const struct es_cluster *cluster)
{
	int is_new = cluster->conf != router->cluster->conf;

	router->cluster = cluster;
	if (!is_new)
		return 0; /* what a policy has learned is worth more than one change of the ring */
	es_router_policies_fini(router);
	return es_router_policies_init(router);
}

void es_request_describe(struct es_request_view *request, const struct es_http_head *head, const char *text,
			 size_t len, int has_host, struct es_name *name)
{
	const char *host = NULL;
	size_t host_len = 0;

	request->head = head;
	request->text = text;
	request->len = len;
	request->cost = 1;
	if (!head->target_complete || (!head->path.len && head->target_form != ES_HTTP_TARGET_ABSOLUTE))
		return;
	request->uri = text + head->path.off;
	request->uri_len = head->path.len + (head->has_query ? 1 + head->query.len : 0);
	if (has_host)
		es_http_head_host(head, text, &host, &host_len);
	es_name_make(name, host, host_len, request->uri, request->uri_len);
	request->name = name->text;
	request->name_len = name->len;
	request->content = es_content_hash(name->text, name->len);
	/* "http://host" and "http://host?query" */
	if (!head->path.len) {
		request->uri = "/";
		request->uri_len = 1;
	}
}

/*
 * The nodes at @now_ns, as @service may use them for clients of that family. Their state is read each time,
 * since a NACK may just have changed it; their load, once for a batch of packets.
 */
static void es_router_look(struct es_router *router, unsigned int service, unsigned int family,
			   unsigned long long now_ns)
{
	const struct es_cluster *cluster = router->cluster;
	unsigned int slow_start_s = cluster->conf->services[service].check.slow_start_s;
	int is_new = router->now_ns != now_ns;

	router->now_ns = now_ns;
	for (unsigned int i = 0; i < cluster->conf->node_count; i++) {
		struct es_node_view *node = &router->node[i];

		node->weight = cluster->weight[i];
		node->withheld = 0;
		if (slow_start_s) {
			double share = es_health_share(router->health, i, service, slow_start_s, now_ns);

			node->weight *= share;
			node->withheld = 1 - share;
		}
		node->is_target =
			es_cluster_is_target_of(cluster, router->health, i, service, family, now_ns);
		node->is_draining =
			es_cluster_is_last_resort(cluster, router->health, i, service, family, now_ns);
		if (node->is_target && es_health_is_drained(router->health, i, service)) {
			node->is_target = 0;
			node->is_draining = 1;
		}
		if (is_new && router->shared && router->shared->load)
			es_load_estimate(&router->shared->load[i], now_ns, node);
	}
}

/* The nodes that must not get it: those without the service, and those that @request avoids. */
static struct es_node_set es_router_barred(const struct es_router *router, unsigned int service,
					   const struct es_request_view *request)
{
	const struct es_conf *conf = router->cluster->conf;
	struct es_node_set barred = request->avoid;

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (!es_conf_service_is_on(&conf->services[service], i))
			es_node_set_add(&barred, i);
	return barred;
}

/* Backup nodes are targets only while none of the others is. */
static void es_router_rank(struct es_router *router, const struct es_conf_service *service)
{
	unsigned int count = router->cluster->conf->node_count;
	int has_first = 0;

	for (unsigned int i = 0; i < count; i++) {
		router->node[i].is_backup = 0;
		has_first |= router->node[i].is_target && !es_conf_has_backup(service, i);
	}
	for (unsigned int i = 0; has_first && i < count; i++)
		if (router->node[i].is_target && es_conf_has_backup(service, i)) {
			router->node[i].is_target = 0;
			router->node[i].is_backup = 1;
		}
}

static void es_explain_rank(const struct es_conf_service *service, const struct es_cluster_view *view)
{
	for (unsigned int i = 0; service->backup_names.count && i < view->count; i++)
		if (es_conf_has_backup(service, i) && (view->node[i].is_target || view->node[i].is_backup))
			es_explain(view, "#%u is a backup node: %s", i,
				   view->node[i].is_target ? "none of the others serves"
							   : "another one serves");
}

/*
 * If no node is left for a first request, it is not refused, but given to one that has refused something, or
 * was not reached, a moment ago; to each of those once.
 */
static void es_router_spare(struct es_router *router, unsigned int service,
			    const struct es_request_view *request, unsigned int family,
			    struct es_node_set barred, unsigned long long now_ns)
{
	const struct es_cluster *cluster = router->cluster;
	unsigned int count = cluster->conf->node_count;
	struct es_node_set but = barred;
	int node;

	for (unsigned int i = 0; i < count; i++)
		if (router->node[i].is_target || router->node[i].is_draining)
			return;
	if (request->current >= 0 || request->attempts >= count ||
	    es_health_is_unsure(router->health, now_ns))
		return;
	if (request->attempts)
		es_node_set_add(&but, request->before);
	node = es_cluster_first_suspended(cluster, router->health, service, family, but, now_ns);
	if (node >= 0)
		router->node[node].is_target = 1;
}

static void es_router_view(struct es_router *router, unsigned int service,
			   const struct es_request_view *request, unsigned long long now_ns,
			   struct es_cluster_view *ret_view)
{
	unsigned int family = request->client && !es_addr_is_v4(request->client);
	struct es_node_set barred = es_router_barred(router, service, request);

	es_router_look(router, service, family, now_ns);
	for (unsigned int i = 0; i < router->cluster->conf->node_count; i++)
		if (es_node_set_has(barred, i))
			router->node[i].is_target = router->node[i].is_draining = 0;
	es_router_rank(router, &router->cluster->conf->services[service]);
	es_router_spare(router, service, request, family, barred, now_ns);
	*ret_view = (struct es_cluster_view){
		.self = router->cluster->self,
		.count = router->cluster->conf->node_count,
		.node = router->node,
		.ring = router->cluster->ring,
		.now_ns = now_ns,
		.random = &router->random,
	};
}

static int es_head_is_http(const struct es_http_head *head)
{
	return head->result == ES_HTTP_DONE || head->result == ES_HTTP_AMBIGUOUS;
}

static void es_route_refuse(const struct es_rules_refusal *refusal, struct es_rejection *rejection)
{
	rejection->status = refusal->status;
	rejection->retry_after_s = refusal->retry_after_s;
	rejection->by = refusal->by;
	rejection->body = refusal->body;
	rejection->type = refusal->type;
}

static void es_rate_reject(const struct es_rate_limit *limit, unsigned int after_s,
			   struct es_rejection *ret_rejection)
{
	ret_rejection->status = ES_RATE_STATUS;
	ret_rejection->retry_after_s = after_s;
	ret_rejection->by = limit->by;
}

/* Has the client no request left? A request is counted later, when it has a node, and once only. */
static int es_route_rate(const struct es_router *router, const struct es_request_view *request,
			 const struct es_cluster_view *view, struct es_rejection *ret_rejection)
{
	const struct es_rate_limit *limit = request->rate;
	unsigned int after_s;
	int is_over;

	if (!limit || !request->client || request->attempts || !router->shared || !router->shared->rates)
		return 0;
	is_over = es_rates_is_over(router->shared->rates, limit, request->client, view->now_ns, &after_s);
	if (!is_over) {
		es_explain(view, "rule %s: rate: the client has requests left", limit->name);
		return 0;
	}
	es_explain(view, "rule %s: rate: the client has no request left for %u s", limit->name, after_s);
	es_rate_reject(limit, after_s, ret_rejection);
	return 1;
}

int es_route_is_over(const struct es_router *router, const struct es_request_view *request,
		     unsigned long long now_ns, struct es_rejection *ret_rejection)
{
	const struct es_rate_limit *limit = request->rate;
	unsigned int after_s;

	if (!limit || !request->client || !router->shared || !router->shared->rates ||
	    !es_rates_take(router->shared->rates, limit, request->client, now_ns, &after_s))
		return 0;
	es_rate_reject(limit, after_s, ret_rejection);
	return 1;
}

/* The rules' word on a request: ES_RULES_PASS, ES_ROUTE_REJECT or a node. They know HTTP/1.x only. */
static int es_route_rules(struct es_router *router, unsigned int service, struct es_request_view *request,
			  const struct es_cluster_view *view, struct es_rejection *ret_rejection)
{
	struct es_rules_refusal refusal;
	int node = ES_RULES_PASS;

	*ret_rejection = (struct es_rejection){
		.is_head = request->head->method == ES_HTTP_METHOD_HEAD,
		.protocol = request->head->result,
	};
	if (es_head_is_http(request->head))
		node = es_rules_apply(router->rules, service, router->cluster->urls[service], request, view,
				      &refusal);
	if (node != ES_RULES_REJECT && es_route_rate(router, request, view, ret_rejection))
		return ES_ROUTE_REJECT;
	if (node != ES_RULES_REJECT)
		return node;
	es_route_refuse(&refusal, ret_rejection);
	return ES_ROUTE_REJECT;
}

/* The plugins' word, as es_route() returns it; -1: the policy decides, among @request's nodes. */
static int es_route_plugins(struct es_router *router, unsigned int service, struct es_request_view *request,
			    const struct es_cluster_view *view, struct es_rejection *ret_rejection)
{
	struct es_plugins_answer answer;

	switch (es_plugins_route(router->plugins, service, request, view, &answer)) {
	case ES_PLUGINS_NODE:
		return (int)answer.node;
	case ES_PLUGINS_MORE:
		ret_rejection->more_bytes = answer.more_bytes;
		return ES_ROUTE_MORE;
	case ES_PLUGINS_REJECT:
		ret_rejection->status = answer.status;
		ret_rejection->retry_after_s = answer.retry_after_s;
		ret_rejection->by = ES_RULES_BY_PLUGIN;
		return ES_ROUTE_REJECT;
	default:
		return -1;
	}
}

static int es_route_decide(struct es_router *router, unsigned int service, struct es_request_view *request,
			   const struct es_cluster_view *view, struct es_rejection *ret_rejection)
{
	int node;

	node = es_route_rules(router, service, request, view, ret_rejection);
	*view->why = ES_MOVE_RULE;
	if (node != ES_RULES_PASS)
		return node;
	node = es_route_plugins(router, service, request, view, ret_rejection);
	if (node != -1)
		return node;
	*view->why = ES_MOVE_LOCALITY;
	if (request->uri || request->is_named)
		node = router->policy[service]->route(router->state[service], request, view);
	/* If a policy names a node that is not a target, its client must not lose its request for that. */
	return node >= 0 && es_view_is_target(request, view, (unsigned int)node)
		       ? node
		       : es_policy_fallback(request, view);
}

/* No node can serve it: the client is told, if the service is configured so. */
static int es_route_all_down(const struct es_router *router, unsigned int service,
			     const struct es_request_view *request, unsigned long long now_ns,
			     struct es_rejection *rejection)
{
	const struct es_conf_service *conf = &router->cluster->conf->services[service];
	struct es_rules_refusal refusal;

	if ((conf->when_all_down != ES_CONF_ALL_DOWN_REJECT && !conf->page.line) || request->current >= 0 ||
	    es_health_is_unsure(router->health, now_ns))
		return -1;
	es_rules_page(router->rules, service, ES_RULES_BY_ALL_DOWN, &refusal);
	es_route_refuse(&refusal, rejection);
	return ES_ROUTE_REJECT;
}

/* Does the policy, or a plugin, want to see requests? */
static int es_route_reads(const struct es_cluster *cluster, unsigned int service)
{
	/* With inspect = never it is "ring", and there are no plugins. */
	const struct es_policy *policy = es_policy_find(cluster->conf->services[service].policy);

	return (policy && policy->inspects) || es_plugins_has(cluster->plugins, service);
}

int es_route(struct es_router *router, unsigned int service, struct es_request_view *request,
	     unsigned long long now_ns, struct es_explain *explain, struct es_rejection *ret_rejection)
{
	struct es_cluster_view view;
	int node;

	if (!es_route_reads(router->cluster, service))
		return es_route_layer4(router, service, request, now_ns, explain);
	es_router_view(router, service, request, now_ns, &view);
	view.contents = router->cluster->contents[service];
	view.settings = &router->settings[service];
	view.why = &request->why;
	view.explain = explain;
	es_explain_rank(&router->cluster->conf->services[service], &view);
	node = es_route_decide(router, service, request, &view, ret_rejection);
	if (node == -1)
		return es_route_all_down(router, service, request, now_ns, ret_rejection);
	if (node >= 0 && request->current >= 0 && node != request->current)
		request->why = es_stay_why(request, &view, request->why);
	return node;
}

int es_route_again(struct es_router *router, unsigned int service, struct es_request_view *request,
		   unsigned long long now_ns, struct es_rejection *ret_rejection)
{
	struct es_cluster_view view;
	int node;

	es_router_view(router, service, request, now_ns, &view);
	node = es_route_rules(router, service, request, &view, ret_rejection);
	if (node == ES_RULES_PASS) {
		request->truncated = 1; /* the other segments that were gathered are not here any more */
		node = es_route_plugins(router, service, request, &view, ret_rejection);
	}
	if (node == ES_RULES_PASS)
		node = es_policy_fallback(request, &view);
	return node == -1 ? es_route_all_down(router, service, request, now_ns, ret_rejection) : node;
}

int es_route_is_layer4(const struct es_cluster *cluster, unsigned int service)
{
	const struct es_conf_service *conf = &cluster->conf->services[service];

	return (conf->tls.line && conf->inspect == ES_INSPECT_NEVER) || !es_route_reads(cluster, service);
}

void es_route_weigh(struct es_router *router, unsigned int service, struct es_request_view *request,
		    unsigned long long now_ns)
{
	struct es_cluster_view view;

	if (!es_head_is_http(request->head))
		return;
	es_router_view(router, service, request, now_ns, &view);
	es_rules_weigh(router->rules, service, router->cluster->urls[service], request, &view);
}

int es_route_layer4(struct es_router *router, unsigned int service, const struct es_request_view *request,
		    unsigned long long now_ns, struct es_explain *explain)
{
	return es_route_home(router, service, request, -1, now_ns, explain);
}

int es_route_home(struct es_router *router, unsigned int service, const struct es_request_view *request,
		  int home, unsigned long long now_ns, struct es_explain *explain)
{
	struct es_cluster_view view;
	int node;

	es_router_view(router, service, request, now_ns, &view);
	view.explain = explain;
	es_explain_rank(&router->cluster->conf->services[service], &view);
	node = es_rules_layer4(router->rules, service, request, &view);
	if (node != ES_RULES_PASS)
		return node;
	return home >= 0 && es_view_is_target(request, &view, (unsigned int)home)
		       ? home
		       : es_policy_fallback(request, &view);
}

int es_route_fallback(struct es_router *router, unsigned int service, const struct es_request_view *request,
		      unsigned long long now_ns)
{
	struct es_cluster_view view;

	/* By the ring alone; loads do not matter. */
	es_router_view(router, service < router->cluster->conf->service_count ? service : 0, request, now_ns,
		       &view);
	return es_policy_fallback(request, &view);
}

void es_route_sent(struct es_router *router, unsigned int node, unsigned int cost, unsigned long long now_ns)
{
	if (node < ES_NODES_MAX && router->shared && router->shared->load)
		es_load_sent(&router->shared->load[node], cost, now_ns, &router->node[node]);
}

void es_route_moved(struct es_router *router, unsigned int node, unsigned int cost)
{
	unsigned int self = router->cluster->self;

	if (node >= ES_NODES_MAX || !router->shared || !router->shared->load)
		return;
	es_load_moved(&router->shared->load[self], -1, cost, &router->node[self]);
	es_load_moved(&router->shared->load[node], 1, cost, &router->node[node]);
}
