// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Applies the rules of the configuration to a request. It keeps nothing about requests; what is known of
 * content is url_table.c's, and what a configuration may say config/rules.c's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/rules/rules.h"
#include "inspector/rules/match.h"
#include "inspector/rules/body.h"
#include "inspector/rules/rule_text.h"
#include "inspector/http/head.h"

/*
 * struct es_rule - of @conf; its settings in the form that the URL table has, its networks, and the text of
 * its answer
 */
struct es_rule {
	const struct es_conf_rule *conf;
	struct es_url_info info;
	struct es_rule_match match;
	struct es_rate_limit rate;
	const char *body;
};

/* struct es_page - of a service: as struct es_rejection has it */
struct es_page {
	const char *body;
	const char *type;
};

struct es_rules {
	const struct es_conf *conf;
	struct es_page page[ES_CONF_SERVICES_MAX];
	struct es_content_hasher *hasher;
	struct es_url_tree *locations[ES_CONF_SERVICES_MAX];
	unsigned int count;
	struct es_rule rule[];
};

static void es_rule_info(const struct es_conf_rule *conf, struct es_url_info *ret_info)
{
	*ret_info = (struct es_url_info){
		.has = (conf->size_bytes ? ES_URL_SIZE : 0u) | (conf->type ? ES_URL_KIND : 0u) |
		       (conf->class ? ES_URL_CLASS : 0u) | (conf->cost ? ES_URL_COST : 0u) |
		       (conf->priority ? ES_URL_PRIORITY : 0u) | (conf->node_names.count ? ES_URL_NODES : 0u),
		.size_bytes = conf->size_bytes,
		.is_dynamic = conf->type == ES_CONF_TYPE_DYNAMIC,
		.class = (__u8)(conf->class ? conf->class - 1 : 0),
		.cost = conf->cost,
		.priority = (__u8)(conf->priority ? conf->priority - 1 : 0),
		.nodes = conf->nodes,
		.backup = conf->backup,
		.only = conf->otherwise == ES_CONF_OTHERWISE_REJECT,
	};
}

static void es_rule_rate(const struct es_conf *conf, const struct es_conf_rule *from,
			 struct es_rate_limit *ret)
{
	unsigned int count, per_s;

	if (es_conf_rate_parse(from->rate, &count, &per_s))
		return;
	ret->rule = es_conf_rule_digest(from);
	ret->by = ES_RULES_BY_RULE + (unsigned int)(from - conf->rules);
	ret->name = from->name;
	ret->increment_ns = per_s * 1000000000ULL / count;
	ret->burst = from->burst ? from->burst : count;
}

static int es_location_add(struct es_rules *rules, const struct es_conf_rule *conf, unsigned int service)
{
	struct es_url_tree **tree = &rules->locations[service];
	__u32 entry;
	int rc = 0;

	/* A path of 255 characters has at most 127 components. */
	if (!*tree)
		rc = es_url_tree_new((size_t)ES_CONF_RULES_MAX * 128, tree);
	if (!rc)
		rc = es_url_tree_insert(*tree, conf->name, strlen(conf->name), &entry);
	if (!rc)
		es_rule_info(conf, es_url_tree_info(*tree, entry));
	return rc;
}

/*
 * Keep the page that the daemon has read before it published the configuration; if the file is gone since,
 * the answer is in words.
 */
static int es_page_keep(const struct es_conf_service *service, struct es_page *page)
{
	char text[ES_CONF_PAGE_MAX + 1];
	struct es_conf_error unwanted;

	if (es_conf_page_read(service, text, &page->type, &unwanted) || !text[0])
		return 0;
	return es_body_keep(text, &page->body);
}

int es_rules_new(const struct es_conf *conf, struct es_rules **ret_rules)
{
	struct es_rules *rules = calloc(1, sizeof(*rules) + conf->rule_count * sizeof(rules->rule[0]));
	int rc;

	if (!rules)
		return -ENOMEM;
	rules->conf = conf;
	rc = es_content_hasher_new(&rules->hasher);
	for (unsigned int i = 0; !rc && i < conf->service_count; i++)
		rc = es_page_keep(&conf->services[i], &rules->page[i]);
	for (unsigned int i = 0; !rc && i < conf->rule_count; i++) {
		const struct es_conf_rule *from = &conf->rules[i];
		struct es_rule *rule = &rules->rule[rules->count];

		if (!from->is_location) {
			rule->conf = from;
			es_rule_info(from, &rule->info);
			es_rule_rate(conf, from, &rule->rate);
			rc = es_rule_match_init(&rule->match, from);
			if (!rc && from->body[0])
				rc = es_body_keep(from->body, &rule->body);
			rules->count++;
			continue;
		}
		for (unsigned int service = 0; !rc && service < conf->service_count; service++)
			if (from->service < 0 || from->service == (int)service)
				rc = es_location_add(rules, from, service);
	}
	if (rc) {
		es_rules_free(&rules);
		return rc;
	}
	*ret_rules = rules;
	return 0;
}

