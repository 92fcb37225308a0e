// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls the plugins' timers. One timer of ours for all of them, as often as the busiest wants.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/plugins.h"

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	const struct es_daemon *d = timer->data;
	const struct es_cluster *cluster = d->cluster;
	struct es_node_view nodes[ES_NODES_MAX] = {};
	struct es_cluster_view view = {
		.self = cluster->self,
		.count = cluster->conf->node_count,
		.node = nodes,
		.ring = cluster->ring,
	};

	(void)loop;
	(void)events;
	view.now_ns = es_clock_now_ns();
	for (unsigned int i = 0; i < view.count; i++) {
		nodes[i].weight = cluster->weight[i];
		nodes[i].is_target = es_cluster_is_target(cluster, &d->health, i, view.now_ns);
		nodes[i].is_draining = es_health_state(&d->health, i) == ES_NODE_DRAINING;
	}
	es_plugins_tick(d->plugins, &view);
}

void es_daemon_plugins_watch(struct es_daemon *d)
{
	double period_s = es_plugins_timer_ms(d->plugins) / 1e3;

	if (ev_is_active(&d->plugin_timer))
		ev_timer_stop(d->loop, &d->plugin_timer);
	ev_timer_init(&d->plugin_timer, on_timer, period_s, period_s);
	d->plugin_timer.data = d;
	if (period_s > 0)
		ev_timer_start(d->loop, &d->plugin_timer);
}
