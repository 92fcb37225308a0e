// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builds the replies of the control socket from the configuration and plain values (docs/json.md has their
 * shape). Where the values come from, and when, is the daemon's business.
 */
#include "earshot_version.h"
#include "inspector/report/report.h"
#include "inspector/report/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kmod/core/counters.h"

static void add_address(struct json_object *object, const char *key, const struct es_addr *address)
{
	char text[INET6_ADDRSTRLEN];

	es_json_string(object, key, es_conf_addr_text(address, text));
}

static struct json_object *addresses_of(const struct es_conf_service *service)
{
	struct json_object *addresses = json_object_new_array();
	char text[INET6_ADDRSTRLEN];

	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
		const struct es_addr *address = es_conf_service_of(service, family);

		if (address)
			json_object_array_add(addresses,
					      json_object_new_string(es_conf_addr_text(address, text)));
	}
	return addresses;
}

static struct json_object *nodes_with(const struct es_conf *conf, const struct es_conf_service *service)
{
	struct json_object *nodes = json_object_new_array();

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (es_conf_service_is_on(service, i))
			json_object_array_add(nodes, json_object_new_string(conf->nodes[i].name));
	return nodes;
}

static const char *inspect_name(enum es_inspect inspect)
{
	switch (inspect) {
	case ES_INSPECT_NEVER:
		return "never";
	case ES_INSPECT_FIRST:
		return "first";
	case ES_INSPECT_EVERY:
		return "every";
	}
	return "unknown";
}

static struct json_object *backup_of(const struct es_conf *conf, const struct es_conf_service *service)
{
	struct json_object *names = json_object_new_array();

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (es_conf_has_backup(service, i))
			json_object_array_add(names, json_object_new_string(conf->nodes[i].name));
	return names;
}

static struct json_object *services_of(const struct es_conf *conf, const struct es_report_service *load)
{
	struct json_object *services = json_object_new_array();
	unsigned int i;

	for (i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		struct json_object *object = json_object_new_object();

		es_json_string(object, "name", service->name);
		add_address(object, "address", es_conf_service_address(service));
		json_object_object_add(object, "addresses", addresses_of(service));
		es_json_number(object, "port", service->port);
		es_json_string(object, "policy", service->policy);
		es_json_string(object, "inspect", inspect_name(es_conf_service_reads(service)));
		json_object_object_add(object, "nodes", nodes_with(conf, service));
		if (service->backup_names.count)
			json_object_object_add(object, "backup", backup_of(conf, service));
		if (load) {
			es_json_number(object, "connections", load[i].connections);
			es_json_number(object, "active", load[i].active);
			es_json_number(object, "idle", load[i].idle);
			es_json_number(object, "load", load[i].load);
			es_json_number(object, "measured", load[i].measured);
			es_json_number(object, "mean_bytes",
				       load[i].measured ? load[i].measured_bytes / load[i].measured : 0);
		}
		json_object_array_add(services, object);
	}
	return services;
}

/* How far a node's clock is ahead of this node's; null if it has not told. */
static struct json_object *clock_of(const struct es_report_status *status, unsigned int node)
{
	const struct es_node_clock *clock = status->clocks ? &status->clocks->node[node] : NULL;

	if (node == status->self)
		return json_object_new_int64(0);
	return clock && clock->is_told ? json_object_new_int64(clock->ahead_ms) : NULL;
}

static struct json_object *nodes_of(const struct es_report_status *status)
{
	struct json_object *nodes = json_object_new_array();
	unsigned int i;

	for (i = 0; i < status->conf->node_count; i++) {
		const struct es_conf_node *node = &status->conf->nodes[i];
		struct json_object *object = json_object_new_object();

		es_json_string(object, "name", node->name);
		add_address(object, "address", &node->address);
		es_json_number(object, "weight", status->weights ? status->weights[i] : node->weight);
		es_json_string(object, "state", status->node_states ? status->node_states[i] : "up");
		json_object_object_add(object, "self", json_object_new_boolean(i == status->self));
		es_json_fraction(object, "ring_share", status->ring_shares ? status->ring_shares[i] : 0, 6);
		json_object_object_add(object, "clock_ahead_ms", clock_of(status, i));
		es_json_string(object, "trouble", status->troubles ? status->troubles[i] : "");
		json_object_array_add(nodes, object);
	}
	return nodes;
}

