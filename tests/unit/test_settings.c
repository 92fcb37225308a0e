// SPDX-License-Identifier: GPL-2.0-or-later
/* The comparison of nodes when one joins: rules and parameters that differ are named. */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/plugin/host.h"
#include "inspector/self/settings.h"
#include "membership/group.h"

#define BASE                                                                                                 \
	"datapath { interface = eth0 cluster_interface = eth1 }\nnode n1 { address = 10.78.0.1 }\nnode n2 "  \
	"{ address = 10.78.0.2 }\n"                                                                          \
	"service web { address = 10.77.0.100 port = 80 "

/* @service: more keys of the service */
static void settings_of(const char *service, const char *rules, char *text, size_t size)
{
	static const struct es_network network;
	struct es_keys keys = {.count = 1};
	struct es_plugins *plugins = NULL;
	struct es_conf *conf = NULL;
	struct es_conf_error err;
	char *all = NULL;

	assert_true(asprintf(&all, BASE "%s }\n%s", service, rules) > 0);
	if (es_conf_parse(all, strlen(all), "t.conf", &conf, &err))
		fail_msg("%s", err.text);
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s", err.text);
	assert_true(es_settings_text(conf, &keys, &network, plugins, text, size) < size);
	es_plugins_free(&plugins);
	es_conf_free(&conf);
	free(all);
}

static void check(const char *service_a, const char *rules_a, const char *service_b, const char *rules_b,
		  const char *expected)
{
	char a[ES_WIRE_SETTINGS_SIZE], b[ES_WIRE_SETTINGS_SIZE], why[256] = "";

	settings_of(service_a, rules_a, a, sizeof(a));
	settings_of(service_b, rules_b, b, sizeof(b));
	if (es_group_settings_differ(a, b, why, sizeof(why)) != !!expected[0])
		fail_msg("expected %s\n     got %s", expected, why);
	if (strncmp(why, expected, strlen(expected)) != 0)
		fail_msg("expected %s\n     got %s", expected, why);
}

#define RULES(cost)                                                                                          \
	"rule one { path = /a cost = 1 }\nlocation \"/x=y\" { cost = " cost                                  \
	" }\nlocation \"/x=z\" { cost = 3 }\n"

static void test_rules(void **state)
{
	(void)state;
	check("", "", "", "", "");
	check("", RULES("2"), "", "# another layout\n" RULES("2"), "");
	check("", RULES("2"), "", RULES("3"), "location.1./x is ");
	check("", RULES("2"), "", "", "rule.0.one is ");
	check("", "", "", RULES("2"), "rule.0.one is ");
	check("", "rule a { cost = 1 }\nrule b { cost = 2 }", "", "rule b { cost = 2 }\nrule a { cost = 1 }",
	      "rule.0.a is ");
}

#define ROUTE(name) "node n3 { address = 10.78.0.3 route = " name " }\nrule s { cookie = a affinity = route }"

/* Nodes that take a cookie for another node's would send a session to and fro. */
static void test_routes(void **state)
{
	char text[ES_WIRE_SETTINGS_SIZE];

	(void)state;
	check("", ROUTE("a"), "", ROUTE("a"), "");
	check("", ROUTE("a"), "", ROUTE("b"), "node.routes is ");
	check("", ROUTE("{a, b}"), "", ROUTE("{a, b}"), "");
	check("", ROUTE("{a, b}"), "", ROUTE("ab"), "node.routes is ");
	/* The version before does not know it. */
	settings_of("", "rule s { cookie = a affinity = route }", text, sizeof(text));
	assert_null(strstr(text, "routes"));
}

static void on_difference(void *ctx, const struct es_group_setting *s)
{
	char *all = ctx;

	sprintf(all + strlen(all), "%s%.*s ", s->must ? "=" : "~", (int)s->name_len, s->name);
}

static void differences(const char *service_a, const char *service_b, const char *expected)
{
	char a[ES_WIRE_SETTINGS_SIZE], b[ES_WIRE_SETTINGS_SIZE], all[1024] = "", why[256];

	settings_of(service_a, "", a, sizeof(a));
	settings_of(service_b, "", b, sizeof(b));
	es_group_settings_each(a, b, on_difference, all);
	assert_string_equal(all, expected);
	assert_int_equal(es_group_settings_differ(a, b, why, sizeof(why)), strchr(expected, '=') != NULL);
}

#define TLS(certificate) "tls { certificate = " certificate " key = /k server = \"unix:/s\" }"

