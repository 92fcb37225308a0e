// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The conditions of rules, one function each. A property of a request that is not known meets no condition.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "inspector/rules/match.h"
#include "inspector/http/head.h"
#include "inspector/policy/name.h"

int es_rule_match_init(struct es_rule_match *match, const struct es_conf_rule *conf)
{
	*match = (struct es_rule_match){};
	if (!conf->clients.count)
		return 0;
	match->network = calloc(conf->clients.count, sizeof(*match->network));
	if (!match->network)
		return -ENOMEM;
	for (const char *item = NULL; (item = es_conf_list_next(&conf->clients, item));)
		if (!es_conf_network_parse(item, &match->network[match->network_count]))
			match->network_count++; /* as all of them: the configuration was checked */
	return 0;
}

void es_rule_match_fini(struct es_rule_match *match)
{
	free(match->network);
	match->network = NULL;
}

static int es_match_method(const struct es_conf_rule *conf, const struct es_request_view *request)
{
	const struct es_http_head *head = request->head;

	if (!head || !head->target_complete)
		return 0;
	for (const char *item = NULL; (item = es_conf_list_next(&conf->methods, item));)
		if (strlen(item) == head->method_name.len &&
		    !memcmp(item, request->text + head->method_name.off, head->method_name.len))
			return 1;
	return 0;
}

static int es_match_host(const struct es_conf_rule *conf, const struct es_request_view *request)
{
	const char *host;
	size_t len;

	if (!request->head || !es_http_head_host(request->head, request->text, &host, &len))
		return 0;
	len = es_name_host_len(host, len);
	for (const char *item = NULL; (item = es_conf_list_next(&conf->hosts, item));) {
		size_t size = strlen(item);

		if (item[0] != '*') {
			if (size == len && !strncasecmp(item, host, len))
				return 1;
		} else if (len > size - 1 && !strncasecmp(item + 1, host + len - (size - 1), size - 1)) {
			return 1;
		}
	}
	return 0;
}

static int es_match_path(const struct es_conf_rule *conf, const struct es_url_path *path)
{
	for (const char *item = NULL; path && (item = es_conf_list_next(&conf->paths, item));) {
		size_t size = strlen(item);

		if (item[size - 1] == '/' ? path->len >= size : path->len == size)
			if (!memcmp(item, path->text, size))
				return 1;
	}
	return 0;
}

static int es_match_suffix(const struct es_conf_rule *conf, const struct es_url_path *path)
{
	for (const char *item = NULL; path && (item = es_conf_list_next(&conf->suffixes, item));) {
		size_t size = strlen(item);

		if (path->len > size && !memcmp(item, path->text + path->len - size, size))
			return 1;
	}
	return 0;
}

static int es_match_client(const struct es_rule_match *match, const struct es_request_view *request)
{
	for (unsigned int i = 0; request->client && i < match->network_count; i++)
		if (es_prefix_has(&match->network[i], request->client))
			return 1;
	return 0;
}

static int es_match_header(const struct es_conf_rule *conf, const struct es_request_view *request)
{
	size_t name_len = strcspn(conf->header, ":"), len;
	const char *wanted = conf->header + name_len, *value;
	char name[ES_CONF_PATH_SIZE];

	memcpy(name, conf->header, name_len);
	name[name_len] = 0;
	if (*wanted)
		wanted += 2;
	for (uint32_t n = 0;
	     request->head && es_http_head_find_nth(request->head, request->text, name, n, &value, &len); n++)
		if (!*wanted || (strlen(wanted) == len && !memcmp(wanted, value, len)))
			return 1;
	return 0;
}

static int es_match_cookie(const struct es_conf_rule *conf, const struct es_request_view *request)
{
	const char *value;
	size_t len;

	return request->head && es_http_head_cookie(request->head, request->text, conf->cookie, &value, &len);
}

int es_rule_matches(const struct es_rule_match *match, const struct es_conf_rule *conf,
		    const struct es_request_view *request, const struct es_url_path *path)
{
	return (!conf->paths.count || es_match_path(conf, path)) &&
	       (!conf->suffixes.count || es_match_suffix(conf, path)) &&
	       (!conf->clients.count || es_match_client(match, request)) &&
	       (!conf->methods.count || es_match_method(conf, request)) &&
	       (!conf->hosts.count || es_match_host(conf, request)) &&
	       (!conf->header[0] || es_match_header(conf, request)) &&
	       (!conf->cookie[0] || es_match_cookie(conf, request));
}

