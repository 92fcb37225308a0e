// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The members, their descriptions, the views and the phases of an epoch. Which members get on the ring is
 * judged in group_round.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

/* How long a suspicion is not repeated: it has its own way through the bus. */
#define SUSPECT_AGAIN_MS 1000

const char *es_group_reason_text(enum es_group_reason reason)
{
	static const char *const text[] = {
		[ES_GROUP_NEVER] = "not seen yet",
		[ES_GROUP_LEFT] = "left",
		[ES_GROUP_PROCESS] = "its daemon died",
		[ES_GROUP_NODE] = "its machine or network died",
		[ES_GROUP_SUSPECTED] = "it does not answer",
		[ES_GROUP_SELF_LOST] = "this node lost the others",
	};

	return text[reason];
}

const char *es_group_phase_text(enum es_group_phase phase)
{
	static const char *const text[] = {
		[ES_GROUP_OUT] = "out",		  [ES_GROUP_VIEW] = "view",
		[ES_GROUP_STOPPING] = "stopping", [ES_GROUP_HOLDING] = "holding",
		[ES_GROUP_STABLE] = "stable",
	};

	return text[phase];
}

static int same_id(struct es_group_id a, struct es_group_id b)
{
	return a.nodeid == b.nodeid && a.pid == b.pid;
}

static struct es_group_member *member_find(struct es_group *group, struct es_group_id id)
{
	for (unsigned int i = 0; i < group->member_count; i++)
		if (same_id(group->member[i].id, id))
			return &group->member[i];
	return NULL;
}

void es_group_set_phase(struct es_group *group, enum es_group_phase phase, uint64_t now_ms)
{
	group->phase = phase;
	group->phase_since_ms = now_ms;
}

void es_group_init(struct es_group *group, const struct es_group_ops *ops, void *ctx,
		   const char *const *names, unsigned int count, unsigned int self, uint32_t served,
		   uint64_t lease_ms, uint64_t patience_ms)
{
	memset(group, 0, sizeof(*group));
	group->ops = ops;
	group->ctx = ctx;
	group->self = self;
	group->epoch = group->served = served;
	group->node_count = count;
	group->lease_ms = lease_ms;
	group->patience_ms = patience_ms;
	es_grants_init(&group->grants, self);
	for (unsigned int i = 0; i < count; i++)
		snprintf(group->node[i].name, sizeof(group->node[i].name), "%s", names[i]);
}

void es_group_set_nodes(struct es_group *group, const char *const *names, unsigned int count)
{
	for (unsigned int i = 0; i < ES_GROUP_NODES_MAX; i++) {
		const char *name = i < count ? names[i] : "";

		if (!strcmp(group->node[i].name, name))
			continue;
		memset(&group->node[i], 0, sizeof(group->node[i]));
		snprintf(group->node[i].name, sizeof(group->node[i].name), "%s", name);
	}
	group->node_count = count;
}

int es_group_node_is_gone(const struct es_group *group, unsigned int node)
{
	return !group->node[node].is_member && !group->node[node].hold_until_ms;
}

void es_group_describe(struct es_group *group, unsigned int weight, const char *settings)
{
	struct es_group_node *self = &group->node[group->self];

	self->weight = (uint16_t)weight;
	group->settings_are_new |= strcmp(self->settings, settings) != 0;
	group->settings_changed |= group->settings_are_new;
	snprintf(self->settings, sizeof(self->settings), "%s", settings);
	es_group_grants_read(self);
}

static void hello_send(struct es_group *group)
{
	const struct es_group_node *self = &group->node[group->self];
	struct es_wire_hello hello = {
		.epoch = group->epoch,
		.served = group->served,
		.in_ring = group->is_serving,
		.state = group->is_leaving ? ES_NODE_LEFT : self->state,
		.weight = self->weight,
	};
	char buf[sizeof(hello) + 2]; /* its settings have a length, and no NUL */
	size_t len;

	memcpy(hello.name, self->name, sizeof(hello.name));
	memcpy(hello.settings, self->settings, sizeof(hello.settings));
	len = es_wire_put_hello(buf, sizeof(buf), &hello);
	group->hello_is_out = 1;
	group->settings_are_new = 0;
	group->ops->send(group->ctx, ES_WIRE_HELLO, buf, len);
}

