/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EARSHOT_PLUGIN_CONFIG_H
#define EARSHOT_PLUGIN_CONFIG_H

/*
 * An optional small reader for a plugin's configuration: statements of words, each ended by a newline or ';'.
 * A word with blanks in it stands in quotes, '…' or "…"; '#' begins a comment that goes to the end of the
 * line. The reader reports errors by es_plugin_host.config_fail(), with their line.
 *
 *	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
 *
 *	while ((rc = es_plugin_statement_next(&s)) > 0)
 *		if (es_plugin_word_is(s.word[0], "header")) …
 */
#include <earshot/plugin.h>
#include <stdlib.h>
#include <string.h>

#define ES_PLUGIN_WORDS_MAX 160 /* each node of the largest cluster, and some words before them */

/* struct es_plugin_statement - the current statement: @count words, on line @line; the rest is the reader's */
struct es_plugin_statement {
	const struct es_plugin_host *host;
	struct es_plugin_config *config;
	unsigned int line;
	unsigned int count;
	struct es_plugin_text word[ES_PLUGIN_WORDS_MAX];
	const char *at;
	const char *end;
	unsigned int next_line;
};

static inline struct es_plugin_statement es_plugin_statement_begin(const struct es_plugin_host *host,
								   struct es_plugin_config *config)
{
	struct es_plugin_statement s;
	struct es_plugin_text text = host->config_text(config);

	memset(&s, 0, sizeof(s));
	s.host = host;
	s.config = config;
	s.at = text.data;
	s.end = text.data + text.len;
	s.line = s.next_line = host->config_line(config);
	return s;
}

/* Reads one word. Returns 1; 0 at the end of the statement; -EINVAL, reported, if a quote does not end. */
static inline int es_plugin_word_read(struct es_plugin_statement *s, struct es_plugin_text *ret_word)
{
	char quote;

	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
	if (s->at < s->end && *s->at == '#')
		while (s->at < s->end && *s->at != '\n')
			s->at++;
	if (s->at == s->end || *s->at == '\n' || *s->at == ';')
		return 0;
	quote = *s->at;
	if (quote != '"' && quote != '\'') {
		ret_word->data = s->at;
		while (s->at < s->end && !strchr(" \t\r\n;#", *s->at))
			s->at++;
		ret_word->len = (size_t)(s->at - ret_word->data);
		return 1;
	}
	ret_word->data = ++s->at;
	while (s->at < s->end && *s->at != quote && *s->at != '\n')
		s->at++;
	if (s->at == s->end || *s->at != quote)
		return s->host->config_fail(s->config, s->next_line,
					    "%c without its end: expected it on the same line", quote);
	ret_word->len = (size_t)(s->at++ - ret_word->data);
	return 1;
}

/* Reads the next statement that is not empty. Returns 1; 0 at the end; -EINVAL, reported. */
static inline int es_plugin_statement_next(struct es_plugin_statement *s)
{
	struct es_plugin_text word = {NULL, 0};
	int rc;

	s->count = 0;
	while (s->at < s->end) {
		s->line = s->next_line;
		while ((rc = es_plugin_word_read(s, &word)) > 0) {
			if (s->count == ES_PLUGIN_WORDS_MAX)
				return s->host->config_fail(s->config, s->line,
							    "too many words: expected at most %d",
							    ES_PLUGIN_WORDS_MAX);
			s->word[s->count++] = word;
		}
		if (rc)
			return rc;
		if (s->at < s->end && *s->at++ == '\n')
			s->next_line++;
		if (s->count)
			return 1;
	}
	return 0;
}

static inline int es_plugin_word_is(struct es_plugin_text word, const char *text)
{
	return word.len == strlen(text) && !memcmp(word.data, text, word.len);
}

/* Reads the words from @first to the end, at least one, as a set of nodes. Returns 0, or -EINVAL, reported. */
static inline int es_plugin_statement_nodes(const struct es_plugin_statement *s, unsigned int first,
					    struct es_plugin_set *ret_nodes)
{
	unsigned int i;

	memset(ret_nodes, 0, sizeof(*ret_nodes));
	if (first >= s->count)
		return s->host->config_fail(s->config, s->line,
					    "no node: expected names of nodes at the end");
	for (i = first; i < s->count; i++) {
		int node = s->host->config_node(s->config, s->word[i].data, s->word[i].len);

		if (node < 0)
			return s->host->config_fail(s->config, s->line,
						    "no node named \"%.*s\": expected one that is "
						    "configured",
						    (int)s->word[i].len, s->word[i].data);
		es_plugin_set_add(ret_nodes, (unsigned int)node);
	}
	return 0;
}

/*
 * Makes room for one more element of @size bytes behind the @count elements of @array; the new one is zero.
 * @array is NULL at first and grows by this function only. Returns the array, perhaps moved, to be freed with
 * free(); NULL without memory, and @array stays as it is.
 */
static inline void *es_plugin_array_grow(void *array, unsigned int count, size_t size)
{
	if (!(count & (count - 1)))
		array = realloc(array, (count ? 2 * (size_t)count : 1) * size);
	if (array)
		memset((char *)array + count * size, 0, size);
	return array;
}

/*
 * Reads all statements, for a configure() that does no more than that: calls @read with @state for each.
 * Returns 0 and @state in *@ret_state; or the error of @read or of the reader, after @release has freed
 * @state.
 */
static inline int es_plugin_statements_read(const struct es_plugin_host *host,
					    struct es_plugin_config *config,
					    int (*read)(const struct es_plugin_statement *s, void *state),
					    void (*release)(void *state), void *state, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	int rc;

	while ((rc = es_plugin_statement_next(&s)) > 0) {
		rc = read(&s, state);
		if (rc)
			break;
	}
	if (rc)
		release(state);
	else
		*ret_state = state;
	return rc;
}

#endif
