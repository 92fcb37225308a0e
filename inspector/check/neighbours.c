// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the answers of the network: who has which address, and whether the private network carries what it
 * must.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "inspector/check/check.h"

static void mac_text(const unsigned char *mac, char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* Says why nothing could be asked on an interface. Return: could it not? */
static int unasked(struct es_check *check, int rc, const char *interface)
{
	if (rc == -EPERM || rc == -EACCES)
		es_check_unchecked(check, "%s may not be asked by this user: run it as root", interface);
	else if (rc == -ENODATA)
		es_check_unchecked(check, "it is not known which node this is");
	else if (rc)
		es_check_unchecked(check, "%s could not be asked: %s", interface, strerror(-rc));
	return rc != 0;
}

static void check_own(struct es_check *check)
{
	const char *interface = check->conf->datapath.cluster_interface;
	const struct es_facts_answer *arp = &check->facts->self_arp;
	char text[INET6_ADDRSTRLEN], mac[18];

	if (check->self >= 0 && !es_addr_is_v4(&check->conf->nodes[check->self].address))
		arp = &check->facts->self_ndp;
	if (unasked(check, arp->rc, interface))
		return;
	es_conf_addr_text(&check->conf->nodes[check->self].address, text);
	if (arp->answers) {
		mac_text(arp->mac[0], mac);
		es_check_error(check, "one address for each machine", "%s has %s, too, on the network of %s",
			       mac, text, interface);
	} else {
		es_check_ok(check, "nobody else has %s", text);
	}
}

/* Judges the answers for an address of a service. Returns how many of them are wrong. */
static unsigned int judge_service(struct es_check *check, const char *service, const struct es_addr *address,
				  const struct es_facts_answer *arp)
{
	int is_v4 = es_addr_is_v4(address);
	char text[INET6_ADDRSTRLEN], mac[18];
	unsigned int wrong = 0;

	for (unsigned int k = 0; k < arp->answers && k < 2; k++) {
		if (!memcmp(arp->mac[k], check->conf->datapath.cluster_mac, 6))
			continue;
		wrong++;
		mac_text(arp->mac[k], mac);
		es_check_error(
			check,
			is_v4 ? es_check_action(
					"sysctl -w net/ipv4/conf/all/arp_ignore=1 on the machine with %s, or "
					"take the address from it",
					mac)
			      : es_check_action(
					"take the address from the machine with %s, or give it to lo there",
					mac),
			is_v4 ? "service %s: %s answers ARP for %s"
			      : "service %s: %s answers neighbours' solicitations for %s",
			service, mac, es_conf_addr_text(address, text));
	}
	return wrong;
}

/*
 * Only a node's datapath may answer for a service, with the cluster MAC. Wrong answers for one family are
 * reported even if the other family could not be asked.
 */
static void check_service(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	unsigned int wrong = 0;
	int rc = 0;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		const struct es_facts_answer *arp = &check->facts->service_arp[i],
					     *ndp = &check->facts->service_ndp[i];

		rc = rc ? rc : arp->rc ? arp->rc : ndp->rc;
		wrong += judge_service(check, service->name, &service->address, arp) +
			 judge_service(check, service->name, &service->address6, ndp);
	}
	if (!unasked(check, rc, conf->datapath.interface) && !wrong)
		es_check_ok(check, "nobody answers for the services with a MAC of his own");
}

/* With IPv6, a node that answers an echo request is there. */
static void check_nodes6(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	const char *interface = conf->datapath.cluster_interface;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, wrong = 0;

	for (i = 0; i < conf->node_count; i++) {
		const struct es_facts_echo *echo = &check->facts->node_echo[i];

		if ((int)i == check->self || conf->nodes[i].removed)
			continue;
		if (unasked(check, echo->rc, interface))
			return;
		if (echo->small || echo->full)
			continue;
		wrong++;
		es_conf_addr_text(&conf->nodes[i].address, text);
		es_check_warning(check, es_check_action("ping -I %s %s", interface, text),
				 "node %s: nobody on %s answers ping at %s", conf->nodes[i].name, interface,
				 text);
	}
	if (!wrong)
		es_check_ok(check, "all other nodes answer on %s", interface);
}

