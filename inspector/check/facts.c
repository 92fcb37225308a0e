// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the facts about this machine in order, those about its kernel itself. Nothing here judges, and
 * nothing changes a setting.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "earshot_version.h"
#include "inspector/base/json.h"
#include "inspector/check/facts.h"
#include "inspector/datapath/choose.h"
#include "inspector/datapath/network.h"
#include "inspector/machine/interface.h"

void es_facts_read_kernel(const struct es_conf *conf, struct es_facts *facts)
{
	const struct es_datapath_params params = {
		.public_ifindex = es_interface_index(conf->datapath.interface),
		.cluster_ifindex = es_interface_index(conf->datapath.cluster_interface),
	};
	struct es_conf_error err = {};
	enum es_datapath_kind kind;
	struct timex clock = {};

	facts->kernel_rc = es_network_probe_kernel(&err);
	memcpy(facts->kernel_text, err.text, sizeof(facts->kernel_text));
	if (es_datapath_choose(conf, &kind, &err)) {
		kind = ES_DATAPATH_BPF;
		memcpy(facts->kernel_text, err.text, sizeof(facts->kernel_text));
	}
	facts->datapath = kind;
	if (kind == ES_DATAPATH_NETFILTER)
		(void)es_datapath_probe(ES_DATAPATH_MODULE, conf, facts->module_text,
					sizeof(facts->module_text));
	facts->is_root = !geteuid();
	facts->attached = params.public_ifindex && params.cluster_ifindex
				  ? es_datapath_is_attached(kind, &params)
				  : -ENODEV;
	facts->clock_synced = adjtimex(&clock) < 0 ? -errno : !(clock.status & STA_UNSYNC);
}

/* Has a daemon of this version loaded the programs, which run? Those of another may be refused. */
static int programs_run(const struct es_facts *facts)
{
	struct json_object *status = facts->daemon.status;

	return facts->datapath == ES_DATAPATH_BPF && facts->attached == 1 &&
	       !strcmp(es_json_string(status, "version"), EARSHOT_VERSION) &&
	       !strcmp(es_json_string(es_json_object(status, "datapath"), "type"),
		       es_datapath_name(facts->datapath));
}

void es_facts_read_programs(const struct es_conf *conf, struct es_facts *facts)
{
	if (programs_run(facts))
		snprintf(facts->programs_text, sizeof(facts->programs_text), "%s",
			 es_json_string(es_json_object(facts->daemon.status, "datapath"), "note"));
	else
		facts->programs_rc = es_datapath_probe(facts->datapath, conf, facts->programs_text,
						       sizeof(facts->programs_text));
}

void es_facts_read(const struct es_conf *conf, int self, struct es_facts *ret_facts)
{
	memset(ret_facts, 0, sizeof(*ret_facts));
	ret_facts->root = "";
	es_facts_read_kernel(conf, ret_facts);
	es_facts_read_links(conf, ret_facts);
	es_facts_read_listeners(ret_facts);
	es_facts_read_firewall(conf, ret_facts);
	es_facts_read_translation(conf, ret_facts);
	es_facts_read_zones(conf, ret_facts);
	es_facts_read_arp(conf, self, ret_facts);
	es_facts_read_ndp(conf, self, ret_facts);
	es_facts_read_echo(conf, self, ret_facts);
	es_facts_read_routes(conf, self, ret_facts);
	es_facts_read_corosync(ret_facts);
	es_facts_read_startup(conf, ret_facts);
	es_facts_read_tls(conf, self, ret_facts);
}

void es_facts_fini(struct es_facts *facts)
{
	free(facts->addresses);
	free(facts->listeners);
	free(facts->corosync.text);
	json_object_put(facts->daemon.status);
	json_object_put(facts->daemon.counters);
	es_facts_tls_fini(&facts->tls);
	memset(facts, 0, sizeof(*facts));
}
