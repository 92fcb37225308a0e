// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries evidence from workers to the nodes that it is about, and tells people what the judge makes of this
 * node's.
 */
#include <stdio.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/others.h"
#include "inspector/daemon/vanishing.h"
#include "inspector/health/place.h"
#include "inspector/health/vanishing.h"
#include "inspector/inspect/unheard.h"
#include "inspector/peers/exchange.h"
#include "inspector/self/serving.h"

static unsigned long long now_ms(void)
{
	return es_clock_now_ns() / 1000000;
}

static void note(struct es_daemon *d, unsigned int service, __u64 address, __u64 prefix, __u64 request)
{
	const struct es_vanishing_event event = {now_ms(), address, prefix, request};

	es_vanishing_note(&d->vanishing->of[service].state, &event);
}

static void pass_on(struct es_daemon *d, const struct es_evidence *e)
{
	struct es_evidence_wire wire = {
		.address = (__be64)es_cpu_be64(e->address),
		.prefix = (__be64)es_cpu_be64(e->prefix),
		.request = (__be64)es_cpu_be64(e->request),
		.is_heard = (__u8)e->is_heard,
	};

	if (e->service >= d->conf->service_count || e->node >= d->conf->node_count)
		return;
	if (e->node == d->cluster->self) {
		note(d, e->service, e->address, e->prefix, e->is_heard ? 0 : e->request);
		return;
	}
	if (!(atomic_load_explicit(&d->health.understands[e->node], memory_order_relaxed) &
	      ES_WIRE_UNDERSTANDS_FATE))
		return;
	wire.tag = es_htonl(es_content_sync_tag(d->conf->services[e->service].name));
	es_load_exchange_testify(&d->exchange->way, d->cluster, &d->keys, e->node, &wire);
}

void es_daemon_vanishing_heard(void *daemon, unsigned int node, const struct es_evidence_wire *wire)
{
	struct es_daemon *d = daemon;

	(void)node;
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_content_sync_tag(d->conf->services[i].name) == es_ntohl(wire->tag) &&
		    !wire->is_heard == (wire->request != 0))
			note(d, i, es_cpu_be64((__u64)wire->address), es_cpu_be64((__u64)wire->prefix),
			     es_cpu_be64((__u64)wire->request));
}

static void tell(const struct es_daemon *d, unsigned int service, enum es_place_news news)
{
	const char *name = d->conf->services[service].name;
	unsigned int max_out = d->conf->services[service].outlier.max_out;

	/* That it is out, and that it serves again, is told with all that may be wrong with a server. */
	if (news == ES_PLACE_KEPT)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: connections that are made here are not heard of again; this node "
			 "serves all "
			 "the same: max_out = %u, and others are out",
			 name, max_out);
	else if (news == ES_PLACE_RECALLED)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: this node serves again before its time: max_out = %u, and others are "
			 "out",
			 name, max_out);
}

static void look(struct es_daemon *d, unsigned int service, struct es_serving *found)
{
	const struct es_place_others others = es_daemon_others(d, service);
	struct es_vanishing *v = &d->vanishing->of[service].state;

	tell(d, service, es_vanishing_look(v, d->conf->services[service].outlier.max_out, &others, now_ms()));
	if (v->place.state == ES_PLACE_CLAIMS)
		es_serving_claims(found, service, 0);
	if (v->place.state != ES_PLACE_OUT)
		return;
	snprintf(d->vanishing->of[service].text, sizeof(d->vanishing->of[service].text),
		 "connections that are made here are not heard of again: a packet filter, address "
		 "translation or another rule drops or redirects what the server should get; earshot check "
		 "says more; out for %u s",
		 v->place.hold_s);
	es_serving_is_out(found, d->conf, service, ES_TROUBLE_VANISHING, d->vanishing->of[service].text);
}

/* @fn may be NULL: what a worker has found by another configuration is of other services. */
static void take(struct es_daemon *d, void (*fn)(struct es_daemon *d, const struct es_evidence *e))
{
	struct es_evidence evidence;

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		while (d->worker[i] && !es_evidence_take(es_worker_evidence(d->worker[i]), &evidence))
			if (fn)
				fn(d, &evidence);
}

void es_daemon_vanishing_add(struct es_daemon *d, struct es_serving *found)
{
	take(d, pass_on);
	/* Nodes can tell each other of so many services. */
	for (unsigned int i = 0; i < d->conf->service_count && i < ES_WIRE_FAILING_MAX; i++)
		if (!(found->elsewhere >> i & 1))
			look(d, i, found);
}

void es_daemon_vanishing_rebind(struct es_daemon *d)
{
	static struct es_daemon_vanishing before; /* large; this is the control thread's */

	take(d, NULL);
	before = *d->vanishing;
	memset(d->vanishing, 0, sizeof(*d->vanishing));
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		const char *name = d->conf->services[i].name;

		for (unsigned int k = 0; k < ES_CONF_SERVICES_MAX; k++)
			if (!strcmp(name, before.of[k].name))
				d->vanishing->of[i] = before.of[k];
		memcpy(d->vanishing->of[i].name, name, sizeof(d->vanishing->of[i].name));
	}
}