static int all_have(const struct es_group *group, size_t offset)
{
	for (unsigned int i = 0; i < group->member_count; i++)
		if (es_group_counts(&group->member[i]) && !((const uint8_t *)&group->member[i])[offset])
			return 0;
	return 1;
}

#define ALL_HAVE(group, field) all_have(group, offsetof(struct es_group_member, field))

/* A node that has gone without a word may act as a member until its lease is over. */
static uint64_t hold_until(const struct es_group *group)
{
	uint64_t until = group->hold_until_ms;

	for (unsigned int i = 0; i < group->node_count; i++)
		if (group->node[i].hold_until_ms > until)
			until = group->node[i].hold_until_ms;
	return until;
}

static void node_gone(struct es_group *group, struct es_group_node *node, enum es_group_reason reason,
		      uint64_t now_ms)
{
	if (reason == ES_GROUP_LEFT || !node->is_accepted)
		node->hold_until_ms = 0;
	else if (reason == ES_GROUP_SUSPECTED) /* it may hear itself until it hears this */
		node->hold_until_ms = now_ms + es_group_lease_max_ms(group);
	else
		node->hold_until_ms = node->heard_ms + es_group_lease_max_ms(group);
	if (reason != ES_GROUP_LEFT && node->is_accepted) {
		node->lost_ms = now_ms;
		es_group_doubt(group, ES_GROUP_DOUBT_MS, now_ms);
	}
	es_grants_gone(&group->grants, (unsigned int)(node - group->node), reason == ES_GROUP_LEFT);
	node->is_member = 0;
	node->is_accepted = 0;
	node->reason = reason;
	node->since_ms = now_ms;
}

/* If no member wants a share, all have equal ones: a ring without a node answers nobody. */
static void es_group_share_anyway(unsigned int *weights, const uint8_t *is_in)
{
	for (unsigned int i = 0; i < ES_GROUP_NODES_MAX; i++)
		if (weights[i])
			return;
	for (unsigned int i = 0; i < ES_GROUP_NODES_MAX; i++)
		weights[i] = is_in[i] ? 100 : 0;
}

/* Begins the next epoch with what is known of the members. */
static void epoch_begin(struct es_group *group, uint64_t now_ms)
{
	uint8_t is_in[ES_GROUP_NODES_MAX] = {};
	unsigned int weights[ES_GROUP_NODES_MAX] = {};
	struct es_wire_stopped stopped = {};
	uint8_t buf[16];

	stopped.epoch = ++group->epoch;
	if (group->doubt_until_ms > now_ms)
		stopped.doubt_ms = (uint32_t)(group->doubt_until_ms - now_ms);
	for (unsigned int i = 0; i < group->member_count; i++) {
		struct es_group_member *member = &group->member[i];

		member->has_stopped = 0;
		if (member->node < 0 || !es_group_counts(member) || member->is_leaving ||
		    member->hello.state == ES_NODE_LEFT || !group->node[member->node].is_accepted)
			continue;
		is_in[member->node] = 1;
		weights[member->node] = group->node[member->node].weight;
	}
	es_group_share_anyway(weights, is_in);
	es_group_grants_begin(group, is_in);
	if (hold_until(group) > now_ms)
		stopped.hold_ms = (uint32_t)(hold_until(group) - now_ms);
	es_group_set_phase(group, ES_GROUP_STOPPING, now_ms);
	group->ops->changed(group->ctx);
	group->ops->stop(group->ctx, group->epoch, weights);
	group->ops->send(group->ctx, ES_WIRE_STOPPED, buf, es_wire_put_stopped(buf, sizeof(buf), &stopped));
}

