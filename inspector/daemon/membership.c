// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bus and the group in the daemon's event loop: when this node joins, stays silent, leaves; what it says
 * of itself. ring.c carries out the group's decisions.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/daemon/contents.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/membership_internal.h"
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/report/report.h"
#include "inspector/self/settings.h"

#define TICK_S		 0.02
#define SERVER_CHECK_MS	 1000
#define LEAVE_MS	 3000
#define PATIENCE_MS	 3000
#define LEASE_MAX_MS	 2000
#define LEASE_DEFAULT	 100
#define CONTENTS_KEEP_MS 60000

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	struct es_membership *m = ctx;

	es_bus_send(m->bus, type, payload, len);
}

static void on_rejoin(void *ctx, const char *reason)
{
	struct es_membership *m = ctx;

	es_membership_silence(m, reason);
	m->must_rejoin = 1;
}

static void on_left(void *ctx)
{
	struct es_membership *m = ctx;

	/* This node goes on with what it has, since all others know of it. */
	es_lease_keep(m);
	es_event(ES_EVENT_leave, ES_LOG_INFO, NULL, "left the cluster in order");
	if (m->leave_done)
		m->leave_done(m->daemon);
	m->leave_done = NULL;
}

static void on_log(void *ctx, const char *text)
{
	(void)ctx;
	es_log(ES_LOG_WARNING, "%s", text);
}

/* A node that an operator drained stays drained until an operator undoes it, whatever its server does. */
static void on_changed(void *ctx)
{
	struct es_membership *m = ctx;
	unsigned int state = m->group.node[m->daemon->cluster->self].state;
	int is_drained = m->by_hand.is_drained;

	es_ring_on_changed(m);
	es_story_changed(m);
	if (state == ES_NODE_UP)
		is_drained = m->until_restart = 0;
	else if (state == ES_NODE_DRAINING && !m->until_restart)
		is_drained = 1;
	m->by_hand.is_drained = is_drained;
	es_by_hand_changed(&m->by_hand);
}

static const struct es_group_ops group_ops = {
	.send = on_send,
	.stop = es_ring_on_stop,
	.serve = es_ring_on_serve,
	.proofs = es_ring_on_proofs,
	.changed = on_changed,
	.rejoin = on_rejoin,
	.left = on_left,
	.log = on_log,
};

static void on_by_hand(void *ctx, const struct es_wire_by_hand *by_hand)
{
	struct es_membership *m = ctx;
	uint8_t buf[ES_WIRE_BY_HAND_SIZE];

	es_bus_send(m->bus, ES_WIRE_BY_HAND, buf, es_wire_put_by_hand(buf, sizeof(buf), by_hand));
}

/* Whoever has given the command waits for this word. */
static void on_unkept(void *ctx)
{
	struct es_membership *m = ctx;

	es_daemon_load_tell(m->daemon);
}

static const struct es_daemon_by_hand_ops by_hand_ops = {.say = on_by_hand, .unkept = on_unkept};

/* A node that the others have given up has heard nothing for the token's timeout at least. */
static void lease_measure(struct es_membership *m, const struct es_bus_state *bus)
{
	if (!bus->token_ms)
		return;
	m->lease_ms = m->group.lease_ms = bus->token_ms > LEASE_MAX_MS ? LEASE_MAX_MS : bus->token_ms;
	m->group.vote_late_ms = bus->vote_late_ms;
}

static void on_view(void *ctx, struct es_group_id self, const struct es_group_id *members, unsigned int count,
		    const struct es_group_leaver *leavers, unsigned int leaver_count)
{
	struct es_membership *m = ctx;
	struct es_bus_state bus;

	es_bus_state(m->bus, &bus);
	lease_measure(m, &bus);
	es_cluster_watch_view(m, count);
	es_group_view(&m->group, self, members, count, leavers, leaver_count, es_membership_now_ms());
	es_by_hand_view(&m->by_hand);
	es_daemon_service_drains_view(m->daemon);
	es_daemon_contents_view(m->daemon->contents, self, members, count, es_membership_now_ms());
}

/* The workers go by what nodes say of themselves, too. */
static void load_take(struct es_membership *m, struct es_group_id from, const void *payload, size_t len)
{
	struct es_wire_load load;
	int node = es_group_node_of(&m->group, from);

	if (node >= 0 && !es_wire_get_load(payload, len, &load))
		es_daemon_load_bus(m->daemon, (unsigned int)node, &load);
}

