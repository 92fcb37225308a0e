// SPDX-License-Identifier: GPL-2.0-or-later
/* The replies about content tables and explanations, and the reading of their requests. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/hex.h"
#include "inspector/config/explain_text.h"
#include "inspector/report/report.h"
#include "inspector/report/contents.h"
#include "inspector/report/json.h"

static void add_node(struct json_object *object, const char *key, const struct es_conf *conf, int node)
{
	json_object_object_add(object, key, node < 0 ? NULL : json_object_new_string(conf->nodes[node].name));
}

int es_report_service(const struct es_conf *conf, struct json_object *request, unsigned int *ret_service,
		      struct es_conf_error *err)
{
	struct json_object *name = NULL;

	if (!json_object_object_get_ex(request, "service", &name)) {
		*ret_service = 0;
		if (conf->service_count == 1)
			return 0;
		es_conf_error_set(err, "there are %u services: name one", conf->service_count);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < conf->service_count; i++) {
		if (!strcmp(conf->services[i].name, json_object_get_string(name))) {
			*ret_service = i;
			return 0;
		}
	}
	es_conf_error_set(err, "no service \"%.64s\" is configured", json_object_get_string(name));
	return -EINVAL;
}

/* --- table */

static struct json_object *node_names(const struct es_conf *conf, struct es_node_set set)
{
	struct json_object *nodes = json_object_new_array();

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (es_node_set_has(set, i))
			json_object_array_add(nodes, json_object_new_string(conf->nodes[i].name));
	return nodes;
}

static void add_table(struct json_object *result, const struct es_report_table *t)
{
	struct json_object *table = json_object_new_object();
	struct es_contents_counts c;

	es_contents_count(t->contents, &c);
	es_json_string(table, "state", es_sync_phase_text(t->sync.phase));
	es_json_number(table, "entries", c.entries);
	es_json_number(table, "max_entries", c.max_entries);
	es_json_number(table, "assigned", c.assigned);
	es_json_number(table, "added", c.added);
	es_json_number(table, "removed", c.removed);
	es_json_number(table, "moved", c.moved);
	es_json_number(table, "kept", c.kept);
	es_json_number(table, "evicted", c.evicted);
	es_json_number(table, "overtaken", c.overtaken);
	es_json_number(table, "refused", c.refused);
	es_json_number(table, "told", c.told);
	es_json_number(table, "homes_changed", c.added + c.removed + c.moved + c.told);
	es_json_number(table, "snapshots", t->sync.snapshots);
	es_json_number(table, "differences", t->sync.differences);
	json_object_object_add(result, "table", table);
}

struct json_object *es_report_table(const struct es_report_table *t, struct json_object *request)
{
	struct json_object *result = json_object_new_object(), *contents = json_object_new_array();
	const struct es_conf_service *service = &t->conf->services[t->service];
	struct json_object *limit = NULL;
	size_t max = ES_REPORT_CONTENTS_DEFAULT;

	if (json_object_object_get_ex(request, "limit", &limit) && json_object_get_int64(limit) >= 0)
		max = (size_t)json_object_get_int64(limit);
	es_json_string(result, "service", service->name);
	es_json_string(result, "policy", service->policy);
	if (t->contents)
		add_table(result, t);
	for (size_t i = 0; i < t->hot_count && i < max; i++) {
		struct json_object *content = json_object_new_object();
		struct es_content_set set;

		es_json_string(content, "uri", t->hot[i].uri);
		es_json_number(content, "requests", t->hot[i].requests);
		if (t->contents && es_contents_peek(t->contents, t->hot[i].content, &set)) {
			json_object_object_add(content, "nodes", node_names(t->conf, set.nodes));
			es_json_fraction(content, "changed_s", (double)(t->now_ns - set.changed_ns) / 1e9, 3);
		}
		json_object_array_add(contents, content);
	}
	json_object_object_add(result, "targets", contents);
	return result;
}

/* --- explain */

static int find_node(const struct es_conf *conf, struct json_object *name, int *ret_node,
		     struct es_conf_error *err)
{
	for (unsigned int i = 0; i < conf->node_count; i++) {
		if (!strcmp(conf->nodes[i].name, json_object_get_string(name))) {
			*ret_node = (int)i;
			return 0;
		}
	}
	es_conf_error_set(err, "no node \"%.64s\" is configured", json_object_get_string(name));
	return -EINVAL;
}

/* Bytes that JSON cannot carry stand as digits, and become @text. Returns 0 or -EINVAL. */
static int hex_take(struct json_object *hex, struct json_object *text)
{
	const char *digits = json_object_get_string(hex);
	size_t len = digits ? strlen(digits) / 2 : 0;
	char *bytes = malloc(len + 1);
	int rc = bytes && digits && strlen(digits) == 2 * len ? 0 : -EINVAL;

	for (size_t i = 0; i < len && !rc; i++) {
		int high = es_hex_digit(digits[2 * i]), low = es_hex_digit(digits[2 * i + 1]);

		if (high < 0 || low < 0)
			rc = -EINVAL;
		else
			bytes[i] = (char)(high << 4 | low);
	}
	if (!rc && !json_object_set_string_len(text, bytes, (int)len))
		rc = -EINVAL;
	free(bytes);
	return rc;
}