/*
 * Differences that keep no node out are told all the same, once each; a version that does not tell a setting
 * differs in nothing.
 */
static void test_others(void **state)
{
	char a[ES_WIRE_SETTINGS_SIZE], b[ES_WIRE_SETTINGS_SIZE], all[1024] = "";

	(void)state;
	differences("", "", "");
	differences("", "check { type = http path = \"/a\" }", "~service.web.check ");
	differences("document_root = /a", "document_root = /b", "~service.web.document_root ");
	differences("when_all_down = reject", "", "~service.web.serving ");
	differences("", "check { port = 81 }", "~service.web.check_asks ");
	differences("check { type = http status = {\"200\"} }",
		    "check { type = http status = {\"200..299\"} }", "~service.web.check_asks ");
	differences("", "otherwise { body = \"Back soon.\" }", "~service.web.otherwise ");
	differences("", "backup = n2", "=service.web.backup ");
	differences("inspect = every outlier { max_errors = 20 }",
		    "inspect = every outlier { max_errors = 30 }", "~service.web.outlier ");
	/* In the order of the nodes; and where it is said of none, the version before says the same. */
	differences("nodes = {n1, n2}", "nodes = {n2, n1}", "");
	differences("nodes = {n1, n2}", "nodes = {n1}", "=service.web.nodes ");
	differences("nodes = {n1}", "", "=service.web.nodes ");
	/* The version before has but the server's address of IPv4. */
	differences("server_port = 8080", "server_port = 8080 server_address = \"127.0.0.1, 2001:db8::1\"",
		    "");
	differences("server_port = 8080", "server_port = 8081", "~service.web.server ");
	differences("policy = wrr", "policy = wlc load_bound = 150", "=service.0.web ~service.web.serving ");
	/* A server that ends TLS itself cannot go on with a connection of earshot-tls. */
	differences("inspect = never", "inspect = never " TLS("/a"), "=service.0.web ~service.web.server ");
	differences("inspect = every " TLS("/a"), "inspect = first " TLS("/a"), "=service.0.web ");
	differences(TLS("/a"), TLS("/b"), "~service.web.tls.files ");
	settings_of("", "", a, sizeof(a));
	assert_non_null(strstr(a, "\n~node.n1.weight=100\n"));
	*(strstr(a, "\n~") + 1) = 0;
	settings_of("document_root = /a", "", b, sizeof(b));
	es_group_settings_each(a, b, on_difference, all);
	es_group_settings_each(b, a, on_difference, all);
	assert_string_equal(all, "");
}

static void test_parameters(void **state)
{
#define LARD "policy = lard inspect = every "
	(void)state;
	check(LARD "parameters = \"T_low=20\"", "", LARD "parameters = {\"T_low=2e1\"}", "", "");
	check(LARD "parameters = \"T_low=20\"", "", LARD "parameters = \"T_low=30\"", "",
	      "service.web.T_low is 20 there, 30 in the cluster");
	check("admit_low = 1 admit_normal = 2", "", "admit_low = 1 admit_normal = 3", "",
	      "service.web.admit is 1,2 there, 1,3 in the cluster");
	check("", "", "unsafe = once", "", "");
	check("unsafe = all", "", "unsafe = again", "",
	      "service.web.unsafe is all there, again in the cluster");
}

/* More than fits: those that are not there singly are in the line of all. */
static void test_many(void **state)
{
	char *a = NULL, *b = NULL;
	size_t size;
	FILE *out = open_memstream(&a, &size);

	(void)state;
	for (int i = 0; i < 256; i++)
		fprintf(out,
			"rule a-long-name-for-a-rule-that-needs-some-room-in-a-message-%d { cost = 1 }\n", i);
	fclose(out);
	b = strdup(a);
	assert_non_null(b);
	check("", a, "", b, "");
	b[strlen(b) - 4] = '2'; /* the last one */
	check("", a, "", b, "rules is ");
	free(a);
	free(b);
}

/* So many services, the last one with @last. The caller frees the text. */
static char *services_of(unsigned int count, const char *last)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (unsigned int i = 0; i < count; i++)
		fprintf(out,
			"} service w%u { address = 10.77.0.100 port = %u inspect = every "
			"%s ",
			i, 1000 + i, i + 1 == count ? last : "document_root = /srv/www");
	fclose(out);
	assert_non_null(text);
	return text;
}

