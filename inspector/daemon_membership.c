// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "inspector/daemon.h"
#include "inspector/daemon_membership.h"
#include "inspector/log.h"
#include "inspector/node_load.h"
#include "inspector/public_link.h"
#include "inspector/report.h"
#include "inspector/settings.h"

#define TICK_S		0.02
#define CONNECT_AGAIN_S 0.25
#define SERVER_CHECK_S	1.0
#define LEAVE_S		3.0
#define PATIENCE_MS	3000
#define LEASE_MIN_MS	150
#define LEASE_MAX_MS	2000
#define LEASE_DEFAULT	1000

/* CLOCK_MONOTONIC times in the datapath's es_state.lease_ns. */
#define LEASE_OVER  1ULL
#define LEASE_NEVER (1ULL << 62)

/**
 * struct es_membership
 * @share: the slots that this node inspects now; @weights: of the ring in force
 * @is_silent: the lease was taken back, or never given
 * @must_end: others may have taken over: end what is unproven before the lease begins again
 * @connections: of our services, counted when this node's state was @counted_in
 */
struct es_membership {
	struct es_daemon *daemon;
	struct es_corosync *bus;
	struct es_group group;
	struct es_share share;
	unsigned int weights[ES_NODES_MAX];
	struct es_node_load load;
	struct es_public_link link;
	unsigned int connections;
	uint8_t counted_in;
	struct ev_io io[2];
	int fds[2];
	struct ev_timer tick;
	ev_tstamp connect_at, count_at, load_at, server_at, leave_until;
	unsigned int lease_ms;
	int is_silent;
	int must_end;
	int must_rejoin;
	char why[ES_GROUP_TEXT_SIZE];
	void (*leave_done)(struct es_daemon *daemon);
};

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000ULL + (unsigned long long)ts.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static void lease_set(struct es_membership *m, unsigned long long until_ns)
{
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->lease_ns, until_ns, __ATOMIC_RELEASE);
}

/*
 * This node takes nothing new any more. What it has goes on until the lease is over, and stands still then,
 * as far as another node may be asked for it.
 */
static void silence(struct es_membership *m, const char *why)
{
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->attached, 0, __ATOMIC_RELEASE);
	memset(&m->share, 0, sizeof(m->share));
	m->must_end = 1;
	if (!m->is_silent || strcmp(m->why, why) != 0)
		es_log(ES_LOG_WARNING, "silent: %s", why);
	m->is_silent = 1;
	snprintf(m->why, sizeof(m->why), "%s", why);
}

static void fds_watch(struct es_membership *m)
{
	int fds[2];

	es_corosync_fds(m->bus, fds);
	for (int i = 0; i < 2; i++) {
		if (fds[i] == m->fds[i])
			continue;
		if (ev_is_active(&m->io[i]))
			ev_io_stop(m->daemon->loop, &m->io[i]);
		m->fds[i] = fds[i];
		if (fds[i] < 0)
			continue;
		ev_io_set(&m->io[i], fds[i], EV_READ);
		ev_io_start(m->daemon->loop, &m->io[i]);
	}
}

static void connection_add(void *ctx, const void *entry)
{
	(void)entry;
	++*(unsigned int *)ctx;
}

/* Listing them takes time, with many of them; it gets a twentieth of ours. */
static void connections_count(struct es_membership *m)
{
	unsigned int count = 0;
	ev_tstamp start = ev_time();

	if (start < m->count_at)
		return;
	m->counted_in = m->group.node[m->daemon->cluster->self].state;
	if (!es_datapath_connections(m->daemon->datapath, connection_add, &count))
		m->connections = count;
	m->count_at = ev_time() + (ev_time() - start) * 20;
}

