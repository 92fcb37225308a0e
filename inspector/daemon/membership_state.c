// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The questions that the rest of the daemon may ask of membership, and the news that it may tell it. All are
 * answered from memory, so that the code which membership calls may ask, too.
 */
#include <stdio.h>
#include "inspector/daemon/membership_internal.h"

const struct es_group *es_membership_group(const struct es_membership *m)
{
	return &m->group;
}

const unsigned int *es_membership_weights(const struct es_membership *m)
{
	return m->weights;
}

const struct es_share *es_membership_share(const struct es_membership *m)
{
	return &m->share;
}

const struct es_tenure *es_membership_tenure(const struct es_membership *m)
{
	return &m->tenure;
}

int es_membership_hears(const struct es_membership *m, unsigned int node)
{
	return es_hearing_hears(&m->link.hearing, node, es_membership_now_ms());
}

int es_membership_is_silent(const struct es_membership *m)
{
	return m->is_silent || es_clock_now_ns() >= es_datapath_state(m->daemon->datapath)->lease_ns;
}

int es_membership_is_cut_off(const struct es_membership *m)
{
	return m->cluster_link.is_waiting &&
	       es_membership_now_ms() - m->cluster_link.wait_ms >= ES_CLUSTER_LINK_TELL_MS;
}

struct es_daemon_by_hand *es_membership_by_hand(struct es_membership *m)
{
	return &m->by_hand;
}

int es_membership_is_unkept(const struct es_membership *m)
{
	return es_by_hand_is_unkept(&m->by_hand);
}

const char *es_membership_lacks(const struct es_membership *m, unsigned int i, char *text, size_t size)
{
	const struct es_group_node *node = &m->group.node[i];
	const char *why = es_group_reason_text(node->reason);

	if (node->is_member && node->refused[0])
		snprintf(text, size, "it is refused: %s", node->refused);
	else if (es_membership_is_silent(m)) /* and knows nothing of the others */
		snprintf(text, size, "%s is silent: %s", m->group.node[m->group.self].name, m->why);
	else if (m->group.phase == ES_GROUP_STABLE && node->is_accepted)
		return NULL;
	else
		snprintf(text, size, "%s", node->is_member ? "the members do not agree yet" : why);
	return text;
}

void es_membership_send(struct es_membership *m, enum es_wire_type type, const void *payload, size_t len)
{
	es_bus_send(m->bus, type, payload, len);
}

int es_membership_workers_go_on(const struct es_membership *m)
{
	const struct es_state *state = es_datapath_state(m->daemon->datapath);
	unsigned long long now_ns = es_clock_now_ns();

	for (unsigned int i = 0; i < m->daemon->datapath_params.workers; i++)
		if (now_ns - state->worker[i].heartbeat_ns >
		    m->daemon->conf->datapath.fallback_after_ms * 1000000ULL)
			return 0;
	return 1;
}

void es_membership_serving(struct es_membership *m)
{
	m->server_at_ms = 0;
}

int es_membership_drain_until_restart(struct es_membership *m)
{
	if (m->group.node[m->daemon->cluster->self].state == ES_NODE_DRAINING)
		return 0;
	m->until_restart = 1;
	return 1;
}

void es_membership_missing(struct es_membership *m, const char *text)
{
	snprintf(m->missing, sizeof(m->missing), "%s", text);
}
