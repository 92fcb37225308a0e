// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks rules, locations and a policy's parameters once the whole file is read: the nodes and services that
 * they name exist, and their keys make sense together. Also makes the digests that nodes compare.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/internal.h"
#include "kmod/core/siphash.h"

/* A rule that is being checked. */
struct es_rule_check {
	struct es_conf_parse *p;
	struct es_conf_rule *rule;
	const struct es_conf_lines *lines;
	enum es_conf_section_id section;
};

__attribute__((format(printf, 3, 4))) static int es_rule_fail(const struct es_rule_check *c, const char *key,
							      const char *format, ...)
{
	char why[384];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return es_conf_fail(c->p, es_conf_line_of(c->lines, c->section, key), "%s %.80s: %s",
			    es_conf_sections[c->section].name, c->rule->name, why);
}

int es_conf_rule_is_of_source(const struct es_conf_rule *rule)
{
	return !rule->is_location && rule->affinity == ES_CONF_AFFINITY_SOURCE && !rule->methods.count &&
	       !rule->hosts.count && !rule->paths.count && !rule->suffixes.count && !rule->header[0] &&
	       !rule->cookie[0] && !rule->node_names.count && !rule->otherwise && !rule->type &&
	       !rule->class && !rule->cost && !rule->priority && !rule->deny && !rule->rate[0] &&
	       !rule->when_drained;
}

int es_conf_has_source_rule(const struct es_conf *conf, unsigned int service)
{
	for (unsigned int i = 0; i < conf->rule_count; i++)
		if (conf->rules[i].service == (int)service && es_conf_rule_is_of_source(&conf->rules[i]))
			return 1;
	return 0;
}

/* Does neither the policy nor a plugin of @service look at requests? */
static int es_service_is_unread(const struct es_conf *conf, unsigned int service)
{
	const struct es_policy *policy = es_policy_find(conf->services[service].policy);
	int is_read = !policy || policy->inspects;

	for (unsigned int i = 0; i < conf->plugin_count; i++)
		is_read |= conf->plugins[i].service == service;
	return !is_read;
}

static int es_check_rule_service(const struct es_rule_check *c)
{
	const struct es_conf *conf = c->p->conf;
	struct es_conf_rule *rule = c->rule;
	int alternatives = 0;
	char names[256] = "";

	rule->service = -1;
	if (!rule->service_name[0])
		return 0;
	for (unsigned int i = 0; i < conf->service_count; i++) {
		es_conf_alternative(names, sizeof(names), &alternatives, conf->services[i].name);
		if (!strcmp(conf->services[i].name, rule->service_name))
			rule->service = (int)i;
	}
	if (rule->service < 0)
		return es_rule_fail(c, "service", "service = %s: no service of that name: expected %s",
				    rule->service_name, names);
	if (es_conf_service_reads(&conf->services[rule->service]) == ES_INSPECT_NEVER &&
	    !es_conf_rule_is_of_source(rule))
		return es_rule_fail(
			c, "service",
			"service = %s: it has inspect = never: expected affinity = source, with no "
			"condition but client, or a service whose requests are inspected",
			rule->service_name);
	if (es_service_is_unread(conf, (unsigned int)rule->service) && !es_conf_rule_is_of_source(rule))
		es_conf_warn(c->p, es_conf_line_of(c->lines, c->section, "service"),
			     "%s %.80s: service = %s: it has policy = ring and no plugin, so no request is "
			     "read and "
			     "this has no effect",
			     es_conf_sections[c->section].name, rule->name, rule->service_name);
	return 0;
}

/* The first of @names whose node does not serve the rule's own service; NULL: none. */
static const char *es_rule_node_elsewhere(const struct es_rule_check *c, const struct es_conf_list *names)
{
	const struct es_conf *conf = c->p->conf;

	for (const char *name = NULL; (name = es_conf_list_next(names, name));)
		for (unsigned int i = 0; c->rule->service >= 0 && i < conf->node_count; i++)
			if (!strcmp(conf->nodes[i].name, name) &&
			    !es_conf_service_is_on(&conf->services[c->rule->service], i))
				return name;
	return NULL;
}