#define LONG                                                                                                 \
	"a-long-name-for-a-directory-that-needs-some-room-in-a-message/"                                     \
	"a-long-name-for-a-directory-that-needs-some-room-in-a-message"

/* Returns the names of the settings in which they differ, "" for none; until the next call. */
static const char *differing(unsigned int count, const char *last_a, const char *last_b)
{
	static char all[1024];
	char a[ES_WIRE_SETTINGS_SIZE], b[ES_WIRE_SETTINGS_SIZE], why[256];
	char *services_a = services_of(count, last_a), *services_b = services_of(count, last_b);

	all[0] = 0;
	settings_of(services_a, "", a, sizeof(a));
	settings_of(services_b, "", b, sizeof(b));
	free(services_a);
	free(services_b);
	es_group_settings_each(a, b, on_difference, all);
	if (es_group_settings_differ(a, b, why, sizeof(why)))
		fail_msg("refused: %s", why);
	return all;
}

/* More services than there is room for: those that have none are compared, too, in one line. */
static void test_many_services(void **state)
{
	(void)state;
	assert_string_equal(differing(5, "document_root = /a", "document_root = /b"),
			    "~service.w4.document_root ");
	/* Also if the difference is why one of them has room for it, or for another. */
	for (unsigned int count = 10; count < 63; count++) {
		assert_string_equal(differing(count, "document_root = /a", "document_root = /a"), "");
		assert_string_not_equal(differing(count, "document_root = /a", "document_root = /b"), "");
		assert_string_not_equal(differing(count, "document_root = /a", "document_root = /b-" LONG),
					"");
	}
	assert_non_null(strstr(differing(62, "document_root = /a", "document_root = /b"), "~rest."));
}

#define PLUGIN(name, more) "plugin " name " { file = \"debug.so\" " more " }\n"

static void test_plugins(void **state)
{
	(void)state;
	check(PLUGIN("a", ""), "", "# the same\n" PLUGIN("a", "fail = open"), "", "");
	check(PLUGIN("a", ""), "", "", "", "plugin.0.web.a is ");
	check(PLUGIN("a", ""), "", PLUGIN("b", ""), "", "plugin.0.web.a is ");
	check(PLUGIN("a", ""), "", PLUGIN("a", "fail = closed"), "", "plugin.0.web.a is ");
	check(PLUGIN("a", "config = \"answer node 1\""), "", PLUGIN("a", "config = \"answer node 2\""), "",
	      "plugin.0.web.a is ");
	check(PLUGIN("a", "") PLUGIN("b", ""), "", PLUGIN("b", "") PLUGIN("a", ""), "", "plugin.0.web.a is ");
}

#define SERVICE_OF(address) "} service v6 { port = 80 address = '" address "' "

/* A node that lacks a service's second address would not answer its clients. */
static void test_addresses(void **state)
{
	(void)state;
	check(SERVICE_OF("192.0.2.1, 2001:db8::1"), "", SERVICE_OF("2001:db8::1,192.0.2.1"), "", "");
	check(SERVICE_OF("192.0.2.1, 2001:db8::1"), "", SERVICE_OF("192.0.2.1"), "", "service.1.v6.address6");
	check(SERVICE_OF("192.0.2.1, 2001:db8::1"), "", SERVICE_OF("192.0.2.1, 2001:db8::2"), "",
	      "service.1.v6.address6");
	check(SERVICE_OF("2001:db8::1"), "", SERVICE_OF("2001:db8::2"), "", "service.1.v6");
}

/* Also to a node of the version before, which knows siphash and says nothing of it. */
static void test_ring_hash(void **state)
{
	const char *jhash = "cluster { ring_hash = jhash }\n", *siphash = "cluster { ring_hash = siphash }\n";
	char text[ES_WIRE_SETTINGS_SIZE];

	(void)state;
	check("", "", "", siphash, "");
	check("", jhash, "", jhash, "");
	check("", jhash, "", "", "ring_hash is jhash there, missing in the cluster");
	check("", "", "", jhash, "ring_hash is missing there, jhash in the cluster");
	settings_of("", siphash, text, sizeof(text));
	assert_null(strstr(text, "ring_hash"));
}

int main(void)
{
	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),	      cmocka_unit_test(test_ring_hash),
		cmocka_unit_test(test_addresses),     cmocka_unit_test(test_plugins),
		cmocka_unit_test(test_parameters),    cmocka_unit_test(test_others),
		cmocka_unit_test(test_many),	      cmocka_unit_test(test_routes),
		cmocka_unit_test(test_many_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
