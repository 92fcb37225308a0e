// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * debug: does what its configuration or a request says, right or wrong, so that tests can see how the host
 * reacts. Not for service.
 *
 *	answer WORDS…           to every request without a header X-Debug: WORDS…
 *	thread fail             thread_new() fails
 *	fail LINE-OFFSET        configure() refuses that line
 *	harm configure|thread|timer WORD   what a harmful WORD does, there
 *
 * WORDS: pass | node N | nodes MASK | more BYTES | reject STATUS [RETRY] | kind N | error |
 * content NUMBER [COST] | name WORD (content by its name) |
 * spin MICROSECONDS [MASK] | wait MICROSECONDS [MASK] | view (calls every function of the host and passes) |
 * once-more BYTES (asks for more whatever the host says)
 *
 * Harm: crash (SIGSEGV) | abort | hang (never returns) | overflow (of the stack)
 * What no daemon survives: die (SIGKILL) | fatal (abort) | stuck (never returns)
 */
#include <earshot/plugin.h>
#include <earshot/plugin_config.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { METRIC_CALLS, METRIC_LEN, METRIC_TICKS, METRIC_BAD };

static const struct es_plugin_metric metrics[] = {
	{"asked", "requests that it was asked for", 0},
	{"last_len", "bytes of the last request", 1},
	{"ticks", "times that its timer ran", 0},
	{"contradictions", "answers of the host that contradict each other", 0},
	{NULL, NULL, 0},
};

struct debug {
	const struct es_plugin_host *host;
	int thread_fails;
	unsigned int contradictions;
	char answer[128];
	char harm_thread[16], harm_timer[16];
};

/* A thread state of its own, so that its life is tested too. */
struct debug_thread {
	const struct debug *debug;
	unsigned long long calls;
};

/* These crashes are wanted; a sanitizer would end the program instead. */
#define CRASHES __attribute__((no_sanitize("address", "undefined")))

/* Recurses deeper than any stack; the work after the call keeps the compiler from making it a loop. */
CRASHES static unsigned int overflow(unsigned int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	return depth ? overflow(depth - 1) + (unsigned int)room[0] : 0;
}

static int *volatile nowhere;

/* Harm that a plugin can do to the daemon. Returns if the word names none. */
CRASHES static void harm(const char *word)
{
	sigset_t all;

	if (!strcmp(word, "crash"))
		*nowhere = 1;
	if (!strcmp(word, "abort"))
		abort();
	if (!strcmp(word, "overflow"))
		overflow(1U << 20);
	if (!strcmp(word, "die"))
		kill(getpid(), SIGKILL);
	if (!strcmp(word, "fatal")) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	if (!strcmp(word, "stuck")) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	if (!strcmp(word, "hang") || !strcmp(word, "stuck"))
		for (volatile unsigned int i = 0;; i++)
			;
}

static void harm_configure(struct debug *d, const struct es_plugin_statement *s)
{
	char word[16];

	snprintf(word, sizeof(word), "%.*s", (int)s->word[2].len, s->word[2].data);
	if (es_plugin_word_is(s->word[1], "configure"))
		harm(word);
	memcpy(es_plugin_word_is(s->word[1], "thread") ? d->harm_thread : d->harm_timer, word, sizeof(word));
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_plugin_statement s = es_plugin_statement_begin(host, config);
	struct debug *d = calloc(1, sizeof(*d));
	const char *name;
	int rc;

	if (!d)
		return -ENOMEM;
	d->host = host;
	snprintf(d->answer, sizeof(d->answer), "pass");
	for (unsigned int id = 0; (name = host->config_node_name(config, id)); id++)
		if (host->config_node(config, name, strlen(name)) != (int)id)
			d->contradictions++;
	while ((rc = es_plugin_statement_next(&s)) > 0) {
		if (es_plugin_word_is(s.word[0], "answer") && s.count > 1) {
			const char *end = s.word[s.count - 1].data + s.word[s.count - 1].len;

			snprintf(d->answer, sizeof(d->answer), "%.*s", (int)(end - s.word[1].data),
				 s.word[1].data);
		} else if (es_plugin_word_is(s.word[0], "thread")) {
			d->thread_fails = 1;
		} else if (es_plugin_word_is(s.word[0], "harm") && s.count == 3) {
			harm_configure(d, &s);
		} else if (es_plugin_word_is(s.word[0], "fail")) {
			rc = host->config_fail(config, s.line, "told to fail: expected something else in %s",
					       host->config_file(config));
			break;
		} else if (es_plugin_word_is(s.word[0], "errno")) {
			rc = -ENOTSUP;
			break;
		} else {
			rc = host->config_fail(config, s.line,
					       "unknown \"%.*s\": expected answer, thread or fail",
					       (int)s.word[0].len, s.word[0].data);
			break;
		}
	}
	if (rc < 0) {
		free(d);
		return rc;
	}
	*ret_state = d;
	return 0;
}