void es_rules_free(struct es_rules **rules)
{
	if (!*rules)
		return;
	es_content_hasher_free(&(*rules)->hasher);
	for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX; i++)
		es_url_tree_free(&(*rules)->locations[i]);
	for (unsigned int i = 0; i < (*rules)->count; i++)
		es_rule_match_fini(&(*rules)->rule[i].match);
	free(*rules);
	*rules = NULL;
}

/* Rules about which only the first that matches counts, by what they say; NULL: none did. */
struct es_rules_first {
	const struct es_rule *affinity; /* whose cookie or header it is */
	const struct es_rule *route;	/* ahead of that one: whose cookie or header names a node */
	unsigned int node;		/* the one */
	const struct es_rule *deny;
	const struct es_rule *rate;
};

/* Has no rule before said which node @rule's cookie, header or client belongs to? Behind one that names a
 * node stands another kind, for when that node cannot serve. */
static int es_rule_adds_affinity(const struct es_rule *rule, const struct es_rules_first *first)
{
	int is_route = rule->conf->affinity == ES_CONF_AFFINITY_ROUTE;

	return rule->conf->affinity && !first->affinity && !(is_route && first->route);
}

/* Does @rule say anything that no rule before it has said? @new: of what the URL table has, too */
static int es_rule_adds(const struct es_rule *rule, const struct es_rules_first *first, __u32 new)
{
	return new || es_rule_adds_affinity(rule, first) || (rule->conf->deny && !first->deny) ||
	       (rule->conf->rate[0] && !first->rate);
}

static void es_affinity_put(const struct es_rules *rules, const struct es_rule *rule,
			    const struct es_request_view *request, const struct es_cluster_view *view,
			    struct es_rules_first *first)
{
	char text[64];
	int node;

	if (rule->conf->affinity != ES_CONF_AFFINITY_ROUTE) {
		first->affinity = rule;
		return;
	}
	node = es_rule_route(rules->conf, rule->conf, request);
	if (node < 0) {
		es_explain(view, "rule %s: %s names no node", rule->conf->name,
			   es_affinity_name(rule->conf, text, sizeof(text)));
		return;
	}
	first->route = rule;
	first->node = (unsigned int)node;
}

/* All that is said of the request. @ret_by: who says which nodes may serve it. */
static void es_rules_ask(struct es_rules *rules, unsigned int service, struct es_url_table *table,
			 struct es_request_view *request, const struct es_cluster_view *view,
			 struct es_url_info *info, struct es_rules_first *first, unsigned int *ret_by)
{
	struct es_url_entry entry;
	struct es_url_path path;
	int has_path;

	if (!rules->count && !rules->locations[service] && !table)
		return;
	has_path = request->uri && !es_url_path_normalize(request->uri, request->uri_len, &path);
	for (unsigned int i = 0; i < rules->count; i++) {
		const struct es_rule *rule = &rules->rule[i];
		__u32 new = rule->info.has & ~info->has;

		if (rule->conf->service >= 0 && rule->conf->service != (int)service)
			continue;
		if (!es_rule_adds(rule, first, new))
			continue;
		if (!es_rule_matches(&rule->match, rule->conf, request, has_path ? &path : NULL))
			continue;
		es_explain_info(view, "rule ", rule->conf->name, &rule->info, new);
		es_url_info_put(info, &rule->info, new);
		if (new &ES_URL_NODES)
			*ret_by = ES_RULES_BY_RULE + (unsigned int)(rule->conf - rules->conf->rules);
		if (es_rule_adds_affinity(rule, first))
			es_affinity_put(rules, rule, request, view, first);
		if (rule->conf->deny && !first->deny)
			first->deny = rule;
		if (rule->conf->rate[0] && !first->rate)
			first->rate = rule;
	}
	if (!has_path) {
		if (request->uri)
			es_explain(view, "the path has no normal form: not looked up");
		return;
	}
	if (view->explain)
		es_url_peek(table, rules->locations[service], &path, &entry);
	else
		es_url_lookup(table, rules->locations[service], &path, &entry);
	es_explain_info(view, "URL table", "", &entry.info, ~info->has);
	es_url_info_put(info, &entry.info, ~info->has);
	if (table && (entry.size_from == ES_URL_FROM_NOWHERE || entry.size_from == ES_URL_FROM_RESPONSES))
		request->url_key = es_url_key(table, &path);
}