enum es_rule_chance es_rule_chance(const struct es_rule_match *match, const struct es_conf_rule *conf,
				   const struct es_request_view *request, const struct es_url_path *path)
{
	int has_target = request->head->target_complete, is_open = 0, has_host;
	const char *host;
	size_t len;

	has_host = es_http_head_host(request->head, request->text, &host, &len);
	const struct {
		int is_asked, is_met, may_come;
	} conditions[] = {
		{conf->paths.count > 0, es_match_path(conf, path), !has_target},
		{conf->suffixes.count > 0, es_match_suffix(conf, path), !has_target},
		{conf->methods.count > 0, es_match_method(conf, request), !has_target},
		{conf->clients.count > 0, es_match_client(match, request), 0},
		{conf->hosts.count > 0, es_match_host(conf, request), !has_host},
		{conf->header[0] != 0, conf->header[0] && es_match_header(conf, request), 1},
		{conf->cookie[0] != 0, conf->cookie[0] && es_match_cookie(conf, request), 1},
	};

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		if (!conditions[i].is_asked || conditions[i].is_met)
			continue;
		if (!conditions[i].may_come)
			return ES_RULE_MISSED;
		is_open = 1;
	}
	/* No rule is asked about what may still turn out to be no HTTP. */
	return is_open || !has_target ? ES_RULE_OPEN : ES_RULE_MET;
}

int es_rule_affinity_value(const struct es_conf_rule *conf, const struct es_request_view *request,
			   const char **ret_value, size_t *ret_len)
{
	if (conf->affinity == ES_CONF_AFFINITY_SOURCE) {
		if (!request->client)
			return 0;
		/*
		 * A client with a /64 has all of its addresses, and takes another one now and then (RFC
		 * 8981).
		 */
		*ret_value = (const char *)request->client;
		*ret_len = es_addr_is_v4(request->client) ? sizeof(*request->client)
							  : sizeof(*request->client) / 2;
		return 1;
	}
	if (!request->head)
		return 0;
	return conf->cookie[0]
		       ? es_http_head_cookie(request->head, request->text, conf->cookie, ret_value, ret_len)
		       : es_http_head_find(request->head, request->text, conf->header, ret_value, ret_len);
}

#define ES_ROUTE_VALUES_MAX 8 /* each look-up reads the whole head, which a client may fill with them */

/* Does @value name a node by @route? */
static int es_route_is(const char *value, size_t len, const char *route)
{
	size_t size = strlen(route);

	return len >= size && !memcmp(value + len - size, route, size) &&
	       (len == size || value[len - size - 1] == '.');
}

static int es_route_node(const struct es_conf *conf, const char *value, size_t len)
{
	size_t longest = 0;
	int node = -1;

	if (len >= 2 && value[0] == '"' && value[len - 1] == '"') { /* RFC 6265 section 4.1.1 */
		value++;
		len -= 2;
	}
	for (unsigned int i = 0; i < conf->node_count; i++)
		for (const char *route = NULL; (route = es_conf_route_next(&conf->nodes[i], route));) {
			size_t size = strlen(route);

			if (size <= longest || !es_route_is(value, len, route))
				continue;
			longest = size;
			node = (int)i;
		}
	return node;
}

int es_rule_route(const struct es_conf *conf, const struct es_conf_rule *rule,
		  const struct es_request_view *request)
{
	const struct es_http_head *head = request->head;
	const char *value;
	size_t len;
	int node;

	for (uint32_t n = 0;
	     head && n < ES_ROUTE_VALUES_MAX &&
	     (rule->cookie[0] ? es_http_head_cookie_nth(head, request->text, rule->cookie, n, &value, &len)
			      : es_http_head_find_nth(head, request->text, rule->header, n, &value, &len));
	     n++) {
		node = es_route_node(conf, value, len);
		if (node >= 0)
			return node;
	}
	return -1;
}
