// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counting what is in hand is a walk over the kernel's sockets, so its price grows with them: the interval
 * grows too. A count that is older than a message is not sent twice, see struct es_wire_load.
 */
#include <limits.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/internal.h"
#include "inspector/base/log.h"
#include "inspector/load/snapshots.h"

/* A walk may take one part in so many of a CPU. */
#define ES_LOAD_WALK_SHARE 50

/* Whatever packets come, the log says so no more often. */
#define ES_LOAD_SAID_NS 60000000000ULL

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
	const struct es_daemon_load *load = &d->load;
	unsigned int interval_ms = ES_LOAD_UNUSED_INTERVAL_MS;
	unsigned long long interval_ns, share_ns = load->walk_ns * ES_LOAD_WALK_SHARE;

	if (now_ns - load->asked_ns < ES_LOAD_ASKED_MS * 1000000ULL || are_used(d->conf))
		interval_ms = ES_LOAD_INTERVAL_MS;
	interval_ns = interval_ms * 1000000ULL;
	return share_ns > interval_ns ? share_ns : interval_ns;
}

static int walk(struct es_daemon *d, unsigned long long now_ns)
{
	struct es_daemon_load *load = &d->load;
	unsigned long long start_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID), accepted;
	struct es_load_sums sums;
	int rc = es_datapath_loads(d->datapath, admits(d->conf), &sums);

	if (!rc)
		rc = es_datapath_accepted(d->datapath, &accepted);
	load->walk_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	load->counted_ns = now_ns;
	if (rc)
		return 0;
	load->sums = sums;
	load->counted++;
	add_up(load);
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		es_responses_busy(&d->observed.of[i].responses, sums.service[i].active, now_ns);
	es_load_meter_add(&load->meter, load->report.active, accepted, now_ns);
	es_load_recent_add(&load->recent, load->report.active, accepted, now_ns);
	load->report.mean_us = es_load_meter_mean_us(&load->meter);
	return 1;
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
	ret_load->trouble = d->membership && es_membership_is_cut_off(d->membership)
				    ? ES_TROUBLE_CUT_OFF
				    : (uint8_t)d->serving.now.trouble;
	ret_load->understands = d->serving.now.yields ? ES_WIRE_FAILING_YIELDS : 0;
	if (d->membership && es_membership_is_unkept(d->membership))
		ret_load->understands |= ES_WIRE_UNKEPT;
	ret_load->failing = d->serving.now.failing & ((1ULL << ES_WIRE_FAILING_MAX) - 1);
}

static unsigned int idle_of(const struct es_daemon *d, unsigned int node)
{
	if (node == d->cluster->self)
		return d->load.report.idle;
	return es_clock_now_ns() - d->load.idle_ns[node] < ES_LOAD_SILENCE_MS * 1000000ULL
		       ? d->load.idle[node]
		       : 0;
}

