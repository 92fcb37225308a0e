// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A round: from the HELLOs of a view to a ring. Every member does this with the same HELLOs, so it may use
 * nothing else: not what it knew before, not its own configuration but for reading the names.
 */
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

/* A line's name and value; returns the next line, NULL behind the last one. */
static const char *line_read(const char *line, size_t *ret_name_len, const char **ret_value,
			     size_t *ret_value_len)
{
	const char *end = strchr(line, '\n');
	const char *equals;

	if (!end)
		return NULL;
	equals = memchr(line + 1, '=', (size_t)(end - line - 1));
	if (!equals)
		equals = end - 1;
	*ret_name_len = (size_t)(equals - line);
	*ret_value = equals + 1;
	*ret_value_len = (size_t)(end - equals - 1);
	return end + 1;
}

static int line_find(const char *settings, const char *name, size_t name_len, const char **ret_value,
		     size_t *ret_value_len)
{
	const char *line = settings, *next;
	size_t len;

	while (line && *line) {
		next = line_read(line, &len, ret_value, ret_value_len);
		if (next && len == name_len && !memcmp(line, name, len))
			return 1;
		line = next;
	}
	*ret_value = "missing";
	*ret_value_len = strlen(*ret_value);
	return 0;
}

/* Is the first word of @a among the words of @b? */
static int first_word_in(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const char *space = memchr(a, ' ', a_len);
	size_t len = space ? (size_t)(space - a) : a_len;

	for (size_t at = 0; at <= b_len;) {
		const char *end = memchr(b + at, ' ', b_len - at);
		size_t word = end ? (size_t)(end - b) - at : b_len - at;

		if (word == len && !memcmp(b + at, a, len))
			return 1;
		at += word + 1;
	}
	return 0;
}

static int settings_differ_from(const char *a, const char *b, int swapped, char *ret_text, size_t size)
{
	const char *line = a, *next, *va, *vb;
	size_t name_len, va_len, vb_len;

	for (; line && *line; line = next) {
		next = line_read(line, &name_len, &va, &va_len);
		if (!next || line[0] != '=')
			continue;
		if (line_find(b, line, name_len, &vb, &vb_len) && first_word_in(va, va_len, vb, vb_len) &&
		    first_word_in(vb, vb_len, va, va_len))
			continue;
		snprintf(ret_text, size, "%.*s is %.*s there, %.*s in the cluster", (int)name_len - 1,
			 line + 1, (int)(swapped ? vb_len : va_len), swapped ? vb : va,
			 (int)(swapped ? va_len : vb_len), swapped ? va : vb);
		return 1;
	}
	return 0;
}

int es_group_settings_differ(const char *there, const char *cluster, char *ret_text, size_t size)
{
	/* Both ways: one may have a setting that the other lacks. */
	return settings_differ_from(there, cluster, 0, ret_text, size) ||
	       settings_differ_from(cluster, there, 1, ret_text, size);
}

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
