// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control commands about where requests go: `earshot table` and `earshot explain`.
 */
#include <arpa/inet.h>
#include <earshot/plugin.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/commands.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/inspect/inspect.h"
#include "inspector/inspect/poison.h"
#include "inspector/report/contents.h"

/* All clients send so much before they hear anything: ten segments of an ordinary network (RFC 6928). */
#define ES_UNHEARD_BYTES 14000u

#define HOT_MAX (ES_WORKERS_MAX * ES_HOT_SETS * ES_HOT_WAYS)

struct collection {
	unsigned int service;
	struct es_hot_content *entries;
	size_t count;
};

static void collect(struct es_inspector *inspector, void *ctx)
{
	struct collection *c = ctx;

	es_hot_collect(&inspector->hot, c->service, c->entries, HOT_MAX, &c->count);
}

static int by_requests(const void *a, const void *b)
{
	__u32 x = ((const struct es_hot_content *)a)->requests,
	      y = ((const struct es_hot_content *)b)->requests;

	return x < y ? 1 : x > y ? -1 : 0;
}

int es_daemon_table(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	struct es_report_table report = {.conf = d->cluster->conf, .now_ns = es_clock_now_ns()};
	struct collection c = {};
	int rc = es_report_service(d->cluster->conf, request, &report.service, err);

	if (rc)
		return rc;
	c.service = report.service;
	c.entries = calloc(HOT_MAX, sizeof(*c.entries));
	if (!c.entries)
		return -ENOMEM;
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_call(d->worker[i], collect, &c);
	qsort(c.entries, c.count, sizeof(*c.entries), by_requests);
	report.contents = es_daemon_contents_of(d->contents, report.service, &report.sync);
	report.hot = c.entries;
	report.hot_count = c.count;
	*ret_result = es_report_table(&report, request);
	free(c.entries);
	return 0;
}

/* @len: of all that is given of the request; @segment: how much of it comes at a time; @named: by a plugin,
 * whose worker goes on */
struct question {
	struct es_report_explanation *report;
	struct es_request_view request;
	unsigned int service;
	size_t len;
	size_t segment;
	char named[ES_PLUGIN_CONTENT_NAME_SIZE];
};

/* As many segments as have @wanted bytes, of those that there are. */
static size_t gathered(const struct question *q, size_t wanted, size_t most)
{
	size_t len = (wanted + q->segment - 1) / q->segment * q->segment;

	len = len ? len : q->segment;
	return len < most ? len : most;
}

static size_t explain_bound(const struct es_conf *conf)
{
	return es_gather_most(conf->inspector.gather_bytes, conf->datapath.receive_window_scale);
}

/*
 * As the inspector does it: the segments with the head, and then, for who wants more, as many as there are.
 */
static int ask(struct es_inspector *inspector, struct question *q)
{
	size_t bound = explain_bound(inspector->cluster->conf);
	struct es_report_explanation *report = q->report;
	const struct es_request_view whole = q->request;
	unsigned int steps = report->explain.count;
	size_t wanted = whole.head->head_len_bytes, most = q->len < bound ? q->len : bound;
	int node;

	if (most < wanted)
		most = wanted; /* explain_head() has said so */
	if (whole.head->expect_continue)
		most = gathered(q, wanted, most); /* its client waits for an answer to the head */
	for (;;) {
		q->request.len = gathered(q, wanted, most);
		q->request.truncated = wanted > q->request.len;
		node = es_route(&inspector->router, q->service, &q->request, inspector->now_ns,
				&report->explain, &report->rejection);
		if (node != ES_ROUTE_MORE)
			return node;
		wanted = report->rejection.more_bytes;
		q->request = whole;
		report->explain.count = steps;
		if (gathered(q, wanted, most) < wanted)
			es_explain_add(&report->explain,
				       "a plugin wants %zu bytes, and no more than %zu come", wanted,
				       gathered(q, wanted, most));
		else
			es_explain_add(&report->explain, "a plugin wants %zu bytes, which come", wanted);
		steps = report->explain.count;
	}
}

static void answer(struct es_inspector *inspector, void *ctx)
{
	struct question *q = ctx;

	/* Not a request's, so nobody is told of it; but the keeper watches. */
	es_mark_set(inspector->params->mark, q->request.flow_hash, q->service, (const uint8_t *)"", 0);
	q->report->node = ask(inspector, q);
	if (q->request.is_named) {
		memcpy(q->named, q->request.name, q->request.name_len);
		q->request.name = q->named;
	}
	es_mark_clear(inspector->params->mark);
	q->report->node_count = inspector->cluster->conf->node_count;
	memcpy(q->report->nodes, inspector->router.node, sizeof(q->report->nodes));
}

