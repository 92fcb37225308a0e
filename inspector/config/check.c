// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the configuration once the whole file is read: nothing that must be unique is there twice, and no
 * two values contradict each other. It reads no text.
 */
#include <arpa/inet.h>
#include <earshot/ring.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inspector/config/internal.h"

__u64 es_conf_services_on(const struct es_conf *conf, unsigned int node)
{
	__u64 services = 0;

	for (unsigned int i = 0; i < conf->service_count; i++)
		services |= (__u64)es_conf_service_is_on(&conf->services[i], node) << i;
	return services;
}

static unsigned int es_ids_next(const struct es_conf *conf)
{
	unsigned int next = 1;

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (conf->nodes[i].id >= next)
			next = conf->nodes[i].id + 1;
	return next;
}

/*
 * Either every node has an id or none has, and no two have the same: a node without one is numbered by its
 * position, which may be another node's id.
 */
static void es_check_ids(struct es_conf_parse *p)
{
	const struct es_conf *conf = p->conf;
	unsigned int written = 0;

	for (unsigned int i = 0; i < conf->node_count; i++)
		written += conf->nodes[i].id != 0;
	for (unsigned int i = 0; written && i < conf->node_count; i++) {
		const struct es_conf_node *node = &conf->nodes[i];
		int line = es_conf_line_of(&p->nodes[i], ES_CONF_NODE, "id");

		if (p->nodes[i].wrong)
			continue;
		if (!node->id)
			es_conf_fail(p, line,
				     "node %s: id is missing, which other nodes have: expected one of its "
				     "own; the next one is %u",
				     node->name, es_ids_next(conf));
		for (unsigned int k = 0; k < i; k++)
			if (node->id && node->id == conf->nodes[k].id)
				es_conf_fail(
					p, line,
					"node %s: id = %u: also of node %s: expected one of its own; the "
					"next one is %u",
					node->name, node->id, conf->nodes[k].name, es_ids_next(conf));
	}
}

/* The name of the node before @i that has @route, too; NULL: none. */
static const char *es_route_owner(const struct es_conf *conf, unsigned int i, const char *route)
{
	for (unsigned int k = 0; k < i; k++)
		for (const char *other = NULL; (other = es_conf_route_next(&conf->nodes[k], other));)
			if (!strcmp(other, route))
				return conf->nodes[k].name;
	return NULL;
}

/* The value of a cookie or header names one node, so no two nodes may have the same route. */
static void es_check_routes(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_node *node = &p->conf->nodes[i];
	int line = es_conf_line_of(&p->nodes[i], ES_CONF_NODE, "route"), is_asked = 0;

	if (node->routes.count > ES_CONF_ROUTES_MAX) {
		es_conf_fail(p, line, "node %s: route: %u of them: expected at most %d", node->name,
			     node->routes.count, ES_CONF_ROUTES_MAX);
		return;
	}
	for (const char *route = NULL; (route = es_conf_route_next(node, route));) {
		const char *owner = es_route_owner(p->conf, i, route);

		if (owner)
			es_conf_fail(p, line, "node %s: route = %s: also of node %s: expected one of its own",
				     node->name, route, owner);
	}
	for (unsigned int k = 0; k < p->conf->rule_count; k++)
		is_asked |= p->conf->rules[k].affinity == ES_CONF_AFFINITY_ROUTE;
	if (node->routes.count && !is_asked)
		es_conf_warn(p, line, "node %s: route = %s has no effect: no rule has affinity = route",
			     node->name, node->routes.text);
}

static int es_check_nodes(struct es_conf_parse *p)
{
	struct es_conf *conf = p->conf;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, k, weights = 0;

	if (!conf->node_count)
		return es_conf_fail(p, 0, "no node: expected node NAME { address = ADDRESS } for each node");
	for (i = 0; i < conf->node_count; i++) {
		struct es_conf_node *node = &conf->nodes[i];
		int line = es_conf_line_of(&p->nodes[i], ES_CONF_NODE, "address");

		if (node->removed)
			node->weight = 0;
		weights += node->weight || p->nodes[i].wrong;
		/* A removed node's address may be another node's by now. */
		if (p->nodes[i].wrong || node->removed)
			continue;
		es_check_routes(p, i);
		if (!p->nodes[0].wrong &&
		    es_addr_is_v4(&node->address) != es_addr_is_v4(&conf->nodes[0].address))
			es_conf_fail(
				p, line,
				"node %s: address = %s: of another family than node %s's: expected a cluster "
				"network of one family",
				node->name, es_conf_addr_text(&node->address, text), conf->nodes[0].name);
		es_conf_addr_text(&node->address, text);
		for (k = 0; k < i; k++)
			if (!conf->nodes[k].removed && es_addr_equal(&node->address, &conf->nodes[k].address))
				es_conf_fail(
					p, line,
					"node %s: address = %s: also of node %s: expected one of its own",
					node->name, text, conf->nodes[k].name);
		for (k = 0; k < conf->service_count; k++)
			if (es_conf_service_has(&conf->services[k], &node->address))
				es_conf_fail(p, line,
					     "node %s: address = %s: also of service %s: expected the node's "
					     "address on the private network",
					     node->name, text, conf->services[k].name);
	}
	es_check_ids(p);
	if (!weights)
		return es_conf_fail(p, es_conf_line_of(&p->nodes[0], ES_CONF_NODE, "weight"),
				    "node %s: weight = 0, as of all other nodes: expected a weight above 0 "
				    "for one of them",
				    conf->nodes[0].name);
	return 0;
}

