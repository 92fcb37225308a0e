// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sni-map: the server name, or the protocol, that a TLS client asks for decides which nodes may serve it.
 * The first line that matches wins; a client that matches no line is left to the next rule.
 *
 *	sni  shop.example.org n1 n2
 *	sni  *.example.org n3           one label or more in place of the asterisk
 *	sni  - n4                       a ClientHello without server name
 *	alpn h2 n5                      anywhere in the client's list
 *
 * A ClientHello with a post-quantum key share spans several segments; the plugin then asks for more. If the
 * rest does not come, the part that is there decides.
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#define LINES_MAX 65536
#define ALPN_MAX  64

enum { METRIC_MATCHED, METRIC_UNMATCHED, METRIC_CUT };

static const struct es_plugin_metric metrics[] = {
	{"matched", "TLS connections that a line matched", 0},
	{"unmatched", "TLS connections that no line matched", 0},
	{"cut", "ClientHellos that did not come in full", 0},
	{NULL, NULL, 0},
};

struct line {
	int is_alpn;
	int is_wildcard;
	unsigned int number; /* in the file */
	char name[256];	     /* the part after the asterisk; "" for none */
	size_t len;
	struct es_plugin_set nodes;
};

struct sni_map {
	const struct es_plugin_host *host;
	unsigned int count;
	struct line *line; /* @count of them, by es_plugin_array_grow() */
};

static void release(void *state)
{
	struct sni_map *map = state;

	free(map->line);
	free(map);
}

static int line_read(const struct es_plugin_statement *s, void *state)
{
	struct sni_map *map = state;
	struct es_plugin_text name = s->word[1];
	struct line *line;

	if (map->count == LINES_MAX)
		return s->host->config_fail(s->config, s->line, "too many lines: expected at most %d",
					    LINES_MAX);
	line = es_plugin_array_grow(map->line, map->count, sizeof(*line));
	if (!line)
		return -ENOMEM;
	map->line = line;
	line += map->count; /* not counted yet */
	line->is_alpn = es_plugin_word_is(s->word[0], "alpn");
	if (!line->is_alpn && !es_plugin_word_is(s->word[0], "sni"))
		return s->host->config_fail(s->config, s->line, "\"%.*s\": expected sni or alpn",
					    (int)s->word[0].len, s->word[0].data);
	if (s->count < 2 || !name.len || name.len >= sizeof(line->name))
		return s->host->config_fail(s->config, s->line, "expected a name, at most 255 characters");
	if (!line->is_alpn) {
		line->is_wildcard = name.len > 2 && name.data[0] == '*' && name.data[1] == '.';
		if (!line->is_wildcard && memchr(name.data, '*', name.len))
			return s->host->config_fail(
				s->config, s->line,
				"%.*s: expected an asterisk only as the first label, as in *.example.org",
				(int)name.len, name.data);
		if (line->is_wildcard)
			name.data++, name.len--;
		if (name.data[name.len - 1] == '.')
			return s->host->config_fail(s->config, s->line,
						    "%.*s: expected no final dot, which no client sends here",
						    (int)name.len, name.data);
		if (es_plugin_word_is(name, "-"))
			name.len = 0;
	}
	memcpy(line->name, name.data, name.len);
	line->len = name.len;
	line->number = s->line;
	map->count++;
	return es_plugin_statement_nodes(s, 2, &line->nodes);
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct sni_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	map->host = host;
	return es_plugin_statements_read(host, config, line_read, release, map, ret_state);
}

static int line_matches(const struct sni_map *map, const struct line *line,
			const struct es_plugin_request *request, struct es_plugin_text sni)
{
	struct es_plugin_text protocol;

	if (!line->is_alpn) {
		if (line->is_wildcard)
			return sni.len > line->len &&
			       !strncasecmp(sni.data + sni.len - line->len, line->name, line->len);
		return sni.len == line->len && !strncasecmp(sni.len ? sni.data : "", line->name, line->len);
	}
	for (unsigned int i = 0; i < ALPN_MAX && (protocol = map->host->alpn(request, i)).data; i++)
		if (protocol.len == line->len && !memcmp(protocol.data, line->name, line->len))
			return 1;
	return 0;
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct sni_map *map = state;
	const struct es_plugin_host *host = map->host;
	struct es_plugin_text sni;
	int hello;

	if (host->protocol(request) != ES_PLUGIN_TLS)
		return ES_PLUGIN_PASS;
	hello = host->hello(request, &ret_answer->more_bytes);
	if (hello == ES_PLUGIN_HELLO_PARTIAL && !host->is_truncated(request))
		return ES_PLUGIN_MORE;
	if (hello != ES_PLUGIN_HELLO_COMPLETE)
		host->count(cluster, METRIC_CUT, 1);
	sni = host->sni(request);
	for (unsigned int i = 0; i < map->count; i++) {
		if (!line_matches(map, &map->line[i], request, sni))
			continue;
		host->count(cluster, METRIC_MATCHED, 1);
		host->explain(cluster, "line %u matches %.*s", map->line[i].number, (int)sni.len,
			      sni.data ? sni.data : "");
		ret_answer->nodes = map->line[i].nodes;
		return ES_PLUGIN_NODES;
	}
	host->count(cluster, METRIC_UNMATCHED, 1);
	return ES_PLUGIN_PASS;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "sni-map",
	.version = "1.0",	.description = "TLS server names and protocols to sets of nodes",
	.configure = configure, .release = release,
	.route = route,		.metrics = metrics,
};