static void load_send(struct es_membership *m)
{
	struct es_wire_load load = {.sent_ns = now_ns()};
	unsigned int queue = 0;
	uint8_t buf[32];

	/* A node whose workers hang must not look alive. */
	for (unsigned int i = 0; i < m->daemon->datapath_params.workers; i++) {
		const struct es_state *state = es_datapath_state(m->daemon->datapath);

		if (load.sent_ns - state->worker[i].heartbeat_ns >
		    m->daemon->conf->datapath.fallback_after_ms * 1000000ULL)
			return;
		queue += es_worker_gathering(m->daemon->worker[i]);
	}
	connections_count(m);
	es_node_load_read(&m->load);
	load.connections = m->connections;
	load.state = m->counted_in;
	load.cpu = (uint16_t)m->load.cpu;
	load.queue = (uint16_t)queue;
	es_corosync_send(m->bus, ES_WIRE_LOAD, buf, es_wire_put_load(buf, sizeof(buf), &load));
	m->load_at = ev_now(m->daemon->loop) + m->lease_ms / 3000.0;
}

/* Our own message came back: since it was sent, the others had us among them. */
static void lease_renew(struct es_membership *m, const void *payload, size_t len)
{
	struct es_state *state = es_datapath_state(m->daemon->datapath);
	struct es_wire_load load;

	if (!es_group_is_in(&m->group) || m->must_rejoin || m->must_end ||
	    es_wire_get_load(payload, len, &load))
		return;
	lease_set(m, load.sent_ns + m->lease_ms * 1000000ULL);
	__atomic_store_n(&state->attached, 1, __ATOMIC_RELEASE);
	if (m->is_silent)
		es_log(ES_LOG_INFO, "member of the cluster, epoch %u", m->group.epoch);
	m->is_silent = 0;
	m->why[0] = 0;
}

/* A version of the ring, in force in the datapath and in the workers. */
static void cluster_install(struct es_membership *m, uint32_t epoch, const struct es_share *may)
{
	struct es_daemon *d = m->daemon;
	struct es_cluster *next = NULL;
	int rc = es_cluster_new(d->conf, d->cluster->self, epoch, m->weights, may, &next);

	if (!rc)
		rc = es_daemon_install(d, next);
	if (rc) {
		/* What is in force may be wrong now. */
		es_cluster_free(&next);
		silence(m, "the ring could not be put in force");
		es_log(ES_LOG_ERR, "ring of epoch %u: %s", epoch, strerror(-rc));
		m->must_rejoin = 1;
	}
}

struct proofs {
	struct es_membership *m;
	size_t count;
	struct es_wire_proof proof[ES_WIRE_PROOFS_MAX];
};

static void proofs_send(struct proofs *p)
{
	static uint8_t buf[ES_WIRE_PROOFS_MAX * sizeof(struct es_wire_proof) + 8];
	size_t len = es_wire_put_proofs(buf, sizeof(buf), p->m->group.epoch, p->proof, p->count);

	if (p->count)
		es_corosync_send(p->m->bus, ES_WIRE_PROOFS, buf, len);
	p->count = 0;
}

/* A connection here whose first request may come again, to a node that does not know of it. */
static void proof_add(void *ctx, const void *data)
{
	const struct es_connection_entry *entry = data;
	struct proofs *p = ctx;
	const struct es_cluster *cluster = p->m->daemon->cluster;
	unsigned int owner = es_ring_table_lookup(cluster->table, entry->flow_hash) & ES_RING_NODE;

	if (!entry->unproven || owner == cluster->self || owner >= p->m->group.node_count)
		return;
	/* The node that sent it here knows, unless it has come back since. */
	if (owner == entry->source && p->m->group.node[owner].since_ms * 1000000ULL < entry->made_ns)
		return;
	p->proof[p->count++] = (struct es_wire_proof){entry->flow_hash, entry->cookie, entry->first_seq};
	if (p->count == ES_WIRE_PROOFS_MAX)
		proofs_send(p);
}

/* Nobody may have a connection that we have too. */
static void end_unproven(struct es_membership *m)
{
	unsigned int count = 0;
	int rc;

	lease_set(m, LEASE_OVER);
	rc = es_datapath_settle();
	if (!rc)
		rc = es_datapath_end_unproven(m->daemon->datapath, &count);
	if (rc) {
		es_log(ES_LOG_ERR, "ending connections that others may have now: %s", strerror(-rc));
		m->must_rejoin = 1;
		return;
	}
	if (count)
		es_log(ES_LOG_WARNING, "ended %u connections whose first request another node may have",
		       count);
	m->must_end = 0;
}

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	struct es_membership *m = ctx;

	es_corosync_send(m->bus, type, payload, len);
}