/* Counts the points that es_ring_new() will place for the nodes, es_ring_virtual_nodes() for each. */
static int es_check_ring(struct es_conf_parse *p)
{
	const struct es_conf *conf = p->conf;
	unsigned long long points = 0, one;
	unsigned int i;

	for (i = 0; i < conf->node_count; i++) {
		one = ((unsigned long long)conf->cluster.virtual_nodes * conf->nodes[i].weight + 50) / 100;
		points += conf->nodes[i].weight && !one ? 1 : one;
	}
	if (points <= ES_RING_POINTS_MAX)
		return 0;
	return es_conf_fail(
		p, es_conf_line_of(&p->cluster, ES_CONF_CLUSTER, "virtual_nodes"),
		"cluster: virtual_nodes = %u: with the nodes' weights %llu points on the ring: expected at "
		"most %d",
		conf->cluster.virtual_nodes, points, ES_RING_POINTS_MAX);
}

/* A layer-4 service is served by the inspecting node, which no other policy than the ring can change. */
static int es_check_policy(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	int never = es_conf_service_reads(service) == ES_INSPECT_NEVER;

	if (!service->policy[0]) {
		snprintf(service->policy, sizeof(service->policy), "%s", never ? "ring" : "uri-hash");
		return 0;
	}
	if (never && strcmp(service->policy, "ring") != 0)
		return es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "policy"),
				    "service %s: policy = %s: with inspect = never expected ring",
				    service->name, service->policy);
	return 0;
}

static void es_check_plugins(struct es_conf_parse *p)
{
	int config = es_conf_key_index(&es_conf_sections[ES_CONF_PLUGIN], "config");

	for (unsigned int i = 0; i < p->conf->plugin_count; i++) {
		struct es_conf_plugin *plugin = &p->conf->plugins[i];
		const struct es_conf_service *service = &p->conf->services[plugin->service];

		plugin->line = p->plugins[i].open;
		plugin->config_line = p->plugins[i].key[config];
		if (plugin->config_line && plugin->config_file[0])
			es_conf_fail(p, es_conf_line_of(&p->plugins[i], ES_CONF_PLUGIN, "config_file"),
				     "plugin %s: config_file: config was set on line %d: expected one of "
				     "them",
				     plugin->name, plugin->config_line);
		if (es_conf_service_reads(service) == ES_INSPECT_NEVER && !p->services[plugin->service].wrong)
			es_conf_fail(p, plugin->line,
				     "service %s: plugin %s: with inspect = never no request is seen: "
				     "expected inspect = first or every",
				     service->name, plugin->name);
	}
}

static void es_check_service_nodes(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	char known[256];
	const char *unknown =
		es_conf_nodes_of(p->conf, &service->node_names, &service->nodes, known, sizeof(known));

	if (unknown)
		es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "nodes"),
			     "service %s: nodes = %s: no node of that name: expected %s", service->name,
			     unknown, known);
}

/* The server to which a program hands over its connections must not listen where the program listens. */
static int es_check_server(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];
	int is_itself = 0, has_server = 0;

	if (service->tls.line)
		return 0;
	/* The program and the daemon would both decide where an open connection goes, each in its own way. */
	if (service->server_port && service->inspect == ES_INSPECT_EVERY)
		return es_conf_fail(
			p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "server_port"),
			"service %s: server_port = %u: with inspect = every no program hands over: "
			"expected inspect = first or never",
			service->name, service->server_port);
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
		const struct es_addr *server = es_conf_server_of(service, family);

		has_server |= server != NULL;
		is_itself |= server && service->server_port == service->port &&
			     es_conf_service_has(service, server);
	}
	if (service->server_port && !has_server)
		return es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "server_address"),
				    "service %s: server_address: of another family than address: expected "
				    "one of %s",
				    service->name, es_conf_service_of(service, 1) ? "IPv6" : "IPv4");
	if (!is_itself)
		return 0;
	return es_conf_fail(
		p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "server_port"),
		"service %s: server_port = %u: the program listens there itself: expected another port, or "
		"server_address, for the server behind it",
		service->name, service->server_port);
}

