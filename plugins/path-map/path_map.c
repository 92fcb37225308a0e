// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * path-map: the path of a request decides which nodes may serve it. The first line that matches wins; a
 * request that matches no line is left to the next rule. The path is compared as it was sent, without query
 * and not decoded.
 *
 *	prefix /images/ n1 n2           begins with
 *	exact  /favicon.ico n1
 *	regex  '\.(mp4|webm)$' n3 n4    PCRE2, anywhere in the path
 *
 * A regular expression is compiled once, and just in time where the machine can do that. The cost of one
 * match is limited; a path that exceeds the limit does not match.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

#define LINES_MAX   65536
#define MATCH_LIMIT 20000

enum { METRIC_MATCHED, METRIC_UNMATCHED, METRIC_TOO_COSTLY };

static const struct es_plugin_metric metrics[] = {
	{"matched", "requests whose path a line matched", 0},
	{"unmatched", "requests whose path no line matched", 0},
	{"too_costly", "regular expressions given up on a path", 0},
	{NULL, NULL, 0},
};

enum kind { PREFIX, EXACT, REGEX };

struct line {
	enum kind kind;
	unsigned int number; /* in the file */
	char *text;
	size_t len;
	pcre2_code *code;
	struct es_plugin_set nodes;
};

struct path_map {
	const struct es_plugin_host *host;
	unsigned int count;
	struct line *line; /* @count of them, by es_plugin_array_grow() */
};

/* The matcher's working memory, which no two threads may share. */
struct path_map_thread {
	const struct path_map *map;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

static void release(void *state)
{
	struct path_map *map = state;

	for (unsigned int i = 0; i < map->count; i++) {
		pcre2_code_free(map->line[i].code);
		free(map->line[i].text);
	}
	free(map->line);
	free(map);
}

static int regex_compile(const struct es_plugin_statement *s, struct line *line)
{
	PCRE2_UCHAR why[128];
	PCRE2_SIZE at;
	int number;

	line->code = pcre2_compile((PCRE2_SPTR)line->text, line->len, 0, &number, &at, NULL);
	if (!line->code) {
		pcre2_get_error_message(number, why, sizeof(why));
		return s->host->config_fail(s->config, s->line, "regex %s: at character %zu: %s", line->text,
					    at + 1, (const char *)why);
	}
	pcre2_jit_compile(line->code, PCRE2_JIT_COMPLETE); /* if this fails, matches are slower, but right */
	return 0;
}

static int line_read(const struct es_plugin_statement *s, void *state)
{
	struct path_map *map = state;
	struct line *line;

	if (map->count == LINES_MAX)
		return s->host->config_fail(s->config, s->line, "too many lines: expected at most %d",
					    LINES_MAX);
	line = es_plugin_array_grow(map->line, map->count, sizeof(*line));
	if (!line)
		return -ENOMEM;
	map->line = line;
	line += map->count; /* not counted yet */
	if (es_plugin_word_is(s->word[0], "prefix"))
		line->kind = PREFIX;
	else if (es_plugin_word_is(s->word[0], "exact"))
		line->kind = EXACT;
	else if (es_plugin_word_is(s->word[0], "regex"))
		line->kind = REGEX;
	else
		return s->host->config_fail(s->config, s->line, "\"%.*s\": expected prefix, exact or regex",
					    (int)s->word[0].len, s->word[0].data);
	if (s->count < 2 || !s->word[1].len || (line->kind != REGEX && s->word[1].data[0] != '/'))
		return s->host->config_fail(s->config, s->line, "expected %s",
					    line->kind == REGEX ? "a regular expression"
								: "a path, which begins with /");
	if (line->kind != REGEX && memchr(s->word[1].data, '*', s->word[1].len))
		return s->host->config_fail(
			s->config, s->line,
			"%.*s: expected no *: prefix /a/ is all below it, regex takes patterns, "
			"and the character itself is regex '\\*'",
			(int)s->word[1].len, s->word[1].data);
	line->number = s->line;
	line->len = s->word[1].len;
	line->text = strndup(s->word[1].data, line->len);
	if (!line->text)
		return -ENOMEM;
	map->count++; /* release() frees it from here on */
	if (line->kind == REGEX && regex_compile(s, line))
		return -EINVAL;
	return es_plugin_statement_nodes(s, 2, &line->nodes);
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct path_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	map->host = host;
	return es_plugin_statements_read(host, config, line_read, release, map, ret_state);
}

static void thread_free(void *thread)
{
	struct path_map_thread *t = thread;

	pcre2_match_data_free(t->match);
	pcre2_match_context_free(t->limits);
	free(t);
}

static int thread_new(void *state, void **ret_thread)
{
	struct path_map_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->map = state;
	t->match = pcre2_match_data_create(1, NULL);
	t->limits = pcre2_match_context_create(NULL);
	if (!t->match || !t->limits) {
		thread_free(t);
		return -ENOMEM;
	}
	pcre2_set_match_limit(t->limits, MATCH_LIMIT);
	*ret_thread = t;
	return 0;
}

static int line_matches(const struct path_map_thread *t, const struct line *line, struct es_plugin_text path,
			const struct es_plugin_cluster *cluster)
{
	int rc;

	switch (line->kind) {
	case PREFIX:
		return path.len >= line->len && !memcmp(path.data, line->text, line->len);
	case EXACT:
		return path.len == line->len && !memcmp(path.data, line->text, line->len);
	default:
		rc = pcre2_match(line->code, (PCRE2_SPTR)path.data, path.len, 0, 0, t->match, t->limits);
		if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
			t->map->host->count(cluster, METRIC_TOO_COSTLY, 1);
		return rc >= 0;
	}
}

static int route(void *thread, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct path_map_thread *t = thread;
	const struct es_plugin_host *host = t->map->host;
	struct es_plugin_text path = host->path(request);

	if (!path.data)
		return ES_PLUGIN_PASS;
	for (unsigned int i = 0; i < t->map->count; i++) {
		const struct line *line = &t->map->line[i];

		if (!line_matches(t, line, path, cluster))
			continue;
		host->explain(cluster, "line %u matches", line->number);
		host->count(cluster, METRIC_MATCHED, 1);
		ret_answer->nodes = line->nodes;
		return ES_PLUGIN_NODES;
	}
	host->count(cluster, METRIC_UNMATCHED, 1);
	return ES_PLUGIN_PASS;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	  .name = "path-map",
	.version = "1.0",	  .description = "paths by prefix or regular expression to sets of nodes",
	.configure = configure,	  .release = release,
	.thread_new = thread_new, .thread_free = thread_free,
	.route = route,		  .metrics = metrics,
};
