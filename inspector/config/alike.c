// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes down the settings in which nodes should be alike, as the table of keys says. Those that must be
 * alike are written by self/settings.c.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inspector/config/alike.h"
#include "inspector/config/internal.h"

#define NAME_SIZE  256
#define VALUE_SIZE 2048 /* three paths, and a list */
#define LIST_SIZE  512	/* a longer one is told by its digest */

struct teller {
	void (*fn)(void *ctx, const char *name, const char *value);
	void *ctx;
};

static void put(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void put(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

/* A value is one word of one line. */
static void tell(const struct teller *t, const char *name, char *value)
{
	for (char *c = value; *c; c++)
		*c = (unsigned char)*c <= ' ' ? '_' : *c;
	t->fn(t->ctx, name, value);
}

static void list_put(char *text, const struct es_conf_list *list)
{
	const char *separator = "";

	if (list->used > LIST_SIZE) {
		put(text, VALUE_SIZE, "%016llx", es_conf_digest(list->text, list->used));
		return;
	}
	for (const char *item = NULL; (item = es_conf_list_next(list, item)); separator = ";")
		put(text, VALUE_SIZE, "%s%s", separator, item);
}

/* Paths of files, as they are written: what is in the files is compared by `earshot check`. */
static void files_put(char *text, const struct es_conf_key *key, const char *path)
{
	const char *separator = "", *at, *end = path + key->size;
	size_t len = 0;

	for (at = path; at < end && *at; at += ES_CONF_PATH_SIZE)
		len += strlen(at) + 1;
	if (len > LIST_SIZE)
		put(text, VALUE_SIZE, "%016llx", es_conf_digest(path, (size_t)(at - path)));
	for (at = path; len <= LIST_SIZE && at < end && *at; at += ES_CONF_PATH_SIZE, separator = ";")
		put(text, VALUE_SIZE, "%s%s", separator, at);
}

static void text_put(char *text, const char *value)
{
	if (strlen(value) > LIST_SIZE)
		put(text, VALUE_SIZE, "%016llx", es_conf_digest(value, strlen(value)));
	else
		put(text, VALUE_SIZE, "%s", value);
}

static void choice_put(char *text, const struct es_conf_key *key, int value)
{
	for (const struct es_conf_choice *c = key->choices; c->name; c++)
		if (c->value == value && !key->is_numbered)
			put(text, VALUE_SIZE, "%s", c->name);
	if (key->is_numbered)
		put(text, VALUE_SIZE, "%d", value);
}

static void value_put(char *text, const struct es_conf_key *key, const void *field)
{
	const unsigned char *mac = field;
	char address[INET6_ADDRSTRLEN];

	switch (key->kind) {
	case ES_CONF_KIND_NUMBER:
		put(text, VALUE_SIZE, "%u", *(const unsigned int *)field);
		break;
	case ES_CONF_KIND_CHOICE:
		choice_put(text, key, *(const int *)field);
		break;
	case ES_CONF_KIND_LIST:
		list_put(text, field);
		break;
	case ES_CONF_KIND_MAC:
		put(text, VALUE_SIZE, "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		    mac[5]);
		break;
	case ES_CONF_KIND_LOCAL:
		if (!es_addr_is_set(field))
			break;
		/* fall through */
	case ES_CONF_KIND_LOCALS: /* that of IPv4 */
	case ES_CONF_KIND_ADDRESS:
		put(text, VALUE_SIZE, "%s", es_conf_addr_text(field, address));
		break;
	case ES_CONF_KIND_FILES:
		files_put(text, key, field);
		break;
	default:
		text_put(text, field);
		break;
	}
}

static int is_in_line(const struct es_conf_key *key, const struct es_conf_key *first)
{
	return key == first ||
	       (key->alike == ES_CONF_SHOULD && key->line && first->line && !strcmp(key->line, first->line));
}

static int begins_line(const struct es_conf_section *section, const struct es_conf_key *key)
{
	for (const struct es_conf_key *before = section->keys; before < key; before++)
		if (is_in_line(before, key))
			return 0;
	return key->alike == ES_CONF_SHOULD;
}

/* @of: the name of the section; @data: its structure */
static void section_tell(const struct teller *t, enum es_conf_section_id id, const char *of, const void *data)
{
	const struct es_conf_section *section = &es_conf_sections[id];

	for (const struct es_conf_key *first = section->keys; first->name; first++) {
		char name[NAME_SIZE] = "", value[VALUE_SIZE] = "";

		if (!begins_line(section, first))
			continue;
		put(name, sizeof(name), "%s%s%s", of, first->line ? first->line : ".",
		    first->line ? "" : first->name);
		for (const struct es_conf_key *key = first; key->name; key++) {
			if (!is_in_line(key, first))
				continue;
			if (key->lead)
				put(value, sizeof(value), "%s", key->lead);
			else if (key->line)
				put(value, sizeof(value), "%s%s:", *value ? "," : "", key->name);
			value_put(value, key, (const char *)data + key->offset);
		}
		if (!*value)
			put(value, sizeof(value), "none");
		tell(t, name, value);
	}
}

static void service_tell(const struct teller *t, const struct es_conf_service *service)
{
	const struct es_addr *server6 = es_conf_server_of(service, 1);
	char of[NAME_SIZE], name[NAME_SIZE + 16], text[INET6_ADDRSTRLEN];

	snprintf(of, sizeof(of), "service.%s", service->name);
	snprintf(name, sizeof(name), "%s.check", of);
	section_tell(t, ES_CONF_CHECK, name, &service->check);
	snprintf(name, sizeof(name), "%s.outlier", of);
	section_tell(t, ES_CONF_OUTLIER, name, &service->outlier);
	snprintf(name, sizeof(name), "%s.otherwise", of);
	section_tell(t, ES_CONF_PAGE, name, &service->page);
	section_tell(t, ES_CONF_SERVICE, of, service);
	snprintf(name, sizeof(name), "%s.tls", of);
	if (service->tls.line)
		section_tell(t, ES_CONF_TLS, name, &service->tls);
	/* In a line of its own, as the version before has but one address. */
	snprintf(name, sizeof(name), "%s.server6", of);
	if (server6)
		t->fn(t->ctx, name, es_conf_addr_text(server6, text));
}

void es_conf_should_each(const struct es_conf *conf,
			 void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
	const struct teller t = {.fn = fn, .ctx = ctx};
	char of[NAME_SIZE];

	section_tell(&t, ES_CONF_CLUSTER, "cluster", &conf->cluster);
	section_tell(&t, ES_CONF_DATAPATH, "datapath", &conf->datapath);
	section_tell(&t, ES_CONF_INSPECTOR, "inspector", &conf->inspector);
	section_tell(&t, ES_CONF_STATUS, "status", &conf->status);
	if (conf->log.is_on)
		section_tell(&t, ES_CONF_LOG, "log", &conf->log);
	else
		fn(ctx, "log", "none");
	for (unsigned int i = 0; i < conf->service_count; i++)
		service_tell(&t, &conf->services[i]);
	for (unsigned int i = 0; i < conf->plugin_count; i++) {
		const struct es_conf_plugin *plugin = &conf->plugins[i];

		snprintf(of, sizeof(of), "plugin.%s.%s", conf->services[plugin->service].name, plugin->name);
		section_tell(&t, ES_CONF_PLUGIN, of, plugin);
	}
	for (unsigned int i = 0; i < conf->node_count; i++) {
		snprintf(of, sizeof(of), "node.%s", conf->nodes[i].name);
		if (!conf->nodes[i].removed)
			section_tell(&t, ES_CONF_NODE, of, &conf->nodes[i]);
	}
}
