// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts which other nodes are away, asks the judge, and tells people what he says. */
#include <stdio.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/daemon/daemon.h"

_Static_assert(ES_CONF_OUTLIER_SERVICES == ES_WIRE_FAILING_MAX,
	       "nodes can tell each other of so many services");

/* May @node be given requests, as far as its machine, its daemon and its operator are concerned? */
static int is_there(const struct es_daemon *d, unsigned int node)
{
	enum es_node_state state = es_health_state(&d->health, node);

	return d->cluster->weight[node] && (state == ES_NODE_UP || state == ES_NODE_DOWN) &&
	       (d->membership ||
		es_clock_now_ns() - d->load.heard_ns[node] < 2 * ES_LOAD_SILENCE_MS * 1000000ULL);
}

/* Does what is wrong with @node keep it from serving @service? */
static int serves(const struct es_daemon *d, unsigned int node, unsigned int service)
{
	unsigned int trouble = d->serving.trouble[node];

	return !(d->serving.failing[node] >> service & 1) &&
	       es_health_state(&d->health, node) == ES_NODE_UP &&
	       (trouble == ES_TROUBLE_NONE || trouble == ES_TROUBLE_CHECK || trouble == ES_TROUBLE_OUTLIER);
}

static int is_outlier(const struct es_daemon *d, unsigned int node, unsigned int service)
{
	unsigned int trouble = d->serving.trouble[node];

	return (d->serving.failing[node] >> service & 1) && d->serving.yields[node] &&
	       (trouble == ES_TROUBLE_NONE || trouble == ES_TROUBLE_OUTLIER);
}

static struct es_outlier_others others_of(const struct es_daemon *d, unsigned int service)
{
	struct es_outlier_others others = {};
	unsigned int self = d->cluster->self;

	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		if (i == self || !d->conf->nodes[i].weight)
			continue;
		if (!is_there(d, i))
			others.away++;
		else if (is_outlier(d, i, service))
			*(i < self ? &others.before : &others.after) += 1;
		else
			others.away += !serves(d, i, service);
	}
	return others;
}

static void tell(struct es_daemon_outlier *o, enum es_outlier_news news)
{
	/* That it is out, and that it serves again, is told with all that may be wrong with a server. */
	if (news == ES_OUTLIER_GOES)
		snprintf(o->text, sizeof(o->text), "%s; out for %u s", o->state.why, o->state.hold_s);
	else if (news == ES_OUTLIER_KEPT)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: %s; this node serves all the same: max_out = %u, and others are out",
			 o->name, o->state.why, o->conf.max_out);
	else if (news == ES_OUTLIER_RECALLED)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: this node serves again before its time: max_out = %u, and others are "
			 "out",
			 o->name, o->conf.max_out);
}

static void look(struct es_daemon *d, unsigned int service, struct es_serving *found)
{
	struct es_daemon_outlier *o = &d->outliers.of[service];
	const struct es_responses *responses = &d->observed.of[service].responses;
	const struct es_outlier_counts counts = {
		.responses = es_responses_total(responses),
		.errors = responses->count[ES_RESPONSE_5XX],
		.timed = o->timed,
		.slow = o->slow,
	};
	const struct es_outlier_others others = others_of(d, service);

	tell(o, es_outlier_look(&o->state, &o->conf, &counts, &others, es_clock_now_ns() / 1000000));
	if (o->state.state != ES_OUTLIER_IN)
		es_serving_is_outlier(found, d->conf, service,
				      o->state.state == ES_OUTLIER_OUT ? o->text : NULL);
}

void es_daemon_outliers_took(struct es_daemon_outliers *outliers, unsigned int service,
			     unsigned long long took_ns)
{
	struct es_daemon_outlier *o = &outliers->of[service];

	o->timed += took_ns != 0;
	o->slow += took_ns > o->conf.slow_ms * 1000000ULL;
}

void es_daemon_outliers_add(struct es_daemon *d, struct es_serving *found)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_conf_outlier_is_set(&d->outliers.of[i].conf))
			look(d, i, found);
}

void es_daemon_outliers_rebind(struct es_daemon *d)
{
	const struct es_daemon_outliers before = d->outliers;

	d->outliers = (struct es_daemon_outliers){};
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		struct es_daemon_outlier *o = &d->outliers.of[i];

		memcpy(o->name, d->conf->services[i].name, sizeof(o->name));
		o->conf = d->conf->services[i].outlier;
		for (unsigned int k = 0; k < ES_CONF_SERVICES_MAX; k++)
			if (!strcmp(o->name, before.of[k].name) &&
			    !memcmp(&o->conf, &before.of[k].conf, sizeof(o->conf)))
				*o = before.of[k];
	}
}

int es_daemon_outlier_is_out(const struct es_daemon_outliers *outliers, unsigned int service)
{
	return outliers->of[service].state.state == ES_OUTLIER_OUT;
}
