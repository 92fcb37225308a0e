// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A round: from the HELLOs of a view to a ring. Every member does this with the same HELLOs, so it may use
 * nothing else: not what it knew before, not its own configuration but for reading the names.
 */
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

/* Of two members: whose word counts more? One that serves, then the longer history, then the lower id. */
static int takes_precedence(const struct es_group_member *a, const struct es_group_member *b)
{
	if (!a->hello.in_ring != !b->hello.in_ring)
		return a->hello.in_ring != 0;
	if (a->hello.epoch != b->hello.epoch)
		return a->hello.epoch > b->hello.epoch;
	if (a->id.nodeid != b->id.nodeid)
		return a->id.nodeid < b->id.nodeid;
	return a->id.pid < b->id.pid;
}

static const struct es_group_member *reference_find(const struct es_group *group)
{
	const struct es_group_member *reference = NULL;

	for (unsigned int i = 0; i < group->member_count; i++)
		if (es_group_counts(&group->member[i]) &&
		    (!reference || takes_precedence(&group->member[i], reference)))
			reference = &group->member[i];
	return reference;
}

static int name_index(const struct es_group *group, const char *name)
{
	for (unsigned int i = 0; i < group->node_count; i++)
		if (!strcmp(group->node[i].name, name))
			return (int)i;
	return -1;
}

/* Another process that says it is the same node, and came first. */
static const struct es_group_member *name_taken(const struct es_group *group,
						const struct es_group_member *member)
{
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *other = &group->member[i];

		if (other != member && es_group_counts(other) &&
		    !strcmp(other->hello.name, member->hello.name) && takes_precedence(other, member))
			return other;
	}
	return NULL;
}

static void refuse(struct es_group *group, const struct es_group_member *member, const char *why)
{
	char text[ES_GROUP_TEXT_SIZE + ES_WIRE_NAME_SIZE + 32];

	snprintf(text, sizeof(text), "%s is refused: %s", member->hello.name, why);
	group->ops->log(group->ctx, text);
}

static void member_judge(struct es_group *group, struct es_group_member *member,
			 const struct es_group_member *reference, uint64_t now_ms)
{
	const struct es_group_member *taken = name_taken(group, member);
	char why[ES_GROUP_TEXT_SIZE] = "";
	struct es_group_node *node;

	member->node = taken ? -1 : name_index(group, member->hello.name);
	if (taken) {
		snprintf(why, sizeof(why), "process %u of corosync's node %u has that name", taken->id.pid,
			 taken->id.nodeid);
		refuse(group, member, why);
		return;
	}
	es_group_settings_differ(member->hello.settings, reference->hello.settings, why, sizeof(why));
	if (member->node < 0) {
		refuse(group, member, why[0] ? why : "no node of that name is configured here");
		return;
	}
	node = &group->node[member->node];
	if (!node->is_member)
		node->since_ms = now_ms;
	node->is_member = 1;
	node->is_accepted = !why[0];
	if (why[0] && strcmp(why, node->refused) != 0)
		refuse(group, member, why);
	memcpy(node->refused, why, sizeof(node->refused));
	if (member->hello.state == ES_NODE_LEFT)
		member->is_leaving = 1;
	else
		node->state = member->hello.state;
	node->weight = member->hello.weight;
	node->hold_until_ms = 0;
	/* What this node says of itself may be newer than its word that is back now. */
	if (node != &group->node[group->self])
		memcpy(node->settings, member->hello.settings, sizeof(node->settings));
}

void es_group_round(struct es_group *group, uint64_t now_ms)
{
	const struct es_group_member *reference = reference_find(group);

	if (!reference)
		return;
	/* Nobody here knows who was in a ring before: it may have ended a moment ago. */
	if (!reference->hello.in_ring && group->hold_until_ms < now_ms + es_group_lease_max_ms(group))
		group->hold_until_ms = now_ms + es_group_lease_max_ms(group);
	if (!reference->hello.in_ring)
		es_group_doubt(group, ES_GROUP_DOUBT_MS, now_ms);
	group->others_ahead = group->others_served = 0;
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (es_group_counts(member) && member->id.nodeid != group->self_id.nodeid)
			group->others_served |= member->hello.served > group->served;
		if (es_group_counts(member) && member->id.nodeid != group->self_id.nodeid)
			group->others_ahead |= member->hello.in_ring || member->hello.served > group->served;
	}
	for (unsigned int i = 0; i < group->node_count; i++)
		group->node[i].is_accepted = 0;
	for (unsigned int i = 0; i < group->member_count; i++) {
		struct es_group_member *member = &group->member[i];

		if (!es_group_counts(member))
			continue;
		if (member->hello.epoch > group->epoch)
			group->epoch = member->hello.epoch;
		member_judge(group, member, reference, now_ms);
	}
	es_group_begin(group, now_ms);
}
