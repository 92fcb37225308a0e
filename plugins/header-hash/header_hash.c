// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * header-hash: the value of a header or a cookie decides. The same value always goes to the node at its place
 * on the content ring, or to the next one that is a target, so a user's session, a tenant or an API key has
 * one home. The plugin leaves a request without that header or cookie to the next rule.
 *
 *	header X-Tenant         (or)  cookie session
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { METRIC_HASHED, METRIC_MISSING };

static const struct es_plugin_metric metrics[] = {
	{"hashed", "requests whose value decided", 0},
	{"missing", "requests without the value", 0},
	{NULL, NULL, 0},
};

struct header_hash {
	const struct es_plugin_host *host;
	int is_cookie;
	char name[128];
};

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	struct header_hash *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	h->host = host;
	while ((rc = es_plugin_statement_next(&s)) > 0) {
		h->is_cookie = es_plugin_word_is(s.word[0], "cookie");
		if (s.count != 2 || (!h->is_cookie && !es_plugin_word_is(s.word[0], "header")) ||
		    !s.word[1].len || s.word[1].len >= sizeof(h->name))
			rc = host->config_fail(config, s.line, "expected header NAME or cookie NAME");
		else if (h->name[0])
			rc = host->config_fail(config, s.line,
					       "expected one header or cookie, not a second one");
		if (rc < 0)
			break;
		snprintf(h->name, sizeof(h->name), "%.*s", (int)s.word[1].len, s.word[1].data);
	}
	if (!rc && !h->name[0])
		rc = host->config_fail(config, s.line, "expected header NAME or cookie NAME");
	if (rc) {
		free(h);
		return rc;
	}
	*ret_state = h;
	return 0;
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct header_hash *h = state;
	struct es_plugin_text value =
		h->is_cookie ? h->host->cookie(request, h->name) : h->host->header(request, h->name, 0);
	int node;

	if (!value.data || !value.len) {
		h->host->count(cluster, METRIC_MISSING, 1);
		h->host->explain(cluster, "no %s %s", h->is_cookie ? "cookie" : "header", h->name);
		return ES_PLUGIN_PASS;
	}
	node = h->host->ring_target(cluster, value.data, value.len);
	if (node < 0)
		return ES_PLUGIN_PASS;
	h->host->count(cluster, METRIC_HASHED, 1);
	h->host->explain(cluster, "%s %s: its place on the content ring", h->is_cookie ? "cookie" : "header",
			 h->name);
	ret_answer->node = (uint32_t)node;
	return ES_PLUGIN_NODE;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "header-hash",
	.version = "1.0",	.description = "the value of a header or cookie, hashed on the content ring",
	.configure = configure, .release = free,
	.route = route,		.metrics = metrics,
};
