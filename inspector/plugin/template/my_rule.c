// SPDX-License-Identifier: 0BSD
/*
 * A rule to start from: requests whose path begins with a prefix go to one node. Copy the directory, rename
 * everything that is called my-rule, and change route(). Configuration:
 *
 *	prefix /beta/ n3
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Read-only once configure() has returned: all threads share it. */
struct my_rule {
	const struct es_plugin_host *host;
	char prefix[256];
	size_t prefix_len;
	int node;
};

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	struct my_rule *rule = calloc(1, sizeof(*rule));
	int rc;

	if (!rule)
		return -ENOMEM;
	rule->host = host;
	rule->node = ES_PLUGIN_NONE;
	while ((rc = es_plugin_statement_next(&s)) > 0) {
		if (s.count != 3 || !es_plugin_word_is(s.word[0], "prefix") ||
		    s.word[1].len >= sizeof(rule->prefix)) {
			rc = host->config_fail(config, s.line, "expected prefix PATH NODE");
			break;
		}
		memcpy(rule->prefix, s.word[1].data, s.word[1].len);
		rule->prefix_len = s.word[1].len;
		rule->node = host->config_node(config, s.word[2].data, s.word[2].len);
		if (rule->node < 0) {
			rc = host->config_fail(config, s.line, "no node named \"%.*s\"", (int)s.word[2].len,
					       s.word[2].data);
			break;
		}
	}
	if (!rc && rule->node < 0)
		rc = host->config_fail(config, s.line, "expected prefix PATH NODE");
	if (rc) {
		free(rule);
		return rc;
	}
	*ret_state = rule;
	return 0;
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct my_rule *rule = state;
	struct es_plugin_text path = rule->host->path(request);

	if (path.len < rule->prefix_len || memcmp(path.data, rule->prefix, rule->prefix_len) != 0)
		return ES_PLUGIN_PASS;
	rule->host->explain(cluster, "the path begins with %s", rule->prefix);
	ret_answer->node = (uint32_t)rule->node;
	return ES_PLUGIN_NODE;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "my-rule", .version = "0.1", .description = "a path's prefix decides",
	.configure = configure, .release = free,   .route = route,
};
