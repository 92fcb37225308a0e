// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counting what is in hand is a walk over the kernel's sockets, so its price grows with them: the interval
 * grows too. A count that is older than a message is not sent twice, see struct es_wire_load.
 */
#include <limits.h>
#include <string.h>
#include "inspector/ask/askers.h"
#include "inspector/base/clock.h"
#include "inspector/daemon/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/base/log.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/route.h"
#include "inspector/daemon/serving.h"
#include "inspector/health/responses.h"
#include "inspector/peers/exchange.h"
#include "inspector/peers/node_load.h"
#include "inspector/policy/load_meter.h"
#include "membership/wire.h"

/* A walk may take one part in so many of a CPU. */
#define ES_LOAD_WALK_SHARE 50

/* Between two words about idle connections, which become so after a second. */
#define ES_LOAD_IDLE_TOLD_NS 100000000ULL

/* Between two looks at what changes slowly. */
#define ES_LOAD_SLOW_MS 200

static unsigned int saturated(unsigned long long value)
{
	return value > UINT_MAX ? UINT_MAX : (unsigned int)value;
}

static void add_up(struct es_daemon_load *load)
{
	unsigned long long cost = 0;
	unsigned int active = 0, idle = 0;

	load->connections = 0;
	for (unsigned int i = 0; i < ES_SERVICES_MAX; i++) {
		load->connections += load->sums.service[i].flows;
		active += load->sums.service[i].active;
		cost += load->sums.service[i].load;
		idle += load->sums.idle[i];
	}
	load->report.active = active;
	load->report.idle = idle;
	load->report.load = saturated(cost);
}

/* Are requests refused because of how many are in hand? */
static int admits(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].admit_low || conf->services[i].admit_normal)
			return 1;
	return 0;
}

/* Does anything depend on loads? Plugins may ask for them. */
static int are_used(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		const struct es_policy *policy = es_policy_find(service->policy);

		if (policy && (policy->needs_loads == ES_LOADS_IF_BOUND ? service->load_bound > 0
									: policy->needs_loads))
			return 1;
	}
	return admits(conf) || conf->plugin_count > 0;
}

static unsigned long long pause_ns(const struct es_daemon *d, unsigned long long now_ns)
{
	const struct es_daemon_load *load = d->load;
	unsigned int interval_ms = ES_LOAD_UNUSED_INTERVAL_MS;
	unsigned long long interval_ns, share_ns = load->walk_ns * ES_LOAD_WALK_SHARE;

	if (now_ns - load->asked_ns < ES_LOAD_ASKED_MS * 1000000ULL || are_used(d->conf))
		interval_ms = ES_LOAD_INTERVAL_MS;
	interval_ns = interval_ms * 1000000ULL;
	return share_ns > interval_ns ? share_ns : interval_ns;
}

static int walk(struct es_daemon *d, unsigned long long now_ns)
{
	struct es_daemon_load *load = d->load;
	unsigned long long start_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID), accepted;
	struct es_load_sums sums;
	int rc = es_datapath_loads(d->datapath, admits(d->conf), &sums);

	if (!rc)
		rc = es_datapath_accepted(d->datapath, &accepted);
	if (!rc) {
		es_askers_loads(d->askers, d->conf, &sums);
		accepted += es_askers_begun(d->askers);
	}
	load->walk_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	load->counted_ns = now_ns;
	if (rc)
		return 0;
	load->sums = sums;
	load->counted++;
	add_up(load);
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		es_responses_busy(&d->observed->of[i].responses, sums.service[i].active, now_ns);
	es_load_meter_add(&load->meter, load->report.active, accepted, now_ns);
	es_load_recent_add(&load->recent, load->report.active, accepted, now_ns);
	load->report.mean_us = es_load_meter_mean_us(&load->meter);
	return 1;
}

void es_daemon_load_word(const struct es_daemon *d, struct es_wire_load *ret_load)
{
	const struct es_load_report *report = &d->load->report;

	ret_load->connections = d->load->connections;
	ret_load->cpu = report->cpu;
	ret_load->has_requests = 1;
	ret_load->active = report->active;
	ret_load->load = report->load;
	ret_load->mean_us = report->mean_us;
	ret_load->disk = report->disk;
	es_daemon_serving_word(d, ret_load);
	if (d->membership && es_membership_is_unkept(d->membership))
		ret_load->understands |= ES_WIRE_UNKEPT;
}

static unsigned int idle_of(const struct es_daemon *d, unsigned int node)
{
	if (node == d->cluster->self)
		return d->load->report.idle;
	return es_clock_now_ns() - d->load->idle_ns[node] < ES_SILENCE_NS ? d->load->idle[node] : 0;
}