static void check_nodes(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	const char *interface = conf->datapath.cluster_interface;
	char text[INET6_ADDRSTRLEN], mac[2][18];
	unsigned int i, wrong = 0;

	if (check->self < 0) {
		unasked(check, -ENODATA, interface);
		return;
	}
	if (!es_addr_is_v4(&conf->nodes[0].address)) {
		check_nodes6(check);
		return;
	}
	for (i = 0; i < conf->node_count; i++) {
		const struct es_facts_answer *arp = &check->facts->node_arp[i];

		if ((int)i == check->self || conf->nodes[i].removed)
			continue;
		if (unasked(check, arp->rc, interface))
			return;
		es_conf_addr_text(&conf->nodes[i].address, text);
		if (arp->answers == 1)
			continue;
		wrong++;
		mac_text(arp->mac[0], mac[0]);
		mac_text(arp->mac[1], mac[1]);
		if (arp->answers)
			es_check_error(check, "one address for each machine",
				       "node %s: both %s and %s have %s", conf->nodes[i].name, mac[0], mac[1],
				       text);
		else
			es_check_warning(check, es_check_action("arping -I %s %s", interface, text),
					 "node %s: nobody on %s answers ARP for %s", conf->nodes[i].name,
					 interface, text);
	}
	if (!wrong)
		es_check_ok(check, "all other nodes answer on %s", interface);
}

static void check_path(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	const struct es_conf_datapath *dp = &conf->datapath;
	unsigned int i, mtu = dp->mtu ? dp->mtu : check->facts->cluster.mtu, wrong = 0;
	char text[INET6_ADDRSTRLEN];

	for (i = 0; i < conf->node_count; i++) {
		const struct es_facts_echo *echo = &check->facts->node_echo[i];

		if ((int)i == check->self || conf->nodes[i].removed)
			continue;
		if (unasked(check, echo->rc, dp->cluster_interface))
			return;
		if (echo->full)
			continue;
		wrong++;
		es_conf_addr_text(&conf->nodes[i].address, text);
		if (!echo->small)
			es_check_unchecked(check, "node %s does not answer ping at %s", conf->nodes[i].name,
					   text);
		else
			es_check_error(
				check,
				es_check_action(
					"the same MTU for %s of all nodes and for the switch, or mtu = what "
					"it carries in datapath { } of %s",
					dp->cluster_interface, conf->path),
				"node %s answers short packets at %s, but none of %u bytes",
				conf->nodes[i].name, text, mtu);
	}
	if (!wrong)
		es_check_ok(check, "packets of %u bytes reach all other nodes", mtu);
}

static void check_route(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, wrong = 0;

	for (i = 0; i < conf->node_count; i++) {
		const struct es_facts_route *route = &check->facts->node_route[i];
		const struct es_addr *address = &conf->nodes[i].address;
		const char *family = es_addr_is_v4(address) ? "" : " -6";

		if ((int)i == check->self || conf->nodes[i].removed || route->rc || !route->mtu)
			continue; /* no route at all: other checks report that */
		wrong++;
		es_conf_addr_text(address, text);
		es_check_warning(
			check,
			es_check_action(
				"ip%s route flush cache; if it comes back, see who sends it: tcpdump -ni any "
				"%s; drop ICMP that comes to %s by another interface",
				family, *family ? "icmp6" : "icmp", conf->datapath.cluster_interface),
			"node %s: an ICMP error has said that no packet of more than %u bytes reaches %s, "
			"which "
			"the kernel believes for %u s more",
			conf->nodes[i].name, route->mtu, text, route->expires_s);
	}
	if (!wrong)
		es_check_ok(check, "no ICMP error has made the way to another node narrower");
}

static const struct es_check_item items[] = {
	{"own_address", "Handovers to this node go to another machine.", check_own},
	{"service_arp", "Clients that hear this answer talk to that machine alone.", check_service},
	{"nodes", "Handovers to this node are lost, if it is not down anyway.", check_nodes},
	{"path_mtu", "Handovers of full segments are lost, so larger requests hang.", check_path},
	{"route_mtu",
	 "Handovers do not heed it, but corosync and others do; and who forges such errors makes versions "
	 "before "
	 "this one send handovers in parts, which are refused.",
	 check_route},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_neighbours_group = {.name = "neighbours", .items = items};
