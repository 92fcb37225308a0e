/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of what the running daemon says: of itself, and of the settings that the members have told each
 * other.
 */
#include <string.h>

#include "earshot_version.h"
#include "inspector/check/check.h"
#include "inspector/cli/cli.h"

#define CHANGE_LONG_S 10

static const struct es_check_item daemon_item = {
	.name = "daemon",
	.why = "Only the daemon knows what the other members have told it.",
};

static int enter(struct es_check *check)
{
	const struct es_facts_daemon *d = &check->facts->daemon;

	check->item = &daemon_item;
	if (!d->runs)
		es_check_unchecked(check, "no earshotd of this node runs, so nobody knows the other members");
	else if (!d->status)
		es_check_unchecked(check, "earshotd does not answer");
	else
		return 0;
	return 1;
}

static void check_state(struct es_check *check)
{
	const char *state = es_cli_string(es_cli_object(check->facts->daemon.status, "datapath"), "state");

	if (!strcmp(state, "fallback"))
		es_check_error(check, "restart earshotd", "earshotd runs, but inspects nothing (fallback)");
	else if (!strcmp(state, "silent"))
		es_check_info(check, "earshotd is silent, for the reason that the membership has");
	else if (!strcmp(state, "detached"))
		es_check_error(check, "restart earshotd", "the datapath is detached");
	else
		es_check_ok(check, "earshotd is %s", state);
}

static void check_version(struct es_check *check)
{
	const char *version = es_cli_string(check->facts->daemon.status, "version");

	if (strcmp(version, EARSHOT_VERSION) != 0)
		es_check_warning(check, "restart earshotd", "earshotd is version %s, this program %s",
				 version, EARSHOT_VERSION);
	else
		es_check_ok(check, "earshotd is version %s", version);
}

static struct json_object *membership(const struct es_check *check)
{
	return es_cli_object(check->facts->daemon.status, "membership");
}

static int is_static(const struct es_check *check)
{
	return strcmp(es_cli_string(membership(check), "provider"), "corosync") != 0;
}

static int is_true(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

static void check_membership(struct es_check *check)
{
	struct json_object *m = membership(check);
	const char *phase = es_cli_string(m, "phase");
	double phase_s = es_cli_fraction(m, "phase_s");

	if (is_static(check))
		es_check_ok(check, "membership is static");
	else if (is_true(m, "silent"))
		es_check_error(check, "corosync-quorumtool -s; earshot nodes", "this node is silent: %s",
			       es_cli_string(m, "why"));
	else if (strcmp(phase, "stable") != 0 && phase_s > CHANGE_LONG_S)
		es_check_warning(check, "earshot nodes; the other nodes' logs",
				 "the ring's change has been in phase %s for %.0f s", phase, phase_s);
	else
		es_check_ok(check, "this node is a member, phase %s", phase);
}

static struct json_object *status_nodes(const struct es_check *check)
{
	return es_cli_array(check->facts->daemon.status, "nodes");
}

static void check_away(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	unsigned int away = 0;

	for (i = 0; i < n && !is_static(check); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (is_true(node, "member"))
			continue;
		away++;
		es_check_warning(
			check,
			es_check_action("start corosync and earshotd on %s", es_cli_string(node, "name")),
			"node %s is no member: %s", es_cli_string(node, "name"),
			es_cli_string(node, "reason"));
	}
	if (!away)
		es_check_ok(check, is_static(check) ? "membership is static" : "all nodes are members");
}

static void check_refused(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	unsigned int refused = 0;

	for (i = 0; i < n && !is_static(check); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!is_true(node, "member") || !*es_cli_string(node, "refused"))
			continue;
		refused++;
		es_check_error(check,
			       "the same configuration and key on all nodes, then restart earshotd there",
			       "node %s is refused: %s", es_cli_string(node, "name"),
			       es_cli_string(node, "refused"));
	}
	if (!refused)
		es_check_ok(check, "no node is refused");
}

/* A setting of a node as text, or NULL; lasts as long as the reply. */
static const char *setting(struct json_object *node, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(es_cli_object(node, "settings"), name, &value))
		return NULL;
	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
}