static void on_stop(void *ctx, uint32_t epoch, const unsigned int *weights)
{
	static struct proofs proofs;
	struct es_membership *m = ctx;
	int rc;

	memcpy(m->weights, weights, sizeof(m->weights));
	if (m->must_end && m->group.others_ahead)
		end_unproven(m);
	cluster_install(m, epoch, &m->share);
	es_cluster_share(m->daemon->cluster, &m->share);
	/* No packet is decided by the old ring any more, so no connection is made by it. */
	rc = es_datapath_settle();
	proofs.m = m;
	proofs.count = 0;
	if (!rc)
		rc = es_datapath_connections(m->daemon->datapath, proof_add, &proofs);
	if (rc) {
		es_log(ES_LOG_ERR, "listing connections for the new ring: %s", strerror(-rc));
		m->must_rejoin = 1;
	}
	proofs_send(&proofs);
	load_send(m);
}

static void on_serve(void *ctx, uint32_t epoch)
{
	struct es_membership *m = ctx;

	/* With all nodes here, and none that has served since we did, nobody has anything of ours. */
	if (m->must_end && m->group.member_count < m->group.node_count)
		end_unproven(m);
	m->must_end = 0;
	es_datapath_state(m->daemon->datapath)->served_epoch = epoch;
	cluster_install(m, epoch, NULL);
	es_cluster_share(m->daemon->cluster, &m->share);
	load_send(m);
	es_log(ES_LOG_INFO, "ring of epoch %u in force", epoch);
}

static void on_proofs(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	struct es_membership *m = ctx;
	struct es_daemon *d = m->daemon;
	static struct es_proof mine[ES_WIRE_PROOFS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if ((es_ring_table_lookup(d->cluster->table, proofs[i].flow_hash) & ES_RING_NODE) ==
		    d->cluster->self)
			mine[n++] = (struct es_proof){.flow_hash = proofs[i].flow_hash,
						      .cookie = proofs[i].cookie,
						      .first_seq = proofs[i].first_seq,
						      .node = node};
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_learn(d->worker[i], mine, n);
}

static void on_changed(void *ctx)
{
	struct es_membership *m = ctx;

	for (unsigned int i = 0; i < m->group.node_count; i++) {
		const struct es_group_node *node = &m->group.node[i];
		enum es_node_state state = ES_NODE_ABSENT;

		if (i == m->daemon->cluster->self || (node->is_member && node->is_accepted))
			state = (enum es_node_state)node->state;
		else if (node->hold_until_ms || node->reason == ES_GROUP_LEFT)
			state = ES_NODE_LEFT;
		es_health_set_state(&m->daemon->health, i, state);
	}
}

static void on_rejoin(void *ctx, const char *reason)
{
	struct es_membership *m = ctx;

	silence(m, reason);
	m->must_rejoin = 1;
}

static void on_left(void *ctx)
{
	struct es_membership *m = ctx;

	/* What is here goes on, since all others know of it. */
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->attached, 0, __ATOMIC_RELEASE);
	lease_set(m, LEASE_NEVER);
	es_log(ES_LOG_INFO, "left the cluster in order");
	if (m->leave_done)
		m->leave_done(m->daemon);
	m->leave_done = NULL;
}

static void on_log(void *ctx, const char *text)
{
	(void)ctx;
	es_log(ES_LOG_WARNING, "%s", text);
}

static const struct es_group_ops group_ops = {
	.send = on_send,
	.stop = on_stop,
	.serve = on_serve,
	.proofs = on_proofs,
	.changed = on_changed,
	.rejoin = on_rejoin,
	.left = on_left,
	.log = on_log,
};

static void on_view(void *ctx, struct es_group_id self, const struct es_group_id *members, unsigned int count,
		    const struct es_group_leaver *leavers, unsigned int leaver_count)
{
	struct es_membership *m = ctx;

	es_group_view(&m->group, self, members, count, leavers, leaver_count, now_ms());
}