/* Notes on the parts of a head that a worker might not see. */
static void explain_head(const struct es_conf *conf, const struct es_http_head *head,
			 struct es_explain *explain)
{
	/* Such heads are routed all the same, as by a worker. */
	if (head->result == ES_HTTP_AMBIGUOUS)
		es_explain_add(explain,
			       "servers may read it differently (%s): routed, and then its connection stays",
			       es_http_ambiguity_str(head->ambiguity));
	else if (head->result != ES_HTTP_DONE)
		es_explain_add(explain, "%s: only plugins and the flow's place on the ring decide",
			       es_http_result_str(head->result));
	if (head->header_count > ES_HTTP_HEADERS_MAX)
		es_explain_add(explain, "%u headers: rules and plugins see the first %u, and Host",
			       head->header_count, ES_HTTP_HEADERS_MAX);
	if (head->head_len_bytes > explain_bound(conf))
		es_explain_add(explain, "a head of %u bytes: only the first %zu (gather_bytes) decide",
			       head->head_len_bytes, explain_bound(conf));
	else if (head->head_len_bytes > ES_UNHEARD_BYTES)
		es_explain_add(
			explain,
			"a head of %u bytes: of a client without SACK only the first ten segments decide",
			head->head_len_bytes);
}

/* Nobody said which host: a client that knows the service by its address sends that. */
static void explain_without_host(const struct es_conf_service *service, struct question *q,
				 struct es_name *name)
{
	const struct es_addr *at = es_conf_service_address(service);
	char address[INET6_ADDRSTRLEN + 2], text[INET6_ADDRSTRLEN];

	if (!q->request.uri || !service->content_host || q->request.head->has_host ||
	    q->request.head->authority.len)
		return;
	snprintf(address, sizeof(address), es_addr_is_v4(at) ? "%s" : "[%s]", es_conf_addr_text(at, text));
	es_explain_add(&q->report->explain, "no Host was given: as if it were %s", address);
	es_name_make(name, address, strlen(address), q->request.uri, q->request.uri_len);
	q->request.name = name->text;
	q->request.name_len = name->len;
	q->request.content = es_content_hash(name->text, name->len);
}

int es_daemon_explain(void *ctx, struct json_object *request, struct json_object **ret_result,
		      struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	struct es_report_explanation *report;
	struct question q = {.request = {.current = -1}};
	static struct es_name name; /* large; this is the control thread's */
	struct es_http_head head;
	struct es_flow flow = {};
	const char *text;
	int rc = es_report_explain_request(d->cluster->conf, request, &flow, &q.service, &q.request.current,
					   &text, &q.len, err);

	if (rc)
		return rc;
	es_http_head_init(&head);
	if (es_http_head_scan(&head, text, q.len) == ES_HTTP_MORE) {
		es_conf_error_set(
			err, "this is not a complete head of a request: the inspector would wait for more");
		return -EINVAL;
	}
	report = calloc(1, sizeof(*report));
	if (!report)
		return -ENOMEM;
	explain_head(d->cluster->conf, &head, &report->explain);
	q.segment = es_network_mss(d->packet_max->in_force);
	es_request_describe(&q.request, &head, text, q.len,
			    d->cluster->conf->services[q.service].content_host, &name);
	q.request.flow_hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &flow);
	q.request.client = &flow.client;
	q.request.client_port = es_ntohs(flow.client_port);
	q.report = report;
	explain_without_host(&d->cluster->conf->services[q.service], &q, &name);
	report->conf = d->cluster->conf;
	report->service = q.service;
	report->request = &q.request;
	report->inspecting = (int)es_cluster_owner(d->cluster, q.request.flow_hash);
	if (report->inspecting >= (int)d->cluster->conf->node_count)
		report->inspecting = -1;
	es_worker_call(d->worker[es_worker_of(q.request.flow_hash, d->datapath_params.workers)], answer, &q);
	if (report->explain.hung[0]) {
		es_conf_error_set(err,
				  "plugin %s of service %s does not return from this request: it was left, "
				  "as it is when a client sends one; after three times it is off",
				  report->explain.hung, d->cluster->conf->services[q.service].name);
		rc = -ETIMEDOUT;
	} else {
		*ret_result = es_report_explain(report);
	}
	free(report);
	return rc;
}