/* "n1 and n3 10, n2 7"; nodes that do not tell it are left out. Return: how many different values */
static unsigned int list_values(struct json_object *nodes, const char *name, char *list, size_t size)
{
	size_t i, k, n = json_object_array_length(nodes), used = 0;
	unsigned int values = 0;

	*list = 0;
	for (i = 0; i < n; i++) {
		const char *value = setting(json_object_array_get_idx(nodes, i), name), *other = NULL;

		for (k = 0; k < i && value; k++) {
			other = setting(json_object_array_get_idx(nodes, k), name);
			if (other && !strcmp(other, value))
				break;
		}
		if (!value || k < i) /* told, and listed, before */
			continue;
		for (k = i; k < n && used < size; k++) {
			struct json_object *node = json_object_array_get_idx(nodes, k);

			other = setting(node, name);
			if (other && !strcmp(other, value))
				used += (size_t)snprintf(list + used, size - used, "%s%s",
							 k > i ? " and " : (values ? ", " : ""),
							 es_cli_string(node, "name"));
		}
		if (used < size)
			used += (size_t)snprintf(list + used, size - used, " %s", value);
		values++;
	}
	return values;
}

/* Is this the first node that tells @name? Each name is judged once. */
static int told_before(struct json_object *nodes, size_t node, const char *name)
{
	size_t i;

	for (i = 0; i < node; i++)
		if (setting(json_object_array_get_idx(nodes, i), name))
			return 1;
	return 0;
}

/* What may differ for a while, or for good; everything else must not. */
static enum es_check_severity severity_of(const char *name)
{
	static const char *const info[] = {"version", "kernel"};
	static const char *const warning[] = {"key", "tcp_wmem", "tcp_congestion_control"};
	size_t i;

	for (i = 0; i < sizeof(info) / sizeof(info[0]); i++)
		if (!strcmp(name, info[i]))
			return ES_CHECK_INFO;
	for (i = 0; i < sizeof(warning) / sizeof(warning[0]); i++)
		if (!strcmp(name, warning[i]))
			return ES_CHECK_WARNING;
	return ES_CHECK_ERROR;
}

/* Return: does it differ between the nodes that tell it? Then it is reported. */
static int judge_setting(struct es_check *check, struct json_object *nodes, const char *name)
{
	static const char action[] = "make it the same on all nodes, then earshot reload there";
	char list[512];

	if (list_values(nodes, name, list, sizeof(list)) < 2)
		return 0;
	if (severity_of(name) == ES_CHECK_ERROR)
		es_check_error(check, action, "%s: %s", name, list);
	else if (severity_of(name) == ES_CHECK_WARNING)
		es_check_warning(check, action, "%s: %s", name, list);
	else
		es_check_info(check, "%s: %s", name, list);
	return 1;
}

static void check_settings(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	unsigned int differ = 0, telling = 0;

	if (is_static(check)) {
		es_check_unchecked(check,
				   "the members of a static cluster do not tell each other their settings");
		return;
	}
	for (i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *settings = es_cli_object(node, "settings");

		if (!json_object_object_length(settings)) {
			es_check_unchecked(check, "node %s has not told its settings",
					   es_cli_string(node, "name"));
			continue;
		}
		telling++;
		json_object_object_foreach(settings, name, value)
		{
			(void)value;
			if (!told_before(nodes, i, name))
				differ += (unsigned int)judge_setting(check, nodes, name);
		}
	}
	if (!differ)
		es_check_ok(check, "no setting differs between the %u nodes that have told theirs", telling);
}

static const struct es_check_item items[] = {
	{"state", "Requests are served without inspection, or not at all.", check_state},
	{"version", "The daemon was not restarted when the program was upgraded.", check_version},
	{"membership", "A node that is not in the ring, or in one that changes, answers nothing new.",
	 check_membership},
	{"away", "Its work is done by the others.", check_away},
	{"refused", "A node that differs in these may not join, since it would break connections.",
	 check_refused},
	{"settings", "A connection that moves finds a socket there that cannot keep what it was promised.",
	 check_settings},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_members_group = {.name = "members", .items = items, .enter = enter};