static void on_datagram(void *ctx, struct es_group_id from, const void *data, size_t len)
{
	struct es_membership *m = ctx;
	size_t at = 0, payload_len;
	const void *payload;
	uint8_t type;

	while (!m->must_rejoin && es_wire_next(data, len, &at, &type, &payload, &payload_len) > 0) {
		es_group_message(&m->group, from, type, payload, payload_len, es_membership_now_ms());
		if (type == ES_WIRE_LOAD && from.nodeid == m->group.self_id.nodeid &&
		    from.pid == m->group.self_id.pid)
			es_lease_renew(m, payload, payload_len);
		if (type == ES_WIRE_LOAD)
			load_take(m, from, payload, payload_len);
		if (type == ES_WIRE_BY_HAND)
			es_by_hand_message(&m->by_hand, payload, payload_len);
		if (type == ES_WIRE_SERVICE_DRAIN)
			es_daemon_service_drains_wish(m->daemon, payload, payload_len);
		if (type == ES_WIRE_SERVICE_DRAINS)
			es_daemon_service_drains_said(m->daemon, payload, payload_len);
		if (type == ES_WIRE_SIZES)
			es_observed_message(m->daemon->observed, m->daemon->cluster->urls, payload,
					    payload_len);
		es_daemon_contents_message(m->daemon->contents, from, type, payload, payload_len,
					   es_clock_now_ns());
	}
}

static void on_lost(void *ctx, const char *why)
{
	struct es_membership *m = ctx;

	es_membership_silence(m, why);
	es_group_lost(&m->group, es_membership_now_ms());
	es_daemon_contents_lost(m->daemon->contents);
	if (m->leave_done)
		m->leave_done(m->daemon);
	m->leave_done = NULL;
}

static const struct es_corosync_ops bus_ops = {.view = on_view, .datagram = on_datagram, .lost = on_lost};

static void rejoin(struct es_membership *m)
{
	m->must_rejoin = 0;
	es_bus_rejoin(m->bus);
	es_group_lost(&m->group, es_membership_now_ms());
	es_daemon_contents_lost(m->daemon->contents);
}

static int node_is_there(void *ctx, unsigned int node)
{
	const struct es_membership *m = ctx;

	return es_heard_within(m->daemon->heard, node, ES_SILENCE_NS);
}

static uint64_t clients_heard(void *ctx)
{
	const struct es_membership *m = ctx;
	unsigned long long count;

	return es_datapath_heard(m->daemon->datapath, &count) ? 0 : count;
}

/* A node that hears no clients, or is not heard by them, must leave its share to others. */
static int public_link_is_up(struct es_membership *m)
{
	const struct es_conf *conf = m->daemon->conf;
	const struct es_public_link_others others = {
		.has_others = m->group.member_count > 1,
		.is_there = node_is_there,
		.clients = clients_heard,
		.ctx = m,
	};
	const char *wrong = es_public_link_check(&m->link, conf, &others, es_membership_now_ms());
	char why[ES_GROUP_TEXT_SIZE];
	struct es_bus_state bus;

	es_datapath_state(m->daemon->datapath)->was_deaf = m->link.deaf.kind == ES_DEAF_MAC;
	if (!wrong && !m->missing[0]) {
		if (m->was_deaf)
			es_datapath_hears_anew(m->daemon->datapath);
		m->was_deaf = 0;
		return 1;
	}
	m->was_deaf = 1;
	if (m->missing[0])
		memcpy(why, m->missing, sizeof(why));
	else
		snprintf(why, sizeof(why), "the public interface %s %s", conf->datapath.interface, wrong);
	if (m->group.phase != ES_GROUP_OUT) {
		es_membership_silence(m, why);
		rejoin(m);
		return 0;
	}
	/*
	 * While corosync does not answer, that is why (bus_watch()): two reasons in turn would be told at
	 * each tick.
	 */
	es_bus_state(m->bus, &bus);
	if (!bus.why[0] && strcmp(why, m->why) != 0)
		es_membership_silence(m, why);
	return 0;
}

/* Notes why there is no bus, and for how long the bus may be silent. */
static void bus_watch(struct es_membership *m)
{
	struct es_bus_state bus;

	es_bus_state(m->bus, &bus);
	es_story_quorum(m, bus.is_quorate);
	lease_measure(m, &bus);
	if (!bus.why[0] || !strcmp(bus.why, m->why))
		return;
	if (!bus.is_joined) {
		es_membership_silence(m, bus.why);
	} else if (es_clock_now_ns() >= es_datapath_state(m->daemon->datapath)->lease_ns) {
		/* It may come back before anybody has noticed: then nothing has happened. */
		es_event(ES_EVENT_silent, ES_LOG_WARNING, NULL, "silent: %s", bus.why);
		snprintf(m->why, sizeof(m->why), "%s", bus.why);
	}
}

