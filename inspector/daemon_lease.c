// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Until when the datapath may serve: as long as the others leave this node its share of the ring.
 */
#include "inspector/daemon_membership_internal.h"
#include "inspector/log.h"

/* More than a tick of the coarse clock by which packets are judged. */
#define LEASE_TICK_NS 20000000ULL

static void lease_set(struct es_membership *m, unsigned long long until_ns)
{
	struct es_state *state = es_datapath_state(m->daemon->datapath);

	if (m->has_left)
		return;
	__atomic_store_n(&state->firm_ns, until_ns - m->lease_ms * 500000ULL, __ATOMIC_RELEASE);
	__atomic_store_n(&state->lease_ns, until_ns, __ATOMIC_RELEASE);
}

void es_lease_end(struct es_membership *m)
{
	unsigned long long over_ns = es_clock_now_ns() - LEASE_TICK_NS;
	unsigned long long until_ns = es_datapath_state(m->daemon->datapath)->lease_ns;

	if (!until_ns || until_ns > over_ns)
		lease_set(m, over_ns);
}

void es_lease_renew(struct es_membership *m, const void *payload, size_t len)
{
	struct es_state *state = es_datapath_state(m->daemon->datapath);
	struct es_wire_load load;

	if (!es_group_is_in(&m->group) || m->has_left || m->must_rejoin || m->must_end ||
	    es_wire_get_load(payload, len, &load))
		return;
	lease_set(m, load.sent_ns + m->lease_ms * 1000000ULL);
	__atomic_store_n(&state->attached, 1, __ATOMIC_RELEASE);
	if (m->is_silent)
		es_log(ES_LOG_INFO, "member of the cluster, epoch %u", m->group.epoch);
	m->is_silent = 0;
	m->why[0] = 0;
}

void es_lease_keep(struct es_membership *m)
{
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->attached, 0, __ATOMIC_RELEASE);
	lease_set(m, ES_LEASE_NEVER);
	m->has_left = 1;
}
