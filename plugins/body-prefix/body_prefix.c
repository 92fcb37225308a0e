// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * body-prefix: the first bytes of a request's body say what content it is for, and the policy places it:
 * requests whose bodies begin alike go where that beginning is in memory. Made for servers of language
 * models, whose caches are of prompts: a conversation goes on where it began. All others, and bodies that are
 * shorter, are left to the next rule.
 *
 *	path /v1/               requests whose path begins so (default: all that have a body)
 *	bytes 1024              of the body, 1..60000 (default 1024)
 *	skip 200                so many at its beginning, which are the same in all requests (default 0)
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 60000

enum { METRIC_NAMED, METRIC_SHORT };

static const struct es_plugin_metric metrics[] = {
	{"named", "requests whose body has named their content", 0},
	{"short", "requests whose body is too short, does not come, or comes in chunks", 0},
	{NULL, NULL, 0},
};

struct body_prefix {
	const struct es_plugin_host *host;
	char path[256];
	uint32_t bytes;
	uint32_t skip;
};

static int number_read(struct es_plugin_text word, uint32_t least, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] < '0' || word.data[i] > '9' || number > BYTES_MAX)
			return -EINVAL;
		number = number * 10 + (uint32_t)(word.data[i] - '0');
	}
	if (!word.len || number < least || number > BYTES_MAX)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static int statement_take(struct body_prefix *b, const struct es_plugin_statement *s)
{
	if (s->count != 2)
		return -EINVAL;
	if (es_plugin_word_is(s->word[0], "bytes"))
		return number_read(s->word[1], 1, &b->bytes);
	if (es_plugin_word_is(s->word[0], "skip"))
		return number_read(s->word[1], 0, &b->skip);
	if (!es_plugin_word_is(s->word[0], "path") || !s->word[1].len || s->word[1].data[0] != '/' ||
	    s->word[1].len >= sizeof(b->path))
		return -EINVAL;
	snprintf(b->path, sizeof(b->path), "%.*s", (int)s->word[1].len, s->word[1].data);
	return 0;
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	struct body_prefix *b;
	int rc;

	if (host->abi_minor < 4)
		return host->config_fail(config, 0, "it needs plugin ABI 1.4: expected a newer earshotd");
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->host = host;
	b->bytes = 1024;
	while ((rc = es_plugin_statement_next(&s)) > 0) {
		if (!statement_take(b, &s))
			continue;
		rc = host->config_fail(config, s.line, "expected path /PREFIX, bytes 1..%d or skip 0..%d",
				       BYTES_MAX, BYTES_MAX);
		break;
	}
	if (!rc && b->bytes + b->skip > BYTES_MAX)
		rc = host->config_fail(config, 0, "bytes and skip: expected at most %d together", BYTES_MAX);
	if (rc < 0) {
		free(b);
		return rc;
	}
	*ret_state = b;
	return 0;
}

/* Where the body begins; 0 if the head is not there in full. */
static size_t body_find(struct es_plugin_text bytes)
{
	for (size_t i = 0; i + 1 < bytes.len; i++) {
		if (bytes.data[i] != '\n')
			continue;
		if (bytes.data[i + 1] == '\n')
			return i + 2;
		if (bytes.data[i + 1] == '\r' && i + 2 < bytes.len && bytes.data[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

/* Does the request say that its body is as long? Chunks would stand between its bytes. */
static int body_has(const struct body_prefix *b, const struct es_plugin_request *request, uint32_t bytes)
{
	struct es_plugin_text length = b->host->header(request, "Content-Length", 0);
	uint64_t number = 0;

	for (size_t i = 0; i < length.len && number < UINT32_MAX; i++) {
		if (length.data[i] < '0' || length.data[i] > '9')
			return 0;
		number = number * 10 + (uint64_t)(length.data[i] - '0');
	}
	return number >= bytes && !b->host->header(request, "Transfer-Encoding", 0).data;
}

static int route(void *state, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	const struct body_prefix *b = state;
	const struct es_plugin_host *host = b->host;
	struct es_plugin_text path = host->normal_path(request), bytes = host->bytes(request);
	size_t path_len = strlen(b->path), at;

	if (!path.data || path.len < path_len || memcmp(path.data, b->path, path_len) != 0 ||
	    !host->header(request, "Content-Length", 0).data)
		return ES_PLUGIN_PASS;
	at = body_find(bytes);
	if (!at || !body_has(b, request, b->skip + b->bytes)) {
		host->count(cluster, METRIC_SHORT, 1);
		host->explain(cluster, "the body is shorter than %u bytes", b->skip + b->bytes);
		return ES_PLUGIN_PASS;
	}
	if (bytes.len - at < b->skip + b->bytes) {
		if (!host->is_truncated(request)) {
			ret_answer->more_bytes = (uint32_t)at + b->skip + b->bytes;
			return ES_PLUGIN_MORE;
		}
		host->count(cluster, METRIC_SHORT, 1);
		host->explain(cluster, "%zu bytes of the body are there: expected %u", bytes.len - at,
			      b->skip + b->bytes);
		return ES_PLUGIN_PASS;
	}
	ret_answer->content = host->hash(cluster, bytes.data + at + b->skip, b->bytes);
	snprintf(ret_answer->content_name, sizeof(ret_answer->content_name), "body:%016llx",
		 (unsigned long long)ret_answer->content);
	host->count(cluster, METRIC_NAMED, 1);
	return ES_PLUGIN_PASS;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	.name = "body-prefix",
	.version = "1.0",	.description = "the first bytes of a request's body name its content",
	.configure = configure, .release = free,
	.route = route,		.metrics = metrics,
};