/* Another node must know where a request ends, and only a node that reads them all can tell it. */
static void es_check_survive(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];
	int line = es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "survive");

	if (service->survive && service->inspect != ES_INSPECT_EVERY)
		es_conf_fail(
			p, line,
			"service %s: survive = %u: %s nobody knows where a request ends: expected off, or "
			"inspect = every%s",
			service->name, service->survive,
			service->tls.line		       ? "with tls { }"
			: service->inspect == ES_INSPECT_FIRST ? "with inspect = first"
							       : "with inspect = never",
			service->tls.line ? " without tls { }" : "");
	else if (service->survive && p->conf->cluster.membership != ES_CONF_MEMBERSHIP_COROSYNC)
		es_conf_warn(p, line,
			     "service %s: survive = %u has no effect: with membership = static nobody knows "
			     "that a node is lost",
			     service->name, service->survive);
}

/* Keepers are those of idle connections, and what is gone on with ends as one. */
static void es_check_resume(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];

	if (service->resume && !service->survive)
		es_conf_fail(
			p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "resume"),
			"service %s: resume = on: with survive = off no other node knows its connections: "
			"expected off, or survive = 1 or 2",
			service->name);
}

/* An error that is about no single key of the section has the section's line. */
static void es_check_outlier(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];
	const struct es_conf_outlier *outlier = &service->outlier;
	const struct es_conf_lines *lines = &p->outliers[i];
	unsigned int nodes = 0;

	if (!lines->open || lines->wrong)
		return;
	if (!es_conf_outlier_is_set(outlier) && !es_conf_has(lines, ES_CONF_OUTLIER, "max_out"))
		es_conf_fail(p, lines->open,
			     "service %s: outlier: no limit: expected max_errors = PERCENT, max_slow = "
			     "PERCENT, or "
			     "both; or max_out = NODES for other reasons to be out",
			     service->name);
	if (es_conf_outlier_is_set(outlier) && es_conf_service_reads(service) != ES_INSPECT_EVERY)
		es_conf_fail(
			p, lines->open,
			"service %s: outlier: with inspect = %s no responses are read: expected inspect = "
			"every",
			service->name,
			es_conf_service_reads(service) == ES_INSPECT_FIRST ? "first" : "never");
	if (outlier->out_max_s < outlier->out_s)
		es_conf_fail(p, es_conf_line_of(lines, ES_CONF_OUTLIER, "out_max_s"),
			     "outlier: out_max_s = %u: less than out_s: expected at least %u",
			     outlier->out_max_s, outlier->out_s);
	if (i >= ES_CONF_OUTLIER_SERVICES)
		es_conf_fail(p, lines->open, "service %s: outlier: expected one of the first %d services",
			     service->name, ES_CONF_OUTLIER_SERVICES);
	for (unsigned int k = 0; k < p->conf->node_count; k++)
		nodes += es_conf_service_is_on(service, k) && (p->conf->nodes[k].weight || p->nodes[k].wrong);
	if (nodes && outlier->max_out >= nodes)
		es_conf_fail(p, es_conf_line_of(lines, ES_CONF_OUTLIER, "max_out"),
			     "outlier: max_out = %u: of %u nodes: expected fewer, so that one serves",
			     outlier->max_out, nodes);
}

/* On a service's address, clients would find the status page. */
static int es_check_status(struct es_conf_parse *p)
{
	const struct es_conf *conf = p->conf;
	char text[INET6_ADDRSTRLEN];

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_conf_service_has(&conf->services[i], &conf->status.address))
			return es_conf_fail(
				p, es_conf_line_of(&p->status, ES_CONF_STATUS, "address"),
				"status: address = %s: also of service %s: expected 127.0.0.1, or "
				"no address, which means the node's own",
				es_conf_addr_text(&conf->status.address, text), conf->services[i].name);
	return 0;
}

/* Checks where the log goes, and finds the service that it is about. */
static void es_check_log(struct es_conf_parse *p)
{
	struct es_conf_log *log = &p->conf->log;
	int alternatives = 0;
	char names[256] = "";

	log->is_on = p->log.open != 0;
	log->service = -1;
	if (!log->is_on || p->log.wrong)
		return;
	if (log->to == ES_CONF_LOG_FILE && !log->file[0])
		es_conf_fail(p, es_conf_line_of(&p->log, ES_CONF_LOG, "to"),
			     "log: to = file: expected file = PATH besides");
	if (log->to == ES_CONF_LOG_SYSLOG && log->file[0])
		es_conf_fail(p, es_conf_line_of(&p->log, ES_CONF_LOG, "file"),
			     "log: file has no effect with to = syslog: expected to = file besides");
	if (log->to == ES_CONF_LOG_FILE && es_conf_has(&p->log, ES_CONF_LOG, "facility"))
		es_conf_fail(p, es_conf_line_of(&p->log, ES_CONF_LOG, "facility"),
			     "log: facility has no effect with to = file: expected to = syslog");
	for (unsigned int i = 0; log->service_name[0] && i < p->conf->service_count; i++) {
		es_conf_alternative(names, sizeof(names), &alternatives, p->conf->services[i].name);
		if (!strcmp(p->conf->services[i].name, log->service_name))
			log->service = (int)i;
	}
	if (log->service_name[0] && log->service < 0)
		es_conf_fail(p, es_conf_line_of(&p->log, ES_CONF_LOG, "service"),
			     "log: service = %s: no service of that name: expected %s", log->service_name,
			     names);
}

