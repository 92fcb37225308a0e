// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * canary: the canary's nodes serve a share of the clients, and the other nodes serve all other clients. A
 * client stays on its side for as long as the share is the same, and when the share grows no client leaves
 * the canary.
 *
 *	percent 5.5                     of the clients
 *	nodes n4 n5                     the canary's
 *	by address                      or: by cookie NAME, or by header NAME; without it, the address decides
 *	salt 2024-11                    another word selects other clients
 *	others pass                     the canary's nodes may serve others, too; or exclude (default)
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PERCENT_UNITS 1000000 /* millionths of all */

enum { METRIC_CANARY, METRIC_OTHERS };

static const struct es_plugin_metric metrics[] = {
	{"canary", "requests of clients that belong to the canary", 0},
	{"others", "requests of all others", 0},
	{NULL, NULL, 0},
};

enum by { BY_ADDRESS, BY_COOKIE, BY_HEADER };

struct canary {
	const struct es_plugin_host *host;
	enum by by;
	char name[128];
	char salt[64];
	uint64_t units; /* of PERCENT_UNITS */
	int has_percent;
	int has_nodes;
	int excludes;
	struct es_plugin_set nodes;
};

/* "5", "5.25": at most 100, and at most four digits after the point. */
static int percent_read(struct es_plugin_text word, uint64_t *ret_units)
{
	uint64_t units = 0, scale = PERCENT_UNITS / 100, digits = 0;
	int is_fraction = 0;

	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] == '.' && !is_fraction && digits) {
			is_fraction = 1;
			continue;
		}
		if (word.data[i] < '0' || word.data[i] > '9' || (is_fraction && scale == 1) || ++digits > 7)
			return -EINVAL;
		if (is_fraction) {
			scale /= 10;
			units += (uint64_t)(word.data[i] - '0') * scale;
		} else {
			units = units * 10 + (uint64_t)(word.data[i] - '0') * scale;
		}
	}
	if (!digits || units > PERCENT_UNITS)
		return -EINVAL;
	*ret_units = units;
	return 0;
}

static int by_read(const struct es_plugin_statement *s, struct canary *c)
{
	if (s->count == 2 && es_plugin_word_is(s->word[1], "address")) {
		c->by = BY_ADDRESS;
		return 0;
	}
	if (s->count != 3 || !s->word[2].len || s->word[2].len >= sizeof(c->name) ||
	    (!es_plugin_word_is(s->word[1], "cookie") && !es_plugin_word_is(s->word[1], "header")))
		return s->host->config_fail(s->config, s->line,
					    "expected by address, by cookie NAME or by header NAME");
	c->by = es_plugin_word_is(s->word[1], "cookie") ? BY_COOKIE : BY_HEADER;
	snprintf(c->name, sizeof(c->name), "%.*s", (int)s->word[2].len, s->word[2].data);
	return 0;
}

static int line_read(const struct es_plugin_statement *s, struct canary *c)
{
	struct es_plugin_text key = s->word[0];

	if (es_plugin_word_is(key, "percent")) {
		c->has_percent = 1;
		if (s->count != 2 || percent_read(s->word[1], &c->units))
			return s->host->config_fail(s->config, s->line,
						    "expected percent 0..100, as in percent 2.5");
		return 0;
	}
	if (es_plugin_word_is(key, "nodes")) {
		c->has_nodes = 1;
		return es_plugin_statement_nodes(s, 1, &c->nodes);
	}
	if (es_plugin_word_is(key, "by"))
		return by_read(s, c);
	if (es_plugin_word_is(key, "salt") && s->count == 2 && s->word[1].len < sizeof(c->salt)) {
		snprintf(c->salt, sizeof(c->salt), "%.*s", (int)s->word[1].len, s->word[1].data);
		return 0;
	}
	if (es_plugin_word_is(key, "others") && s->count == 2 &&
	    (es_plugin_word_is(s->word[1], "pass") || es_plugin_word_is(s->word[1], "exclude"))) {
		c->excludes = es_plugin_word_is(s->word[1], "exclude");
		return 0;
	}
	return s->host->config_fail(
		s->config, s->line,
		"\"%.*s\": expected percent NUMBER, nodes NAME…, by …, salt WORD, others pass or "
		"others exclude",
		(int)key.len, key.data);
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	struct canary *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->host = host;
	c->excludes = 1;
	while ((rc = es_plugin_statement_next(&s)) > 0) {
		rc = line_read(&s, c);
		if (rc)
			break;
	}
	if (!rc && (!c->has_percent || !c->has_nodes))
		rc = host->config_fail(config, s.line, "expected percent NUMBER and nodes NAME…");
	if (rc) {
		free(c);
		return rc;
	}
	*ret_state = c;
	return 0;
}

/* The bytes that identify a client: the header's or cookie's value, or its address if there is none. */
static size_t key_of(const struct canary *c, const struct es_plugin_request *request, char *key, size_t size)
{
	struct es_plugin_text value = {NULL, 0};
	struct es_plugin_address client;
	size_t used = strlen(c->salt);

	memcpy(key, c->salt, used);
	if (c->by == BY_COOKIE)
		value = c->host->cookie(request, c->name);
	else if (c->by == BY_HEADER)
		value = c->host->header(request, c->name, 0);
	if (!value.len) {
		c->host->client(request, &client);
		value.data = (const char *)client.bytes;
		value.len = sizeof(client.bytes);
	}
	if (value.len > size - used)
		value.len = size - used;
	memcpy(key + used, value.data, value.len);
	return used + value.len;
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct canary *c = state;
	char key[512];
	uint64_t hash = c->host->hash(cluster, key, key_of(c, request, key, sizeof(key)));
	int is_canary = (hash >> 11) % PERCENT_UNITS < c->units;
	unsigned int count = c->host->node_count(cluster);

	c->host->count(cluster, is_canary ? METRIC_CANARY : METRIC_OTHERS, 1);
	c->host->explain(cluster, "%s", is_canary ? "belongs to the canary" : "is not of the canary");
	if (!is_canary && !c->excludes)
		return ES_PLUGIN_PASS;
	for (unsigned int i = 0; i < count; i++)
		if (es_plugin_set_has(&c->nodes, i) == is_canary)
			es_plugin_set_add(&ret_answer->nodes, i);
	return ES_PLUGIN_NODES;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "canary",
	.version = "1.0",	.description = "a share of the clients to some of the nodes",
	.configure = configure, .release = free,
	.route = route,		.metrics = metrics,
};