static void take(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	es_daemon_route_load(&d->route, node,
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

static int is_heard(const struct es_daemon *d, unsigned int node)
{
	unsigned long long at_ns = d->load.heard_ns[node];

	return at_ns && es_clock_now_ns() - at_ns < ES_LOAD_SILENCE_MS * 1000000ULL;
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
		if (i != d->cluster->self && !is_heard(d, i))
			return 0;
	return 1;
}

/* Over the bus it comes later than in a datagram: while these arrive, it would put an older word over a newer one. */
void es_daemon_load_bus(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	if (!load->has_requests || node == d->cluster->self || is_heard(d, node))
		return;
	es_daemon_serving_heard(d, node, load, 0);
	if (load->is_new)
		take(d, node, load);
}

static void tell_idle(struct es_daemon *d, unsigned long long now_ns)
{
	unsigned int idle = admits(d->conf) ? d->load.report.idle : 0;

	if ((!idle && !d->load.idle_told) || now_ns - d->load.idle_told_ns < ES_LOAD_IDLE_TOLD_NS)
		return;
	es_load_exchange_tell_idle(&d->load.exchange, d->cluster, &d->keys, d->health.understands, idle);
	d->load.idle_told = idle;
	d->load.idle_told_ns = now_ns;
}

/*
 * What was counted is for the others, and for this node's own workers, at once. Old figures are only a sign
 * of life.
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
	es_load_exchange_send(&d->load.exchange, d->cluster, &d->keys, &load);
	d->load.told_ns = now_ns;
	if (!is_new)
		return;
	if (all_are_heard(d))
		take(d, d->cluster->self, &load);
	else
		es_daemon_route_alone(&d->route, d->conf->node_count, &d->load.report);
}

void es_daemon_load_tell(struct es_daemon *d)
{
	if (ev_is_active(&d->load.timer))
		tell(d, 0, es_clock_now_ns());
}

int es_daemon_load_update(struct es_daemon *d)
{
	struct es_daemon_load *load = &d->load;
	unsigned long long now_ns = es_clock_now_ns();
	int is_new = 0;

	es_observed_read(d); /* there is room for so many only */
	if (now_ns >= load->slow_ns) {
		load->slow_ns = now_ns + ES_LOAD_SLOW_MS * 1000000ULL;
		es_observed_flush(d);
		es_node_load_read(&load->node, now_ns);
		load->report.cpu = (unsigned short)load->node.cpu;
		load->report.disk = (unsigned short)load->node.disk;
	}
	if (now_ns - load->counted_ns >= pause_ns(d, now_ns) && walk(d, now_ns))
		is_new = 1;
	if (ev_is_active(&load->timer) &&
	    (is_new || now_ns - load->told_ns >= ES_LOAD_SILENCE_MS * 1000000ULL / 2))
		tell(d, is_new, now_ns);
	return is_new;
}

void es_daemon_load_ask(struct es_daemon *d)
{
	d->load.asked_ns = es_clock_now_ns();
	es_daemon_load_update(d);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	es_daemon_load_update(timer->data);
}

/* What was sent before this node's start is not taken: by the sender's clock. */
static void hear_began(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	struct es_state *state = es_datapath_state(d->datapath);
	unsigned long long since_ns = es_clock_now_ns() - state->began_ns;
	__u32 began;

	if (!load->sent_ns || since_ns >= ES_HANDOVER_EARLY_NS)
		return;
	began = es_node_clock_began(state->began[node], load->sent_ns, since_ns);
	if (es_node_clock_is_credible(began, state->began[d->cluster->self], since_ns))
		__atomic_store_n(&state->began[node], began, __ATOMIC_RELAXED);
}

/* What time the node has: if it is far from ours, people are told, and nothing is given to it. */
static void hear_clock(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	struct es_node_clocks *clocks = &d->load.clocks;
	const struct es_node_clock *clock = &clocks->node[node];
	int requires;

	if (es_node_clock_hear(clocks, node, load->sent_ns, es_daemon_clock_told_ns(d)))
		es_log(clock->is_wrong ? ES_LOG_ERR : ES_LOG_INFO,
		       clock->is_wrong ? "node %s: its clock is %lld s ahead of this node's; from %u s on "
					 "neither takes requests from the other; set both by NTP"
				       : "node %s: its clock is right again, %lld s ahead of this node's",
		       d->conf->nodes[node].name, clock->ahead_ms / 1000, ES_HANDOVER_LATE_S);
	if (es_node_clock_is_useless(clocks, node))
		es_health_set_mistimed(&d->health, node,
				       es_clock_now_ns() + 2 * ES_LOAD_SILENCE_MS * 1000000ULL);
	requires = es_node_clocks_are_told(clocks, d->conf->node_count, d->cluster->self);
	if (requires == d->load.requires_time)
		return;
	d->load.requires_time = requires;
	if (es_daemon_configure(d, d->cluster, &d->keys))
	d->load.requires_time = !requires; /* with the next datagram */
}

static void on_load(void *ctx, unsigned int node, const struct es_wire_load *load)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_daemon *d = ctx;
	int is_newcomer = !is_heard(d, node);

	if (!d->membership && d->load.heard_ns[node] &&
	    now_ns - d->load.heard_ns[node] >= 2 * ES_LOAD_SILENCE_MS * 1000000ULL)
		es_health_is_back(&d->health, node, ~0ULL, now_ns);
	d->load.heard_ns[node] = now_ns;
	hear_began(d, node, load);
	hear_clock(d, node, load);
	es_daemon_serving_heard(d, node, load, load->state == ES_NODE_DOWN);
	atomic_store_explicit(&d->health.understands[node], load->understands, memory_order_relaxed);
	/* What it makes no connection of, for all that it knows, it would not give away. */
	if (is_newcomer)
		es_daemon_packet_max_tell(d);
	/* It takes no requests from who has not told his time. */
	if (is_newcomer && now_ns - d->load.told_ns >= ES_LOAD_INTERVAL_MS * 1000000ULL)
		tell(d, 0, now_ns);
	if (load->is_new && all_are_heard(d))
		take(d, node, load);
}