static void take(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	es_daemon_route_load(d->route, node,
			     &(struct es_load_report){
				     .active = load->active,
				     .idle = idle_of(d, node),
				     .load = load->load,
				     .mean_us = load->mean_us,
				     .cpu = load->cpu,
				     .disk = load->disk,
				     .at_ns = es_clock_now_ns(),
			     });
}

/*
 * Loads are compared, so it must be all of them: a node of which nothing is known would look idle. With
 * membership, who is silent is soon no target any more.
 */
static int all_are_heard(const struct es_daemon *d)
{
	if (d->membership)
		return 1;
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && !es_heard_within(d->heard, i, ES_SILENCE_NS))
			return 0;
	return 1;
}

void es_daemon_load_take(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	if (load->is_new && all_are_heard(d))
		take(d, node, load);
}

/*
 * Over the bus it comes later than in a datagram: while these arrive, it would put an older word over a newer
 * one.
 */
void es_daemon_load_bus(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	if (!load->has_requests || node == d->cluster->self || es_heard_within(d->heard, node, ES_SILENCE_NS))
		return;
	es_daemon_serving_heard(d, node, load, 0);
	es_daemon_load_take(d, node, load);
}

static void tell_idle(struct es_daemon *d, unsigned long long now_ns)
{
	unsigned int idle = admits(d->conf) ? d->load->report.idle : 0;

	if ((!idle && !d->load->idle_told) || now_ns - d->load->idle_told_ns < ES_LOAD_IDLE_TOLD_NS)
		return;
	es_load_exchange_tell_idle(&d->exchange->way, d->cluster, &d->keys, d->health.understands, idle);
	d->load->idle_told = idle;
	d->load->idle_told_ns = now_ns;
}

/*
 * New figures go to the others, and to this node's own workers, at once. Old figures are only a sign of life.
 */
static void tell(struct es_daemon *d, int is_new, unsigned long long now_ns)
{
	struct es_wire_load load = {.is_new = (uint8_t)is_new};

	es_daemon_load_word(d, &load);
	load.understands |= ES_WIRE_UNDERSTANDS_STRAYS | ES_WIRE_UNDERSTANDS_HOMES |
			    ES_WIRE_UNDERSTANDS_SNAPSHOTS | ES_WIRE_UNDERSTANDS_ROLLOUTS |
			    ES_WIRE_UNDERSTANDS_STRAYS6 | ES_WIRE_UNDERSTANDS_FATE;
	load.sent_ns = es_daemon_clock_told_ns(d);
	load.state = es_daemon_serving_is_down(d) ? ES_NODE_DOWN
						  : ES_NODE_UP; /* with membership, the bus's counts */
	tell_idle(d, now_ns);
	es_load_exchange_send(&d->exchange->way, d->cluster, &d->keys, &load);
	d->load->told_ns = now_ns;
	if (!is_new)
		return;
	if (all_are_heard(d))
		take(d, d->cluster->self, &load);
	else
		es_daemon_route_alone(d->route, d->conf->node_count, &d->load->report);
}

void es_daemon_load_tell(struct es_daemon *d)
{
	if (ev_is_active(&d->load->timer))
		tell(d, 0, es_clock_now_ns());
}

int es_daemon_load_update(struct es_daemon *d)
{
	struct es_daemon_load *load = d->load;
	unsigned long long now_ns = es_clock_now_ns();
	int is_new = 0;

	/* There is room for so many only. */
	es_datapath_responses(d->datapath, es_observed_response, d->observed);
	es_askers_responses(d->askers, es_observed_response, d->observed);
	if (now_ns >= load->slow_ns) {
		load->slow_ns = now_ns + ES_LOAD_SLOW_MS * 1000000ULL;
		es_observed_flush(d->observed);
		es_node_load_read(&load->node, now_ns);
		load->report.cpu = (unsigned short)load->node.cpu;
		load->report.disk = (unsigned short)load->node.disk;
	}
	if (now_ns - load->counted_ns >= pause_ns(d, now_ns) && walk(d, now_ns))
		is_new = 1;
	if (ev_is_active(&load->timer) && (is_new || now_ns - load->told_ns >= ES_SILENCE_NS / 2))
		tell(d, is_new, now_ns);
	return is_new;
}

void es_daemon_load_ask(struct es_daemon *d)
{
	d->load->asked_ns = es_clock_now_ns();
	es_daemon_load_update(d);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	es_daemon_load_update(timer->data);
}

void es_daemon_load_start(struct es_daemon *d)
{
	ev_timer_init(&d->load->timer, on_timer, 0, ES_LOAD_INTERVAL_MS / 1000.0);
	d->load->timer.data = d;
	ev_timer_start(d->loop, &d->load->timer);
}

void es_daemon_load_stop(struct es_daemon *d)
{
	if (ev_is_active(&d->load->timer))
		ev_timer_stop(d->loop, &d->load->timer);
}