static int es_check_rule_nodes(const struct es_rule_check *c)
{
	const struct {
		const char *key;
		const struct es_conf_list *names;
		struct es_node_set *nodes;
	} lists[] = {{"nodes", &c->rule->node_names, &c->rule->nodes},
		     {"backup", &c->rule->backup_names, &c->rule->backup}};
	const struct es_conf *conf = c->p->conf;
	const char *wrong;
	char names[256];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		wrong = es_conf_nodes_of(conf, lists[i].names, lists[i].nodes, names, sizeof(names));
		if (wrong)
			return es_rule_fail(c, lists[i].key, "%s = %s: no node of that name: expected %s",
					    lists[i].key, wrong, names);
		wrong = es_rule_node_elsewhere(c, lists[i].names);
		if (wrong) {
			int alternatives = 0;

			for (unsigned int k = 0; k < conf->node_count; k++)
				if (es_conf_service_is_on(&conf->services[c->rule->service], k))
					es_conf_alternative(names, sizeof(names), &alternatives,
							    conf->nodes[k].name);
			return es_rule_fail(c, lists[i].key,
					    "%s = %s: service %s is not on that node: expected %s",
					    lists[i].key, wrong, c->rule->service_name, names);
		}
	}
	if (!c->rule->node_names.count && c->rule->backup_names.count)
		return es_rule_fail(
			c, "backup",
			"backup: there are no nodes that come first: expected nodes = {...} besides");
	if (!c->rule->node_names.count && c->rule->otherwise == ES_CONF_OTHERWISE_REJECT)
		return es_rule_fail(c, "otherwise",
				    "otherwise = reject: there are no nodes: expected nodes = {...} besides");
	for (unsigned int i = 0; i < c->p->conf->node_count; i++)
		if (es_node_set_has(c->rule->nodes, i) && es_node_set_has(c->rule->backup, i))
			return es_rule_fail(c, "backup",
					    "backup = %s: it is one of nodes: expected another one",
					    c->p->conf->nodes[i].name);
	return 0;
}

static int es_check_rule_says(const struct es_rule_check *c)
{
	const struct es_conf_rule *rule = c->rule;
	/* the affinity's name, if the value of a cookie or header decides */
	const char *kind = rule->affinity == ES_CONF_AFFINITY_VALUE   ? "yes"
			   : rule->affinity == ES_CONF_AFFINITY_ROUTE ? "route"
								      : NULL;

	if (kind && !rule->cookie[0] == !rule->header[0])
		return es_rule_fail(c, "affinity", "affinity = %s: expected either cookie or header besides",
				    kind);
	if (kind && strchr(rule->header, ':'))
		return es_rule_fail(
			c, "header",
			"header = %.80s: always the same value: with affinity = %s expected a name",
			rule->header, kind);
	if (rule->when_drained && rule->affinity != ES_CONF_AFFINITY_ROUTE)
		return es_rule_fail(c, "when_drained",
				    "when_drained: no value names the node of a session: expected affinity = "
				    "route besides");
	if (rule->deny != ES_CONF_DENY_YES && (rule->status || rule->body[0]))
		return es_rule_fail(c, rule->status ? "status" : "body",
				    "%s: nothing is answered: expected deny = yes besides",
				    rule->status ? "status" : "body");
	if (rule->burst && !rule->rate[0])
		return es_rule_fail(c, "burst",
				    "burst: nothing is counted: expected rate = REQUESTS/s besides");
	if (rule->rate[0] && rule->deny == ES_CONF_DENY_YES)
		return es_rule_fail(c, "rate",
				    "rate = %s: all are denied: expected either rate or deny = yes",
				    rule->rate);
	if (rule->node_names.count || rule->type || rule->class || rule->cost || rule->priority ||
	    rule->affinity || rule->size_bytes || rule->deny || rule->rate[0])
		return 0;
	return es_rule_fail(c, "",
			    "says nothing: expected one of nodes | type | class | cost | priority | %s",
			    rule->is_location ? "size_bytes" : "affinity | deny | rate");
}

/* Does one of @paths end in one of @suffixes, or is one a directory, in which names may? */
static int es_paths_may_end_so(const struct es_conf_list *paths, const struct es_conf_list *suffixes)
{
	for (const char *path = NULL; (path = es_conf_list_next(paths, path));) {
		size_t len = strlen(path);

		if (path[len - 1] == '/')
			return 1;
		for (const char *suffix = NULL; (suffix = es_conf_list_next(suffixes, suffix));)
			if (len > strlen(suffix) && !strcmp(path + len - strlen(suffix), suffix))
				return 1;
	}
	return 0;
}

