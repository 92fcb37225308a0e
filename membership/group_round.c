// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A round: from the HELLOs of a view to a ring. Every member does this with the same HELLOs, so it may use
 * nothing else: not what it knew before, not its own configuration but for reading the names.
 */
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

/*
 * Does the word of @a count more than that of @b? A member on the ring comes first, then the longer history,
 * then the lower id.
 */
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
	for (unsigned int i = 0; *name && i < group->node_count; i++)
		if (!strcmp(group->node[i].name, name))
			return (int)i;
	return -1;
}

/* Another process that says it is the same node, and takes precedence. */
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

/*
 * Lists may differ if all members' versions allow it: an earlier version knows but one list for all and
 * judges by that, and all members must judge alike.
 */
static int lists_may_differ(const struct es_group *group)
{
	for (unsigned int i = 0; i < group->member_count; i++)
		if (es_group_counts(&group->member[i]) &&
		    !es_group_lists_may_differ(group->member[i].hello.settings))
			return 0;
	return 1;
}

/* The member whose word counts most among those that are not yet @taken; NULL if there is none. */
static const struct es_group_member *next_find(const struct es_group *group, const uint8_t *taken)
{
	const struct es_group_member *next = NULL;

	for (unsigned int i = 0; i < group->member_count; i++)
		if (!taken[i] && es_group_counts(&group->member[i]) &&
		    (!next || takes_precedence(&group->member[i], next)))
			next = &group->member[i];
	return next;
}

/*
 * Takes the members in the order in which their word counts, and admits each whose list goes together with
 * those of all that were admitted before. A node is known by its place in the list, so the lists of all nodes
 * on the ring must have all of these nodes, each at the same place.
 * @ret_apart: for each member the one that it does not go together with, NULL if there is none
 */
static void lists_judge(const struct es_group *group, const struct es_group_member *reference,
			const struct es_group_member **ret_apart)
{
	const struct es_group_member *in[ES_GROUP_MEMBERS_MAX], *member;
	uint8_t taken[ES_GROUP_MEMBERS_MAX] = {};
	char why[ES_GROUP_TEXT_SIZE];
	unsigned int count = 0;

	while ((member = next_find(group, taken))) {
		size_t i = (size_t)(member - group->member);
		unsigned int k = 0;

		taken[i] = 1;
		if (name_taken(group, member) ||
		    es_group_settings_differ_but_lists(member->hello.settings, reference->hello.settings, why,
						       sizeof(why)))
			continue;
		while (k < count && es_group_lists_admit(&member->hello, &in[k]->hello))
			k++;
		if (k < count)
			ret_apart[i] = in[k];
		else
			in[count++] = member;
	}
}

static void apart_tell(const struct es_group_member *member, const struct es_group_member *apart, char *why,
		       size_t size)
{
	if (!es_group_lists_fit(member->hello.settings, apart->hello.settings))
		es_group_settings_differ(member->hello.settings, apart->hello.settings, why, size);
	else
		snprintf(why, size, "%s and %s are not both in both of their lists of nodes",
			 member->hello.name, apart->hello.name);
}

/*
 * Writes to @why what keeps the member out, apart from its name; "" if nothing does. @apart: from
 * lists_judge(); NULL if one list is for all
 */
static void settings_judge(const struct es_group *group, const struct es_group_member *member,
			   const struct es_group_member *reference,
			   const struct es_group_member *const *apart, char *why, size_t size)
{
	const char *settings = member->hello.settings;
	size_t i = (size_t)(member - group->member);

	if (!apart)
		es_group_settings_differ(settings, reference->hello.settings, why, size);
	else if (!es_group_settings_differ_but_lists(settings, reference->hello.settings, why, size) &&
		 apart[i])
		apart_tell(member, apart[i], why, size);
}