/* Does @rule refuse requests that no node of its own can serve? */
static int es_rule_is_strict(const struct es_conf_rule *conf)
{
	return conf->node_names.count && conf->otherwise == ES_CONF_OTHERWISE_REJECT;
}

int es_rules_wait(const struct es_rules *rules, unsigned int service, const struct es_request_view *request)
{
	int may_be_allowed = 0, is_decided = 0, has_path;
	struct es_url_path path;

	for (unsigned int i = 0; !request->head->target_complete && i < rules->conf->rule_count; i++) {
		const struct es_conf_rule *conf = &rules->conf->rules[i];

		if (conf->is_location && es_rule_is_strict(conf) &&
		    (conf->service < 0 || conf->service == (int)service))
			return 1;
	}
	has_path = request->uri && !es_url_path_normalize(request->uri, request->uri_len, &path);
	for (unsigned int i = 0; i < rules->count; i++) {
		const struct es_rule *rule = &rules->rule[i];
		int denies = rule->conf->deny && !is_decided;
		int is_strict = es_rule_is_strict(rule->conf) || rule->conf->rate[0];
		enum es_rule_chance chance;

		if ((rule->conf->service >= 0 && rule->conf->service != (int)service) ||
		    (!denies && !is_strict))
			continue;
		chance = es_rule_chance(&rule->match, rule->conf, request, has_path ? &path : NULL);
		if (chance == ES_RULE_MISSED)
			continue;
		if (chance == ES_RULE_OPEN && is_strict)
			return 1;
		if (!denies)
			continue;
		/* The first that matches decides, and one before it may still turn out to match. */
		if (rule->conf->deny == ES_CONF_DENY_YES && (may_be_allowed || chance == ES_RULE_OPEN))
			return 1;
		may_be_allowed |= chance == ES_RULE_OPEN;
		is_decided |= chance == ES_RULE_MET;
	}
	return 0;
}

#define ES_PACKET_BYTES 1460u

static void es_request_complete(struct es_request_view *request, const struct es_url_info *info)
{
	__u64 packets = (info->size_bytes + ES_PACKET_BYTES - 1) / ES_PACKET_BYTES;

	if (info->has & ES_URL_SIZE)
		request->size_bytes = info->size_bytes;
	if (info->has & ES_URL_KIND)
		request->is_dynamic = info->is_dynamic;
	if (info->has & ES_URL_CLASS)
		request->class = info->class;
	if (info->has & ES_URL_COST)
		request->cost = info->cost;
	else if (info->has & ES_URL_SIZE && packets)
		request->cost = packets < ES_REQUEST_COST_MAX ? (unsigned int)packets : ES_REQUEST_COST_MAX;
}

/* The first target on the ring from @position on, or -1. */
static int es_target_walk(const struct es_request_view *request, const struct es_cluster_view *view,
			  __u64 position)
{
	struct es_ring_walk walk;
	__u16 node;

	es_ring_walk_init(&walk, view->ring, position);
	while (es_ring_walk_next(&walk, &node))
		if (es_view_is_target(request, view, node))
			return node;
	return -1;
}

/* Is one of @nodes a target? */
static int es_nodes_have_target(const struct es_request_view *request, const struct es_cluster_view *view,
				struct es_node_set nodes)
{
	for (unsigned int i = 0; i < view->count; i++)
		if (es_node_set_has(nodes, i) && es_view_is_target(request, view, i))
			return 1;
	return 0;
}

