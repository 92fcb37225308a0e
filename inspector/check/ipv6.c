// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of what services with an IPv6 address need of this machine.
 */
#include <string.h>

#include "inspector/check/check.h"

static int has_ipv6_service(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			return 1;
	return 0;
}

/* Returns 1 if IPv6 is on there, 0 if not, -1 if that cannot be read. The last two are reported. */
static int judge_interface(struct es_check *check, const char *interface)
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
		       "IPv6 is off on %s (disable_ipv6 = %ld), and a service has an IPv6 address", interface,
		       value);
	return 0;
}

void es_check_ipv6(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const char *const interfaces[] = {dp->interface, dp->cluster_interface, "lo"};
	unsigned int on = 0, count = sizeof(interfaces) / sizeof(interfaces[0]);

	if (!has_ipv6_service(check->conf)) {
		es_check_ok(check, "no service has an IPv6 address");
		return;
	}
	for (unsigned int i = 0; i < count; i++) {
		/* Both networks may be one interface. */
		if (i == 1 && !strcmp(interfaces[0], interfaces[1]))
			on++;
		else
			on += judge_interface(check, interfaces[i]) == 1;
	}
	if (on == count)
		es_check_ok(check, "IPv6 is on for %s, %s and lo", dp->interface, dp->cluster_interface);
}
