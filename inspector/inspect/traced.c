// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts each decision that gives a request to a node, for the metrics, and shows it to those who watch and
 * to the request log. Without these, that is a look at two pointers.
 */
#include <stdio.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

static const char *name_of(const struct es_conf *conf, unsigned int node)
{
	return node < conf->node_count ? conf->nodes[node].name : "";
}

/*
 * The name that a plugin has given the request's content; its hash, if that is not among the most popular
 * (hot.h).
 */
static void put_content(const struct es_inspector *in, const struct es_handover_order *order,
			struct es_trace_entry *entry)
{
	const char *name = es_hot_find(&in->hot, order->service, order->content);

	if (name)
		snprintf(entry->content, sizeof(entry->content), "%s", name);
	else
		snprintf(entry->content, sizeof(entry->content), "%016llx",
			 (unsigned long long)order->content);
}

void es_inspect_trace_decided(const struct es_inspector *in, const struct es_handover_order *order,
			      unsigned int target, unsigned int decision, struct es_trace_entry *entry)
{
	const struct es_conf *conf = in->cluster->conf;

	entry->decision = (uint8_t)decision;
	snprintf(entry->node, sizeof(entry->node), "%s", name_of(conf, target));
	snprintf(entry->why, sizeof(entry->why), "%s", es_trace_why(conf, order, decision));
}

void es_inspect_trace_entry(const struct es_inspector *in, const struct es_handover_order *order,
			    const struct es_trace_subject *subject, struct es_trace_entry *ret)
{
	const struct es_conf *conf = in->cluster->conf;

	*ret = (struct es_trace_entry){
		.at_ns = es_clock_now_ns(),
		.client = subject->flow->client,
		.client_port = es_ntohs(subject->flow->client_port),
		.status = (uint16_t)subject->status,
		.bytes = (uint32_t)subject->bytes,
	};
	ret->took_ns = ret->at_ns > subject->decided_ns ? ret->at_ns - subject->decided_ns : 0;
	snprintf(ret->service, sizeof(ret->service), "%s", conf->services[order->service].name);
	es_inspect_trace_decided(in, order, subject->target, subject->decision, ret);
	if (order->is_named)
		put_content(in, order, ret);
	es_trace_request(ret, subject->text, subject->len);
}

void es_inspect_trace_put(struct es_inspector *in, const struct es_trace_entry *entry)
{
	int is_noted = 0, logged;

	for (struct es_trace_ring *ring = in->traces; ring; ring = ring->next)
		is_noted |= es_trace_put(ring, entry) > 0;
	if (is_noted)
		es_inspect_count(in, ES_WORKER_traced);
	logged = in->log ? es_trace_put(in->log, entry) : 0;
	if (logged)
		es_inspect_count(in, logged > 0 ? ES_WORKER_logged : ES_WORKER_log_dropped);
}

void es_inspect_trace(struct es_inspector *in, const struct es_handover_order *order,
		      const struct es_trace_subject *subject)
{
	struct es_trace_entry entry;

	if (order->service >= in->cluster->conf->service_count)
		return;
	es_inspect_trace_entry(in, order, subject, &entry);
	es_inspect_trace_put(in, &entry);
}

/* Is it a ClientHello? The requests behind it are asked about, and counted then (asked.c). */
static int es_inspect_is_hello(const struct es_inspector *in, const struct es_handover_order *order)
{
	return order->service < in->cluster->conf->service_count &&
	       in->cluster->conf->services[order->service].tls.line;
}

static void es_inspect_tally_count(struct es_inspector *in, const struct es_handover_order *order,
				   unsigned int target, enum es_tally_decision decision,
				   unsigned long long decided_ns)
{
	if (!es_inspect_is_hello(in, order))
		es_tally_decided(in->tally, order->service, target, decision);
	if (target == in->cluster->self)
		return;
	es_tally_handed(in->tally, order->service, target, ES_TALLY_sent);
	es_tally_pending(in->tally, decided_ns);
}

void es_inspect_tally(struct es_inspector *in, const struct es_ip_packet *packet,
		      const struct es_handover_order *order, unsigned int target,
		      enum es_tally_decision decision, unsigned long long decided_ns)
{
	const struct es_trace_subject subject = {
		.flow = &packet->flow,
		.text = (const char *)es_ip_packet_payload(packet),
		.len = packet->seg.len,
		.target = target,
		.decision = decision,
		.decided_ns = decided_ns,
	};

	es_inspect_tally_count(in, order, target, decision, decided_ns);
	if ((in->traces || in->log) && !es_inspect_is_hello(in, order))
		es_inspect_trace(in, order, &subject);
}

void es_inspect_tally_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target,
			       enum es_tally_decision decision, unsigned long long decided_ns)
{
	struct es_trace_subject subject = {
		.text = g->text,
		.len = g->text_len,
		.target = target,
		.decision = decision,
		.decided_ns = decided_ns,
	};
	struct es_ip_packet packet;

	es_inspect_tally_count(in, &g->order, target, decision, decided_ns);
	if ((!in->traces && !in->log) || !g->count || es_inspect_is_hello(in, &g->order) ||
	    es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet))
		return;
	subject.flow = &packet.flow;
	es_inspect_trace(in, &g->order, &subject);
}