static int thread_new(void *state, void **ret_thread)
{
	const struct debug *d = state;
	struct debug_thread *thread = calloc(1, sizeof(*thread));

	harm(d->harm_thread);
	if (!thread || d->thread_fails) {
		free(thread);
		return -ENOMEM;
	}
	thread->debug = d;
	*ret_thread = thread;
	return 0;
}

/* Calls every function of the host; returns how often two answers contradicted each other. */
static unsigned int view(const struct es_plugin_host *h, const struct es_plugin_request *r,
			 const struct es_plugin_cluster *c)
{
	struct es_plugin_text path = h->path(r), target = h->target(r), bytes = h->bytes(r);
	struct es_plugin_address client;
	struct es_plugin_content content;
	unsigned int bad = 0, ring = 0;
	struct es_plugin_node node;
	struct es_plugin_set allowed;
	uint32_t more = 0;
	int hello = h->hello(r, &more), id;

	bad += (path.data && !target.data) || path.len > target.len || target.len > bytes.len;
	bad += h->protocol(r) == ES_PLUGIN_HTTP ? !h->method(r).len : !!h->method(r).data;
	bad += h->protocol(r) != ES_PLUGIN_HTTP &&
	       (h->query(r).data || h->host(r).data || h->cookie(r, "a").data);
	bad += h->protocol(r) != ES_PLUGIN_TLS && (hello || h->sni(r).data || h->alpn(r, 0).data);
	bad += (hello == ES_PLUGIN_HELLO_PARTIAL) != (more > bytes.len);
	bad += h->hello(r, NULL) != hello;
	bad += (h->normal_path(r).data && !path.data) || h->normal_path(r).len > path.len;
	bad += h->header(r, "", 0).data || h->header(r, "Host", 1000).data;
	h->client(r, &client);
	h->content(r, &content);
	h->allowed(r, &allowed);
	bad += !content.cost || !h->service(r)[0];
	bad += h->current(r) >= (int)h->node_count(c) || h->self(c) >= h->node_count(c);
	bad += h->node(c, h->node_count(c), &node) != -ENOENT;
	for (unsigned int i = 0; i < h->node_count(c); i++)
		bad += h->node(c, i, &node) || !node.name[0] || (node.is_target && node.weight <= 0);
	while (ring <= ES_PLUGIN_NODES_MAX && h->ring(c, "key", 3, ring) >= 0)
		ring++;
	bad += ring > h->node_count(c) || h->hash(c, "key", 3) == h->hash(c, "kex", 3);
	id = h->ring_target(c, "key", 3);
	bad += id >= 0 && (h->node(c, (unsigned int)id, &node) || !node.is_target);
	bad += !h->now_ns(c);
	h->explain(c, "%u on the ring, self #%u, client %u.%u.%u.%u:%u, path %.*s, sni %.*s, explain %d",
		   ring, h->self(c), client.bytes[12], client.bytes[13], client.bytes[14], client.bytes[15],
		   client.port, (int)path.len, path.data ? path.data : "", (int)h->sni(r).len,
		   h->sni(r).data ? h->sni(r).data : "", h->is_explain(c));
	h->count(c, 1000, 1);
	h->count(c, METRIC_LEN, 1);   /* a gauge: ignored */
	h->gauge(c, METRIC_CALLS, 1); /* a counter: ignored */
	return bad;
}

