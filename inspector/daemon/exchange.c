// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receives what other nodes say in datagrams, and does what follows from it, and from having heard the node
 * at all.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/daemon/clock.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/homes.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/vanishing.h"

/* Whatever packets come, the log says so no more often. */
#define SAID_NS 60000000000ULL

/* Messages that were sent before this node's start are not taken; the sender's clock says when that was. */
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

/* The node's time: if it is far from ours, people are told, and nothing is given to the node. */
static void hear_clock(struct es_daemon *d, unsigned int node, const struct es_wire_load *load)
{
	struct es_node_clocks *clocks = &d->exchange->clocks;
	const struct es_node_clock *clock = &clocks->node[node];
	int requires;

	if (es_node_clock_hear(clocks, node, load->sent_ns, es_daemon_clock_told_ns(d)))
		es_log(clock->is_wrong ? ES_LOG_ERR : ES_LOG_INFO,
		       clock->is_wrong ? "node %s: its clock is %lld s ahead of this node's; from %u s on "
					 "neither takes requests from the other; set both by NTP"
				       : "node %s: its clock is right again, %lld s ahead of this node's",
		       d->conf->nodes[node].name, clock->ahead_ms / 1000, ES_HANDOVER_LATE_S);
	if (es_node_clock_is_useless(clocks, node))
		es_health_set_mistimed(&d->health, node, es_clock_now_ns() + 2 * ES_SILENCE_NS);
	requires = es_node_clocks_are_told(clocks, d->conf->node_count, d->cluster->self);
	if (requires == d->exchange->requires_time)
		return;
	d->exchange->requires_time = requires;
	if (es_daemon_configure(d, d->cluster, &d->keys))
	d->exchange->requires_time = !requires; /* with the next datagram */
}

static void on_load(void *ctx, unsigned int node, const struct es_wire_load *load)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_daemon *d = ctx;
	int is_newcomer = !es_heard_within(d->heard, node, ES_SILENCE_NS);

	if (!d->membership && d->heard->at_ns[node] && !es_heard_within(d->heard, node, 2 * ES_SILENCE_NS))
		es_health_is_back(&d->health, node, ~0ULL, now_ns);
	d->heard->at_ns[node] = now_ns;
	hear_began(d, node, load);
	hear_clock(d, node, load);
	es_daemon_serving_heard(d, node, load, load->state == ES_NODE_DOWN);
	atomic_store_explicit(&d->health.understands[node], load->understands, memory_order_relaxed);
	/* A newcomer gives away only what it knows that this node makes connections of. */
	if (is_newcomer)
		es_daemon_serving_tell(d);
	/* It takes no requests from a node that has not told it the time. */
	if (is_newcomer && now_ns - d->load->told_ns >= ES_LOAD_INTERVAL_MS * 1000000ULL)
		es_daemon_load_tell(d);
	es_daemon_load_take(d, node, load);
}

static void on_idle(void *ctx, unsigned int node, unsigned int idle)
{
	struct es_daemon *d = ctx;

	d->load->idle[node] = idle;
	d->load->idle_ns[node] = es_clock_now_ns();
}

static void on_takes(void *ctx, unsigned int node, unsigned int packet_max, unsigned int makes, __u64 lacks)
{
	struct es_daemon *d = ctx;

	es_daemon_serving_lacks(d, node, lacks);
	atomic_store_explicit(&d->health.makes[node], (unsigned char)makes, memory_order_relaxed);
	es_daemon_packet_max_heard(d, node, packet_max);
}

static void on_grant(void *ctx, unsigned int node, const struct es_grant_wire *grant)
{
	struct es_daemon *d = ctx;

	if (d->membership)
		es_membership_grant_heard(d->membership, node, grant);
}

static void on_outrun(void *ctx, unsigned int node, __u64 number)
{
	es_daemon_clock_outrun(ctx, node, number);
}

static void on_answered(void *ctx, unsigned int node, __u64 behind)
{
	struct es_daemon *d = ctx;
	unsigned long long *said_ns = &d->exchange->said_behind_ns[node], now_ns = es_clock_now_ns();

	if (*said_ns && now_ns - *said_ns < SAID_NS)
		return;
	*said_ns = now_ns;
	es_log(ES_LOG_WARNING,
	       "node %s: its message is numbered %.1f s before the last one that was heard of it: its clock "
	       "has gone back since it last ran, or somebody replays a recording; it is told where its "
	       "numbers go on; set clocks by NTP",
	       d->conf->nodes[node].name, (double)behind / 1e9);
}

/* Datagrams that find no room meanwhile are lost; later ones make up for them. */
static void on_message(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_daemon *d = io->data;

	(void)events;
	d->exchange->way.cluster_ifindex = d->network.cluster_ifindex;
	if (!es_load_exchange_drain(&d->exchange->way, &d->cluster, &d->keys, on_load, d))
		return;
	ev_io_stop(loop, io);
	ev_timer_set(&d->exchange->pause, ES_LOADS_PAUSE_S, 0);
	ev_timer_start(loop, &d->exchange->pause);
}

static void on_pause_over(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)events;
	ev_io_start(loop, &d->exchange->io);
}

int es_daemon_exchange_start(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_load_exchange_open(&d->exchange->way, d->cluster);

	if (rc) {
		es_conf_error_set(err, "loads: UDP port %u of the node's address cannot be opened: %s",
				  d->conf->cluster.handover_port, strerror(-rc));
		return rc;
	}
	d->exchange->way.other = d->exchange->other;
	d->exchange->way.outrun = on_outrun;
	d->exchange->way.answered = on_answered;
	d->exchange->way.home = es_daemon_home_heard;
	d->exchange->way.evidence = es_daemon_vanishing_heard;
	d->exchange->way.idle = on_idle;
	d->exchange->way.takes = on_takes;
	d->exchange->way.grant = on_grant;
	d->exchange->way.ctx = d;
	ev_io_init(&d->exchange->io, on_message, d->exchange->way.fd, EV_READ);
	d->exchange->io.data = d;
	ev_io_start(d->loop, &d->exchange->io);
	ev_init(&d->exchange->pause, on_pause_over);
	d->exchange->pause.data = d;
	es_daemon_load_start(d);
	return 0;
}

void es_daemon_exchange_rebind(struct es_daemon *d)
{
	const union es_sockaddr *self = &d->cluster->handover_address[d->cluster->self];
	struct es_conf_error err = {};

	if (es_sockaddr_equal(self, &d->exchange->way.bound))
		return;
	es_daemon_exchange_stop(d);
	if (es_daemon_exchange_start(d, &err))
		es_log(ES_LOG_ERR, "%s; the other nodes do not learn this node's load any more", err.text);
}

void es_daemon_exchange_stop(struct es_daemon *d)
{
	if (!ev_is_active(&d->load->timer))
		return;
	es_daemon_load_stop(d);
	ev_timer_stop(d->loop, &d->exchange->pause);
	ev_io_stop(d->loop, &d->exchange->io);
	es_load_exchange_close(&d->exchange->way);
}
