// SPDX-License-Identifier: GPL-2.0-or-later
/* Says in words what rules, locations and the URL table say of a request: for `earshot explain`. */
#include <stdio.h>
#include <string.h>
#include "inspector/rules/rule_text.h"

const char *es_nodes_text(struct es_node_set nodes, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < ES_NODES_MAX; i++) {
		int len = es_node_set_has(nodes, i)
				  ? snprintf(text + used, size - used, "%s#%u", used ? " " : "", i)
				  : 0;

		if (len < 0 || (size_t)len >= size - used)
			break;
		used += (size_t)len;
	}
	return text;
}

const char *es_priority_name(unsigned int priority)
{
	static const char *const names[ES_PRIORITY_COUNT] = {"normal", "high", "low"};

	return priority < ES_PRIORITY_COUNT ? names[priority] : "?";
}

static const char *es_class_name(unsigned int class)
{
	static const char *const names[ES_CLASS_COUNT] = {"normal", "cpu", "disk", "disk-cpu"};

	return class < ES_CLASS_COUNT ? names[class] : "?";
}

void es_explain_info(const struct es_cluster_view *view, const char *who, const char *name,
		     const struct es_url_info *info, __u32 which)
{
	char text[ES_EXPLAIN_STEP_SIZE] = "", nodes[64];
	size_t used = 0;

	which &= info->has;
	if (!view->explain || !which)
		return;
#define SAY(field, ...)                                                                                      \
	do {                                                                                                 \
		if (which & (field) && used < sizeof(text))                                                  \
			used += (size_t)snprintf(text + used, sizeof(text) - used, __VA_ARGS__);             \
	} while (0)
	SAY(ES_URL_NODES, " nodes %s,", es_nodes_text(info->nodes, nodes, sizeof(nodes)));
	if (*es_nodes_text(info->backup, nodes, sizeof(nodes)))
		SAY(ES_URL_NODES, " backup %s,", nodes);
	SAY(ES_URL_NODES, " otherwise %s;", info->only ? "reject" : "any");
	SAY(ES_URL_SIZE, " size %llu;", (unsigned long long)info->size_bytes);
	SAY(ES_URL_KIND, " %s;", info->is_dynamic ? "dynamic" : "static");
	SAY(ES_URL_CLASS, " class %s;", es_class_name(info->class));
	SAY(ES_URL_COST, " cost %u;", info->cost);
	SAY(ES_URL_PRIORITY, " priority %s;", es_priority_name(info->priority));
#undef SAY
	text[strlen(text) - 1] = 0; /* the last semicolon */
	es_explain(view, "%s%s:%s", who, name, text);
}

const char *es_affinity_name(const struct es_conf_rule *conf, char *text, size_t size)
{
	if (conf->affinity == ES_CONF_AFFINITY_SOURCE)
		return "the client's address";
	snprintf(text, size, "%s %.40s", conf->cookie[0] ? "cookie" : "header",
		 conf->cookie[0] ? conf->cookie : conf->header);
	return text;
}