static void member_judge(struct es_group *group, struct es_group_member *member,
			 const struct es_group_member *reference, const struct es_group_member *const *apart,
			 uint64_t now_ms)
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
	settings_judge(group, member, reference, apart, why, sizeof(why));
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
	/*
	 * This node's own settings may be newer than those in its HELLO, which only now comes back from the
	 * bus.
	 */
	if (node != &group->node[group->self])
		memcpy(node->settings, member->hello.settings, sizeof(node->settings));
	es_group_grants_read(node);
}

/*
 * Is a node on the ring that this node's list has no more, or not yet, since the list has changed after the
 * HELLO?
 */
static int is_out_of_date(const struct es_group *group, const struct es_group_member *reference,
			  const struct es_group_member *const *apart)
{
	char why[ES_GROUP_TEXT_SIZE];
	int self_is_in = 0, one_is_missing = 0;

	for (unsigned int i = 0; apart && i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		why[0] = 0;
		settings_judge(group, member, reference, apart, why, sizeof(why));
		if (!es_group_counts(member) || name_taken(group, member) || why[0])
			continue;
		self_is_in |=
			member->id.nodeid == group->self_id.nodeid && member->id.pid == group->self_id.pid;
		one_is_missing |= name_index(group, member->hello.name) < 0;
	}
	return self_is_in && one_is_missing;
}

/*
 * A node that is not here may be in a ring yet by a quorum device's vote, if nobody here is in one: it has
 * been cut off from the device, which has given its vote to this side, and does not know. Since this node has
 * had quorum, no other can have got it. All members see to that themselves, so nobody is told, and nobody
 * waits any more when all nodes are there.
 */
static void vote_wait(struct es_group *group, const struct es_group_member *reference, uint64_t now_ms)
{
	int one_is_away = 0;

	for (unsigned int i = 0; i < group->node_count; i++)
		one_is_away |= group->node[i].name[0] && !group->node[i].is_member;
	if (!one_is_away || reference->hello.in_ring || !group->vote_late_ms)
		group->vote_until_ms = 0;
	else if (!group->vote_until_ms)
		group->vote_until_ms = now_ms + es_group_lease_max_ms(group) + group->vote_late_ms;
}

int es_group_round(struct es_group *group, uint64_t now_ms)
{
	const struct es_group_member *apart_of[ES_GROUP_MEMBERS_MAX] = {}, *const *apart = NULL;
	const struct es_group_member *reference = reference_find(group);

	if (!reference)
		return 0;
	if (lists_may_differ(group)) {
		lists_judge(group, reference, apart_of);
		apart = apart_of;
	}
	if (is_out_of_date(group, reference, apart)) {
		group->ops->rejoin(group->ctx, "its list of nodes has changed since it said so");
		return 0;
	}
	/* Nobody here knows who was in a ring before: it may have ended a moment ago. */
	if (!reference->hello.in_ring && group->hold_until_ms < now_ms + es_group_lease_max_ms(group))
		group->hold_until_ms = now_ms + es_group_lease_max_ms(group);
	if (!reference->hello.in_ring)
		es_group_doubt(group, ES_GROUP_DOUBT_MS, now_ms);
	group->others_ahead = group->others_served = group->others_began = 0;
	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *member = &group->member[i];

		if (es_group_counts(member) && member->id.nodeid != group->self_id.nodeid)
			group->others_served |= member->hello.served > group->served;
		if (es_group_counts(member) && member->id.nodeid != group->self_id.nodeid)
			group->others_ahead |= member->hello.in_ring || member->hello.served > group->served;
		if (es_group_counts(member) && member->hello.in_ring)
			group->others_began |= group->is_serving && member->hello.epoch > group->epoch;
	}
	for (unsigned int i = 0; i < group->node_count; i++)
		group->node[i].is_accepted = 0;
	for (unsigned int i = 0; i < group->member_count; i++) {
		struct es_group_member *member = &group->member[i];

		if (!es_group_counts(member))
			continue;
		if (member->hello.epoch > group->epoch)
			group->epoch = member->hello.epoch;
		member_judge(group, member, reference, apart, now_ms);
	}
	vote_wait(group, reference, now_ms);
	es_group_grants_round(group);
	return 1;
}
