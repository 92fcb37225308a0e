// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes room for a section where it begins: which structure of the configuration its values go to, whether
 * one more of that name is allowed, and its defaults. Says at its end what is missing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/config/internal.h"

int es_conf_section_defaults(struct es_conf_parse *p, const struct es_conf_section *section,
			     void *section_data)
{
	const struct es_conf_key *key;

	for (key = section->keys; key->name; key++)
		if (key->def && *key->def &&
		    es_conf_value_set(p, 0, section->name, key, key->def, section_data))
			return -EINVAL;
	return 0;
}

int es_conf_section_complete(struct es_conf_parse *p, const struct es_conf_section *section,
			     const char *label, const struct es_conf_lines *lines)
{
	int rc = 0;

	for (unsigned int i = 0; section->keys[i].name; i++)
		if (!section->keys[i].def && !lines->key[i])
			rc = es_conf_fail(p, lines->open, "%s: %s is missing: expected %s = VALUE", label,
					  section->keys[i].name, section->keys[i].name);
	return rc;
}

static int node_open(struct es_conf_parse *p, const char *label, const char *name, int line,
		     struct es_conf_place *ret)
{
	unsigned int i, n = p->conf->node_count;

	for (i = 0; i < n; i++)
		if (!strcmp(p->conf->nodes[i].name, name))
			return es_conf_fail(p, line, "%s: first defined on line %d: expected another name",
					    label, p->nodes[i].open);
	if (n == ES_CONF_NODES_MAX)
		return es_conf_fail(p, line, "%s: too many nodes: expected at most %d", label,
				    ES_CONF_NODES_MAX);
	snprintf(p->conf->nodes[n].name, ES_CONF_NAME_SIZE, "%s", name); /* a valid name, so it fits */
	ret->lines = &p->nodes[n];
	ret->data = &p->conf->nodes[n];
	p->conf->node_count++;
	return 0;
}

static int service_open(struct es_conf_parse *p, const char *label, const char *name, int line,
			struct es_conf_place *ret)
{
	unsigned int i, n = p->conf->service_count;

	for (i = 0; i < n; i++)
		if (!strcmp(p->conf->services[i].name, name))
			return es_conf_fail(p, line, "%s: first defined on line %d: expected another name",
					    label, p->services[i].open);
	if (n == ES_CONF_SERVICES_MAX)
		return es_conf_fail(p, line, "%s: too many services: expected at most %d", label,
				    ES_CONF_SERVICES_MAX);
	snprintf(p->conf->services[n].name, ES_CONF_NAME_SIZE, "%s", name);
	ret->lines = &p->services[n];
	ret->data = &p->conf->services[n];
	p->conf->service_count++;
	/* Defaults are set whether or not the service has such a section. */
	if (es_conf_section_defaults(p, &es_conf_sections[ES_CONF_CHECK], &p->conf->services[n].check))
		return -EINVAL;
	if (es_conf_section_defaults(p, &es_conf_sections[ES_CONF_PAGE], &p->conf->services[n].page))
		return -EINVAL;
	if (es_conf_section_defaults(p, &es_conf_sections[ES_CONF_TLS], &p->conf->services[n].tls))
		return -EINVAL;
	return es_conf_section_defaults(p, &es_conf_sections[ES_CONF_OUTLIER], &p->conf->services[n].outlier);
}

/* A service has each such section once: refuses a second one. */
static int single_of_service(struct es_conf_parse *p, const char *label, int line, struct es_conf_place *ret)
{
	unsigned int service = p->conf->service_count - 1;

	if (ret->lines->open)
		return es_conf_fail(p, line, "service %s: %s: first defined on line %d: expected one",
				    p->conf->services[service].name, label, ret->lines->open);
	return 0;
}

static int plugin_open(struct es_conf_parse *p, const char *label, const char *name, int line,
		       struct es_conf_place *ret)
{
	unsigned int i, n = p->conf->plugin_count, service = p->conf->service_count - 1;
	struct es_conf_plugin *plugins;

	for (i = 0; i < n; i++)
		if (p->conf->plugins[i].service == service && !strcmp(p->conf->plugins[i].name, name))
			return es_conf_fail(p, line, "%s: first defined on line %d: expected another name",
					    label, p->plugins[i].open);
	if (n == ES_CONF_PLUGINS_MAX)
		return es_conf_fail(p, line, "%s: too many plugins: expected at most %d", label,
				    ES_CONF_PLUGINS_MAX);
	plugins = realloc(p->conf->plugins, (n + 1) * sizeof(*plugins));
	if (!plugins)
		return es_conf_fail(p, line, "%s: out of memory", label);
	p->conf->plugins = plugins;
	memset(&plugins[n], 0, sizeof(plugins[n]));
	snprintf(plugins[n].name, ES_CONF_NAME_SIZE, "%s", name);
	plugins[n].service = service;
	ret->lines = &p->plugins[n];
	ret->data = &plugins[n];
	p->conf->plugin_count++;
	return 0;
}

/*
 * Opens a rule or a location. A location's path may be there once for each service, which is checked at the
 * end.
 */
static int rule_open(struct es_conf_parse *p, const char *label, const char *name, int line, int is_location,
		     struct es_conf_place *ret)
{
	unsigned int i, n = p->conf->rule_count;
	struct es_conf_rule *rules;
	const char *expected;

