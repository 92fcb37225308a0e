// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes down the settings that nodes compare when one joins. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "earshot_version.h"
#include "inspector/config/alike.h"
#include "inspector/self/settings.h"
#include "membership/group.h"

/* The version of the messages between nodes: handover header and bus. */
#define ES_PROTOCOL 3

/* Bytes that the lines of rules leave to what comes after them: a rule's longest, and all the rest. */
#define ES_SETTINGS_RESERVE 2048

/* Bytes for what nodes may say differently, and in these for the line about all that had no room. */
#define ES_SETTINGS_PEOPLE 1024
#define ES_SETTINGS_MORE   192

/**
 * struct es_text
 * @reserve: bytes that must be left when a line is begun
 * @more: how many lines to compare had no room; @first: the name of the first; @digest: of them all
 */
struct es_text {
	char *text;
	size_t size;
	size_t used;
	size_t reserve;
	unsigned int more;
	char first[101];
	struct es_sipstate digest;
};

static void leave_out(struct es_text *out, const char *text)
{
	if (text[0] != '=' && text[0] != '~')
		return;
	if (!out->more++)
		snprintf(out->first, sizeof(out->first), "%.*s", (int)strcspn(text + 1, "="), text + 1);
	es_siphash_word(&out->digest, es_conf_digest(text, strlen(text)));
}

static void line(struct es_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All of a line, or nothing. */
static void line(struct es_text *out, const char *format, ...)
{
	char *text;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return;
	if (out->used + (size_t)len < out->size && out->used + out->reserve < out->size) {
		memcpy(out->text + out->used, text, (size_t)len + 1);
		out->used += (size_t)len;
	} else {
		leave_out(out, text);
	}
	free(text);
}

/* Tells keys apart without telling anything about them. */
static unsigned long long fingerprint(const struct es_sipkey *key)
{
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	es_siphash_word(&sip, 0x65617273686f7421ULL); /* "earshot!" */
	return es_siphash_final(&sip, 0, 8);
}

static void keys_put(struct es_text *out, const struct es_keys *keys)
{
	line(out, "=ring_secret=%016llx\n", fingerprint(&keys->ring));
	if (keys->count > 1)
		line(out, "=key=%016llx %016llx\n", fingerprint(&keys->key[0].cookie),
		     fingerprint(&keys->key[1].cookie));
	else
		line(out, "=key=%016llx\n", fingerprint(&keys->key[0].cookie));
}

static void nodes_put(struct es_text *out, const struct es_conf *conf)
{
	char address[INET6_ADDRSTRLEN], grants[32], *list = NULL;
	size_t size;
	FILE *names = open_memstream(&list, &size);

	if (!names)
		return;
	for (unsigned int i = 0; i < conf->node_count; i++)
		fprintf(names, "%s%s@%s", i ? "," : "", conf->nodes[i].name,
			conf->nodes[i].removed ? "removed"
					       : es_conf_addr_text(&conf->nodes[i].address, address));
	if (!fclose(names))
		line(out, "=nodes=%s\n", list);
	free(list);
	/* A version that does not say this takes members with the very same list only. */
	line(out, "nodes_may_differ=yes\n");
	/* Nor does one that does not say this grant leases. */
	es_group_grants_line(es_conf_nodes_present(conf), grants, sizeof(grants));
	line(out, "%s", grants);
}

/* Where it is. In the order of the nodes, however the file has them. */
static void nodes_of_put(struct es_text *out, const struct es_conf *conf,
			 const struct es_conf_service *service)
{
	const char *separator = "";
	char *list = NULL;
	size_t size;
	FILE *names;

	if (es_node_set_is_empty(service->nodes))
		return;
	names = open_memstream(&list, &size);
	if (!names)
		return;
	for (unsigned int i = 0; i < conf->node_count; i++)
		if (es_conf_service_is_on(service, i)) {
			fprintf(names, "%s%s", separator, conf->nodes[i].name);
			separator = ",";
		}
	if (!fclose(names))
		line(out, "=service.%s.nodes=%s\n", service->name, list);
	free(list);
}

/* The only lines here that most services do not have. */
static void parameters_put(struct es_text *out, const struct es_conf_service *service)
{
	const struct es_policy *policy = es_policy_find(service->policy);

	for (unsigned int i = 0; service->parameters.count && policy->params && policy->params[i].name; i++) {
		/* A version that does not know "auto" has the paper's value. */
		int is_auto = isnan(service->params[i]);

		line(out, "=service.%s.%s=%.17g%s\n", service->name, policy->params[i].name,
		     is_auto ? policy->params[i].value : service->params[i], is_auto ? " auto" : "");
	}
	if (service->unsafe != ES_UNSAFE_ONCE)
		line(out, "=service.%s.unsafe=%s\n", service->name,
		     service->unsafe == ES_UNSAFE_ALL ? "all" : "again");
	if (service->survive)
		line(out, "=service.%s.survive=%u\n", service->name, service->survive);
	if (service->resume)
		line(out, "=service.%s.resume=on\n", service->name);
	if (!service->content_host)
		line(out, "=service.%s.content_host=no\n", service->name);
	if (service->admit_low || service->admit_normal)
		line(out, "=service.%s.admit=%u,%u\n", service->name, service->admit_low,
		     service->admit_normal);
}

/* A node that gives connections away must know to which nodes. */
static void backup_put(struct es_text *out, const struct es_conf_service *service)
{
	char names[512] = "";
	size_t used = 0;

	for (const char *name = NULL;
	     (name = es_conf_list_next(&service->backup_names, name)) && used < sizeof(names);)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? "," : "", name);
	if (used)
		line(out, "=service.%s.backup=%s\n", service->name, names);
}