static void on_datagram(void *ctx, struct es_group_id from, const void *data, size_t len)
{
	struct es_membership *m = ctx;
	size_t at = 0, payload_len;
	const void *payload;
	uint8_t type;

	while (!m->must_rejoin && es_wire_next(data, len, &at, &type, &payload, &payload_len) > 0) {
		es_group_message(&m->group, from, type, payload, payload_len, now_ms());
		if (type == ES_WIRE_LOAD && from.nodeid == m->group.self_id.nodeid &&
		    from.pid == m->group.self_id.pid)
			lease_renew(m, payload, payload_len);
	}
}

static void on_lost(void *ctx, const char *why)
{
	struct es_membership *m = ctx;

	silence(m, why);
	es_group_lost(&m->group, now_ms());
	if (m->leave_done)
		m->leave_done(m->daemon);
	m->leave_done = NULL;
}

static const struct es_corosync_ops bus_ops = {.view = on_view, .datagram = on_datagram, .lost = on_lost};

static void rejoin(struct es_membership *m)
{
	m->must_rejoin = 0;
	es_corosync_rejoin(m->bus);
	es_group_lost(&m->group, now_ms());
}

/* A node that hears no clients must leave its share to those that do. */
static int public_link_is_up(struct es_membership *m)
{
	const char *interface = m->daemon->conf->datapath.interface;
	const char *wrong = es_public_link_check(&m->link, interface, m->group.member_count > 1, now_ms());
	char why[ES_GROUP_TEXT_SIZE];

	if (!wrong)
		return 1;
	snprintf(why, sizeof(why), "the public interface %s %s", interface, wrong);
	if (m->group.phase != ES_GROUP_OUT) {
		silence(m, why);
		rejoin(m);
	} else if (strcmp(why, m->why) != 0) {
		silence(m, why);
	}
	return 0;
}

static void connect_now(struct es_membership *m)
{
	struct es_corosync_state state;
	char why[ES_GROUP_TEXT_SIZE];
	unsigned int token;

	es_corosync_state(m->bus, &state);
	if (state.is_joined || ev_now(m->daemon->loop) < m->connect_at)
		return;
	m->connect_at = ev_now(m->daemon->loop) + CONNECT_AGAIN_S;
	if (es_corosync_connect(m->bus, why, sizeof(why))) {
		if (strcmp(why, m->why) != 0)
			silence(m, why);
		return;
	}
	/* A node that the others have given up has heard nothing for the token's timeout at least. */
	token = es_corosync_token_ms(m->bus);
	m->lease_ms = !token ? LEASE_DEFAULT : token < LEASE_MIN_MS ? LEASE_MIN_MS : token;
	if (m->lease_ms > LEASE_MAX_MS)
		m->lease_ms = LEASE_MAX_MS;
	m->group.lease_ms = m->lease_ms;
}

static void server_watch(struct es_membership *m)
{
	unsigned int self = m->daemon->cluster->self;
	unsigned int state = m->group.node[self].state;
	int listens;

	if (ev_now(m->daemon->loop) < m->server_at || !es_group_is_in(&m->group))
		return;
	m->server_at = ev_now(m->daemon->loop) + SERVER_CHECK_S;
	listens = es_node_listens(m->daemon->conf);
	if (state == ES_NODE_UP && !listens)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_STATE, ES_NODE_DOWN);
	else if (state == ES_NODE_DOWN && listens)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_STATE, ES_NODE_UP);
}

static void on_tick(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_membership *m = timer->data;

	(void)events;
	if (m->must_rejoin)
		rejoin(m);
	if (public_link_is_up(m))
		connect_now(m);
	es_group_tick(&m->group, now_ms());
	if (m->group.phase != ES_GROUP_OUT && ev_now(loop) >= m->load_at)
		load_send(m);
	server_watch(m);
	es_corosync_dispatch(m->bus);
	fds_watch(m);
	if (m->leave_done && ev_now(loop) >= m->leave_until) {
		es_log(ES_LOG_WARNING, "the others did not take over in time");
		m->leave_done(m->daemon);
		m->leave_done = NULL;
	}
}

static void on_readable(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_membership *m = io->data;

	(void)loop;
	(void)events;
	es_corosync_dispatch(m->bus);
	es_corosync_flush(m->bus);
	fds_watch(m);
}

