// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of the configuration's sections; their keys are in keys_*.c.
 */
#include <string.h>

#include "inspector/config/keys.h"

const struct es_conf_section es_conf_sections[ES_CONF_SECTIONS] = {
	[ES_CONF_CLUSTER] = {"cluster", 0, es_conf_cluster_keys, {NULL}},
	[ES_CONF_DATAPATH] = {"datapath", 0, es_conf_datapath_keys, {NULL}},
	[ES_CONF_INSPECTOR] = {"inspector", 0, es_conf_inspector_keys, {NULL}},
	[ES_CONF_STATUS] = {"status", 0, es_conf_status_keys, {NULL}},
	[ES_CONF_LOG] = {"log", 0, es_conf_log_keys, {NULL}},
	[ES_CONF_NODE] = {"node", 1, es_conf_node_keys, {NULL}},
	[ES_CONF_SERVICE] = {"service",
			     1,
			     es_conf_service_keys,
			     {&es_conf_sections[ES_CONF_PLUGIN], &es_conf_sections[ES_CONF_CHECK],
			      &es_conf_sections[ES_CONF_OUTLIER], &es_conf_sections[ES_CONF_PAGE],
			      &es_conf_sections[ES_CONF_TLS]}},
	[ES_CONF_RULE] = {"rule", 1, es_conf_rule_keys, {NULL}},
	[ES_CONF_LOCATION] = {"location", 1, es_conf_location_keys, {NULL}},
	[ES_CONF_PLUGIN] = {"plugin", 1, es_conf_plugin_keys, {NULL}},
	[ES_CONF_CHECK] = {"check", 0, es_conf_check_keys, {NULL}},
	[ES_CONF_OUTLIER] = {"outlier", 0, es_conf_outlier_keys, {NULL}},
	[ES_CONF_PAGE] = {"otherwise", 0, es_conf_otherwise_keys, {NULL}},
	[ES_CONF_TLS] = {"tls", 0, es_conf_tls_keys, {NULL}},
};

int es_conf_key_index(const struct es_conf_section *section, const char *name)
{
	int i;

	for (i = 0; section->keys[i].name; i++)
		if (!strcmp(section->keys[i].name, name))
			return i;
	return -1;
}