/* The address that both services have; NULL: none. */
static const struct es_addr *es_service_shares(const struct es_conf_service *a,
					       const struct es_conf_service *b)
{
	if (es_conf_service_has(b, &a->address))
		return &a->address;
	return es_conf_service_has(b, &a->address6) ? &a->address6 : NULL;
}

static int es_check_services(struct es_conf_parse *p)
{
	const struct es_conf *conf = p->conf;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, k;

	if (!conf->service_count)
		return es_conf_fail(p, 0,
				    "no service: expected service NAME { address = ADDRESS  port = PORT }");
	for (i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		const struct es_addr *shared;

		p->conf->services[i].address_line =
			es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "address");
		es_conf_check_tls(p, i);
		if (p->services[i].wrong)
			continue;
		for (k = 0; k < i; k++)
			if (service->port == conf->services[k].port &&
			    (shared = es_service_shares(service, &conf->services[k])))
				es_conf_fail(p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "port"),
					     "service %s: address = %s and port = %u: also of service %s: "
					     "expected another address or port",
					     service->name, es_conf_addr_text(shared, text), service->port,
					     conf->services[k].name);
		es_conf_check_health(p, i);
		es_check_service_nodes(p, i);
		es_check_outlier(p, i);
		es_conf_check_backup(p, i);
		es_check_server(p, i);
		es_check_survive(p, i);
		es_check_resume(p, i);
		if (!es_check_policy(p, i))
			es_conf_check_parameters(p, i);
	}
	return 0;
}

/* The bit that tells a group address from a station's (IEEE 802) decides which frames a switch floods. */
static int es_check_cluster_mac(struct es_conf_parse *p)
{
	static const unsigned char none[6];
	struct es_conf_datapath *datapath = &p->conf->datapath;
	int multicast = datapath->mac_mode == ES_CONF_MAC_MULTICAST;
	const char *why = NULL;

	if (!p->datapath.key[es_conf_key_index(&es_conf_sections[ES_CONF_DATAPATH], "cluster_mac")]) {
		datapath->cluster_mac[0] = multicast ? 0x03 : 0x02;
		datapath->cluster_mac[1] = 0xbf;
		memcpy(datapath->cluster_mac + 2, &es_conf_service_address(&p->conf->services[0])->w[3], 4);
		return 0;
	}
	if (multicast && !(datapath->cluster_mac[0] & 1))
		why = "with mac_mode = multicast expected a group address (first byte odd)";
	else if (!multicast && (datapath->cluster_mac[0] & 1))
		why = "with mac_mode = unicast expected a station address (first byte even)";
	else if (!memcmp(datapath->cluster_mac, none, sizeof(none)))
		why = "expected an address other than 0";
	if (!why)
		return 0;
	return es_conf_fail(p, es_conf_line_of(&p->datapath, ES_CONF_DATAPATH, "cluster_mac"),
			    "datapath: cluster_mac: %s", why);
}

int es_conf_check(struct es_conf_parse *p)
{
	p->cluster.wrong |=
		!!es_conf_section_complete(p, &es_conf_sections[ES_CONF_CLUSTER], "cluster", &p->cluster);
	p->datapath.wrong |=
		!!es_conf_section_complete(p, &es_conf_sections[ES_CONF_DATAPATH], "datapath", &p->datapath);
	p->inspector.wrong |= !!es_conf_section_complete(p, &es_conf_sections[ES_CONF_INSPECTOR], "inspector",
							 &p->inspector);
	es_check_services(p);
	if (!p->status.wrong)
		es_check_status(p);
	es_check_log(p);
	es_check_plugins(p);
	es_check_nodes(p);
	if (!p->cluster.wrong)
		es_check_ring(p);
	es_conf_check_rules(p);
	if (!p->datapath.wrong)
		es_check_cluster_mac(p);
	if (!p->datapath.wrong && !p->cluster.wrong)
		es_conf_check_netfilter(p);
	return p->failed ? -EINVAL : 0;
}