static int es_rules_place(struct es_request_view *request, const struct es_cluster_view *view,
			  const struct es_url_info *info)
{
	char text[64];
	int node;

	if (!(info->has & ES_URL_NODES))
		return ES_RULES_PASS;
	/* A node that is named serves, whatever it is to other requests of the service. */
	request->takes_backups = 1;
	request->has_allowed = 1;
	request->allowed = info->nodes;
	if (es_nodes_have_target(request, view, info->nodes))
		return ES_RULES_PASS;
	request->allowed = info->backup;
	if (es_nodes_have_target(request, view, info->backup)) {
		es_explain(view, "none of the nodes is a target: its backup %s",
			   es_nodes_text(info->backup, text, sizeof(text)));
		return ES_RULES_PASS;
	}
	request->takes_backups = 0;
	if (!info->only) {
		es_explain(view, "none of the nodes is a target: otherwise any");
		request->has_allowed = 0;
		return ES_RULES_PASS;
	}
	node = es_policy_last_resort(view, es_ring_flow_position(request->flow_hash), &info->nodes);
	if (node < 0)
		node = es_policy_last_resort(view, es_ring_flow_position(request->flow_hash), &info->backup);
	if (node >= 0) {
		es_explain(view, "none of the nodes is a target: #%d, which %s", node,
			   view->node[node].weight > 0 ? "drains" : "has weight 0");
		return node;
	}
	es_explain(view, "none of the nodes is a target: otherwise reject");
	return ES_RULES_REJECT;
}

/*
 * Requests in hand of a node on average, as if all weights were 100. A node that begins slowly has less of
 * the requests, and not less to serve them with.
 */
static double es_mean_active(const struct es_cluster_view *view)
{
	double active = 0, weight = 0;

	for (unsigned int i = 0; i < view->count; i++) {
		const struct es_node_view *node = &view->node[i];

		if (!node->is_target || node->weight <= 0 || node->withheld >= 1)
			continue;
		active += node->active > node->idle ? node->active - node->idle : 0;
		weight += node->weight / (1 - node->withheld);
	}
	return weight > 0 ? active * 100 / weight : 0;
}

static int es_rules_admit(const struct es_conf_service *service, const struct es_cluster_view *view,
			  unsigned int priority)
{
	unsigned int bound = priority == ES_PRIORITY_LOW      ? service->admit_low
			     : priority == ES_PRIORITY_NORMAL ? service->admit_normal
							      : 0;
	double mean;

	if (!bound)
		return 1;
	mean = es_mean_active(view);
	es_explain(view, "priority %s: the nodes have %.1f requests in hand on average, %s of %u: %s",
		   es_priority_name(priority), mean,
		   priority == ES_PRIORITY_LOW ? "admit_low" : "admit_normal", bound,
		   mean < bound ? "admitted" : "rejected");
	return mean < bound;
}

static int es_rules_affinity(struct es_rules *rules, const struct es_rule *rule,
			     const struct es_request_view *request, const struct es_cluster_view *view)
{
	const char *value;
	__u64 position;
	char text[64];
	size_t len;
	int node;

	if (!rule || !es_rule_affinity_value(rule->conf, request, &value, &len) || !len ||
	    es_content_ring_hash(rules->hasher, value, len, &position))
		return ES_RULES_PASS;
	node = es_target_walk(request, view, position);
	if (node < 0)
		return ES_RULES_PASS;
	es_explain(view, "rule %s: %s is at %016llx of the content ring: #%d", rule->conf->name,
		   es_affinity_name(rule->conf, text, sizeof(text)), (unsigned long long)position, node);
	return node;
}

/*
 * Does it drain, and may it have this request all the same? Not with weight 0: that has a node, too, that
 * joins, until it hears the others on the cluster network.
 */
static int es_rules_stays(const struct es_rules_first *first, const struct es_request_view *request,
			  const struct es_cluster_view *view)
{
	return first->route->conf->when_drained == ES_CONF_DRAINED_STAY && first->node < view->count &&
	       view->node[first->node].is_draining && view->node[first->node].weight > 0 &&
	       (!request->has_allowed || es_node_set_has(request->allowed, first->node));
}

static int es_rules_route(const struct es_rules_first *first, const struct es_request_view *request,
			  const struct es_cluster_view *view)
{
	char text[64];
	int is_target, stays;

	if (!first->route)
		return ES_RULES_PASS;
	is_target = es_view_is_target(request, view, first->node);
	stays = !is_target && es_rules_stays(first, request, view);
	es_explain(view, "rule %s: %s names #%u%s", first->route->conf->name,
		   es_affinity_name(first->route->conf, text, sizeof(text)), first->node,
		   is_target ? ""
		   : stays   ? ", which drains: its sessions stay"
			     : ", which is no target");
	return is_target || stays ? (int)first->node : ES_RULES_PASS;
}

