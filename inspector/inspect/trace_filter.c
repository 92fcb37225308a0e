// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decisions that a watcher wants to see: the control thread reads the filter once, and the workers apply
 * it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/inspect/trace.h"

#define ADDRESS_BITS 128
#define V4_BITS	     32

static const char *node_name(const struct es_conf *conf, unsigned int i)
{
	return i < conf->node_count ? conf->nodes[i].name : NULL;
}

static const char *service_name(const struct es_conf *conf, unsigned int i)
{
	return i < conf->service_count ? conf->services[i].name : NULL;
}

static const char *decision_name(const struct es_conf *conf, unsigned int i)
{
	(void)conf;
	return i < ES_TRACE_DECISIONS ? es_trace_decision_name(i) : NULL;
}

typedef const char *(*name_fn)(const struct es_conf *conf, unsigned int i);

static int is_name(name_fn name, const struct es_conf *conf, const char *text, size_t len)
{
	const char *each;

	for (unsigned int i = 0; (each = name(conf, i)); i++)
		if (strlen(each) == len && !memcmp(each, text, len))
			return 1;
	return 0;
}

static int unknown(const char *key, name_fn name, const struct es_conf *conf, const char *text, size_t len,
		   struct es_conf_error *err)
{
	char known[384] = "";
	size_t used = 0;
	const char *each;

	for (unsigned int i = 0; (each = name(conf, i)) && used < sizeof(known); i++)
		if (*each)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
						 each);
	es_conf_error_set(err, "filter %s=%.*s: expected one or several, with commas between them, of: %s",
			  key, (int)(len > 64 ? 64 : len), text, known);
	return -EINVAL;
}

static int read_names(const char *key, char *list, name_fn name, const struct es_conf *conf,
		      const char *value, struct es_conf_error *err)
{
	const char *at = value;

	if (strlen(value) >= ES_TRACE_LIST)
		return unknown(key, name, conf, value, strlen(value), err);
	for (;;) {
		size_t len = strcspn(at, ",");

		if (!len || !is_name(name, conf, at, len))
			return unknown(key, name, conf, at, len, err);
		if (!at[len])
			break;
		at += len + 1;
	}
	snprintf(list, ES_TRACE_LIST, "%s", value);
	return 0;
}

static int bad_client(const char *value, struct es_conf_error *err)
{
	es_conf_error_set(
		err,
		"filter client=%.64s: expected an address, or a network as 198.51.100.0/24 or 2001:db8::/32",
		value);
	return -EINVAL;
}

static int read_client(struct es_trace_filter *filter, const char *value, struct es_conf_error *err)
{
	const char *slash = strchr(value, '/');
	char address[INET6_ADDRSTRLEN] = "";
	unsigned long bits, most;
	struct es_addr client;
	char *end;

	if (strcspn(value, "/") >= sizeof(address))
		return bad_client(value, err);
	memcpy(address, value, strcspn(value, "/"));
	if (es_conf_addr_parse(address, &client))
		return bad_client(value, err);
	most = es_addr_is_v4(&client) ? V4_BITS : ADDRESS_BITS;
	bits = most;
	if (slash) {
		bits = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
			return bad_client(value, err);
	}
	filter->client = client;
	filter->client_bits = (unsigned int)(bits + ADDRESS_BITS - most);
	return 0;
}

static int read_path(struct es_trace_filter *filter, const char *value, struct es_conf_error *err)
{
	if (*value != '/' || strlen(value) >= sizeof(filter->path)) {
		es_conf_error_set(err,
				  "filter path=%.64s: expected what the path begins with, from its / on, at "
				  "most %d bytes",
				  value, ES_TRACE_PREFIX - 1);
		return -EINVAL;
	}
	snprintf(filter->path, sizeof(filter->path), "%s", value);
	return 0;
}

int es_trace_filter_add(struct es_trace_filter *filter, const struct es_conf *conf, const char *text,
			struct es_conf_error *err)
{
	if (!strncmp(text, "node=", 5))
		return read_names("node", filter->node, node_name, conf, text + 5, err);
	if (!strncmp(text, "service=", 8))
		return read_names("service", filter->service, service_name, conf, text + 8, err);
	if (!strncmp(text, "why=", 4))
		return read_names("why", filter->why, es_trace_why_name, conf, text + 4, err);
	if (!strncmp(text, "decision=", 9))
		return read_names("decision", filter->decision, decision_name, conf, text + 9, err);
	if (!strncmp(text, "client=", 7))
		return read_client(filter, text + 7, err);
	if (!strncmp(text, "path=", 5))
		return read_path(filter, text + 5, err);
	es_conf_error_set(
		err,
		"filter %.64s: expected node=NAME, service=NAME, client=ADDRESS[/BITS], path=/PREFIX, "
		"why=REASON or decision=KIND",
		text);
	return -EINVAL;
}

/* Is @name in the list? An empty one has all names. */
static int has(const char *list, const char *name)
{
	size_t len = strlen(name);

	if (!*list)
		return 1;
	for (;;) {
		size_t each = strcspn(list, ",");

		if (each == len && !memcmp(list, name, len))
			return 1;
		if (!list[each])
			return 0;
		list += each + 1;
	}
}

static int is_within(const struct es_addr *network, unsigned int bits, const struct es_addr *address)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (memcmp(network->b, address->b, bytes) != 0)
		return 0;
	return !rest || !((network->b[bytes] ^ address->b[bytes]) >> (8 - rest));
}

int es_trace_admits(const struct es_trace_filter *filter, const struct es_trace_entry *entry)
{
	size_t path = strlen(filter->path);

	return has(filter->node, entry->node) && has(filter->service, entry->service) &&
	       has(filter->why, entry->why) &&
	       has(filter->decision, es_trace_decision_name(entry->decision)) &&
	       is_within(&filter->client, filter->client_bits, &entry->client) &&
	       path <= (size_t)(entry->text_len - entry->path_at) &&
	       !memcmp(entry->text + entry->path_at, filter->path, path);
}