static void describe(struct es_membership *m)
{
	struct es_daemon *d = m->daemon;
	char settings[ES_WIRE_SETTINGS_SIZE];

	es_settings_text(d->conf, &d->keys, &d->network, settings, sizeof(settings));
	es_group_describe(&m->group, d->conf->nodes[d->cluster->self].weight, settings);
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
	rc = es_public_link_open(&m->link, d->conf, d->network.public_ifindex, d->network.public_mac);
	if (!rc)
		rc = es_corosync_new(&bus_ops, m, &m->bus);
	if (rc) {
		es_public_link_close(&m->link);
		free(m);
		return rc;
	}
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		names[i] = d->conf->nodes[i].name;
	m->lease_ms = LEASE_DEFAULT;
	es_group_init(&m->group, &group_ops, m, names, d->conf->node_count, d->cluster->self,
		      state->served_epoch, m->lease_ms, PATIENCE_MS);
	describe(m);
	m->is_silent = 1;
	snprintf(m->why, sizeof(m->why), "starting");
	/* A daemon before this one that left in order told the others what it has. */
	m->must_end = !es_datapath_adopted(d->datapath) || state->lease_ns != LEASE_NEVER;
	if (m->must_end)
		lease_set(m, LEASE_OVER);
	state->attached = 0;
	on_changed(m);
	for (int i = 0; i < 2; i++) {
		m->fds[i] = -1;
		ev_init(&m->io[i], on_readable);
		m->io[i].data = m;
	}
	/* Late is silent: this thread goes before whatever else the machine is busy with. It has little to
	 * do. */
	if (pthread_setschedparam(pthread_self(), SCHED_RR, &priority))
		es_log(ES_LOG_WARNING, "no real-time priority; a busy machine may lose its membership");
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
	for (int i = 0; i < 2; i++)
		ev_io_stop(m->daemon->loop, &m->io[i]);
	es_corosync_free(&m->bus);
	es_public_link_close(&m->link);
	free(m);
	*membership = NULL;
}

void es_membership_leave(struct es_membership *m, void (*done)(struct es_daemon *daemon))
{
	if (m->leave_done)
		return;
	if (!es_group_is_in(&m->group)) {
		done(m->daemon);
		return;
	}
	m->leave_done = done;
	m->leave_until = ev_now(m->daemon->loop) + LEAVE_S;
	es_group_leave(&m->group);
	es_corosync_flush(m->bus);
}

void es_membership_reloaded(struct es_membership *m)
{
	unsigned int self = m->daemon->cluster->self;
	unsigned int before = m->group.node[self].weight;
	unsigned int after = m->daemon->conf->nodes[self].weight;

	describe(m);
	m->group.node[self].weight = (uint16_t)before;
	if (before != after)
		es_group_change(&m->group, self, ES_WIRE_CHANGE_WEIGHT, (uint16_t)after);
}

const unsigned int *es_membership_weights(const struct es_membership *m)
{
	return m->weights;
}

const struct es_share *es_membership_share(const struct es_membership *m)
{
	return &m->share;
}

int es_membership_set_state(struct es_membership *m, unsigned int node, enum es_node_state state)
{
	if (!es_group_is_in(&m->group) || node >= m->group.node_count || !m->group.node[node].is_member)
		return -ENOTCONN;
	es_group_change(&m->group, node, ES_WIRE_CHANGE_STATE, (uint16_t)state);
	return 0;
}

int es_membership_set_weight(struct es_membership *m, unsigned int node, unsigned int weight)
{
	if (!es_group_is_in(&m->group) || node >= m->group.node_count || !m->group.node[node].is_member)
		return -ENOTCONN;
	es_group_change(&m->group, node, ES_WIRE_CHANGE_WEIGHT, (uint16_t)weight);
	return 0;
}

const struct es_group *es_membership_group(const struct es_membership *m)
{
	return &m->group;
}

void es_membership_report(const struct es_membership *m, struct es_report_membership *ret)
{
	struct es_corosync_state state;

	es_corosync_state(m->bus, &state);
	ret->group = &m->group;
	ret->is_connected = state.is_connected;
	ret->is_quorate = state.is_quorate;
	ret->is_silent = m->is_silent || now_ns() >= es_datapath_state(m->daemon->datapath)->lease_ns;
	ret->why = m->why;
	ret->lease_ms = m->lease_ms;
	ret->now_ms = now_ms();
}