static void server_watch(struct es_membership *m)
{
	unsigned int self = m->daemon->cluster->self;
	unsigned int state = m->group.node[self].state;
	uint64_t now_ms = es_membership_now_ms();
	int can_serve = !es_daemon_serving_is_down(m->daemon);

	/*
	 * The node joins with the state that it is in, since a change that it tells after that is heard
	 * later.
	 */
	if (m->group.phase == ES_GROUP_OUT && (state == ES_NODE_UP || state == ES_NODE_DOWN))
		m->group.node[self].state = can_serve ? ES_NODE_UP : ES_NODE_DOWN;
	if (now_ms < m->server_at_ms || !es_group_is_in(&m->group))
		return;
	m->server_at_ms = now_ms + SERVER_CHECK_MS;
	if (state == ES_NODE_UP && !can_serve)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_STATE, ES_NODE_DOWN);
	else if (state == ES_NODE_DOWN && can_serve)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_STATE, ES_NODE_UP);
}

/*
 * A node that has been away for long has lost what it had in memory: it may have no content when it comes
 * back.
 */
static void contents_watch(struct es_membership *m)
{
	uint64_t now_ms = es_membership_now_ms();

	es_daemon_contents_tick(m->daemon->contents, now_ms);
	for (unsigned int i = 0; i < m->group.node_count; i++) {
		const struct es_group_node *node = &m->group.node[i];
		int is_gone = m->group.phase == ES_GROUP_STABLE && !node->is_member &&
			      node->reason != ES_GROUP_NEVER && now_ms - node->since_ms > CONTENTS_KEEP_MS;

		/*
		 * Each member says it: saying it again does no harm, and a single member that had to say it
		 * might go.
		 */
		if (is_gone && !m->is_dropped[i])
			es_daemon_contents_drop(m->daemon->contents, i, es_clock_now_ns());
		m->is_dropped[i] = is_gone;
	}
}

static void on_tick(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_membership *m = timer->data;

	(void)loop;
	(void)events;
	es_lease_watch(m);
	if (m->must_rejoin)
		rejoin(m);
	es_bus_want(m->bus, public_link_is_up(m) && es_cluster_watch_may_join(m));
	bus_watch(m);
	es_group_tick(&m->group, es_membership_now_ms());
	/* A rollout that is not over may be taken back. */
	if (!es_daemon_rollout_is_busy(m->daemon) && es_group_is_alike_again(&m->group))
		on_rejoin(m, "it was refused, is like the members now, and joins again");
	es_cluster_watch_tick(m);
	if (m->group.phase != ES_GROUP_OUT && es_membership_now_ms() >= m->load_at_ms)
		es_membership_load_send(m);
	es_membership_grants_tick(m);
	server_watch(m);
	es_by_hand_tick(&m->by_hand);
	es_daemon_service_drains_tick(m->daemon);
	es_story_tick(m);
	contents_watch(m);
	es_bus_dispatch(m->bus);
	if (m->leave_done && es_membership_now_ms() >= m->leave_until_ms) {
		es_log(ES_LOG_WARNING,
		       "leaving: the other nodes did not take over in time; this node ends all the same");
		m->leave_done(m->daemon);
		m->leave_done = NULL;
	}
}

static void on_readable(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_membership *m = io->data;

	(void)loop;
	(void)events;
	es_bus_dispatch(m->bus);
}

static void describe(struct es_membership *m)
{
	struct es_daemon *d = m->daemon;
	char settings[ES_WIRE_SETTINGS_SIZE];

	es_settings_text(d->conf, &d->keys, &d->network, d->plugins, settings, sizeof(settings));
	es_group_describe(&m->group, es_by_hand_own_weight(&m->by_hand), settings);
}

static void names_read(const struct es_conf *conf, const char **ret_names)
{
	for (unsigned int i = 0; i < conf->node_count; i++)
		ret_names[i] = conf->nodes[i].removed ? "" : conf->nodes[i].name;
}

