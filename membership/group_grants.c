// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ties grants to the group: which ring they are for, how many a node needs, and how long a ring without
 * a node has to wait.
 */
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

_Static_assert(ES_GRANTS_NODES_MAX == ES_GROUP_NODES_MAX, "a bit for each node");

#define GRANTS "grants"

/*
 * For so many leases, grants keep a node acting that does not hear itself on the bus. Corosync needs 2.2
 * tokens to form anew, a busy machine more. A ring that may have nobody of those who granted waits until
 * then.
 */
#define CAP_LEASES 5

static uint64_t cap_ms(const struct es_group *group)
{
	return group->lease_ms * CAP_LEASES;
}

void es_group_grants_line(unsigned int count, char *text, size_t size)
{
	snprintf(text, size, count ? GRANTS "=%u\n" : "", count);
}

/* How many nodes there are in the eyes of a node with @settings; 0: it grants nothing. */
static unsigned int count_of(const char *settings)
{
	unsigned int count = 0;
	const char *value;
	size_t len;

	if (!es_group_setting_find(settings, GRANTS, strlen(GRANTS), &value, &len))
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9' || count > ES_GROUP_NODES_MAX)
			return 0;
		count = count * 10 + (unsigned int)(value[i] - '0');
	}
	return count > ES_GROUP_NODES_MAX ? 0 : count;
}

void es_group_grants_read(struct es_group_node *node)
{
	node->grants = (uint16_t)count_of(node->settings);
}

static unsigned int own_count(const struct es_group *group)
{
	return group->node[group->self].grants;
}

static unsigned int need_of(unsigned int count)
{
	return count / 2 + 1;
}

int es_group_grants_are_for_all(const struct es_group *group)
{
	unsigned int count = own_count(group);

	if (!count || !es_group_is_in(group))
		return 0;
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (!es_group_counts(member) || member->node < 0 || !group->node[member->node].is_accepted)
			continue;
		if (group->node[member->node].grants != count)
			return 0;
	}
	return 1;
}

int es_group_node_grants(const struct es_group *group, unsigned int node)
{
	return group->node[node].is_member && group->node[node].is_accepted && group->node[node].grants;
}

uint64_t es_group_granted_ms(const struct es_group *group, uint64_t bus_ms)
{
	unsigned int count = own_count(group);
	uint64_t until_ms = count ? es_grants_until_ms(&group->grants, need_of(count)) : 0;

	return until_ms < bus_ms + cap_ms(group) ? until_ms : bus_ms + cap_ms(group);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* All members know the same of each other, but not in the same order. */
static uint64_t ring_id(const struct es_group *group, const uint8_t *is_in)
{
	uint64_t id = mix(group->epoch);

	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (es_group_counts(member) && member->node >= 0)
			id += mix(mix((uint64_t)member->id.nodeid << 32 | member->id.pid) +
				  (uint64_t)member->node * 2 + is_in[member->node]);
	}
	return id;
}

/* A process that was on a ring when the view changed knows whom it has granted a lease there. */
void es_group_grants_round(struct es_group *group)
{
	memset(&group->known, 0, sizeof(group->known));
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (es_group_counts(member) && member->node >= 0 && member->hello.in_ring &&
		    group->node[member->node].grants)
			es_grants_set_add(&group->known, (unsigned int)member->node);
	}
}

/* May @node have a lease by grants of others than those who are left, and know what they gave? */
static int is_granted_elsewhere(const struct es_group *group, unsigned int node)
{
	unsigned int count = group->node[node].grants;
	struct es_grants_set known = {};

	for (unsigned int i = 0; i < group->node_count; i++)
		if (es_grants_set_has(&group->known, i) && group->node[i].is_member)
			es_grants_set_add(&known, i);
	return count && (count != own_count(group) ||
			 !es_grants_meets(&group->grants, node, &known, count, need_of(count)));
}

/* For so long @node may act that went without a word from a ring that this node was on, too. */
static uint64_t gone_until(const struct es_group *group, unsigned int i)
{
	const struct es_group_node *node = &group->node[i];
	uint64_t until_ms = node->hold_until_ms, other_ms = group->grants.node[i].given_until_ms;

	if (other_ms > until_ms)
		until_ms = other_ms;
	/* The process before this one may have granted it a lease. */
	other_ms = group->grants.started_ms + es_grants_wait_ms(group->lease_ms);
	if (own_count(group) && node->grants && other_ms > until_ms)
		until_ms = other_ms;
	other_ms = node->heard_ms + es_group_lease_max_ms(group) - group->lease_ms +
		   es_grants_wait_ms(cap_ms(group));
	if (other_ms > until_ms && is_granted_elsewhere(group, i))
		until_ms = other_ms;
	return until_ms;
}

void es_group_grants_begin(struct es_group *group, const uint8_t *is_in)
{
	struct es_grants_set members = {};

	for (unsigned int i = 0; i < group->node_count; i++) {
		struct es_group_node *node = &group->node[i];

		if (is_in[i])
			es_grants_set_add(&members, i);
		/* A member says itself when it has stopped. */
		if (node->is_member)
			continue;
		if (node->hold_until_ms)
			node->hold_until_ms = gone_until(group, i);
		else if (group->grants.node[i].given_until_ms > group->hold_until_ms)
			group->hold_until_ms = group->grants.node[i].given_until_ms;
	}
	es_grants_begin(&group->grants, ring_id(group, is_in), &members);
}

void es_group_grants_in_force(struct es_group *group)
{
	es_grants_in_force(&group->grants);
	memset(&group->known, 0, sizeof(group->known));
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (es_group_counts(member) && member->node >= 0 && group->node[member->node].grants)
			es_grants_set_add(&group->known, (unsigned int)member->node);
	}
}