static void spin(long us)
{
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 < us);
}

static int answer(const struct debug *d, const char *text, const struct es_plugin_request *request,
		  const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	size_t len = strcspn(text, " ");
	unsigned long a, b;
	char word[32], *end;

	snprintf(word, sizeof(word), "%.*s", (int)len, text);
	a = strtoul(text + len, &end, 10);
	b = strtoul(end, NULL, 10);
	ret_answer->node = (uint32_t)a;
	ret_answer->nodes.bits[0] = a;
	ret_answer->more_bytes = (uint32_t)a;
	ret_answer->status = (uint32_t)a;
	ret_answer->retry_after_s = (uint32_t)b;
	if (!strcmp(word, "node"))
		return ES_PLUGIN_NODE;
	if (!strcmp(word, "nodes"))
		return ES_PLUGIN_NODES;
	if (!strcmp(word, "more"))
		return d->host->is_truncated(request) || d->host->bytes(request).len >= a ? ES_PLUGIN_PASS
											  : ES_PLUGIN_MORE;
	if (!strcmp(word, "once-more"))
		return ES_PLUGIN_MORE;
	if (!strcmp(word, "reject"))
		return ES_PLUGIN_REJECT;
	if (!strcmp(word, "kind"))
		return (int)a;
	if (!strcmp(word, "content") || !strcmp(word, "name")) {
		memset(&ret_answer->nodes, 0, sizeof(ret_answer->nodes));
		ret_answer->content = *word == 'c' ? a : 0;
		ret_answer->content_cost = *word == 'c' ? (uint32_t)b : 0;
		if (*word == 'n')
			snprintf(ret_answer->content_name, sizeof(ret_answer->content_name), "%s",
				 text[len] ? text + len + 1 : "");
		return ES_PLUGIN_PASS;
	}
	if (!strcmp(word, "error"))
		return d->host->fail(cluster, "told to fail: %s", "\033[2J");
	if (!strcmp(word, "spin") || !strcmp(word, "wait")) {
		if (*word == 's')
			spin((long)a);
		else
			usleep((useconds_t)a);
		ret_answer->nodes.bits[0] = b;
		return b ? ES_PLUGIN_NODES : ES_PLUGIN_PASS;
	}
	harm(word);
	if (!strcmp(word, "view"))
		d->host->count(cluster, METRIC_BAD, d->contradictions + view(d->host, request, cluster));
	return ES_PLUGIN_PASS;
}

static int route(void *thread, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	struct debug_thread *t = thread;
	const struct debug *d = t->debug;
	struct es_plugin_text wish = d->host->header(request, "X-Debug", 0);
	char text[128];

	t->calls++;
	d->host->count(cluster, METRIC_CALLS, 1);
	d->host->gauge(cluster, METRIC_LEN, (int64_t)d->host->bytes(request).len);
	snprintf(text, sizeof(text), "%.*s", wish.data ? (int)wish.len : (int)sizeof(text),
		 wish.data ? wish.data : d->answer);
	return answer(d, text, request, cluster, ret_answer);
}

static void timer(void *state, const struct es_plugin_cluster *cluster)
{
	const struct debug *d = state;

	d->host->count(cluster, METRIC_TICKS, 1);
	harm(d->harm_timer);
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	  .name = "debug",
	.version = "1.0",	  .description = "does what it is told to; for tests",
	.configure = configure,	  .release = free,
	.thread_new = thread_new, .thread_free = free,
	.route = route,		  .timer = timer,
	.timer_ms = 20,		  .metrics = metrics,
};