static void proceed(struct es_group *group, uint64_t now_ms)
{
	if (group->phase == ES_GROUP_VIEW && ALL_HAVE(group, has_hello) && es_group_round(group, now_ms))
		epoch_begin(group, now_ms);
	if (group->phase == ES_GROUP_STOPPING && ALL_HAVE(group, has_stopped))
		es_group_set_phase(group, ES_GROUP_HOLDING, now_ms);
	if (group->phase == ES_GROUP_HOLDING && now_ms >= hold_until(group) &&
	    now_ms >= group->vote_until_ms) {
		for (unsigned int i = 0; i < group->node_count; i++)
			group->node[i].hold_until_ms = 0;
		es_group_set_phase(group, ES_GROUP_STABLE, now_ms);
		es_group_grants_in_force(group);
		group->served = group->epoch;
		group->is_serving = group->node[group->self].is_accepted;
		group->ops->changed(group->ctx);
		group->ops->serve(group->ctx, group->epoch);
		if (group->is_leaving)
			group->ops->left(group->ctx);
	}
}

/* Members that were in the last view too keep what is known of them. */
static void members_take(struct es_group *group, const struct es_group_id *members, unsigned int count,
			 uint64_t now_ms)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < group->member_count; i++) {
		unsigned int n = 0;

		while (n < count && !same_id(members[n], group->member[i].id))
			n++;
		if (n == count)
			continue;
		if (kept != i)
			group->member[kept] = group->member[i];
		group->member[kept].has_hello = 0;
		group->member[kept].has_stopped = 0;
		kept++;
	}
	group->member_count = kept;
	for (unsigned int n = 0; n < count && group->member_count < ES_GROUP_MEMBERS_MAX; n++) {
		struct es_group_member *member;

		if (member_find(group, members[n]))
			continue;
		member = &group->member[group->member_count++];
		memset(member, 0, sizeof(*member));
		member->id = members[n];
		member->node = -1;
		member->heard_ms = now_ms;
	}
}

void es_group_view(struct es_group *group, struct es_group_id self, const struct es_group_id *members,
		   unsigned int count, const struct es_group_leaver *leavers, unsigned int leaver_count,
		   uint64_t now_ms)
{
	group->self_id = self;
	for (unsigned int i = 0; i < leaver_count; i++) {
		const struct es_group_member *member = member_find(group, leavers[i].id);

		if (member && member->node >= 0 && !member->is_excluded)
			node_gone(group, &group->node[member->node],
				  member->has_left ? ES_GROUP_LEFT : leavers[i].reason, now_ms);
	}
	members_take(group, members, count, now_ms);
	es_group_set_phase(group, ES_GROUP_VIEW, now_ms);
	group->ops->changed(group->ctx);
	/*
	 * A HELLO that is under way will be delivered in this view, and is as good as a new one: its content
	 * can have changed only by messages that all members see.
	 */
	if (!group->hello_is_out)
		hello_send(group);
	proceed(group, now_ms);
}

static void on_hello(struct es_group *group, struct es_group_member *member, const void *payload, size_t len)
{
	struct es_wire_hello hello;

	if (es_wire_get_hello(payload, len, &hello))
		return;
	if (same_id(member->id, group->self_id)) {
		const struct es_group_node *self = &group->node[group->self];

		group->hello_is_out = 0;
		/* A change of this node's state or weight has overtaken its HELLO. */
		if (hello.state != self->state && hello.state != ES_NODE_LEFT)
			es_group_change(group, group->self, ES_WIRE_CHANGE_STATE, self->state);
		if (hello.weight != self->weight)
			es_group_change(group, group->self, ES_WIRE_CHANGE_WEIGHT, self->weight);
	}
	member->hello = hello;
	member->has_hello = 1;
}

/*
 * All members take over the sender's hold time and doubts: one that has just joined does not know which nodes
 * went before.
 */
static void on_stopped(struct es_group *group, struct es_group_member *member, const void *payload,
		       size_t len, uint64_t now_ms)
{
	struct es_wire_stopped stopped;

	if (es_wire_get_stopped(payload, len, &stopped))
		return;
	if (now_ms + stopped.hold_ms > group->hold_until_ms)
		group->hold_until_ms = now_ms + stopped.hold_ms;
	es_group_doubt(group, stopped.doubt_ms, now_ms);
	if (group->phase != ES_GROUP_STOPPING || stopped.epoch != group->epoch)
		return;
	member->has_stopped = 1;
	member->has_left = member->is_leaving;
}