	for (i = 0; !is_location && i < n; i++)
		if (!p->conf->rules[i].is_location && !strcmp(p->conf->rules[i].name, name))
			return es_conf_fail(p, line, "%s: first defined on line %d: expected another name",
					    label, p->rules[i].open);
	if (n == ES_CONF_RULES_MAX)
		return es_conf_fail(p, line, "%s: too many rules and locations: expected at most %d", label,
				    ES_CONF_RULES_MAX);
	rules = realloc(p->conf->rules, (n + 1) * sizeof(*rules));
	if (!rules)
		return es_conf_fail(p, line, "%s: out of memory", label);
	p->conf->rules = rules;
	memset(&rules[n], 0, sizeof(rules[n]));
	if (!is_location || !es_conf_item_read(ES_CONF_ITEM_PATH, name, rules[n].name, &expected))
		snprintf(rules[n].name, sizeof(rules[n].name), "%s", name);
	else if (es_conf_item_is_escaped(ES_CONF_ITEM_PATH, name))
		es_conf_warn(p, line, "%s " ES_CONF_ESCAPED, label, rules[n].name);
	rules[n].is_location = is_location;
	rules[n].line = line;
	ret->lines = &p->rules[n];
	ret->data = &rules[n];
	p->conf->rule_count++;
	return 0;
}

static int title_check(struct es_conf_parse *p, const struct es_conf_section *section, const char *label,
		       const char *title, int line)
{
	char path[ES_CONF_PATH_SIZE];
	const char *expected;

	if (section != &es_conf_sections[ES_CONF_LOCATION]) {
		if (es_conf_name_is_valid(title))
			return 0;
		expected = ES_CONF_NAME_EXPECTED;
	} else if (es_conf_item_read(ES_CONF_ITEM_PATH, title, path, &expected)) {
		return 0;
	}
	return es_conf_fail(p, line, "%s: bad %s: expected %s", label,
			    section == &es_conf_sections[ES_CONF_LOCATION] ? "path" : "name", expected);
}

/* Opens a section that the file may have once; its defaults were set before the file was read. */
static int single_open(struct es_conf_parse *p, const struct es_conf_section *section, int line,
		       struct es_conf_place *ret)
{

	switch (section - es_conf_sections) {
	case ES_CONF_CLUSTER:
		ret->lines = &p->cluster;
		ret->data = &p->conf->cluster;
		break;
	case ES_CONF_DATAPATH:
		ret->lines = &p->datapath;
		ret->data = &p->conf->datapath;
		break;
	case ES_CONF_STATUS:
		ret->lines = &p->status;
		ret->data = &p->conf->status;
		break;
	case ES_CONF_LOG:
		ret->lines = &p->log;
		ret->data = &p->conf->log;
		break;
	default:
		ret->lines = &p->inspector;
		ret->data = &p->conf->inspector;
		break;
	}
	if (ret->lines->open)
		return es_conf_fail(p, line, "%s: first defined on line %d: expected one %s section",
				    section->name, ret->lines->open, section->name);
	return 0;
}

static int place_find(struct es_conf_parse *p, const struct es_conf_section *section, const char *label,
		      const char *title, int line, struct es_conf_place *ret)
{
	switch (section - es_conf_sections) {
	case ES_CONF_NODE:
		return node_open(p, label, title, line, ret);
	case ES_CONF_SERVICE:
		return service_open(p, label, title, line, ret);
	case ES_CONF_PLUGIN:
		return plugin_open(p, label, title, line, ret);
	case ES_CONF_CHECK:
		ret->lines = &p->checks[p->conf->service_count - 1];
		ret->data = &p->conf->services[p->conf->service_count - 1].check;
		return single_of_service(p, label, line, ret);
	case ES_CONF_OUTLIER:
		ret->lines = &p->outliers[p->conf->service_count - 1];
		ret->data = &p->conf->services[p->conf->service_count - 1].outlier;
		return single_of_service(p, label, line, ret);
	case ES_CONF_PAGE:
		ret->lines = &p->pages[p->conf->service_count - 1];
		ret->data = &p->conf->services[p->conf->service_count - 1].page;
		return single_of_service(p, label, line, ret);
	case ES_CONF_TLS:
		ret->lines = &p->tls[p->conf->service_count - 1];
		ret->data = &p->conf->services[p->conf->service_count - 1].tls;
		return single_of_service(p, label, line, ret);
	case ES_CONF_RULE:
		return rule_open(p, label, title, line, 0, ret);
	case ES_CONF_LOCATION:
		return rule_open(p, label, title, line, 1, ret);
	default:
		return single_open(p, section, line, ret);
	}
}

int es_conf_section_open(struct es_conf_parse *p, const struct es_conf_section *section, const char *label,
			 const char *title, int line, struct es_conf_place *ret_place)
{
	int rc;

	if (section->titled && title_check(p, section, label, title, line))
		return -EINVAL;
	rc = place_find(p, section, label, title, line, ret_place);
	if (rc)
		return rc;
	ret_place->lines->open = line;
	return section->titled ? es_conf_section_defaults(p, section, ret_place->data) : 0;
}
