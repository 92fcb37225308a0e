// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out what self/cluster_link.h decides. A node that waits is a member of weight 0, which each version
 * understands, and has no lease: it is silent.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/membership_internal.h"

#define ZERO_AGAIN_MS 500

static int is_heard(const struct es_membership *m)
{
	const struct es_daemon *d = m->daemon;

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && es_heard_within(d->heard, i, 2 * ES_SILENCE_NS))
			return 1;
	return 0;
}

static int another_serves(const struct es_group *group)
{
	for (unsigned int i = 0; i < group->node_count; i++)
		if (i != group->self && group->node[i].is_accepted && group->node[i].weight)
			return 1;
	return 0;
}

/* The text for people, with the members that this node should hear. */
static void describe(const struct es_membership *m, char *ret_text, size_t size)
{
	const struct es_daemon *d = m->daemon;
	const struct es_group *group = &m->group;
	char others[120] = "", elsewhere[IF_NAMESIZE];
	size_t len = 0;

	for (unsigned int i = 0; i < group->node_count && len < sizeof(others); i++)
		if (i != group->self && group->node[i].is_member)
			len += (size_t)snprintf(others + len, sizeof(others) - len, "%s%s", len ? ", " : "",
						group->node[i].name);
	if (!d->exchange->way.elsewhere_ifindex ||
	    !if_indextoname(d->exchange->way.elsewhere_ifindex, elsewhere))
		elsewhere[0] = 0;
	snprintf(ret_text, size, "%.30s hears none of %s on %.15s: cluster_interface is wrong, %s%s",
		 group->node[group->self].name, others, d->conf->datapath.cluster_interface,
		 elsewhere[0] ? "what they send comes by " : "or a cable or firewall is", elsewhere);
}

int es_cluster_watch_may_join(struct es_membership *m)
{
	return m->group.phase != ES_GROUP_OUT ||
	       es_cluster_link_may_join(&m->cluster_link, is_heard(m), es_membership_now_ms());
}

void es_cluster_watch_view(struct es_membership *m, unsigned int count)
{
	struct es_group_node *self = &m->group.node[m->group.self];
	int has_waited = m->cluster_link_waited;

	if (m->group.phase != ES_GROUP_OUT)
		return;
	m->cluster_link_waited =
		es_cluster_link_join(&m->cluster_link, count > 1, is_heard(m), es_membership_now_ms());
	if (m->cluster_link_waited)
		self->weight = 0;
	else if (has_waited)
		self->weight = (uint16_t)es_by_hand_own_weight(&m->by_hand);
}

/* While corosync does not answer, people are told that instead (membership.c). */
static void tell(struct es_membership *m)
{
	char why[sizeof(m->why)];
	struct es_bus_state bus;

	es_bus_state(m->bus, &bus);
	describe(m, why, sizeof(why));
	if (bus.why[0] || !strcmp(why, m->why))
		return;
	es_event(ES_EVENT_silent, ES_LOG_WARNING, NULL, "silent: %s", why);
	memcpy(m->why, why, sizeof(m->why));
}

/*
 * An operator may give this node a weight meanwhile: the weight is kept (by_hand.h) until the node has
 * waited.
 */
static void stay_without_share(struct es_membership *m)
{
	struct es_group *group = &m->group;
	uint64_t now_ms = es_membership_now_ms();

	if (!m->cluster_link.is_waiting || !group->node[group->self].weight ||
	    now_ms < m->cluster_link_zero_ms)
		return;
	m->cluster_link_zero_ms = now_ms + ZERO_AGAIN_MS;
	es_group_change(group, group->self, ES_WIRE_CHANGE_WEIGHT, 0);
}

void es_cluster_watch_tick(struct es_membership *m)
{
	struct es_group *group = &m->group;

	if (group->phase == ES_GROUP_OUT)
		return;
	switch (es_cluster_link_look(&m->cluster_link, is_heard(m), group->phase == ES_GROUP_STABLE,
				     another_serves(group), es_membership_now_ms())) {
	case ES_CLUSTER_LINK_TAKE:
		es_group_change(group, group->self, ES_WIRE_CHANGE_WEIGHT,
				(uint16_t)es_by_hand_own_weight(&m->by_hand));
		break;
	case ES_CLUSTER_LINK_TELL:
		tell(m);
		break;
	default:
		break;
	}
	stay_without_share(m);
}