static void on_proofs(struct es_group *group, const struct es_group_member *member, const void *payload,
		      size_t len)
{
	struct es_wire_proof proofs[ES_WIRE_PROOFS_MAX];
	uint32_t epoch;
	size_t count;

	if (member->node < 0 || es_wire_get_proofs(payload, len, &epoch, proofs, &count) ||
	    epoch != group->epoch)
		return;
	group->ops->proofs(group->ctx, (unsigned int)member->node, proofs, count);
}

/*
 * A change of weight begins an epoch, since the ring depends on it. While HELLOs are collected, it is enough
 * to change the node's HELLO.
 */
static void on_change(struct es_group *group, const void *payload, size_t len, uint64_t now_ms)
{
	struct es_wire_change change;
	struct es_group_node *node;

	if (es_wire_get_change(payload, len, &change) || change.node >= group->node_count)
		return;
	node = &group->node[change.node];
	for (unsigned int i = 0; i < group->member_count; i++) {
		struct es_group_member *member = &group->member[i];

		if (!member->has_hello || strcmp(member->hello.name, node->name) != 0)
			continue;
		if (change.what == ES_WIRE_CHANGE_STATE)
			member->hello.state = (uint8_t)change.value;
		else
			member->hello.weight = change.value;
	}
	if (change.what == ES_WIRE_CHANGE_STATE) {
		node->state = (uint8_t)change.value;
		group->ops->changed(group->ctx);
	} else if (change.what == ES_WIRE_CHANGE_WEIGHT && node->weight != change.value) {
		node->weight = change.value;
		if (group->phase > ES_GROUP_VIEW)
			epoch_begin(group, now_ms);
	}
}

static void on_leave(struct es_group *group, struct es_group_member *member, uint64_t now_ms)
{
	member->is_leaving = 1;
	if (group->phase > ES_GROUP_VIEW)
		epoch_begin(group, now_ms);
}

static void on_suspect(struct es_group *group, const void *payload, size_t len, uint64_t now_ms)
{
	struct es_wire_suspect suspect;
	struct es_group_member *member;
	char text[ES_GROUP_TEXT_SIZE];

	if (es_wire_get_suspect(payload, len, &suspect))
		return;
	member = member_find(group, (struct es_group_id){suspect.nodeid, suspect.pid});
	if (!member || member->is_excluded)
		return;
	if (same_id(member->id, group->self_id)) {
		group->ops->rejoin(group->ctx, "the other members had no answer from here");
		return;
	}
	member->is_excluded = 1;
	if (member->node >= 0) {
		snprintf(text, sizeof(text), "%s does not answer, and is left out",
			 group->node[member->node].name);
		node_gone(group, &group->node[member->node], ES_GROUP_SUSPECTED, now_ms);
	} else {
		snprintf(text, sizeof(text),
			 "process %u of corosync's node %u does not answer, and is left out", suspect.pid,
			 suspect.nodeid);
	}
	group->ops->log(group->ctx, text);
	if (group->phase > ES_GROUP_VIEW)
		epoch_begin(group, now_ms);
}

void es_group_message(struct es_group *group, struct es_group_id from, uint8_t type, const void *payload,
		      size_t len, uint64_t now_ms)
{
	struct es_group_member *member = member_find(group, from);

	if (!member || member->is_excluded)
		return;
	member->heard_ms = now_ms;
	if (member->node >= 0)
		group->node[member->node].heard_ms = now_ms;
	switch (type) {
	case ES_WIRE_HELLO:
		on_hello(group, member, payload, len);
		break;
	case ES_WIRE_PROOFS:
		on_proofs(group, member, payload, len);
		break;
	case ES_WIRE_STOPPED:
		on_stopped(group, member, payload, len, now_ms);
		break;
	case ES_WIRE_CHANGE:
		on_change(group, payload, len, now_ms);
		break;
	case ES_WIRE_LEAVE:
		on_leave(group, member, now_ms);
		break;
	case ES_WIRE_LOAD:
		if (member->node >= 0)
			es_wire_get_load(payload, len, &group->node[member->node].load);
		break;
	case ES_WIRE_SETTINGS:
		es_group_on_settings(group, member, payload, len);
		break;
	case ES_WIRE_SUSPECT:
		on_suspect(group, payload, len, now_ms);
		break;
	default: /* of a later version */
		break;
	}
	proceed(group, now_ms);
}