/* Only nodes whose names are not what cookies call them; the version before knows no others. */
static void routes_put(struct es_text *out, const struct es_conf *conf)
{
	unsigned long long digest = es_conf_routes_digest(conf);

	if (digest)
		line(out, "=node.routes=%016llx\n", digest);
}

/*
 * Each rule by name, so that one that differs can be named, its place included: the first one that matches
 * wins. All of them in one line besides, for those that do not fit.
 */
static void rules_put(struct es_text *out, const struct es_conf *conf)
{
	struct es_sipstate all;
	static const struct es_sipkey key;

	es_siphash_init(&all, &key);
	for (unsigned int i = 0; i < conf->rule_count; i++) {
		const struct es_conf_rule *rule = &conf->rules[i];
		unsigned long long digest = es_conf_rule_digest(rule);

		es_siphash_word(&all, digest);
		if (out->used + ES_SETTINGS_RESERVE < out->size)
			line(out, "=%s.%u.%s=%016llx\n", rule->is_location ? "location" : "rule", i,
			     rule->name, digest);
	}
	if (conf->rule_count)
		line(out, "=rules=%016llx\n",
		     (unsigned long long)es_siphash_final(&all, 0, conf->rule_count * 8));
}

static void services_put(struct es_text *out, const struct es_conf *conf)
{
	static const char *const inspects[] = {"never", "first", "every"};
	char text[INET6_ADDRSTRLEN];

	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *s = &conf->services[i];

		/* A node whose server ends TLS itself could not go on with another one's connection. */
		line(out, "=service.%u.%s=%s:%u,inspect:%s,policy:%s%s\n", i, s->name,
		     es_conf_addr_text(es_conf_service_address(s), text), s->port,
		     inspects[es_conf_service_reads(s)], s->policy, s->tls.line ? ",tls" : "");
		if (es_addr_is_set(&s->address) && es_addr_is_set(&s->address6))
			line(out, "=service.%u.%s.address6=%s\n", i, s->name,
			     es_conf_addr_text(&s->address6, text));
		nodes_of_put(out, conf, s);
		parameters_put(out, s);
		backup_put(out, s);
	}
}

/*
 * Nodes with other rules would send one target to different nodes. Only the first word of a value is
 * compared.
 */