static void on_idle(void *ctx, unsigned int node, unsigned int idle)
{
	struct es_daemon *d = ctx;

	d->load.idle[node] = idle;
	d->load.idle_ns[node] = es_clock_now_ns();
}

static void on_outrun(void *ctx, unsigned int node, __u64 number)
{
	es_daemon_clock_outrun(ctx, node, number);
}

static void on_answered(void *ctx, unsigned int node, __u64 behind)
{
	struct es_daemon *d = ctx;
	unsigned long long *said_ns = &d->load.said_behind_ns[node], now_ns = es_clock_now_ns();

	if (*said_ns && now_ns - *said_ns < ES_LOAD_SAID_NS)
		return;
	*said_ns = now_ns;
	es_log(ES_LOG_WARNING,
	       "node %s: its message is numbered %.1f s before the last one that was heard of it: its clock "
	       "has gone back since it last ran, or somebody replays a recording; it is told where its "
	       "numbers go on; set clocks by NTP",
	       d->conf->nodes[node].name, (double)behind / 1e9);
}

/* What comes meanwhile and finds no room is lost, and made up for by what comes after it. */
static void on_message(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_daemon *d = io->data;

	(void)events;
	d->load.exchange.cluster_ifindex = d->network.cluster_ifindex;
	if (!es_load_exchange_drain(&d->load.exchange, &d->cluster, &d->keys, on_load, d))
		return;
	ev_io_stop(loop, io);
	ev_timer_set(&d->load.pause, ES_LOADS_PAUSE_S, 0);
	ev_timer_start(loop, &d->load.pause);
}

static void on_pause_over(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)events;
	ev_io_start(loop, &d->load.io);
}

static int on_other(void *ctx, const void *data, size_t len)
{
	switch (((const struct es_loads_message *)data)->version) {
	case ES_SNAPSHOT_VERSION:
		return es_daemon_view_message(ctx, data, len);
	case ES_ROLLOUT_VERSION:
		return es_daemon_rollout_message(ctx, data, len);
	case ES_RATES_VERSION:
		return es_daemon_rates_message(ctx, data, len);
	default:
		return es_daemon_poison_message(ctx, data, len);
	}
}

int es_daemon_load_start(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_load_exchange_open(&d->load.exchange, d->cluster);

	if (rc) {
		es_conf_error_set(err, "loads: UDP port %u of the node's address cannot be opened: %s",
				  d->conf->cluster.handover_port, strerror(-rc));
		return rc;
	}
	d->load.exchange.other = on_other;
	d->load.exchange.outrun = on_outrun;
	d->load.exchange.answered = on_answered;
	d->load.exchange.home = es_daemon_home_heard;
	d->load.exchange.evidence = es_daemon_vanishing_heard;
	d->load.exchange.idle = on_idle;
	d->load.exchange.takes = es_daemon_packet_max_heard;
	d->load.exchange.ctx = d;
	ev_io_init(&d->load.io, on_message, d->load.exchange.fd, EV_READ);
	d->load.io.data = d;
	ev_io_start(d->loop, &d->load.io);
	ev_init(&d->load.pause, on_pause_over);
	d->load.pause.data = d;
	ev_timer_init(&d->load.timer, on_timer, 0, ES_LOAD_INTERVAL_MS / 1000.0);
	d->load.timer.data = d;
	ev_timer_start(d->loop, &d->load.timer);
	return 0;
}

void es_daemon_load_rebind(struct es_daemon *d)
{
	const union es_sockaddr *self = &d->cluster->handover_address[d->cluster->self];
	struct es_conf_error err = {};

	if (es_sockaddr_equal(self, &d->load.exchange.bound))
		return;
	es_daemon_load_stop(d);
	if (es_daemon_load_start(d, &err))
		es_log(ES_LOG_ERR, "%s; the other nodes do not learn this node's load any more", err.text);
}

void es_daemon_load_stop(struct es_daemon *d)
{
	if (!ev_is_active(&d->load.timer))
		return;
	ev_timer_stop(d->loop, &d->load.timer);
	ev_timer_stop(d->loop, &d->load.pause);
	ev_io_stop(d->loop, &d->load.io);
	es_load_exchange_close(&d->load.exchange);
}
