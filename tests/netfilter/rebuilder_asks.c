// SPDX-License-Identifier: GPL-2.0-or-later
/* The questions about the kernel that earshot-rebuilder answers without a node. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "netfilter/rebuild/probe.h"
#include "netfilter/rules/rules.h"
#include "tests/netfilter/rebuilder.h"

static int say_labels(struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(ct, flow, &entry);

	if (!rc)
		printf("%s%s%s\n", entry.has_label ? "ours" : "", entry.is_proven ? " proven" : "",
		       entry.is_held ? " held" : "");
	return rc;
}

/* In a network namespace of its own. */
static int labels(void)
{
	const struct es_flow flow = {.client = es_addr_from_v4(htonl(0x0a090001)),
				     .service = es_addr_from_v4(htonl(0x0a090002)),
				     .client_port = htons(40000),
				     .service_port = htons(80)};
	const struct es_nf_expected expected = {.flow = flow, .socket = flow};
	struct es_nf_conntrack ct;
	struct es_nf_netlink rules;
	struct es_nf_hook hook;
	int rc = unshare(CLONE_NEWNET) ? -errno : es_nf_netlink_open(&rules, NETLINK_NETFILTER);

	if (!rc)
		rc = es_nf_hook_set(&rules, NULL, &hook, NULL);
	if (!rc)
		rc = es_nf_conntrack_open(&ct, 0, 1);
	if (!rc)
		es_nf_conntrack_expect(&ct, &expected, 1, &rc);
	if (!rc)
		rc = es_nf_conntrack_hold(&ct, &expected.flow, 1);
	if (!rc)
		rc = es_nf_conntrack_prove(&ct, &expected.flow);
	if (!rc)
		rc = say_labels(&ct, &expected.flow);
	if (!rc)
		rc = es_nf_conntrack_hold(&ct, &expected.flow, 0);
	if (!rc)
		rc = say_labels(&ct, &expected.flow);
	if (rc)
		printf("%s\n", strerror(-rc));
	return !!rc;
}

/* Each service has an address of each family, and asks for all that there is. */
static int rules(void)
{
	struct es_nf_rules rules = {
		.public_ifindex = 1,
		.cluster_ifindex = 1,
		.handover_port = htons(7),
		.gate = ES_NF_GATE_CLOSED,
		.holds = 1,
	};
	struct es_nf_rules_whole whole;
	struct es_nf_why why = {""};
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);

	if (rc)
		return 1;
	rules.self = es_addr_from_v4(htonl(0xc0000201));
	for (__u32 i = 0; i < ES_NF_ADDRESSES_MAX; i++) {
		struct es_addr *address = &rules.address[i];

		if (i % 2)
			*address = (struct es_addr){.b = {0x20, 1, 0xd, 0xb8, [15] = (__u8)i}};
		else
			*address = es_addr_from_v4(htonl(0xc0000202 + i));
		rules.every[i].address = *address;
		rules.every[i].port = htons(80);
		rules.endpoint[i] = rules.every[i];
	}
	rules.count = ES_NF_ADDRESSES_MAX;
	rules.every_count = rules.endpoint_count = ES_NF_ADDRESSES_MAX;
	rc = es_nf_rules_set(&nl, &rules, 0, &whole, &why);
	printf("%d %d %s\n", rc, rc ? 0 : es_nf_rules_are_whole(&nl, &rules, &whole), why.text);
	es_nf_netlink_close(&nl);
	return !!rc;
}

int ask(const char *what)
{
	struct es_nf_why why = {""};
	int has_v6 = 0, rc;

	if (!strcmp(what, "labels"))
		return labels();
	if (!strcmp(what, "rules"))
		return rules();
	if (!strcmp(what, "translation")) {
		rc = es_nf_probe_translation(&why);
		printf("%d %s\n", rc, why.text);
		return !!rc;
	}
	rc = es_nf_probe(&has_v6, &why);
	printf("%d %d %s\n", rc, has_v6, why.text);
	return !!rc;
}
