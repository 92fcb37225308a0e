// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Until when the datapath may serve: as long as the others leave this node its share of the ring.
 */
#include "inspector/daemon/membership_internal.h"
#include "inspector/base/event.h"

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

/* Its own messages that must come back before a node that was late is a member again. */
#define LAPSE_MESSAGES 2

/* A lease leaves room for less (es_grants_wait_ms()). */
#define SUSPENDED_NS 1000000

/*
 * Has this machine been suspended since the last look? Deadlines follow CLOCK_MONOTONIC, and so do the leases
 * in the datapath; it stands still meanwhile, and the other nodes' clocks do not. CLOCK_BOOTTIME goes on: it
 * is ahead by all the time in which the machine was suspended. It is read first, so that whatever this thread
 * waits for in between makes the difference smaller, and a busy machine is not taken for one that slept.
 */
static int was_suspended(struct es_membership *m)
{
	long long boot_ns = (long long)es_clock_ns(CLOCK_BOOTTIME);
	long long suspended_ns = boot_ns - (long long)es_clock_now_ns();
	int is_first = !m->suspended_ns;

	if (!is_first && suspended_ns <= m->suspended_ns + SUSPENDED_NS)
		return 0;
	m->suspended_ns = suspended_ns > 0 ? suspended_ns : 1;
	return !is_first;
}

/* The leases that the others have given this node may be over by their clocks. */
static void suspended_end(struct es_membership *m, unsigned long long now_ns)
{
	es_grants_slept(&m->group.grants);
	if (m->bus_until_ns)
		m->bus_until_ns = now_ns;
	if (!m->has_lease)
		return;
	es_log(ES_LOG_WARNING, "this machine was suspended: its lease is over, others may have taken over");
	es_lease_end(m);
}

void es_lease_watch(struct es_membership *m)
{
	unsigned long long now_ns = es_clock_now_ns(), until_ns;

	if (was_suspended(m))
		suspended_end(m, now_ns);
	until_ns = es_datapath_state(m->daemon->datapath)->lease_ns;
	if (m->bus_until_ns && now_ns >= m->bus_until_ns) {
		m->lapse = LAPSE_MESSAGES;
		m->lapse_ns = m->bus_until_ns;
		m->lapse_epoch = m->group.epoch;
		m->bus_until_ns = 0;
	}
	if (!m->has_lease || now_ns < until_ns)
		return;
	m->has_lease = 0;
	m->must_end = 1;
}

void es_lease_take_back(struct es_membership *m)
{
	m->has_lease = 0;
	m->must_end = 1;
	m->bus_until_ns = 0;
	m->lapse = 0;
}

/*
 * The bus has not renewed the lease in time, whether or not grants did, and here is a message that this node
 * sent at @sent_ns. Is it a member? A corosync that stood still finds a token of the ring that it was in, and
 * hands out with that what it had to send, though the others may have another ring by now. But such a token
 * comes once: it does not go round any more. So of what was sent since the lease was over, the first message
 * that comes back says nothing; one that was sent after that came with another token. Without a new ring in
 * between, nobody has had this node's share; while the ring changes, es_ring_on_stop() learns from the others
 * whether somebody has, and that this node was only late.
 */
static int lapse_is_over(struct es_membership *m, unsigned long long sent_ns)
{
	if (sent_ns <= m->lapse_ns)
		return 0;
	m->lapse_ns = es_clock_now_ns();
	if (m->lapse > 1) {
		m->lapse--;
		return 0;
	}
	if (m->group.phase == ES_GROUP_STABLE && m->group.epoch == m->lapse_epoch)
		m->must_end = 0;
	if (m->must_end)
		return 0;
	m->lapse = 0;
	return 1;
}

void es_lease_renew(struct es_membership *m, const void *payload, size_t len)
{
	struct es_state *state = es_datapath_state(m->daemon->datapath);
	struct es_wire_load load;

	if (!es_group_is_in(&m->group) || m->has_left || m->must_rejoin || m->cluster_link.is_waiting ||
	    es_wire_get_load(payload, len, &load))
		return;
	es_lease_watch(m);
	if ((m->lapse && !lapse_is_over(m, load.sent_ns)) || m->must_end)
		return;
	m->bus_ns = load.sent_ns;
	m->bus_until_ns = load.sent_ns + m->lease_ms * 1000000ULL;
	if (!m->has_lease || m->bus_until_ns > state->lease_ns)
		lease_set(m, m->bus_until_ns);
	m->has_lease = 1;
	__atomic_store_n(&state->attached, 1, __ATOMIC_RELEASE);
	if (m->is_silent || m->why[0])
		es_event(ES_EVENT_serving, ES_LOG_INFO, NULL,
			 "%s is serving: member of the cluster, epoch %u", m->group.node[m->group.self].name,
			 m->group.epoch);
	m->is_silent = 0;
	m->why[0] = 0;
}

void es_lease_granted(struct es_membership *m)
{
	unsigned long long until_ns;

	es_lease_watch(m);
	if (!m->has_lease || !es_group_is_in(&m->group) || m->must_end || m->must_rejoin ||
	    m->cluster_link.is_waiting)
		return;
	until_ns = es_group_granted_ms(&m->group, m->bus_ns / 1000000) * 1000000ULL;
	if (until_ns > es_datapath_state(m->daemon->datapath)->lease_ns)
		lease_set(m, until_ns);
}

void es_lease_keep(struct es_membership *m)
{
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->attached, 0, __ATOMIC_RELEASE);
	lease_set(m, ES_LEASE_NEVER);
	m->has_lease = 0;
	m->bus_until_ns = 0;
	m->has_left = 1;
}