struct json_object *es_report_status(const struct es_report_status *status)
{
	struct json_object *report = json_object_new_object();
	struct json_object *datapath = json_object_new_object();
	struct json_object *ring = json_object_new_object();
	struct json_object *loads = json_object_new_object();

	es_json_string(report, "version", EARSHOT_VERSION);
	es_json_string(report, "cluster", status->conf->cluster.name);
	es_json_string(report, "node", status->conf->nodes[status->self].name);
	if (status->config_path)
		es_json_string(report, "config", status->config_path);
	es_json_string(datapath, "type", status->datapath_type);
	es_json_string(datapath, "state", status->datapath_state);
	es_json_string(datapath, "note", status->datapath_note ? status->datapath_note : "");
	json_object_object_add(report, "datapath", datapath);
	es_json_fraction(report, "uptime_s", status->uptime_s, 6);
	es_json_string(report, "waiting_for_restart", status->waiting ? status->waiting : "");
	es_json_number(ring, "epoch", status->epoch);
	es_json_number(ring, "members", status->members);
	json_object_object_add(report, "ring", ring);
	json_object_object_add(report, "workers",
			       status->workers ? status->workers : json_object_new_array());
	es_json_number(loads, "sent", status->loads.sent);
	es_json_number(loads, "received", status->loads.received);
	es_json_number(loads, "refused", status->loads.refused);
	json_object_object_add(report, "loads", loads);
	json_object_object_add(report, "services", services_of(status->conf, status->services));
	json_object_object_add(report, "nodes", nodes_of(status));
	return report;
}

struct json_object *es_report_worker(unsigned int id, const char *const *names,
				     const unsigned long long *values)
{
	struct json_object *worker = json_object_new_object();

	es_json_number(worker, "id", id);
	for (; *names; names++, values++)
		es_json_number(worker, *names, *values);
	return worker;
}

static struct json_object *members_of(const struct es_report_ring *ring)
{
	struct json_object *members = json_object_new_array();
	unsigned int i;

	for (i = 0; i < ring->conf->node_count; i++) {
		struct json_object *object;

		if (!ring->virtual_nodes[i])
			continue;
		object = json_object_new_object();
		es_json_string(object, "name", ring->conf->nodes[i].name);
		add_address(object, "address", &ring->conf->nodes[i].address);
		es_json_number(object, "virtual_nodes", ring->virtual_nodes[i]);
		es_json_fraction(object, "share", ring->shares[i], 6);
		json_object_array_add(members, object);
	}
	return members;
}

static struct json_object *position_of(unsigned long long position)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", position);
	return json_object_new_string(text);
}

static struct json_object *points_of(const struct es_report_ring *ring)
{
	struct json_object *points = json_object_new_array_ext((int)ring->point_count);
	size_t i;

	for (i = 0; i < ring->point_count; i++) {
		struct json_object *point = json_object_new_array_ext(2);

		json_object_array_add(point, position_of(ring->points[i].position));
		json_object_array_add(point,
				      json_object_new_string(ring->conf->nodes[ring->points[i].node].name));
		json_object_array_add(points, point);
	}
	return points;
}

struct json_object *es_report_ring(const struct es_report_ring *ring)
{
	struct json_object *report = json_object_new_object();

	es_json_number(report, "epoch", ring->epoch);
	es_json_number(report, "virtual_nodes", ring->conf->cluster.virtual_nodes);
	json_object_object_add(report, "members", members_of(ring));
	if (ring->points)
		json_object_object_add(report, "points", points_of(ring));
	return report;
}

int es_report_wants_points(struct json_object *request)
{
	struct json_object *points;

	return json_object_object_get_ex(request, "points", &points) && json_object_get_boolean(points);
}

static int lookup_service(const struct es_conf *conf, struct json_object *lookup, unsigned int *ret_service,
			  struct es_conf_error *err)
{
	struct json_object *service;
	const char *name;
	unsigned int i;

	if (!json_object_object_get_ex(lookup, "service", &service)) {
		*ret_service = 0; /* the first; the parser guarantees one */
		if (conf->service_count == 1)
			return 0;
		es_conf_error_set(err, "there are %u services, expected the name of one of them",
				  conf->service_count);
		return -EINVAL;
	}
	name = json_object_get_string(service);
	for (i = 0; name && i < conf->service_count; i++) {
		if (strcmp(conf->services[i].name, name) != 0)
			continue;
		*ret_service = i;
		return 0;
	}
	es_conf_error_set(err, "no service named \"%.80s\"", name ? name : "");
	return -EINVAL;
}

