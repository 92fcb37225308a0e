// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counting what is in hand is a walk over the kernel's sockets, so its price grows with them: the interval
 * grows too. A count that is older than a message is not sent twice, see struct es_wire_load.
 */
#include <limits.h>
#include <string.h>
#include "inspector/clock.h"
#include "inspector/daemon.h"

/* A walk may take one part in so many of a CPU. */
#define ES_LOAD_WALK_SHARE 50

static unsigned int saturated(unsigned long long value)
{
	return value > UINT_MAX ? UINT_MAX : (unsigned int)value;
}

static void add_up(struct es_daemon_load *load)
{
	unsigned long long cost = 0;
	unsigned int active = 0;

	load->connections = 0;
	for (unsigned int i = 0; i < ES_SERVICES_MAX; i++) {
		load->connections += load->sums.service[i].flows;
		active += load->sums.service[i].active;
		cost += load->sums.service[i].load;
	}
	load->report.active = active;
	load->report.load = saturated(cost);
}

static int walk(struct es_daemon *d, unsigned long long now_ns)
{
	struct es_daemon_load *load = &d->load;
	unsigned long long start_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID), pause_ns, accepted;
	struct es_load_sums sums;
	int rc = es_datapath_loads(d->datapath, &sums);

	if (!rc)
		rc = es_datapath_accepted(d->datapath, &accepted);
	load->walk_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	pause_ns = load->walk_ns * ES_LOAD_WALK_SHARE;
	if (pause_ns < ES_LOAD_INTERVAL_MS * 1000000ULL)
		pause_ns = ES_LOAD_INTERVAL_MS * 1000000ULL;
	load->next_ns = now_ns + pause_ns;
	if (rc)
		return 0;
	load->sums = sums;
	add_up(load);
	es_load_meter_add(&load->meter, load->report.active, accepted, now_ns);
	load->report.mean_us = es_load_meter_mean_us(&load->meter);
	return 1;
}

int es_daemon_load_update(struct es_daemon *d)
{
	struct es_daemon_load *load = &d->load;
	unsigned long long now_ns = es_clock_now_ns();

	if (now_ns < load->next_ns)
		return 0;
	es_datapath_responses(d->datapath, es_observed_response, d);
	es_observed_flush(d);
	es_node_load_read(&load->node, now_ns);
	load->report.cpu = (unsigned short)load->node.cpu;
	load->report.disk = (unsigned short)load->node.disk;
	return walk(d, now_ns);
}

void es_daemon_load_word(const struct es_daemon *d, struct es_wire_load *ret_load)
{
	const struct es_load_report *report = &d->load.report;

	ret_load->connections = d->load.connections;
	ret_load->cpu = report->cpu;
	ret_load->has_requests = 1;
	ret_load->active = report->active;
	ret_load->load = report->load;
	ret_load->mean_us = report->mean_us;
	ret_load->disk = report->disk;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	if (es_daemon_load_update(d))
		es_daemon_route_alone(&d->route, d->conf->node_count, &d->load.report);
}

void es_daemon_load_alone(struct es_daemon *d)
{
	ev_timer_init(&d->load.timer, on_timer, 0, ES_LOAD_INTERVAL_MS / 1000.0);
	d->load.timer.data = d;
	ev_timer_start(d->loop, &d->load.timer);
}

void es_daemon_load_stop(struct es_daemon *d)
{
	if (d->loop)
		ev_timer_stop(d->loop, &d->load.timer);
}
