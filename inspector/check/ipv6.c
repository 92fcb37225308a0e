// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks that this machine has what IPv6 addresses of services and nodes need. */
#include <arpa/inet.h>
#include <string.h>

#include "inspector/check/check.h"
#include "inspector/machine/solicited.h"
#include "kmod/core/headers.h"

static int has_ipv6_service(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			return 1;
	return 0;
}

/* Returns 1 if IPv6 is on there, 0 if not, -1 if that cannot be read. The last two are reported. */
static int judge_interface(struct es_check *check, const char *interface, const char *wanted_for)
{
	char path[64 + ES_CONF_IFNAME_SIZE];
	long value;
	int n;

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", interface);
	n = es_facts_sysctl(check->facts, path, &value, 1);
	if (n != 1) {
		es_check_unchecked(check, "sysctl %s cannot be read: %s", path, strerror(-n));
		return -1;
	}
	if (!value)
		return 1;
	es_check_error(check, es_check_action("sysctl -w %s=0", path),
		       "IPv6 is off on %s (disable_ipv6 = %ld), and %s", interface, value, wanted_for);
	return 0;
}

void es_check_ipv6(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const char *const interfaces[] = {dp->interface, dp->cluster_interface, "lo"};
	unsigned int on = 0, count = sizeof(interfaces) / sizeof(interfaces[0]);
	int has_service = has_ipv6_service(check->conf);

	if (!has_service && es_addr_is_v4(&check->conf->nodes[0].address)) {
		es_check_ok(check, "no service or node has an IPv6 address");
		return;
	}
	for (unsigned int i = 0; i < count; i++) {
		/* Both networks may be one interface, and clients need not have it for the nodes to. */
		if (i ? i == 1 && has_service && !strcmp(interfaces[0], interfaces[1]) : !has_service)
			on++;
		else
			on += judge_interface(check, interfaces[i],
					      has_service ? "a service has an IPv6 address"
							  : "the nodes' addresses are of IPv6") == 1;
	}
	if (on != count)
		return;
	if (has_service)
		es_check_ok(check, "IPv6 is on for %s, %s and lo", dp->interface, dp->cluster_interface);
	else
		es_check_ok(check, "IPv6 is on for %s and lo", dp->cluster_interface);
}

void es_check_link_local(struct es_check *check)
{
	const struct es_facts *facts = check->facts;
	const char *interface = check->conf->datapath.interface;

	if (!has_ipv6_service(check->conf)) {
		es_check_ok(check, "no service has an IPv6 address");
		return;
	}
	if (facts->addresses_rc) {
		es_check_unchecked(check, "the addresses cannot be read: %s", strerror(-facts->addresses_rc));
		return;
	}
	for (size_t i = 0; i < facts->address_count; i++)
		if (es_addr_is_link_local(&facts->addresses[i].address) &&
		    !strcmp(facts->addresses[i].interface, interface)) {
			es_check_ok(check, "%s has a link-local address", interface);
			return;
		}
	es_check_error(
		check,
		es_check_action("ip link set %s addrgenmode eui64; ip link set %s down; ip link set %s up",
				interface, interface, interface),
		"%s has no link-local address of IPv6", interface);
}

/*
 * Is the public interface in the multicast group of the service's address? Returns 1; or 0, and why is
 * reported.
 */
static int judge_group(struct es_check *check, const struct es_conf_service *service)
{
	const char *interface = check->conf->datapath.interface;
	const struct es_addr group = es_solicited_group(&service->address6);
	char text[INET6_ADDRSTRLEN];
	int rc = es_facts_has_group(check->facts, interface, &group);

	if (rc == 1)
		return 1;
	if (rc < 0)
		es_check_unchecked(check, "/proc/net/igmp6 cannot be read: %s", strerror(-rc));
	else
		es_check_error(check, "restart earshotd", "service %s: %s is not in the multicast group %s",
			       service->name, interface, es_conf_addr_text(&group, text));
	return 0;
}

void es_check_solicited(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	unsigned int wrong = 0;

	if (!has_ipv6_service(conf)) {
		es_check_ok(check, "no service has an IPv6 address");
		return;
	}
	if (!check->facts->daemon.runs) {
		es_check_ok(check, "earshotd joins the groups of the services' addresses when it starts");
		return;
	}
	for (unsigned int i = 0; i < conf->service_count; i++)
		wrong += es_addr_is_set(&conf->services[i].address6) &&
			 !judge_group(check, &conf->services[i]);
	if (!wrong)
		es_check_ok(check, "%s is in the multicast groups of the services' addresses",
			    conf->datapath.interface);
}
