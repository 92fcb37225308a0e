// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks the router for a request's node, and whether this worker may still act on the answer. */
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

/* After so long, the clock is read again: the lease may be over. */
#define ES_SLOW_NS 10000000ULL

void es_inspect_describe(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			 const struct es_http_head *head, const char *text, size_t len)
{
	es_request_describe(request, head, text, len, in->cluster->conf->services[service].content_host,
			    &in->name);
}

int es_inspect_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
		     struct es_rejection *ret_rejection)
{
	enum es_http_result result = request->head->result;
	int target = request->current;

	/* A process that asks about what it has decrypted has the connection. */
	if (target < 0 && in->cluster->conf->services[service].tls.line)
		return es_inspect_route_hello(in, service, request, ret_rejection);
	/* A connection that carries anything but HTTP/1.x stays with the node that it has. */
	if (target < 0 || result == ES_HTTP_DONE || result == ES_HTTP_AMBIGUOUS)
		target = es_route(&in->router, service, request, in->now_ns, NULL, ret_rejection);
	if (target == ES_ROUTE_MORE && es_boundary_is_reached(request->head, request->text, request->len)) {
		request->truncated = 1;
		target = es_route(&in->router, service, request, in->now_ns, NULL, ret_rejection);
	}
	if (request->current < 0)
		target = es_inspect_fate_target(in, service, request, target);
	if (target == ES_ROUTE_MORE)
		return target;
	if (target >= 0 && es_route_is_over(&in->router, request, in->now_ns, ret_rejection))
		target = ES_ROUTE_REJECT;
	if (request->head->header_count > ES_HTTP_HEADERS_MAX)
		es_inspect_count(in, ES_WORKER_head_long);
	if (result == ES_HTTP_AMBIGUOUS)
		es_inspect_count(in, ES_WORKER_ambiguous);
	else if (result == ES_HTTP_TLS)
		es_inspect_count(in, ES_WORKER_tls);
	else if (result == ES_HTTP_H2)
		es_inspect_count(in, ES_WORKER_http2);
	else if (result == ES_HTTP_NOT_HTTP)
		es_inspect_count(in, ES_WORKER_not_http);
	if (request->uri || request->is_named)
		es_hot_seen(&in->hot, service, request, in->now_ns);
	if (request->content && target >= 0)
		es_tally_content(in->tally, service, request->content, (unsigned int)target);
	es_tally_took(in->tally, es_clock_now_ns() - in->began_ns);
	return target;
}

int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash)
{
	__u64 lease_ns = __atomic_load_n(in->params->lease_ns, __ATOMIC_ACQUIRE);

	return es_cluster_inspects(in->cluster, flow_hash) && !(lease_ns && in->now_ns >= lease_ns);
}

int es_inspect_is_overtaken(struct es_inspector *in, enum es_record_flow flow, __u64 flow_hash)
{
	unsigned long long late_ns = in->cluster->conf->datapath.fallback_after_ms * 1000000ULL, now_ns;

	if (!in->router.plugins || !late_ns)
		return 0;
	now_ns = es_clock_now_ns();
	if (now_ns - in->now_ns >= late_ns) {
		es_inspect_count(in, ES_WORKER_late);
		return 1;
	}
	if (now_ns - in->now_ns < ES_SLOW_NS)
		return 0;
	in->now_ns = now_ns;
	if (!es_inspect_is_new(flow) || es_inspect_is_mine(in, flow_hash))
		return 0;
	es_inspect_count(in, ES_WORKER_not_mine);
	return 1;
}
