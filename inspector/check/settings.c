// SPDX-License-Identifier: GPL-2.0-or-later
/* Items of the members' group: settings that the members have told each other, and that differ. */
#include <string.h>

#include "inspector/base/json.h"
#include "inspector/check/check.h"

/* A setting of a node as text, or NULL; lasts as long as the reply. */
static const char *setting(struct json_object *node, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(es_json_object(node, "settings"), name, &value))
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
							 es_json_string(node, "name"));
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

/* Some settings may differ for a while, or for good; all others must not. */
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

/* One setting of a node that the others have differently. */
static void judge_drift(struct es_check *check, struct json_object *node, struct json_object *element)
{
	char list[512] = "";
	size_t used = 0;

	json_object_object_foreach(es_json_object(element, "others"), name, value)
	{
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, ", %s %s", name,
						 json_object_get_string(value));
	}
	es_check_error(check,
		       es_check_action(
			       "earshot rollout of the configuration that is right, or earshot reload on %s, "
			       "or on those that have not read it yet",
			       es_json_string(node, "name")),
		       "%s: %s %s%s", es_json_string(element, "setting"), es_json_string(node, "name"),
		       es_json_string(element, "value"), list);
}

/* Does one of the first @count nodes drift in this setting? Then that has been reported already. */
static int is_drift(struct json_object *nodes, size_t count, const char *setting)
{
	for (size_t i = 0; i < count; i++) {
		struct json_object *drift = es_json_array(json_object_array_get_idx(nodes, i), "drift");

		for (size_t k = 0; k < json_object_array_length(drift); k++)
			if (!strcmp(es_json_string(json_object_array_get_idx(drift, k), "setting"), setting))
				return 1;
	}
	return 0;
}

void es_check_drift(struct es_check *check)
{
	struct json_object *nodes = es_json_array(check->facts->daemon.status, "nodes");
	unsigned int drifting = 0;

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *drift = es_json_array(node, "drift");

		for (size_t k = 0; k < json_object_array_length(drift); k++, drifting++) {
			struct json_object *element = json_object_array_get_idx(drift, k);

			if (!is_drift(nodes, i, es_json_string(element, "setting")))
				judge_drift(check, node, element);
		}
	}
	if (!drifting)
		es_check_ok(check, "all nodes that have told it have the same configuration");
}

void es_check_settings(struct es_check *check)
{
	struct json_object *nodes = es_json_array(check->facts->daemon.status, "nodes");
	size_t i, n = json_object_array_length(nodes);
	unsigned int differ = 0, telling = 0;

	for (i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *settings = es_json_object(node, "settings");

		if (!strcmp(es_json_string(node, "state"), "removed"))
			continue;
		if (!json_object_object_length(settings)) {
			es_check_unchecked(check, "node %s has not told its settings",
					   es_json_string(node, "name"));
			continue;
		}
		telling++;
		json_object_object_foreach(settings, name, value)
		{
			(void)value;
			if (!told_before(nodes, i, name) && !is_drift(nodes, n, name))
				differ += (unsigned int)judge_setting(check, nodes, name);
		}
	}
	if (!differ)
		es_check_ok(check, "no setting differs between the %u nodes that have told theirs", telling);
}
