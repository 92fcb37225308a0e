// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks the judge, and tells people what he says. */
#include <stdio.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/others.h"
#include "inspector/daemon/outliers.h"
#include "inspector/health/outlier.h"
#include "inspector/health/place.h"
#include "inspector/health/responses.h"
#include "inspector/self/serving.h"
#include "membership/wire.h"

_Static_assert(ES_CONF_OUTLIER_SERVICES == ES_WIRE_FAILING_MAX,
	       "nodes can tell each other of so many services");

static void tell(struct es_daemon_outlier *o, enum es_place_news news)
{
	char why[sizeof(
		o->state.why)]; /* a copy: of one in the same structure, gcc fears that both overlap */

	memcpy(why, o->state.why, sizeof(why));
	/* That it is out, and that it serves again, is told with all that may be wrong with a server. */
	if (news == ES_PLACE_GOES)
		snprintf(o->text, sizeof(o->text), "%s; out for %u s", why, o->state.place.hold_s);
	else if (news == ES_PLACE_KEPT)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: %s; this node serves all the same: max_out = %u, and others are out",
			 o->name, why, o->conf.max_out);
	else if (news == ES_PLACE_RECALLED)
		es_event(ES_EVENT_outlier, ES_LOG_WARNING, NULL,
			 "service %s: this node serves again before its time: max_out = %u, and others are "
			 "out",
			 o->name, o->conf.max_out);
}

static void look(struct es_daemon *d, unsigned int service, struct es_serving *found)
{
	struct es_daemon_outlier *o = &d->outliers->of[service];
	const struct es_responses *responses = &d->observed->of[service].responses;
	const struct es_outlier_counts counts = {
		.responses = es_responses_total(responses),
		.errors = responses->count[ES_RESPONSE_5XX],
		.timed = o->timed,
		.slow = o->slow,
	};
	const struct es_place_others others = es_daemon_others(d, service);

	tell(o, es_outlier_look(&o->state, &o->conf, &counts, &others, es_clock_now_ns() / 1000000));
	if (o->state.place.state == ES_PLACE_CLAIMS)
		es_serving_claims(found, service, 0);
	else if (o->state.place.state == ES_PLACE_OUT)
		es_serving_is_out(found, d->conf, service, ES_TROUBLE_OUTLIER, o->text);
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
		if (es_conf_outlier_is_set(&d->outliers->of[i].conf) && !(found->elsewhere >> i & 1))
			look(d, i, found);
}

void es_daemon_outliers_rebind(struct es_daemon *d)
{
	const struct es_daemon_outliers before = *d->outliers;

	*d->outliers = (struct es_daemon_outliers){};
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		struct es_daemon_outlier *o = &d->outliers->of[i];

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
	return outliers->of[service].state.place.state == ES_PLACE_OUT;
}