int es_report_flow_of(const struct es_conf_service *service, const struct es_addr *client, unsigned int port,
		      struct es_flow *ret_flow, struct es_conf_error *err)
{
	int is_v4 = es_addr_is_v4(client);
	const struct es_addr *address = is_v4 ? &service->address : &service->address6;

	if (!es_addr_is_set(address)) {
		es_conf_error_set(err, "service %s has no %s address, expected a client with %s",
				  service->name, is_v4 ? "IPv4" : "IPv6", is_v4 ? "IPv6" : "IPv4");
		return -EINVAL;
	}
	*ret_flow = (struct es_flow){.client = *client,
				     .service = *address,
				     .client_port = htons((uint16_t)port),
				     .service_port = htons((uint16_t)service->port)};
	return 0;
}

int es_report_lookup_flow(const struct es_conf *conf, struct json_object *request, struct es_flow *ret_flow,
			  unsigned int *ret_service, struct es_conf_error *err)
{
	struct json_object *lookup, *address, *port;
	unsigned int service = 0;
	struct es_addr client;
	const char *text;
	int r;

	if (!json_object_object_get_ex(request, "lookup", &lookup))
		return -ENOENT;
	text = json_object_object_get_ex(lookup, "address", &address) ? json_object_get_string(address)
								      : NULL;
	if (!text || es_conf_addr_parse(text, &client)) {
		es_conf_error_set(err, "bad client address \"%.80s\", expected an IP address",
				  text ? text : "");
		return -EINVAL;
	}
	if (!json_object_object_get_ex(lookup, "port", &port) || !json_object_is_type(port, json_type_int) ||
	    json_object_get_int64(port) < 1 || json_object_get_int64(port) > 65535) {
		es_conf_error_set(err, "bad client port, expected 1..65535");
		return -EINVAL;
	}
	r = lookup_service(conf, lookup, &service, err);
	if (!r)
		r = es_report_flow_of(&conf->services[service], &client,
				      (unsigned int)json_object_get_int(port), ret_flow, err);
	if (!r)
		*ret_service = service;
	return r;
}

struct json_object *es_report_lookup(const struct es_conf *conf, unsigned int epoch,
				     const struct es_flow *flow, unsigned int service,
				     unsigned long long position, unsigned int node)
{
	struct json_object *report = json_object_new_object();
	struct json_object *lookup = json_object_new_object();

	add_address(lookup, "address", &flow->client);
	es_json_number(lookup, "port", ntohs(flow->client_port));
	es_json_string(lookup, "service", conf->services[service].name);
	json_object_object_add(lookup, "position", position_of(position));
	es_json_string(lookup, "node", conf->nodes[node].name);
	add_address(lookup, "node_address", &conf->nodes[node].address);
	es_json_number(report, "epoch", epoch);
	json_object_object_add(report, "lookup", lookup);
	return report;
}

struct json_object *es_report_metrics(const struct es_addr *address, unsigned int port, const char *error)
{
	struct json_object *report = json_object_new_object();

	add_address(report, "address", address);
	es_json_number(report, "port", port);
	es_json_string(report, "error", error);
	return report;
}

struct json_object *es_report_reload(unsigned int epoch)
{
	struct json_object *report = json_object_new_object();
	char text[64];

	snprintf(text, sizeof(text), "reloaded, epoch %u", epoch);
	es_json_number(report, "epoch", epoch);
	es_json_string(report, "message", text);
	return report;
}

struct json_object *es_report_counters(const unsigned long long *values)
{
	static const struct {
		const char *name;
		const char *description;
	} counters[] = {
#define X(name, description) {#name, description},
		ES_COUNTERS(X)
#undef X
	};
	struct json_object *report = json_object_new_object();
	size_t i;

	json_object_object_add(report, "counters", json_object_new_array());
	for (i = 0; i < ES_COUNTER_COUNT; i++)
		es_report_counter_add(report, counters[i].name, values[i], counters[i].description);
	return report;
}

void es_report_counter_add(struct json_object *report, const char *name, unsigned long long value,
			   const char *description)
{
	struct json_object *object = json_object_new_object();
	struct json_object *counters;

	es_json_string(object, "name", name);
	es_json_number(object, "value", value);
	es_json_string(object, "description", description);
	if (!json_object_object_get_ex(report, "counters", &counters) ||
	    json_object_array_add(counters, object))
		json_object_put(object);
}
