// SPDX-License-Identifier: GPL-2.0-or-later
/* Membership for people: what status, metrics and the cluster's view tell of it. */
#include "inspector/daemon/membership_internal.h"
#include "inspector/report/report.h"

/* Is a setting of the node unkept? Another node says that with its loads. */
static int is_unkept(const struct es_membership *m, unsigned int node)
{
	const struct es_daemon *d = m->daemon;

	if (node == d->cluster->self)
		return es_by_hand_is_unkept(&m->by_hand);
	return atomic_load_explicit(&d->health.understands[node], memory_order_relaxed) & ES_WIRE_UNKEPT ? 1
													 : 0;
}

void es_membership_report(const struct es_membership *m, struct es_report_membership *ret)
{
	struct es_bus_state state;

	es_bus_state(m->bus, &state);
	ret->group = &m->group;
	for (unsigned int i = 0; i < m->group.node_count; i++) {
		ret->drain[i] = es_by_hand_shown(&m->by_hand, i, ES_WIRE_CHANGE_STATE);
		ret->weight[i] = es_by_hand_shown(&m->by_hand, i, ES_WIRE_CHANGE_WEIGHT);
		ret->is_unkept[i] = m->group.node[i].is_member && is_unkept(m, i);
	}
	ret->hearing = &m->link.hearing;
	ret->is_connected = state.is_connected;
	ret->is_quorate = state.is_quorate;
	ret->is_silent = es_membership_is_silent(m);
	ret->why = m->why;
	ret->lease_ms = m->lease_ms;
	ret->granted_ms = es_group_granted_ms(&m->group, m->bus_ns / 1000000);
	ret->now_ms = es_membership_now_ms();
}
