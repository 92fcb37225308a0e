// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks a configuration that is correct, but may not be what its author wants. One that is wrong in itself
 * has been refused already, when it was loaded.
 */
#include <arpa/inet.h>
#include <earshot/ring.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/check/check.h"

#define UNEVEN_PERCENT 50 /* chance alone hardly makes more with the default of 63 virtual nodes */

static void check_self(struct es_check *check)
{
	char text[INET6_ADDRSTRLEN];

	if (check->self < 0) {
		es_check_error(check,
			       es_check_action("ip address add ADDRESS/PREFIX dev %s (or --node NAME)",
					       check->conf->datapath.cluster_interface),
			       "%s", check->facts->self_text);
		return;
	}
	es_check_ok(check, "this is %s (%s)", es_check_self_name(check),
		    es_conf_addr_text(&check->conf->nodes[check->self].address, text));
}

static void check_size(struct es_check *check)
{
	unsigned int count = es_conf_nodes_present(check->conf);

	if (count == 1)
		es_check_warning(check,
				 es_check_action("node NAME { address = ADDRESS } in %s", check->conf->path),
				 "one node");
	else
		es_check_ok(check, "%u nodes", count);
}

static void check_membership(struct es_check *check)
{
	if (check->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC)
		es_check_ok(check, "membership = corosync");
	else if (es_conf_nodes_present(check->conf) == 1)
		es_check_ok(check, "membership = static, of one node");
	else
		es_check_warning(check,
				 es_check_action("cluster { membership = corosync } in %s, on all nodes",
						 check->conf->path),
				 "membership = static");
}

static void check_weights(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	char list[256] = "";
	unsigned int i, with = 0;
	size_t used = 0;

	for (i = 0; i < conf->node_count; i++) {
		if (conf->nodes[i].removed)
			continue;
		if (conf->nodes[i].weight) {
			with++;
			continue;
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
						 conf->nodes[i].name);
	}
	if (with == 1 && es_conf_nodes_present(conf) > 1)
		es_check_warning(check, es_check_action("weight = 100 for more nodes, in %s", conf->path),
				 "all nodes but one have weight 0: %s", list);
	else if (used)
		es_check_info(check, "weight 0, so neither inspect nor serve: %s", list);
	else
		es_check_ok(check, "all nodes have a weight");
}

/* The node whose part of the ring is farthest from what its weight says. Return: percent off, signed. */
static double ring_worst(const struct es_conf *conf, const double *shares, unsigned int *ret_node)
{
	double total = 0, worst = 0;
	unsigned int i;

	for (i = 0; i < conf->node_count; i++)
		total += conf->nodes[i].weight;
	for (i = 0; i < conf->node_count; i++) {
		double due = conf->nodes[i].weight / total;
		double off = due > 0 ? 100 * (shares[i] - due) / due : 0;

		if ((off < 0 ? -off : off) > (worst < 0 ? -worst : worst)) {
			worst = off;
			*ret_node = i;
		}
	}
	return worst;
}

static void check_ring(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	struct es_ring_node nodes[ES_CONF_NODES_MAX] = {};
	double shares[ES_CONF_NODES_MAX], off;
	unsigned int i, node = 0;
	struct es_ring *ring;
	int rc;

	for (i = 0; i < conf->node_count; i++) {
		nodes[i].address = conf->nodes[i].address;
		nodes[i].virtual_nodes =
			es_ring_virtual_nodes(conf->cluster.virtual_nodes, conf->nodes[i].weight);
		nodes[i].id = (__u16)i;
	}
	rc = es_ring_new(nodes, conf->node_count, &ring);
	if (rc) {
		es_check_error(check, NULL, "the ring cannot be made: %s", strerror(-rc));
		return;
	}
	es_ring_shares(ring, shares, conf->node_count);
	es_ring_free(&ring);
	off = ring_worst(conf, shares, &node);
	if (off > UNEVEN_PERCENT || off < -UNEVEN_PERCENT)
		es_check_warning(
			check,
			es_check_action("virtual_nodes = 63, or more, in cluster { } of %s, on all nodes",
					conf->path),
			"%s inspects %.1f%% of the flows, %+.0f%% of what its weight says, with "
			"virtual_nodes = %u",
			conf->nodes[node].name, 100 * shares[node], off, conf->cluster.virtual_nodes);
	else
		es_check_ok(check, "shares of the ring within %.0f%% of the weights", off < 0 ? -off : off);
}

