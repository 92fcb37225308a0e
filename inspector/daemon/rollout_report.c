// SPDX-License-Identifier: GPL-2.0-or-later
/* Rollouts for people: how the one that this node leads stands, and what the last one here was. */
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/rollout.h"
#include "inspector/report/json.h"
#include "membership/group.h"

/* One that was refused joins a moment after it has the file. */
static void report_membership(const struct es_daemon *d, unsigned int i, struct json_object *node)
{
	char text[ES_GROUP_TEXT_SIZE + 32];
	const char *lacks = d->membership ? es_membership_lacks(d->membership, i, text, sizeof(text)) : NULL;

	json_object_object_add(node, "member", json_object_new_boolean(!lacks));
	if (lacks)
		es_json_string(node, "reason", lacks);
}

struct json_object *es_daemon_rollout_report(const struct es_daemon *d)
{
	const struct es_rollout_leader *l = &d->rollout->leader;
	struct json_object *object = json_object_new_object(), *nodes = json_object_new_array();

	es_json_number(object, "number", l->number);
	es_json_string(object, "name", d->rollout->name);
	es_json_string(object, "by", d->rollout->by);
	es_json_string(object, "node", d->conf->nodes[d->cluster->self].name);
	json_object_object_add(object, "dry_run", json_object_new_boolean(l->is_dry));
	es_json_string(object, "phase", es_rollout_phase_name(l->phase));
	es_json_string(object, "result", es_rollout_result_name(l->result));
	/* The last one, which nobody could tell of. */
	json_object_object_add(
		object, "restart_self",
		json_object_new_boolean(l->restarts && l->result == ES_ROLLOUT_ALL_SWITCHED && *d->waiting));
	for (unsigned int i = 0; i < l->node_count; i++) {
		struct json_object *node = json_object_new_object();

		es_json_string(node, "name", d->conf->nodes[i].name);
		es_json_string(node, "state", es_rollout_state_name(l->node[i].state));
		es_json_string(node, "reason", l->node[i].why);
		json_object_array_add(nodes, node);
		if (l->result == ES_ROLLOUT_ALL_SWITCHED && l->node[i].state == ES_ROLLOUT_SWITCHED)
			report_membership(d, i, node);
	}
	json_object_object_add(object, "nodes", nodes);
	return object;
}

struct json_object *es_daemon_rollout_told(const struct es_daemon *d)
{
	const struct es_rollout_past *last = es_rollout_history_last(&d->rollout->history);
	struct json_object *object = json_object_new_object();

	es_json_string(object, "name", last ? last->name : "");
	es_json_string(object, "by", last ? last->by : "");
	es_json_number(object, "time_ms", last ? last->time_ms : 0);
	json_object_object_add(object, "in_force",
			       json_object_new_boolean(last && last->digest == d->conf->digest));
	es_json_string(object, "not_taken", d->rollout->catch_up.refused);
	return object;
}
