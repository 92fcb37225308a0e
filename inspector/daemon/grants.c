// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leases that nodes grant each other (membership/grants.h): one datagram to each member and back, several
 * times in a lease. It both asks and grants, so an answer waits for the next one.
 */
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/membership_internal.h"

/* So many times in a lease: two rounds that are lost in a row, and a daemon that is late, cost nothing. */
#define ASKS_IN_A_LEASE 5
#define EVERY_MIN_MS	20
#define EVERY_MAX_MS	200

static void ask(struct es_membership *m, struct es_grant_wire *wire)
{
	struct es_grants_ask ask;

	/* The bus gives the lease first: grants only keep it. */
	if (!m->has_lease || !es_membership_workers_go_on(m) || !es_group_grants_are_for_all(&m->group) ||
	    es_grants_ask(&m->group.grants, m->lease_ms, es_membership_now_ms(), &ask))
		return;
	wire->ring = (__be64)es_cpu_be64(ask.ring);
	wire->number = (__be64)es_cpu_be64(ask.number);
	wire->lease_ms = es_htonl(ask.lease_ms);
}

void es_membership_grants_tick(struct es_membership *m)
{
	const struct es_daemon *d = m->daemon;
	uint64_t now_ms = es_membership_now_ms(), every_ms = m->lease_ms / ASKS_IN_A_LEASE;
	struct es_grant_wire wire = {};

	if (m->group.phase == ES_GROUP_OUT || now_ms < m->grants_at_ms)
		return;
	if (every_ms < EVERY_MIN_MS)
		every_ms = EVERY_MIN_MS;
	m->grants_at_ms = now_ms + (every_ms > EVERY_MAX_MS ? EVERY_MAX_MS : every_ms);
	ask(m, &wire);
	for (unsigned int i = 0; i < m->group.node_count && i < d->cluster->conf->node_count; i++) {
		if (i == d->cluster->self || !es_group_node_grants(&m->group, i))
			continue;
		wire.granted = (__be64)es_cpu_be64(es_grants_tell(&m->group.grants, i));
		wire.to = (__u8)i;
		es_load_exchange_grant(&d->exchange->way, d->cluster, &d->keys, i, &wire);
	}
}

void es_membership_grant_heard(struct es_membership *m, unsigned int node, const struct es_grant_wire *wire)
{
	const struct es_grants_ask ask = {
		.ring = es_cpu_be64((__u64)wire->ring),
		.number = es_cpu_be64((__u64)wire->number),
		.lease_ms = es_ntohl(wire->lease_ms),
	};

	if (wire->to != m->daemon->cluster->self)
		return;
	if (ask.number)
		es_grants_hear(&m->group.grants, node, &ask, es_membership_now_ms());
	es_grants_take(&m->group.grants, node, es_cpu_be64((__u64)wire->granted));
	es_lease_granted(m);
}