static int es_check_rule_conditions(const struct es_rule_check *c)
{
	const struct es_conf_rule *rule = c->rule;

	if (rule->paths.count && rule->suffixes.count && !es_paths_may_end_so(&rule->paths, &rule->suffixes))
		return es_rule_fail(c, "suffix",
				    "suffix = %s: no path of the rule ends so, and all conditions must hold: "
				    "expected two rules",
				    rule->suffixes.text);
	return 0;
}

static int es_check_location_twice(const struct es_rule_check *c)
{
	const struct es_conf *conf = c->p->conf;

	for (const struct es_conf_rule *other = conf->rules; other < c->rule; other++) {
		if (!other->is_location || strcmp(other->name, c->rule->name) != 0)
			continue;
		if (other->service < 0 || c->rule->service < 0 || other->service == c->rule->service)
			return es_rule_fail(c, "service",
					    "first defined on line %d: expected another path or service",
					    other->line);
	}
	return 0;
}

int es_conf_check_rules(struct es_conf_parse *p)
{
	for (unsigned int i = 0; i < p->conf->rule_count; i++) {
		struct es_rule_check c = {.p = p, .rule = &p->conf->rules[i], .lines = &p->rules[i]};

		c.section = c.rule->is_location ? ES_CONF_LOCATION : ES_CONF_RULE;
		es_check_rule_service(&c);
		es_check_rule_nodes(&c);
		if (!c.lines->wrong) {
			es_check_rule_says(&c);
			es_check_rule_conditions(&c);
		}
		if (c.rule->is_location)
			es_check_location_twice(&c);
	}
	return p->failed ? -EINVAL : 0;
}

/* "T_low (0..1e+06), ..." */
static void es_param_list(const struct es_policy *policy, char *text, size_t size)
{
	char bounds[ES_PARAM_TEXT_SIZE];
	size_t used = 0;

	text[0] = 0;
	for (const struct es_policy_param *param = policy->params; param->name && used < size; param++)
		used += (size_t)snprintf(text + used, size - used, "%s%s (%s)",
					 param == policy->params ? "" : ", ", param->name,
					 es_policy_param_expects(param, bounds));
}

static int es_check_parameter(struct es_conf_parse *p, unsigned int i, const struct es_policy *policy,
			      const char *text)
{
	struct es_conf_service *service = &p->conf->services[i];
	int line = es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "parameters");
	size_t len = strcspn(text, "=");
	char name[ES_CONF_NAME_SIZE], known[256], bounds[ES_PARAM_TEXT_SIZE];
	double value;
	int index;

	if (!policy->params || !policy->params[0].name)
		return es_conf_fail(p, line,
				    "service %s: parameters = %.80s: policy %s has none: expected none",
				    service->name, text, policy->name);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	index = es_policy_param_index(policy, name);
	if (index < 0) {
		es_param_list(policy, known, sizeof(known));
		return es_conf_fail(p, line, "service %s: parameters = %.80s: policy %s expected %s",
				    service->name, text, policy->name, known);
	}
	if (text[len] != '=' || es_policy_param_parse(&policy->params[index], text + len + 1, &value))
		return es_conf_fail(p, line, "service %s: parameters = %.80s: expected %s=%s (%s)",
				    service->name, text, name,
				    es_policy_param_expects(&policy->params[index], bounds),
				    policy->params[index].description);
	service->params[index] = value;
	return 0;
}

/* Is @name set by an earlier one of the list than @item? */
static int es_parameter_is_set(const struct es_conf_list *list, const char *item)
{
	size_t len = strcspn(item, "=") + 1;

	for (const char *other = NULL; (other = es_conf_list_next(list, other)) != item;)
		if (!strncmp(other, item, len))
			return 1;
	return 0;
}

