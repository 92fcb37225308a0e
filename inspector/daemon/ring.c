// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out the group's decisions on this node: puts a ring in force in datapath and workers, in two steps,
 * and tells the others which connections are not proven, or ends them.
 */
#include <errno.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/membership_internal.h"
#include "inspector/base/log.h"
#include "inspector/daemon/serving.h"

/* Puts a version of the ring in force, in the datapath and in the workers. */
static void cluster_install(struct es_membership *m, uint32_t epoch, const struct es_share *may)
{
	struct es_daemon *d = m->daemon;
	struct es_cluster *next = NULL;
	int rc = es_cluster_new(d->conf, d->cluster->self, epoch, m->weights, may, &next);

	if (!rc) {
		es_cluster_share(next, &m->share);
		es_tenure_set(&m->tenure, &m->share, m->stopped_ms);
		rc = es_cluster_set_tenure(next, &m->tenure);
	}
	if (!rc)
		rc = es_daemon_install(d, next);
	if (rc) {
		/* The ring in force may be wrong now. */
		es_cluster_free(&next);
		es_membership_silence(m, "the ring could not be put in force");
		es_log(ES_LOG_ERR,
		       "ring of epoch %u: cannot be put in force: %s; this node is silent and joins the "
		       "cluster again",
		       epoch, strerror(-rc));
		m->must_rejoin = 1;
	}
}

/*
 * Requests of a lost node may come again: called before any of them is taken. @since_ms: if there were no
 * doubts before, there are some about the slots that this node had not had by then; 0: about all.
 */
static void doubt_set(struct es_membership *m, uint64_t since_ms)
{
	struct es_state *state = es_datapath_state(m->daemon->datapath);

	if (!es_first_has_doubts(state->doubt_ns, es_clock_now_ns()))
		m->tenure.doubts_ms = since_ms;
	__atomic_store_n(&state->doubt_ns, m->group.doubt_until_ms * 1000000ULL, __ATOMIC_RELEASE);
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
		es_bus_send(p->m->bus, ES_WIRE_PROOFS, buf, len);
	p->count = 0;
}

/* A connection here whose first request may come again, to a node that does not know of it. */
static void proof_add(void *ctx, const void *data)
{
	const struct es_connection_entry *entry = data;
	struct proofs *p = ctx;
	const struct es_cluster *cluster = p->m->daemon->cluster;
	unsigned int owner = es_cluster_owner(cluster, entry->flow_hash);

	/* A later request is repeated by the node that moved it here. */
	if (!entry->unproven || entry->is_moved || owner == cluster->self || owner >= p->m->group.node_count)
		return;
	/* The node that sent the connection here knows of it, unless that node has come back since. */
	if (owner == entry->source && p->m->group.node[owner].since_ms * 1000000ULL < entry->made_ns)
		return;
	p->proof[p->count++] = (struct es_wire_proof){entry->flow_hash, entry->cookie, entry->first_seq};
	if (p->count == ES_WIRE_PROOFS_MAX)
		proofs_send(p);
}

/* Ends the connections that another node may have by now, too: no connection may be on two nodes. */
static void end_unproven(struct es_membership *m)
{
	unsigned int count = 0;
	int rc;

	/* The time is before all that the others say from now on, perhaps in this very millisecond. */
	es_group_was_away(&m->group, es_membership_now_ms() - 1);
	/*
	 * This node may have executed requests of the connections that it ends, also in slots that it has had
	 * all the time.
	 */
	m->tenure.doubts_ms = 0;
	es_ring_on_changed(m);
	es_lease_end(m);
	rc = es_datapath_settle();
	if (!rc)
		rc = es_datapath_end_unproven(m->daemon->datapath, &count);
	if (rc) {
		es_log(ES_LOG_ERR,
		       "connections that other nodes may have now: cannot be ended: %s; this node joins the "
		       "cluster again",
		       strerror(-rc));
		m->must_rejoin = 1;
		return;
	}
	if (count)
		es_log(ES_LOG_WARNING,
		       "%u connections ended, because another node may have their first request", count);
	m->must_end = 0;
}