static void check_ring_hash(struct es_check *check)
{
	if (check->facts->datapath != ES_DATAPATH_NETFILTER)
		es_check_ok(check, "the datapath here drops other nodes' packets by any hash");
	else if (check->conf->cluster.ring_hash == ES_CONF_RING_SIPHASH)
		es_check_info(
			check,
			"ring_hash = siphash: every packet for a service comes to earshotd, also those of "
			"other nodes, which costs microseconds each; with jhash the kernel drops them");
	else
		es_check_ok(check, "the kernel drops other nodes' packets");
}

static void check_port(struct es_check *check)
{
	const long port = check->conf->cluster.handover_port;
	long range[2];

	if (es_facts_sysctl(check->facts, "net/ipv4/ip_local_port_range", range, 2) != 2)
		es_check_unchecked(check, "net.ipv4.ip_local_port_range cannot be read");
	else if (port >= range[0] && port <= range[1])
		es_check_warning(check,
				 es_check_action("sysctl -w net.ipv4.ip_local_reserved_ports=%ld", port),
				 "handover_port %ld is in net.ipv4.ip_local_port_range, %ld to %ld", port,
				 range[0], range[1]);
	else
		es_check_ok(check, "handover_port %ld is not a port that programs get by chance", port);
}

static void check_program_group(struct es_check *check)
{
	const char *group = check->conf->inspector.program_group;

	if (!*group)
		es_check_ok(check, "no program_group: only root's programs hand connections over");
	else if (check->facts->startup.no_group)
		es_check_error(check, es_check_action("groupadd --system %s", group),
			       "program_group = %s: there is no such group, so the daemon does not start",
			       group);
	else
		es_check_ok(check, "the group %s is there", group);
}

static void check_document_roots(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];

		if (!check->facts->startup.root_rc[i])
			continue;
		wrong++;
		es_check_warning(
			check,
			es_check_action("document_root of service %s in %s", service->name, conf->path),
			"service %s: document_root = %s: %s", service->name, service->document_root,
			strerror(-check->facts->startup.root_rc[i]));
	}
	if (!wrong)
		es_check_ok(check, "all document roots are there");
}

static void check_plugins(struct es_check *check)
{
	if (check->facts->startup.plugins_text[0])
		es_check_error(check, es_check_action("earshot check-config %s", check->conf->path), "%s",
			       check->facts->startup.plugins_text);
	else
		es_check_ok(check, "%u plugins, all here", check->conf->plugin_count);
}

static const struct es_check_item items[] = {
	{"self", "A node must know which of the nodes it is, by its address on the private network.",
	 check_self},
	{"size", "Nobody takes over from a single node.", check_size},
	{"membership",
	 "A static cluster does not notice that a node has died: "
	 "its share of new connections is not answered until it is back.",
	 check_membership},
	{"weights", "A node of weight 0 is not on the ring and is given no requests.", check_weights},
	{"virtual_nodes", "A node gets more of the work than others when its part of the ring is larger.",
	 check_ring},
	{"ring_hash", "Most of what a node hears is for others, and dropping it should cost little.",
	 check_ring_hash},
	{"program_group",
	 "Programs hand connections over as members of it; without it the daemon does not start.",
	 check_program_group},
	{"document_root", "Policies that count sizes know none of files that are not found.",
	 check_document_roots},
	{"plugins", "Without one that the configuration names the daemon does not start.", check_plugins},
	{"handover_port", "A program that gets this UDP port by chance loses its datagrams to the datapath.",
	 check_port},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_cluster_group = {.name = "cluster", .items = items};