int es_membership_new(struct es_daemon *d, struct es_membership **ret_membership)
{
	struct es_membership *m = calloc(1, sizeof(*m));
	const struct sched_param priority = {.sched_priority = 1};
	const char *names[ES_NODES_MAX];
	struct es_state *state = es_datapath_state(d->datapath);
	int rc;

	if (!m)
		return -ENOMEM;
	m->daemon = d;
	rc = es_public_link_open(&m->link, d->conf, d->cluster->self, d->network.public_ifindex,
				 d->network.public_mac, &d->keys.ring);
	if (!rc && es_datapath_adopted(d->datapath) && state->was_deaf)
		es_public_link_begin_deaf(&m->link, clients_heard(m), es_membership_now_ms());
	/* A node that answers late counts as silent. So this thread, and the bus's, which inherits its
	 * priority, run before all else that keeps the machine busy; they have little to do. Threads that are
	 * started later have more to do, and inherit no priority. */
	if (!rc && sched_setscheduler(0, SCHED_RR, &priority))
		es_log(ES_LOG_WARNING, "membership: no real-time priority for its thread; while this machine "
				       "is busy, it may lose its place in the cluster");
	if (!rc)
		rc = es_bus_new(&bus_ops, m, &m->bus);
	if (!rc && sched_getscheduler(0) == SCHED_RR)
		sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority);
	if (rc) {
		es_public_link_close(&m->link);
		free(m);
		return rc;
	}
	names_read(d->conf, names);
	m->lease_ms = LEASE_DEFAULT;
	es_group_init(&m->group, &group_ops, m, names, d->conf->node_count, d->cluster->self,
		      state->served_epoch, m->lease_ms, PATIENCE_MS);
	es_group_start(&m->group, state->doubt_ns / 1000000, es_membership_now_ms());
	es_grants_start(&m->group.grants, es_number_ns(), es_membership_now_ms());
	es_by_hand_init(&m->by_hand, &by_hand_ops, m, &m->group, &d->conf, d->drained_path, d->weight_path);
	es_by_hand_begin(&m->by_hand);
	es_daemon_service_drains_begin(m->daemon);
	describe(m);
	m->is_silent = 1;
	snprintf(m->why, sizeof(m->why), "starting");
	/* A daemon before this one that left in order told the others what it has. */
	m->must_end = !es_datapath_adopted(d->datapath) || state->lease_ns != ES_LEASE_NEVER;
	if (m->must_end) {
		es_lease_end(m);
		es_group_was_away(&m->group, es_membership_now_ms());
	}
	state->attached = 0;
	es_ring_on_changed(m);
	ev_io_init(&m->io, on_readable, es_bus_fd(m->bus), EV_READ);
	m->io.data = m;
	ev_io_start(d->loop, &m->io);
	ev_timer_init(&m->tick, on_tick, 0, TICK_S);
	m->tick.data = m;
	ev_timer_start(d->loop, &m->tick);
	*ret_membership = m;
	return 0;
}

void es_membership_free(struct es_membership **membership)
{
	struct es_membership *m = *membership;

	if (!m)
		return;
	ev_timer_stop(m->daemon->loop, &m->tick);
	ev_io_stop(m->daemon->loop, &m->io);
	es_bus_free(&m->bus);
	es_public_link_close(&m->link);
	free(m);
	*membership = NULL;
}

void es_membership_leave(struct es_membership *m, void (*done)(struct es_daemon *daemon))
{
	struct es_bus_state bus;

	if (m->leave_done)
		return;
	/* Through a corosync that hangs nobody leaves in order:
	 * the others take over when the lease is over. */
	es_bus_state(m->bus, &bus);
	if (!es_group_is_in(&m->group) || bus.hangs_ms > m->lease_ms) {
		done(m->daemon);
		return;
	}
	m->leave_done = done;
	m->leave_until_ms = es_membership_now_ms() + LEAVE_MS;
	es_group_leave(&m->group);
	es_bus_flush(m->bus);
}

void es_membership_expect(struct es_membership *m, const struct es_conf *next)
{
	const struct es_conf *now = m->daemon->conf;

	for (unsigned int i = 0; i < next->node_count; i++)
		if (i >= now->node_count || now->nodes[i].removed)
			es_health_set_state(&m->daemon->health, i, ES_NODE_LEFT);
}

static void nodes_set(struct es_membership *m)
{
	const struct es_conf *conf = m->daemon->conf;
	const char *names[ES_NODES_MAX];

	names_read(conf, names);
	es_group_set_nodes(&m->group, names, conf->node_count);
	es_hearing_set_count(&m->link.hearing, conf->node_count);
	es_ring_on_changed(m);
}

void es_membership_reloaded(struct es_membership *m)
{
	unsigned int self = m->daemon->cluster->self;
	unsigned int before = m->group.node[self].weight;
	unsigned int after;

	nodes_set(m);
	/*
	 * A weight that was set by hand holds, unless the file says the same now. A node that waits takes its
	 * weight when it has waited.
	 */
	es_by_hand_changed(&m->by_hand);
	after = m->cluster_link.is_waiting ? before : es_by_hand_own_weight(&m->by_hand);
	describe(m);
	m->group.node[self].weight = (uint16_t)before;
	if (before != after)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_WEIGHT, (uint16_t)after);
}

int es_membership_rebind(struct es_membership *m)
{
	const struct es_network *network = &m->daemon->network;

	return es_public_link_bind(&m->link, network->public_ifindex, network->public_mac);
}
