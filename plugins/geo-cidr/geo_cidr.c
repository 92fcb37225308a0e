// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * geo-cidr: the client's network decides which nodes may serve it; the longest prefix wins. The plugin leaves
 * clients of no listed network to the next rule.
 *
 *	192.0.2.0/24 n1 n2
 *	2001:db8::/32 n3
 *	0.0.0.0/0 n4
 *
 * A binary trie over the 128 bits of an address (IPv4 as ::ffff:a.b.c.d), built once, read by all threads.
 */
#include <arpa/inet.h>
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdlib.h>

#define ADDRESS_BITS 128

enum { METRIC_MATCHED, METRIC_UNMATCHED };

static const struct es_plugin_metric metrics[] = {
	{"matched", "requests from a network of the list", 0},
	{"unmatched", "requests from elsewhere", 0},
	{NULL, NULL, 0},
};

/* @line: of the configuration that names this network; 0 if none does. Children are indices; 0 means none,
 * since the root is nobody's child. */
struct vertex {
	uint32_t child[2];
	unsigned int line;
	struct es_plugin_set nodes;
};

struct geo {
	const struct es_plugin_host *host;
	struct vertex *vertex;
	uint32_t count;
	uint32_t room;
};

static int bit_of(const uint8_t *address, unsigned int bit)
{
	return address[bit / 8] >> (7 - bit % 8) & 1;
}

static void release(void *state)
{
	struct geo *geo = state;

	free(geo->vertex);
	free(geo);
}

/* Returns an index, or 0 if there is no memory. */
static uint32_t vertex_new(struct geo *geo)
{
	if (geo->count == geo->room) {
		uint32_t room = geo->room ? geo->room * 2 : 1024;
		struct vertex *vertex = realloc(geo->vertex, room * sizeof(*vertex));

		if (!vertex)
			return 0;
		geo->vertex = vertex;
		geo->room = room;
	}
	memset(&geo->vertex[geo->count], 0, sizeof(geo->vertex[0]));
	return geo->count++;
}

/* "192.0.2.0/24", "2001:db8::/32", or an address alone. Bits after the prefix must be 0. */
static int network_read(struct es_plugin_text word, uint8_t *ret_address, unsigned int *ret_prefix)
{
	char text[INET6_ADDRSTRLEN + 5], *slash, *end;
	unsigned int bits = ADDRESS_BITS;
	unsigned long prefix;

	if (!word.len || word.len >= sizeof(text))
		return -EINVAL;
	memcpy(text, word.data, word.len);
	text[word.len] = 0;
	slash = strchr(text, '/');
	if (slash)
		*slash = 0;
	memset(ret_address, 0, 16);
	if (inet_pton(AF_INET, text, ret_address + 12) == 1) {
		ret_address[10] = ret_address[11] = 0xff;
		bits = 32;
	} else if (inet_pton(AF_INET6, text, ret_address) != 1) {
		return -EINVAL;
	}
	prefix = bits;
	if (slash) {
		prefix = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || prefix > bits)
			return -EINVAL;
	}
	*ret_prefix = (unsigned int)prefix + ADDRESS_BITS - bits;
	for (unsigned int i = *ret_prefix; i < ADDRESS_BITS; i++)
		if (bit_of(ret_address, i))
			return -EINVAL;
	return 0;
}

static int line_read(const struct es_plugin_statement *s, void *state)
{
	struct geo *geo = state;
	unsigned int prefix;
	uint8_t address[16];
	uint32_t at = 0;

	if (network_read(s->word[0], address, &prefix))
		return s->host->config_fail(
			s->config, s->line,
			"\"%.*s\": expected a network as in 192.0.2.0/24, with 0 behind its prefix",
			(int)s->word[0].len, s->word[0].data);
	for (unsigned int i = 0; i < prefix; i++) {
		int bit = bit_of(address, i);

		if (!geo->vertex[at].child[bit]) {
			uint32_t fresh = vertex_new(geo);

			if (!fresh)
				return -ENOMEM;
			geo->vertex[at].child[bit] = fresh;
		}
		at = geo->vertex[at].child[bit];
	}
	if (geo->vertex[at].line)
		return s->host->config_fail(s->config, s->line, "%.*s: also on line %u: expected it once",
					    (int)s->word[0].len, s->word[0].data, geo->vertex[at].line);
	geo->vertex[at].line = s->line;
	return es_plugin_statement_nodes(s, 1, &geo->vertex[at].nodes);
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct geo *geo = calloc(1, sizeof(*geo));

	if (!geo)
		return -ENOMEM;
	geo->host = host;
	vertex_new(geo); /* the root, 0 */
	if (!geo->count) {
		release(geo);
		return -ENOMEM;
	}
	return es_plugin_statements_read(host, config, line_read, release, geo, ret_state);
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct vertex *best = NULL, *v;
	const struct geo *geo = state;
	struct es_plugin_address client;
	uint32_t at = 0;

	geo->host->client(request, &client);
	for (unsigned int i = 0;; i++) {
		v = &geo->vertex[at];
		if (v->line)
			best = v;
		if (i == ADDRESS_BITS)
			break;
		at = v->child[bit_of(client.bytes, i)];
		if (!at)
			break;
	}
	geo->host->count(cluster, best ? METRIC_MATCHED : METRIC_UNMATCHED, 1);
	if (!best)
		return ES_PLUGIN_PASS;
	geo->host->explain(cluster, "the client's network is on line %u", best->line);
	ret_answer->nodes = best->nodes;
	return ES_PLUGIN_NODES;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "geo-cidr",
	.version = "1.0",	.description = "clients' networks to sets of nodes, the longest prefix wins",
	.configure = configure, .release = release,
	.route = route,		.metrics = metrics,
};