/* Returns ES_RULES_REJECT and @ret_refusal, or ES_RULES_PASS. */
static int es_rules_deny(const struct es_rules *rules, const struct es_rule *rule,
			 const struct es_cluster_view *view, struct es_rules_refusal *ret_refusal)
{
	const struct es_conf_rule *conf = rule ? rule->conf : NULL;

	if (!conf)
		return ES_RULES_PASS;
	if (conf->deny != ES_CONF_DENY_YES) {
		es_explain(view, "rule %s: not denied", conf->name);
		return ES_RULES_PASS;
	}
	*ret_refusal = (struct es_rules_refusal){
		.by = ES_RULES_BY_RULE + (unsigned int)(conf - rules->conf->rules),
		.status = conf->status ? conf->status : ES_CONF_DENY_STATUS,
		.body = rule->body,
	};
	es_explain(view, "rule %s: denied, with status %u", conf->name, ret_refusal->status);
	return ES_RULES_REJECT;
}

void es_rules_page(const struct es_rules *rules, unsigned int service, unsigned int by,
		   struct es_rules_refusal *ret_refusal)
{
	const struct es_conf_service *conf = &rules->conf->services[service];

	*ret_refusal = (struct es_rules_refusal){
		.by = by,
		.status = conf->page.status ? conf->page.status : ES_CONF_OTHERWISE_STATUS,
		.retry_after_s = conf->retry_after_s,
		.body = rules->page[service].body,
		.type = rules->page[service].type,
	};
}

int es_rules_layer4(struct es_rules *rules, unsigned int service, const struct es_request_view *request,
		    const struct es_cluster_view *view)
{
	for (unsigned int i = 0; i < rules->count; i++) {
		const struct es_rule *rule = &rules->rule[i];

		if (rule->conf->service == (int)service && es_conf_rule_is_of_source(rule->conf) &&
		    es_rule_matches(&rule->match, rule->conf, request, NULL))
			return es_rules_affinity(rules, rule, request, view);
	}
	return ES_RULES_PASS;
}

void es_rules_weigh(struct es_rules *rules, unsigned int service, struct es_url_table *table,
		    struct es_request_view *request, const struct es_cluster_view *view)
{
	unsigned int by = ES_RULES_BY_LOCATION;
	struct es_rules_first first = {};
	struct es_url_info info = {};

	es_rules_ask(rules, service, table, request, view, &info, &first, &by);
	es_request_complete(request, &info);
}

int es_rules_apply(struct es_rules *rules, unsigned int service, struct es_url_table *table,
		   struct es_request_view *request, const struct es_cluster_view *view,
		   struct es_rules_refusal *ret_refusal)
{
	const struct es_conf_service *conf = &rules->conf->services[service];
	unsigned int by = ES_RULES_BY_LOCATION;
	struct es_url_info info = {};
	struct es_rules_first first = {};
	int node;

	es_rules_ask(rules, service, table, request, view, &info, &first, &by);
	es_request_complete(request, &info);
	if (es_rules_deny(rules, first.deny, view, ret_refusal) == ES_RULES_REJECT)
		return ES_RULES_REJECT;
	node = es_rules_place(request, view, &info);
	if (node != ES_RULES_REJECT && !es_rules_admit(conf, view, info.priority)) {
		node = ES_RULES_REJECT;
		by = info.priority == ES_PRIORITY_LOW ? ES_RULES_BY_ADMIT_LOW : ES_RULES_BY_ADMIT_NORMAL;
	}
	request->rate = first.rate ? &first.rate->rate : NULL;
	if (node == ES_RULES_REJECT && by != ES_RULES_BY_ADMIT_LOW && by != ES_RULES_BY_ADMIT_NORMAL)
		es_rules_page(rules, service, by, ret_refusal);
	else if (node == ES_RULES_REJECT)
		*ret_refusal = (struct es_rules_refusal){
			.by = by, .status = 503, .retry_after_s = conf->retry_after_s};
	if (node == ES_RULES_REJECT)
		return node;
	if (node < 0)
		node = es_rules_route(&first, request, view);
	return node >= 0 ? node : es_rules_affinity(rules, first.affinity, request, view);
}