static void plugins_put(struct es_text *out, const struct es_conf *conf, struct es_plugins *plugins)
{
	static struct es_plugin_report report; /* large; this is the control thread's */

	out->reserve = ES_SETTINGS_RESERVE;
	for (unsigned int i = 0; i < es_plugins_count(plugins); i++) {
		size_t begun = out->used;

		es_plugins_describe(plugins, i, &report);
		line(out, "=plugin.%u.%s.%s=%s@%s,fail:%s,config:%016llx\n", i,
		     conf->services[report.service].name, report.name, report.what, report.version,
		     report.is_closed ? "closed" : "open", (unsigned long long)report.digest);
		for (char *c = out->text + begun; *c; c++)
			*c = *c == ' ' ? '_' : *c;
	}
	out->reserve = 0;
}

static void sysctl_put(struct es_text *out, const char *name)
{
	char path[128], value[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(value, sizeof(value), file)) {
		value[strcspn(value, "\n")] = 0;
		for (char *p = value; *p; p++)
			if (*p == '\t')
				*p = ' ';
		line(out, "%s=%s\n", name, value);
	}
	fclose(file);
}

static void people_put(struct es_text *out)
{
	static const char *const sysctls[] = {
		"tcp_rmem", "tcp_wmem", "tcp_window_scaling", "tcp_timestamps",
		"tcp_sack", "tcp_ecn",	"tcp_syncookies",     "tcp_congestion_control"};
	struct utsname system;

	line(out, "version=%s\n", EARSHOT_VERSION);
	if (!uname(&system))
		line(out, "kernel=%s\n", system.release);
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++)
		sysctl_put(out, sysctls[i]);
}

/* Clients that come to different nodes should be shown the same. */
static void certificates_put(struct es_text *out, const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].tls.certificates_digest)
			line(out, "~service.%s.tls.certificates=%016llx\n", conf->services[i].name,
			     conf->services[i].tls.certificates_digest);
}

static void should_put(void *ctx, const char *name, const char *value)
{
	line(ctx, "~%s=%s\n", name, value);
}

/*
 * Compared with what the same version says, which has the same settings. Also if nothing had no room: on
 * another node something may.
 */
static void rest_put(struct es_text *out)
{
	if (out->more)
		line(out, "~rest." EARSHOT_VERSION "=%u_from_%s_%016llx\n", out->more, out->first,
		     (unsigned long long)es_siphash_final(&out->digest, 0, out->more * 8));
	else
		line(out, "~rest." EARSHOT_VERSION "=none\n");
}

size_t es_settings_text(const struct es_conf *conf, const struct es_keys *keys,
			const struct es_network *network, struct es_plugins *plugins, char *text, size_t size)
{
	static const struct es_sipkey key;
	struct es_text out = {.text = text, .size = size};
	size_t alike;

	text[0] = 0;
	es_siphash_init(&out.digest, &key);
	line(&out, "=protocol=%u\n", ES_PROTOCOL);
	keys_put(&out, keys);
	line(&out, "=cookie_lifetime_s=%u\n", conf->datapath.cookie_lifetime_s);
	line(&out, "=receive_window_scale=%u\n", conf->datapath.receive_window_scale);
	line(&out, "=handshake=mss:%u,wscale:%d,sack:%d,timestamps:%d,ecn:%d\n", network->mss,
	     network->wscale, network->sack, network->timestamps, network->ecn);
	line(&out, "=handover_port=%u\n", conf->cluster.handover_port);
	line(&out, "=virtual_nodes=%u\n", conf->cluster.virtual_nodes);
	/* The version before knows the other one only, and no such setting. */
	if (conf->cluster.ring_hash == ES_CONF_RING_JHASH)
		line(&out, "=ring_hash=jhash\n");
	services_put(&out, conf);
	nodes_put(&out, conf);
	routes_put(&out, conf);
	plugins_put(&out, conf, plugins);
	rules_put(&out, conf);
	alike = out.used;
	if (size > alike + ES_SETTINGS_PEOPLE)
		out.size = alike + ES_SETTINGS_PEOPLE;
	out.size -= ES_SETTINGS_MORE;
	people_put(&out);
	/* They keep no node out. The same ones have room on all nodes, whatever people are told. */
	out.size = size - ES_SETTINGS_PEOPLE + (out.used - alike);
	certificates_put(&out, conf);
	es_conf_should_each(conf, should_put, &out);
	out.size = size;
	rest_put(&out);
	return out.used;
}
