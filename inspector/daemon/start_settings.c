// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The settings that are fixed while a daemon runs, and those of them that another start of this daemon alone
 * may change.
 */
#include <stdio.h>
#include <string.h>
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/start_settings.h"
#include "inspector/datapath/choose.h"

const char *es_start_settings_fixed(const struct es_daemon *d, const struct es_conf *b)
{
	const struct es_conf *a = d->conf;

	if (!es_datapath_is_meant(b, d->datapath_kind))
		return "datapath: type";
	if (strcmp(a->datapath.interface, b->datapath.interface) != 0)
		return "datapath: interface";
	if (strcmp(a->datapath.cluster_interface, b->datapath.cluster_interface) != 0)
		return "datapath: cluster_interface";
	if (a->datapath.conntrack_zone !=
	    b->datapath.conntrack_zone) /* connections have their entries there */
		return "datapath: conntrack_zone";
	if (a->cluster.membership != b->cluster.membership)
		return "cluster: membership";
	if (a->cluster.ring_hash != b->cluster.ring_hash) /* it would move every connection */
		return "cluster: ring_hash";
	return NULL;
}

static void add(char *text, size_t size, unsigned int *count, const char *name)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
	*count += 1;
}

unsigned int es_start_settings_differ(const struct es_conf *now, const struct es_conf *next, char *ret_text,
				      size_t size)
{
	const struct es_conf_inspector *a = &now->inspector, *b = &next->inspector;
	unsigned int count = 0;

	ret_text[0] = 0;
	if (a->workers != b->workers)
		add(ret_text, size, &count, "inspector: workers");
	if (a->decision_entries != b->decision_entries)
		add(ret_text, size, &count, "inspector: decision_entries");
	if (a->connection_rate != b->connection_rate)
		add(ret_text, size, &count, "inspector: connection_rate");
	/* The tables have room for as long as cookies live. */
	if (!count && es_conf_decision_entries(now) != es_conf_decision_entries(next))
		add(ret_text, size, &count, "datapath: cookie_lifetime_s, without decision_entries,");
	if (a->target_entries != b->target_entries)
		add(ret_text, size, &count, "inspector: target_entries");
	if (a->gather_flows != b->gather_flows || a->gather_bytes != b->gather_bytes)
		add(ret_text, size, &count, "inspector: gather_flows and gather_bytes");
	if (strcmp(a->program_group, b->program_group) != 0)
		add(ret_text, size, &count, "inspector: program_group");
	return count;
}

void es_start_settings_keep(const struct es_conf *now, struct es_conf *next)
{
	const struct es_conf_inspector *a = &now->inspector;
	struct es_conf_inspector *b = &next->inspector;
	unsigned int entries = es_conf_decision_entries(now);

	b->workers = a->workers;
	b->decision_entries = a->decision_entries;
	b->connection_rate = a->connection_rate;
	b->target_entries = a->target_entries;
	b->gather_flows = a->gather_flows;
	b->gather_bytes = a->gather_bytes;
	memcpy(b->program_group, a->program_group, sizeof(b->program_group));
	/* So that another lifetime of cookies is known by it to wait for the start. */
	if (es_conf_decision_entries(next) != entries)
		b->decision_entries = entries;
}

void es_start_settings_tell(const char *waiting, struct es_conf_error *ret_text)
{
	es_conf_error_set(ret_text, "%s%s", *waiting ? "needs a restart of its daemon: " : "", waiting);
}
