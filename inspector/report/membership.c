// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Membership in `status`: an object of its own, and more members in each of the nodes.
 */
#include <string.h>
#include "inspector/report/report.h"
#include "inspector/self/by_hand.h"

static const char *const state_names[] = {
	[ES_NODE_UP] = "up",	 [ES_NODE_DRAINING] = "draining", [ES_NODE_DOWN] = "down",
	[ES_NODE_LEFT] = "left", [ES_NODE_ABSENT] = "absent",
};

const char *es_report_node_state(enum es_node_state state)
{
	return state_names[state <= ES_NODE_ABSENT ? state : ES_NODE_ABSENT];
}

static void add_bool(struct json_object *object, const char *key, int value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

static void add_seconds(struct json_object *object, const char *key, uint64_t ms)
{
	json_object_object_add(object, key, json_object_new_double((double)ms / 1000));
}

/* "name=value" lines as an object; the mark of those that must or should be alike is left out. */
static struct json_object *settings_of(const char *text)
{
	struct json_object *settings = json_object_new_object();
	char name[128];

	while (*text) {
		const char *end = strchr(text, '\n'), *line = text + (*text == '=' || *text == '~'), *equals;

		if (!end)
			break;
		equals = memchr(line, '=', (size_t)(end - line));
		if (equals && (size_t)(equals - line) < sizeof(name)) {
			memcpy(name, line, (size_t)(equals - line));
			name[equals - line] = 0;
			json_object_object_add(
				settings, name,
				json_object_new_string_len(equals + 1, (int)(end - equals - 1)));
		}
		text = end + 1;
	}
	return settings;
}

/* A node's own word. */
static void load_extend(struct json_object *object, const struct es_wire_load *load)
{
	json_object_object_add(object, "connections", json_object_new_int64(load->connections));
	json_object_object_add(object, "cpu", json_object_new_double(load->cpu / 1000.0));
	json_object_object_add(object, "queue", json_object_new_int(load->queue));
	if (!load->has_requests)
		return;
	json_object_object_add(object, "active", json_object_new_int64(load->active));
	json_object_object_add(object, "load", json_object_new_int64(load->load));
	json_object_object_add(object, "mean_us", json_object_new_int64(load->mean_us));
	json_object_object_add(object, "disk", json_object_new_double(load->disk / 1000.0));
}

static void node_extend(struct json_object *object, const struct es_group_node *node, uint64_t now_ms)
{
	const char *reason = node->is_member ? "" : es_group_reason_text(node->reason);

	add_bool(object, "member", node->is_member);
	json_object_object_add(object, "reason", json_object_new_string(reason));
	json_object_object_add(object, "refused",
			       json_object_new_string(node->is_member ? node->refused : ""));
	if (node->since_ms)
		add_seconds(object, "since_s", now_ms - node->since_ms);
	if (!node->is_member)
		return;
	load_extend(object, &node->load);
	add_bool(object, "drained",
		 node->state == ES_NODE_DRAINING && node->load.state == ES_NODE_DRAINING &&
			 !node->load.connections);
	json_object_object_add(object, "settings", settings_of(node->settings));
}

static void add_left(struct json_object *object, const char *name, uint64_t until_ms, uint64_t now_ms)
{
	json_object_object_add(object, name,
			       json_object_new_int64(until_ms > now_ms ? (int64_t)(until_ms - now_ms) : 0));
}

/* For another member, if its version grants leases. */
static void grants_extend(struct json_object *object, const struct es_report_membership *m, unsigned int node)
{
	if (node != m->group->self && es_group_node_grants(m->group, node))
		add_left(object, "granted_ms", m->group->grants.node[node].granted_until_ms, m->now_ms);
}

static void by_hand_extend(struct json_object *object, const struct es_report_membership *m,
			   unsigned int node)
{
	struct json_object *by_hand;

	/* Where it is a drain's end that cannot be kept, nothing is set by hand any more. */
	if (m->is_unkept[node])
		add_bool(object, "unkept", 1);
	if (!m->drain[node] && !m->weight[node])
		return;
	by_hand = json_object_new_object();
	json_object_object_add(object, "by_hand", by_hand);
	if (m->drain[node])
		json_object_object_add(by_hand, "drain", es_by_hand_json(m->drain[node]));
	if (m->weight[node])
		json_object_object_add(by_hand, "weight", es_by_hand_json(m->weight[node]));
}

/* For another node, if it has been heard on the public network at all. */
static void hearing_extend(struct json_object *object, const struct es_report_membership *m,
			   unsigned int node)
{
	int is_heard = es_hearing_hears(m->hearing, node, m->now_ms);

	if (!m->hearing->peer[node].heard_ms)
		return;
	add_bool(object, "heard", is_heard);
	if (is_heard)
		add_bool(object, "hears", es_hearing_is_heard_by(m->hearing, node, m->now_ms));
}

/* Members that are in the cluster. If this node is refused, its reason says so. */
void es_report_told_by(const struct es_report_membership *m, struct es_report_told *ret)
{
	*ret = m->told;
	if (!m->group)
		return;
	ret->count = m->group->node_count;
	for (unsigned int i = 0; i < ret->count; i++) {
		const struct es_group_node *node = &m->group->node[i];
		int counts = *node->settings && !*node->refused && (node->is_member || i == m->self);

		ret->name[i] = node->name;
		ret->settings[i] = counts ? node->settings : NULL;
	}
}

/* The knowledge of static nodes about each other. */
static void static_extend(struct json_object *nodes, const struct es_report_membership *m)
{
	if (m->self < json_object_array_length(nodes))
		load_extend(json_object_array_get_idx(nodes, m->self), &m->own);
	for (unsigned int i = 0; i < m->told.count; i++)
		if (m->told.settings[i])
			json_object_object_add(json_object_array_get_idx(nodes, i), "settings",
					       settings_of(m->told.settings[i]));
	es_report_drift(nodes, &m->told);
}

void es_report_membership(struct json_object *status, const struct es_report_membership *m)
{
	struct json_object *membership = json_object_new_object(), *nodes = NULL;
	struct es_report_told told;

	json_object_object_add(status, "membership", membership);
	json_object_object_add(membership, "provider",
			       json_object_new_string(m->group ? "corosync" : "static"));
	json_object_object_get_ex(status, "nodes", &nodes);
	if (!m->group) {
		static_extend(nodes, m);
		return;
	}
	add_bool(membership, "connected", m->is_connected);
	add_bool(membership, "quorate", m->is_quorate);
	add_bool(membership, "silent", m->is_silent);
	json_object_object_add(membership, "why", json_object_new_string(m->why));
	json_object_object_add(membership, "epoch", json_object_new_int64(m->group->epoch));
	json_object_object_add(membership, "phase",
			       json_object_new_string(es_group_phase_text(m->group->phase)));
	add_seconds(membership, "phase_s", m->now_ms - m->group->phase_since_ms);
	json_object_object_add(membership, "lease_ms", json_object_new_int64(m->lease_ms));
	add_left(membership, "granted_ms", m->granted_ms, m->now_ms);
	for (unsigned int i = 0; i < m->group->node_count; i++) {
		node_extend(json_object_array_get_idx(nodes, i), &m->group->node[i], m->now_ms);
		grants_extend(json_object_array_get_idx(nodes, i), m, i);
		hearing_extend(json_object_array_get_idx(nodes, i), m, i);
		by_hand_extend(json_object_array_get_idx(nodes, i), m, i);
	}
	es_report_told_by(m, &told);
	es_report_drift(nodes, &told);
}