void es_ring_on_stop(void *ctx, uint32_t epoch, const unsigned int *weights)
{
	static struct proofs proofs;
	struct es_membership *m = ctx;
	int rc;

	memcpy(m->weights, weights, sizeof(m->weights));
	m->stopped_ms = es_membership_now_ms();
	doubt_set(m, m->stopped_ms);
	es_lease_watch(m);
	if (m->group.others_began)
		es_lease_take_back(m);
	if (m->lapse && !m->group.others_served) {
		m->must_end = 0; /* all were late, as when one of them died: nobody has had anything */
	} else if (m->must_end && m->group.others_ahead) {
		end_unproven(m);
		memset(&m->share, 0, sizeof(m->share)); /* they have it, and have not all stopped yet */
	}
	cluster_install(m, epoch, &m->share);
	/* No packet is decided by the old ring any more, so no connection is made by it. */
	rc = es_datapath_settle();
	proofs.m = m;
	proofs.count = 0;
	if (!rc)
		rc = es_datapath_connections(m->daemon->datapath, proof_add, &proofs);
	if (rc) {
		es_log(ES_LOG_ERR,
		       "connections for the new ring: cannot be listed: %s; this node joins the cluster "
		       "again",
		       strerror(-rc));
		m->must_rejoin = 1;
	}
	proofs_send(&proofs);
	es_membership_load_send(m);
}

void es_ring_on_serve(void *ctx, uint32_t epoch)
{
	struct es_membership *m = ctx;

	doubt_set(m, 0); /* this node has not seen a loss that it hears of only now */
	es_lease_watch(m);
	if (m->lapse)
		m->must_end = 0;
	m->lapse = 0; /* all have answered */
	/* With all nodes here, and none that has served since we did, nobody has anything of ours. */
	if (m->must_end && m->group.member_count < es_conf_nodes_present(m->daemon->conf))
		end_unproven(m);
	else
		m->must_end = 0;
	es_datapath_state(m->daemon->datapath)->served_epoch = epoch;
	cluster_install(m, epoch, NULL);
	es_membership_load_send(m);
	es_story_serve(m, epoch);
}

void es_ring_on_proofs(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	struct es_membership *m = ctx;
	struct es_daemon *d = m->daemon;
	static struct es_proof mine[ES_WIRE_PROOFS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (es_cluster_owner(d->cluster, proofs[i].flow_hash) == d->cluster->self)
			mine[n++] = (struct es_proof){.flow_hash = proofs[i].flow_hash,
						      .cookie = proofs[i].cookie,
						      .first_seq = proofs[i].first_seq,
						      .node = node};
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_learn(d->worker[i], mine, n);
}

/*
 * A request that was given to a node which is gone may be given to another one only if this node saw it go
 * without a word, and its lease is over: it stands still then. A node that left in order, perhaps while we
 * were away ourselves, goes on with what it has.
 */
static enum es_node_state state_of(const struct es_group_node *node)
{
	if (node->is_member && node->is_accepted)
		return (enum es_node_state)node->state;
	if (node->hold_until_ms)
		return ES_NODE_LEFT;
	switch (node->reason) {
	case ES_GROUP_PROCESS:
	case ES_GROUP_NODE:
	case ES_GROUP_SUSPECTED:
		return ES_NODE_ABSENT;
	default:
		return ES_NODE_LEFT;
	}
}

/*
 * A node that has just joined knows nothing of how warm the others' servers are; its own has had no requests
 * for a while.
 */
static void begin_slowly(struct es_membership *m, unsigned long long now_ns)
{
	struct es_daemon *d = m->daemon;
	int is_in = es_group_is_in(&m->group);

	for (unsigned int i = 0; is_in && !m->was_in && i < m->group.node_count; i++)
		es_health_is_back(&d->health, i, ~0ULL, i == d->cluster->self ? now_ns : 0);
	/* Until now it was not known whether others serve. */
	if (is_in && !m->was_in && d->serving->now.failing)
		es_daemon_serving_look_in(d, 0);
	m->was_in = (uint8_t)is_in;
}

void es_ring_on_changed(void *ctx)
{
	struct es_membership *m = ctx;
	unsigned long long now_ns = es_clock_now_ns();
	unsigned int self = m->daemon->cluster->self;

	for (unsigned int i = 0; i < m->group.node_count; i++) {
		const struct es_group_node *node = &m->group.node[i];

		es_health_set_lost(&m->daemon->health, i, node->lost_ms * 1000000ULL);
		es_health_change_state(&m->daemon->health, i,
				       i == self ? (enum es_node_state)node->state : state_of(node), now_ns);
	}
	es_daemon_serving_given(m->daemon);
	begin_slowly(m, now_ns);
}