static int es_check_contradiction(struct es_conf_parse *p, unsigned int i, const struct es_policy *policy)
{
	const struct es_conf_service *service = &p->conf->services[i];
	int bound, index = es_policy_contradiction(policy, service->params, &bound);

	if (index < 0)
		return 0;
	return es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "parameters"),
			    "service %s: parameters: %s is %g: expected at most %g, which %s is",
			    service->name, policy->params[index].name, service->params[index],
			    service->params[bound], policy->params[bound].name);
}

int es_conf_check_parameters(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	const struct es_policy *policy = es_policy_find(service->policy);
	struct es_policy_settings settings;
	int rc = 0;

	es_policy_defaults(policy, &settings);
	memcpy(service->params, settings.param, sizeof(service->params));
	for (const char *item = NULL; (item = es_conf_list_next(&service->parameters, item));) {
		if (es_parameter_is_set(&service->parameters, item))
			rc = es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "parameters"),
					  "service %s: parameters = %.80s: expected each once", service->name,
					  item);
		else if (es_check_parameter(p, i, policy, item))
			rc = -EINVAL;
	}
	if (!rc)
		rc = es_check_contradiction(p, i, policy);
	if (service->admit_low && service->admit_normal && service->admit_low > service->admit_normal)
		return es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "admit_low"),
				    "service %s: admit_low = %u: expected at most %u, which admit_normal is",
				    service->name, service->admit_low, service->admit_normal);
	return rc;
}

/* Does the file set this key? */
static int es_rule_says(const struct es_conf_key *key, const void *field)
{
	if (key->kind == ES_CONF_KIND_LIST)
		return ((const struct es_conf_list *)field)->count > 0;
	if (key->kind == ES_CONF_KIND_NUMBER || key->kind == ES_CONF_KIND_CHOICE)
		return *(const unsigned int *)field != 0;
	return *(const char *)field != 0;
}

/* A hash of text that comes in pieces. */
struct es_digest {
	struct es_sipstate state;
	__u64 word;
	unsigned int bytes;
};

static void es_digest_put(struct es_digest *digest, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++) {
		digest->word |= (__u64)bytes[i] << 8 * (digest->bytes++ % 8);
		if (digest->bytes % 8)
			continue;
		es_siphash_word(&digest->state, digest->word);
		digest->word = 0;
	}
}

__u64 es_conf_rule_digest(const struct es_conf_rule *rule)
{
	static const struct es_sipkey key; /* no secret: it compares files that the operator has */
	const struct es_conf_section *section =
		&es_conf_sections[rule->is_location ? ES_CONF_LOCATION : ES_CONF_RULE];
	struct es_digest digest = {};
	char number[16];

	es_siphash_init(&digest.state, &key);
	es_digest_put(&digest, rule->name, strlen(rule->name) + 1);
	for (const struct es_conf_key *k = section->keys; k->name; k++) {
		const void *field = (const char *)rule + k->offset;
		const struct es_conf_list *list = field;

		/*
		 * A rule without the newer keys must have the digest that a version without these keys
		 * computes.
		 */
		if (k->offset >= offsetof(struct es_conf_rule, deny) && !es_rule_says(k, field))
			continue;
		es_digest_put(&digest, k->name, strlen(k->name) + 1);
		if (k->kind == ES_CONF_KIND_LIST) {
			es_digest_put(&digest, list->text, list->used);
		} else if (k->kind == ES_CONF_KIND_NUMBER || k->kind == ES_CONF_KIND_CHOICE) {
			snprintf(number, sizeof(number), "%u", *(const unsigned int *)field);
			es_digest_put(&digest, number, strlen(number) + 1);
		} else {
			es_digest_put(&digest, field, strlen(field) + 1);
		}
	}
	return es_siphash_final(&digest.state, digest.word, digest.bytes);
}

__u64 es_conf_routes_digest(const struct es_conf *conf)
{
	static const struct es_sipkey key;
	struct es_digest digest = {};
	unsigned int count = 0;

	es_siphash_init(&digest.state, &key);
	for (unsigned int i = 0; i < conf->node_count; i++) {
		const struct es_conf_node *node = &conf->nodes[i];

		if (node->routes.count)
			es_digest_put(&digest, node->name, strlen(node->name) + 1);
		es_digest_put(&digest, node->routes.text, node->routes.used);
		count += node->routes.count;
	}
	return count ? es_siphash_final(&digest.state, digest.word, digest.bytes) : 0;
}