int es_report_explain_request(const struct es_conf *conf, struct json_object *request,
			      struct es_flow *ret_flow, unsigned int *ret_service, int *ret_current,
			      const char **ret_text, size_t *ret_len, struct es_conf_error *err)
{
	struct json_object *text = NULL, *client = NULL, *port = NULL, *on = NULL, *hex = NULL;
	static const struct es_addr loopback6 = {.b = {[15] = 1}};
	int rc = es_report_service(conf, request, ret_service, err);
	const struct es_conf_service *service;
	struct es_addr from;

	if (rc)
		return rc;
	if (!json_object_object_get_ex(request, "request", &text) ||
	    !json_object_is_type(text, json_type_string)) {
		es_conf_error_set(err, "explain: expected \"request\", a request or its head");
		return -EINVAL;
	}
	if (json_object_object_get_ex(request, "request_hex", &hex) && hex_take(hex, text)) {
		es_conf_error_set(err, "explain: expected \"request_hex\", the same in hexadecimal digits");
		return -EINVAL;
	}
	*ret_text = json_object_get_string(text);
	*ret_len = (size_t)json_object_get_string_len(text);
	service = &conf->services[*ret_service];
	from = es_addr_is_set(&service->address) ? es_addr_from_v4(htonl(INADDR_LOOPBACK)) : loopback6;
	if (json_object_object_get_ex(request, "client", &client) &&
	    (!json_object_get_string(client) || es_conf_addr_parse(json_object_get_string(client), &from))) {
		es_conf_error_set(err, "bad client address \"%.80s\", expected an IP address",
				  json_object_get_string(client) ? json_object_get_string(client) : "");
		return -EINVAL;
	}
	json_object_object_get_ex(request, "port", &port);
	rc = es_report_flow_of(service, &from, (unsigned int)json_object_get_int(port), ret_flow, err);
	if (rc)
		return rc;
	*ret_current = -1;
	return json_object_object_get_ex(request, "on", &on) ? find_node(conf, on, ret_current, err) : 0;
}

static struct json_object *step_named(const struct es_conf *conf, const char *step)
{
	char text[ES_EXPLAIN_TEXT_SIZE];

	return json_object_new_string(es_explain_text(conf, step, text));
}

static struct json_object *view_of(const struct es_report_explanation *e, unsigned int node)
{
	struct json_object *object = json_object_new_object();
	const struct es_node_view *view = &e->nodes[node];

	es_json_string(object, "name", e->conf->nodes[node].name);
	json_object_object_add(object, "target", json_object_new_boolean(view->is_target));
	es_json_number(object, "weight", (__u64)view->weight);
	es_json_fraction(object, "active", view->active, 3);
	es_json_fraction(object, "load", view->load, 3);
	es_json_fraction(object, "cpu", view->cpu, 3);
	es_json_fraction(object, "disk", view->disk, 3);
	return object;
}

struct json_object *es_report_explain(const struct es_report_explanation *e)
{
	struct json_object *result = json_object_new_object();
	struct json_object *steps = json_object_new_array(), *nodes = json_object_new_array();
	const struct es_conf_service *service = &e->conf->services[e->service];

	es_json_string(result, "service", service->name);
	es_json_string(result, "policy", service->policy);
	json_object_object_add(result, "uri",
			       e->request->uri
				       ? json_object_new_string_len(e->request->uri, (int)e->request->uri_len)
				       : NULL);
	if (e->request->name)
		json_object_object_add(
			result, "content",
			json_object_new_string_len(e->request->name, (int)e->request->name_len));
	add_node(result, "inspecting", e->conf, e->inspecting);
	add_node(result, "node", e->conf, e->node);
	if (e->node == ES_ROUTE_REJECT) {
		es_json_number(result, "status", e->rejection.status);
		es_json_number(result, "retry_after_s", e->rejection.retry_after_s);
		if (e->rejection.body)
			es_json_string(result, "body", e->rejection.body);
	}
	es_json_number(result, "read_bytes", e->request->len);
	es_json_number(result, "size_bytes", e->request->size_bytes);
	es_json_number(result, "cost", e->request->cost);
	for (unsigned int i = 0; i < e->explain.count; i++)
		json_object_array_add(steps, step_named(e->conf, e->explain.step[i]));
	json_object_object_add(result, "steps", steps);
	for (unsigned int i = 0; i < e->node_count; i++)
		json_object_array_add(nodes, view_of(e, i));
	json_object_object_add(result, "nodes", nodes);
	return result;
}