void es_group_was_away(struct es_group *group, uint64_t now_ms)
{
	for (unsigned int i = 0; i < group->node_count; i++)
		group->node[i].lost_ms = now_ms;
}

void es_group_lost(struct es_group *group, uint64_t now_ms)
{
	struct es_group_node *self = &group->node[group->self];

	es_group_was_away(group, now_ms);
	for (unsigned int i = 0; i < group->node_count; i++)
		if (i != group->self && group->node[i].is_member) {
			node_gone(group, &group->node[i], ES_GROUP_SELF_LOST, now_ms);
			group->node[i].hold_until_ms = 0;
		}
	self->is_member = 0;
	self->is_accepted = 0;
	self->reason = ES_GROUP_SELF_LOST;
	self->since_ms = now_ms;
	es_grants_lost(&group->grants);
	group->member_count = 0;
	group->is_serving = 0;
	group->vote_until_ms = 0;
	group->hello_is_out = 0;
	es_group_set_phase(group, ES_GROUP_OUT, now_ms);
	group->ops->changed(group->ctx);
}

static int is_overdue(const struct es_group *group, const struct es_group_member *member, uint64_t now_ms)
{
	int awaited = (group->phase == ES_GROUP_VIEW && !member->has_hello) ||
		      (group->phase == ES_GROUP_STOPPING && !member->has_stopped);

	return es_group_counts(member) && !same_id(member->id, group->self_id) &&
	       ((awaited && now_ms - group->phase_since_ms > group->patience_ms) ||
		now_ms - member->heard_ms > group->patience_ms);
}

void es_group_tick(struct es_group *group, uint64_t now_ms)
{
	struct es_wire_suspect suspect;
	uint8_t buf[16];

	/* After a sleep of our own, nobody else is to blame for what we did not hear yet. */
	if (now_ms - group->tick_ms > group->patience_ms / 4)
		for (unsigned int i = 0; i < group->member_count; i++)
			group->member[i].heard_ms = group->phase_since_ms = now_ms;
	group->tick_ms = now_ms;
	if (group->phase == ES_GROUP_OUT)
		return;
	proceed(group, now_ms);
	es_group_settings_tell(group);
	if (now_ms - group->suspected_ms < SUSPECT_AGAIN_MS)
		return;
	for (unsigned int i = 0; i < group->member_count; i++) {
		if (!is_overdue(group, &group->member[i], now_ms))
			continue;
		suspect.nodeid = group->member[i].id.nodeid;
		suspect.pid = group->member[i].id.pid;
		group->suspected_ms = now_ms;
		group->ops->send(group->ctx, ES_WIRE_SUSPECT, buf,
				 es_wire_put_suspect(buf, sizeof(buf), &suspect));
	}
}

void es_group_change(struct es_group *group, unsigned int node, enum es_wire_change_what what, uint16_t value)
{
	struct es_wire_change change = {.node = (uint16_t)node, .what = (uint8_t)what, .value = value};
	uint8_t buf[16];

	group->ops->send(group->ctx, ES_WIRE_CHANGE, buf, es_wire_put_change(buf, sizeof(buf), &change));
}

void es_group_leave(struct es_group *group)
{
	group->is_leaving = 1;
	group->ops->send(group->ctx, ES_WIRE_LEAVE, NULL, 0);
}

int es_group_node_of(const struct es_group *group, struct es_group_id id)
{
	for (unsigned int i = 0; i < group->member_count; i++)
		if (group->member[i].id.nodeid == id.nodeid && group->member[i].id.pid == id.pid)
			return group->member[i].node;
	return -1;
}
