// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules, locations and lists in the configuration file: what they give, each message with its
 * line, the digest that nodes compare, and the examples of docs/rules.md.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/config.h"
#include "inspector/policy/url_info.h"

#define BASE                                                                                                 \
	"datapath { interface = eth0 cluster_interface = eth1 }\n"                                           \
	"node n1 { address = 10.78.0.1 } node n2 { address = 10.78.0.2 } node n3 { address = 10.78.0.3 }\n"  \
	"service web { address = 10.77.0.100 port = 80 }\n"                                                  \
	"service tls { address = 10.77.0.100 port = 443 inspect = never }\n"
#define LINES 4 /* of BASE */

static struct es_conf *parse_ok(const char *text)
{
	char *all = NULL;
	struct es_conf_error err;
	struct es_conf *conf = NULL;

	assert_true(asprintf(&all, BASE "%s", text) > 0);
	if (es_conf_parse(all, strlen(all), "t.conf", &conf, &err))
		fail_msg("%s\nin: %s", err.text, text);
	free(all);
	return conf;
}

/* @line: in @text, from 1 */
static void check_error(const char *text, int line, const char *expected)
{
	char *all = NULL, error[600];
	struct es_conf *conf = NULL;
	struct es_conf_error err;

	assert_true(asprintf(&all, BASE "%s", text) > 0);
	snprintf(error, sizeof(error), "t.conf:%d: %s", LINES + line, expected);
	assert_int_equal(es_conf_parse(all, strlen(all), "t.conf", &conf, &err), -EINVAL);
	if (strcmp(err.text, error) != 0)
		fail_msg("in: %s\nexpected: %s\n     got: %s", text, error, err.text);
	assert_null(conf);
	free(all);
}

/* @expected: all values, with '|' after each */
static void check_list(const struct es_conf_list *list, const char *expected)
{
	const char *item = NULL;
	char text[256] = "";
	size_t used = 0;

	for (unsigned int n = 0; n < list->count; n++) {
		item = es_conf_list_next(list, item);
		assert_non_null(item);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s|", item);
		assert_true(used < sizeof(text));
	}
	assert_null(es_conf_list_next(list, item));
	assert_string_equal(text, expected);
}

static void test_everything_set(void **state)
{
	struct es_conf *conf = parse_ok(
		"rule r1 {\n service = web\n method = {GET, \"HEAD\"} host = { www.example.org,\n "
		"\"*.example.com\"}\n"
		" path = {\"/a/\", \"/b c%20\"} # a comment, with {\n suffix = .mp4 client = {10.0.0.0/8, "
		"192.0.2.1}\n"
		" header = \"X-User: a b\" cookie = SID nodes = {n3, n1}\n otherwise = reject type = "
		"dynamic\n"
		" class = disk-cpu cost = 40 priority = high\n}\n"
		"rule r2 { header = X-User affinity = yes }\n"
		"location \"/\" { size_bytes = 4294967295 type = static class = normal priority = normal }\n"
		"location '/cgi-bin/' { service = web nodes = n2 otherwise = any }\n"
		"rule gone { path = /old/ deny = yes status = 410 body = \"It's {gone}, caf\xc3\xa9 # 1\" "
		"}\n");
	const struct es_conf_rule *rule = &conf->rules[0];

	(void)state;
	assert_int_equal(conf->rule_count, 5);
	assert_string_equal(rule->name, "r1");
	assert_false(rule->is_location);
	assert_int_equal(rule->service, 0);
	check_list(&rule->methods, "GET|HEAD|");
	check_list(&rule->hosts, "www.example.org|*.example.com|");
	check_list(&rule->paths, "/a/|/b c |");
	check_list(&rule->suffixes, ".mp4|");
	check_list(&rule->clients, "10.0.0.0/8|192.0.2.1|");
	check_list(&rule->node_names, "n3|n1|");
	assert_string_equal(rule->header, "X-User: a b");
	assert_string_equal(rule->cookie, "SID");
	assert_int_equal(rule->nodes.bits[0], 5);
	assert_int_equal(rule->otherwise, ES_CONF_OTHERWISE_REJECT);
	assert_int_equal(rule->type, ES_CONF_TYPE_DYNAMIC);
	assert_int_equal(rule->class, 1 + ES_CLASS_DISK_CPU);
	assert_int_equal(rule->cost, 40);
	assert_int_equal(rule->priority, 1 + ES_PRIORITY_HIGH);
	assert_int_equal(rule->affinity, 0);
	assert_int_equal(rule->size_bytes, 0);
	rule = &conf->rules[1];
	assert_int_equal(rule->service, -1);
	assert_int_equal(rule->affinity, 1);
	assert_int_equal(rule->priority, 0);
	assert_int_equal(rule->nodes.bits[0], 0);
	rule = &conf->rules[2];
	assert_true(rule->is_location);
	assert_string_equal(rule->name, "/");
	assert_int_equal(rule->size_bytes, 4294967295u);
	assert_int_equal(rule->class, 1 + ES_CLASS_NORMAL);
	assert_int_equal(rule->priority, 1 + ES_PRIORITY_NORMAL);
	assert_string_equal(conf->rules[3].name, "/cgi-bin/");
	assert_int_equal(conf->rules[3].nodes.bits[0], 2);
	rule = &conf->rules[4];
	assert_int_equal(rule->deny, ES_CONF_DENY_YES);
	assert_int_equal(rule->status, 410);
	assert_string_equal(rule->body, "It's {gone}, caf\xc3\xa9 # 1");
	es_conf_free(&conf);
}

static const struct {
	const char *text;
	int line;
	const char *error;
} errors[] = {
	/* lists */
	{"rule r {\n nodes = {}\n}", 2, "\"}\" after \"{\" in a list: expected a value"},
	{"rule r {\n nodes = {n1,\n # nothing\n }\n}", 4, "\"}\" after \",\" in a list: expected a value"},
	{"rule r {\n nodes = {,n1}\n}", 2, "\",\" after \"{\" in a list: expected a value"},
	{"rule r {\n nodes = {n1,{n2}}\n}", 2,
	 "\"{\" inside the list opened at line 6: expected \"}\" first"},
	{"rule r { nodes = {n1\n", 1, "\"{\" without \"}\": expected it before the end of the file"},
	{"rule r { nodes = {n1\n}", 1, "\"{\" without \"}\": expected it before the end of the file"},
	{"rule r { nodes = n1, n2 }", 1, "rule r: nodes = n1, n2: expected the name of a node"},
	{"rule r { nodes = {n1 n2} }", 1, "rule r: unexpected \"n2\": expected KEY = VALUE"},
	{"rule r {\n nodes = {n1}\n nodes = {n2}\n}", 3,
	 "rule r: nodes = n2: first set on line 6: expected it once"},
	{"rule r {\n type = {static}\n}", 2, "rule r: unexpected \"{\": expected KEY = VALUE"},
	/* names */
	{"rule {\n nodes = n1 }", 1, "rule: name is missing: expected one before \"{\""},
	{"rule '/a' { nodes = n1 }", 1,
	 "rule /a: bad name: expected 1..63 letters, digits, '.', '_' or '-', starting with a letter or "
	 "digit"},
	{"rule r { nodes = n1 }\nrule r { nodes = n1 }", 2,
	 "rule r: first defined on line 5: expected another name"},
	{"rule r { node = n1 }", 1,
	 "rule r: unknown key \"node\": expected service | method | host | path | suffix | client | header | "
	 "cookie | nodes | backup | otherwise | type | class | cost | priority | affinity | when_drained | "
	 "deny | "
	 "status | body | rate | burst"},
	{"location \"/\" { path = \"/\" }", 1,
	 "location /: unknown key \"path\": expected service | nodes | backup | otherwise | type | class | "
	 "cost | "
	 "priority | size_bytes"},
	/* values */
	{"rule r {\n\n nodes = {n1, n9}\n}", 3,
	 "rule r: nodes = n9: no node of that name: expected n1 | n2 | n3"},
	{"rule r { nodes = 'n 1' }", 1, "rule r: nodes = n 1: expected the name of a node"},
	{"rule r {\n service = ftp nodes = n1 }", 2,
	 "rule r: service = ftp: no service of that name: expected web | tls"},
	{"rule r {\n service = tls nodes = n1 }", 2,
	 "rule r: service = tls: it has inspect = never: expected affinity = source, with no condition but "
	 "client, or a service whose requests are inspected"},
	{"rule r { method = 'GE T' }", 1, "rule r: method = GE T: expected a method like GET"},
	{"rule r { method = get }", 1,
	 "rule r: method = get: expected capital letters, as in GET: methods are compared as they are sent"},
	{"rule r { host = 'a:80' }", 1,
	 "rule r: host = a:80: expected a host name without port, or *.DOMAIN: any port matches"},
	{"rule r { host = 'www.example.org.' }", 1,
	 "rule r: host = www.example.org.: expected no final dot: it is taken off the request's host, too"},
	{"rule r { host = '.example.org' }", 1,
	 "rule r: host = .example.org: expected *.DOMAIN for all names below it, DOMAIN for itself"},
	{"rule r { host = 'http://a' }", 1,
	 "rule r: host = http://a: expected a host name alone, without http://"},
	{"rule r { host = 'b\xc3\xbc"
	 "cher.example' }",
	 1,
	 "rule r: host = b\xc3\xbc"
	 "cher.example: expected the name as clients send it, in ASCII: xn--..."},
	{"rule r { host = 'www.*.org' }", 1,
	 "rule r: host = www.*.org: expected a host name without port, or *.DOMAIN"},
	{"rule r { host = '*' }", 1, "rule r: host = *: expected a host name without port, or *.DOMAIN"},
#define PATH_EXPECTED                                                                                        \
	"expected /directory/ with all below it, or /file; %XX or UTF-8; without \"//\", \".\", \"..\", ? "  \
	"and #"
#define STAR_EXPECTED                                                                                        \
	"expected no *: /directory/ is all below it, a suffix any name that ends so; the character itself "  \
	"is %2A"
	{"rule r { path = '/video/*' }", 1, "rule r: path = /video/*: " STAR_EXPECTED},
	{"rule r { suffix = '*.mp4' }", 1, "rule r: suffix = *.mp4: " STAR_EXPECTED},
	{"location '/video/*' { cost = 1 }", 1, "location /video/*: bad path: " STAR_EXPECTED},
	{"rule r { path = '/100%/' }", 1,
	 "rule r: path = /100%/: expected two hexadecimal digits after %; the character itself is %25"},
	{"rule r { path = '/a%2fb' }", 1,
	 "rule r: path = /a%2fb: expected no %2F, which servers read differently: it meets no rule"},
	{"rule r { path = '/a%0ab' }", 1, "rule r: path = /a%0ab: expected no control characters"},
	{"rule r { path = '/%2e%2E/a' }", 1, "rule r: path = /%2e%2E/a: " PATH_EXPECTED},
	{"rule r { path = '/a/%2e/' }", 1, "rule r: path = /a/%2e/: " PATH_EXPECTED},
	{"rule r { path = 'a' }", 1, "rule r: path = a: " PATH_EXPECTED},
	{"rule r { path = '' }", 1, "rule r: path = : " PATH_EXPECTED},
	{"rule r { path = '/a//' }", 1, "rule r: path = /a//: " PATH_EXPECTED},
	{"rule r { path = '/a/../b' }", 1, "rule r: path = /a/../b: " PATH_EXPECTED},
	{"rule r { path = '/a?b' }", 1, "rule r: path = /a?b: " PATH_EXPECTED},
	{"location 'a/' { nodes = n1 }", 1, "location a/: bad path: " PATH_EXPECTED},
	{"rule r { suffix = 'a/b' }", 1,
	 "rule r: suffix = a/b: expected the end of a path like .mp4, without /"},
#define NETWORK_EXPECTED                                                                                     \
	"expected an IP address, or a network like 192.0.2.0/24 or 2001:db8::/32 without bits after its "    \
	"prefix"
	{"rule r { client = 10.0.0.1/8 }", 1, "rule r: client = 10.0.0.1/8: " NETWORK_EXPECTED},
	{"rule r { client = 10.0.0.0/33 }", 1, "rule r: client = 10.0.0.0/33: " NETWORK_EXPECTED},
	{"rule r { client = 10.0.0.0/ }", 1, "rule r: client = 10.0.0.0/: " NETWORK_EXPECTED},
#define CLIENT_EXPECTED                                                                                      \
	"expected a network that clients have addresses of: a machine's requests to itself are not seen"
	{"rule r { client = 127.0.0.1 }", 1, "rule r: client = 127.0.0.1: " CLIENT_EXPECTED},
	{"rule r { client = 239.0.0.0/8 }", 1, "rule r: client = 239.0.0.0/8: " CLIENT_EXPECTED},
	{"rule r { client = 2001:db8::1/32 }", 1, "rule r: client = 2001:db8::1/32: " NETWORK_EXPECTED},
	{"rule r { client = 2001:db8::/129 }", 1, "rule r: client = 2001:db8::/129: " NETWORK_EXPECTED},
	{"rule r { client = 2001:db8::/ }", 1, "rule r: client = 2001:db8::/: " NETWORK_EXPECTED},
	{"rule r { client = 2001:db8::/0128 }", 1, "rule r: client = 2001:db8::/0128: " NETWORK_EXPECTED},
	{"rule r { client = ::ffff:192.0.2.1 }", 1, "rule r: client = ::ffff:192.0.2.1: " NETWORK_EXPECTED},
	{"rule r { client = ::1 }", 1, "rule r: client = ::1: " CLIENT_EXPECTED},
	{"rule r { client = ff02::/16 }", 1, "rule r: client = ff02::/16: " CLIENT_EXPECTED},
	{"rule r { header = 'X-A:b' }", 1,
	 "rule r: header = X-A:b: expected \"Name\" or \"Name: value\", at most 255 characters"},
	{"rule r { cookie = 'a=b' }", 1,
	 "rule r: cookie = a=b: expected 1..63 characters without space or any of ()<>@,;:/[]?={}"},
	{"rule r { class = gpu }", 1, "rule r: class = gpu: expected normal | cpu | disk | disk-cpu"},
	{"rule r { type = php }", 1, "rule r: type = php: expected static | dynamic"},
	{"rule r { priority = 1 }", 1, "rule r: priority = 1: expected high | normal | low"},
	{"rule r { otherwise = n1 }", 1, "rule r: otherwise = n1: expected any | reject"},
	{"rule r { affinity = 1 }", 1, "rule r: affinity = 1: expected yes | source | route | no"},
	{"rule r { cost = 0 }", 1, "rule r: cost = 0: expected 1..1000000 (response packets)"},
	{"location / { size_bytes = 0 }", 1, "location /: size_bytes = 0: expected 1..4294967295 (bytes)"},
	/* what makes no sense */
	{"rule r {\n path = '/a/'\n}", 1,
	 "rule r: says nothing: expected one of nodes | type | class | cost | priority | affinity | "
	 "deny | rate"},
	{"location / { service = web }", 1,
	 "location /: says nothing: expected one of nodes | type | class | cost | priority | size_bytes"},
	{"rule r {\n affinity = yes\n}", 2,
	 "rule r: affinity = yes: expected either cookie or header besides"},
	{"rule r { cookie = a header = b\n affinity = yes\n}", 2,
	 "rule r: affinity = yes: expected either cookie or header besides"},
	{"rule r { affinity = yes\n header = 'a: b'\n}", 2,
	 "rule r: header = a: b: always the same value: with affinity = yes expected a name"},
	{"rule r {\n affinity = route\n}", 2,
	 "rule r: affinity = route: expected either cookie or header besides"},
	{"rule r { affinity = route\n header = 'a: b'\n}", 2,
	 "rule r: header = a: b: always the same value: with affinity = route expected a name"},
	{"rule r {\n service = tls cookie = a affinity = route }", 2,
	 "rule r: service = tls: it has inspect = never: expected affinity = source, with no condition but "
	 "client, or a service whose requests are inspected"},
	{"rule r { cookie = a\n affinity = yes\n when_drained = stay }", 3,
	 "rule r: when_drained: no value names the node of a session: expected affinity = route besides"},
	{"rule r { cookie = a cost = 1\n when_drained = leave }", 2,
	 "rule r: when_drained: no value names the node of a session: expected affinity = route besides"},
	{"rule r { cookie = a affinity = route\n when_drained = yes }", 2,
	 "rule r: when_drained = yes: expected leave | stay"},
	{"rule r { service = tls affinity = source when_drained = stay }", 1,
	 "rule r: service = tls: it has inspect = never: expected affinity = source, with no condition but "
	 "client, or a service whose requests are inspected"},
#define ROUTE_EXPECTED "expected 1..63 characters without space or any of ()<>@,;:/[]?={}"
	{"node n4 { address = 10.78.0.4\n route = 'a b' }", 2, "node n4: route = a b: " ROUTE_EXPECTED},
	{"node n4 { address = 10.78.0.4\n route = '' }", 2, "node n4: route = : " ROUTE_EXPECTED},
	{"node n4 { address = 10.78.0.4\n route = "
	 "a123456789012345678901234567890123456789012345678901234567890123 }",
	 2,
	 "node n4: route = "
	 "a123456789012345678901234567890123456789012345678901234567890123: " ROUTE_EXPECTED},
	{"node n4 { address = 10.78.0.4\n route = {a, n2} }", 2,
	 "node n4: route = n2: also of node n2: expected one of its own"},
	{"node n4 { address = 10.78.0.4 route = jvm }\nnode n5 { address = 10.78.0.5\n route = jvm }", 3,
	 "node n5: route = jvm: also of node n4: expected one of its own"},
	{"node n4 { address = 10.78.0.4 route = n5 }\nnode n5 { address = 10.78.0.5 }", 2,
	 "node n5: route = n5: also of node n4: expected one of its own"},
	{"node n4 { address = 10.78.0.4\n route = {a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q} }", 2,
	 "node n4: route: 17 of them: expected at most 16"},
	{"rule r { cost = 1\n otherwise = reject\n}", 2,
	 "rule r: otherwise = reject: there are no nodes: expected nodes = {...} besides"},
	{"rule r { deny = 403 }", 1, "rule r: deny = 403: expected yes | no"},
	{"rule r { deny = yes\n status = 200 }", 2, "rule r: status = 200: expected 400..599"},
	{"rule r { deny = yes\n body = '' }", 2,
	 "rule r: body = : expected 1..255 bytes of text on one line"},
	{"rule r { cost = 1\n status = 404 }", 2,
	 "rule r: status: nothing is answered: expected deny = yes besides"},
	{"rule r { deny = no\n body = 'Go away.' }", 2,
	 "rule r: body: nothing is answered: expected deny = yes besides"},
	{"rule r { cost = 1 path = {'/a.png', '/b.mp4x'}\n suffix = {.mp4, .webm} }", 2,
	 "rule r: suffix = .mp4: no path of the rule ends so, and all conditions must hold: expected two "
	 "rules"},
	{"location '/caf%c3%A9/' { cost = 1 }\nlocation '/caf\xc3\xa9/' {\n cost = 2 service = web }", 3,
	 "location /caf\xc3\xa9/: first defined on line 5: expected another path or service"},
	{"location /a { cost = 1 }\nlocation /a {\n cost = 2 service = web }", 3,
	 "location /a: first defined on line 5: expected another path or service"},
	/* services */
	{"service b { address = 10.77.0.1 port = 80\n document_root = www }", 2,
	 "service b: document_root = www: expected an absolute path"},
	{"service b { address = 10.77.0.1 port = 80\n admit_low = 9 admit_normal = 8 }", 2,
	 "service b: admit_low = 9: expected at most 8, which admit_normal is"},
	{"service b { admit_low = low }", 1,
	 "service b: admit_low = low: expected a plain number 0 (always admitted) or 1..1000000 (requests "
	 "per node)"},
	{"service b { retry_after_s = 0 }", 1, "service b: retry_after_s = 0: expected 1..3600 (seconds)"},
	{"inspector { url_entries = 1 }", 1,
	 "inspector: url_entries = 1: expected 1024..4194304 (files and programs)"},
};

/* Nodes' names in cookies; if no rule asks for them, a warning says so. */
static void test_routes(void **state)
{
	static const char text[] = "node n4 { address = 10.78.0.4\n route = {jvm4, \"old+4\"} }\n";
	struct es_conf *conf;
	char *with_rule = NULL;

	(void)state;
	assert_true(asprintf(&with_rule, "%srule r { cookie = JSESSIONID affinity = route }", text) > 0);
	conf = parse_ok(with_rule);
	free(with_rule);
	assert_int_equal(conf->warning_count, 0);
	assert_int_equal(conf->rules[0].affinity, ES_CONF_AFFINITY_ROUTE);
	check_list(&conf->nodes[3].routes, "jvm4|old+4|");
	assert_string_equal(es_conf_route_next(&conf->nodes[3], NULL), "jvm4");
	assert_string_equal(es_conf_route_next(&conf->nodes[0], NULL), "n1");
	assert_null(es_conf_route_next(&conf->nodes[0], conf->nodes[0].name));
	es_conf_free(&conf);
	conf = parse_ok(text);
	assert_int_equal(conf->warning_count, 1);
	assert_non_null(strstr(conf->warning[0],
			       ": node n4: route = jvm4 has no effect: no rule has affinity = route"));
	es_conf_free(&conf);
}

/* Where the policy reads no request, rules find none; a plugin reads them. */
static void test_unread(void **state)
{
	static const char *const silent[] = {
		"service r { address = 10.77.0.2 port = 80 policy = ring }\nrule s { service = r affinity = "
		"source }",
		"service r { address = 10.77.0.2 port = 80 policy = ring plugin x { } }\n"
		"rule s { service = r cost = 2 }",
		"service r { address = 10.77.0.2 port = 80 policy = wrr }\nrule s { service = r cost = 2 }",
	};
	struct es_conf *conf;

	(void)state;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		conf = parse_ok(silent[i]);
		assert_int_equal(conf->warning_count, 0);
		es_conf_free(&conf);
	}
	conf = parse_ok("service r { address = 10.77.0.2 port = 80 policy = ring }\n"
			"rule s { cookie = S affinity = route\n service = r }");
	assert_int_equal(conf->warning_count, 1);
	assert_string_equal(
		conf->warning[0],
		"t.conf:7: rule s: service = r: it has policy = ring and no plugin, so no request is "
		"read and this has no effect");
	es_conf_free(&conf);
}

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct es_conf *conf;

		check_error(errors[i].text, errors[i].line, errors[i].error);
		conf = parse_ok("rule r { nodes = {n1, n2} }");
		es_conf_free(&conf);
	}
}

static __u64 digest(const char *text)
{
	struct es_conf *conf = parse_ok(text);
	__u64 value = es_conf_rule_digest(&conf->rules[0]);

	es_conf_free(&conf);
	return value;
}

/* A list that is as long as those of real networks are; what is longer is refused, and the limit named. */
static void test_bounds(void **state)
{
	char *text = NULL, path[512];
	struct es_conf *conf;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	fprintf(out, "rule r { nodes = n1 client = {");
	for (int i = 0; i < ES_CONF_LIST_MAX; i++)
		fprintf(out, "%s10.%d.%d.0/24", i ? ", " : "", i / 256, i % 256);
	fprintf(out, "} }");
	fclose(out);
	conf = parse_ok(text);
	assert_int_equal(conf->rules[0].clients.count, 4096);
	assert_string_equal(conf->rules[0].clients.text, "10.0.0.0/24");
	es_conf_free(&conf);
	free(text);

	out = open_memstream(&text, &size);
	fprintf(out, "rule r { path = {");
	for (int i = 0; i <= ES_CONF_LIST_MAX; i++)
		fprintf(out, "%s\"/%06d\"", i ? ", " : "", i);
	fprintf(out, "} }");
	fclose(out);
	check_error(text, 1, "rule r: path = /004096: too many: expected at most 4096 values in a list");
	free(text);

	out = open_memstream(&text, &size);
	for (int i = 0; i <= ES_CONF_RULES_MAX; i++)
		fprintf(out, "rule r%d { nodes = n1 }\n", i);
	fclose(out);
	check_error(text, 4097, "rule r4096: too many rules and locations: expected at most 4096");
	free(text);

	/* The limit is that of the decoded path. */
	snprintf(path, sizeof(path), "location \"/%0254d\" { nodes = n1 }", 0);
	conf = parse_ok(path);
	es_conf_free(&conf);
	snprintf(path, sizeof(path), "location \"/%0253d%%41\" { nodes = n1 }", 0);
	conf = parse_ok(path);
	assert_int_equal(strlen(conf->rules[0].name), 255);
	es_conf_free(&conf);
	snprintf(path, sizeof(path), "rule r { path = \"/%0255d\" }", 0);
	check_error(path, 1,
		    "rule r: path = "
		    "/0000000000000000000000000000000000000000000000000000000000000000000000000000000: "
		    "expected at most 255 characters");
}

/* A path is one path, however it is spelt: nodes with different spellings have the same rules. */
static void test_spellings(void **state)
{
	static const char *const same[] = {
		"location '/caf\xc3\xa9/' { cost = 1 }",
		"location '/caf%C3%A9/' { cost = 1 }",
		"location '/%63af%c3%a9/' { cost = 1 }",
	};
	struct es_conf *conf;

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		conf = parse_ok(same[i]);
		assert_string_equal(conf->rules[0].name, "/caf\xc3\xa9/");
		es_conf_free(&conf);
		assert_true(digest(same[i]) == digest(same[0]));
	}
	conf = parse_ok(
		"rule r { path = {'/p%C3%A2t\xc3\xa9/', '/a%20b', '/%2A%3f%25', '/%E9'} suffix = '.m%704'\n"
		" header = 'X-A: b\\c\xc3\xa9' cost = 1 }");
	check_list(&conf->rules[0].paths, "/p\xc3\xa2t\xc3\xa9/|/a b|/*?%|/\xe9|");
	check_list(&conf->rules[0].suffixes, ".mp4|");
	assert_string_equal(conf->rules[0].header, "X-A: b\\c\xc3\xa9");
	es_conf_free(&conf);
}

static void test_digest(void **state)
{
	__u64 one = digest("rule r { path = {'/a', '/b'} cost = 3 }");

	(void)state;
	assert_int_equal(one, digest("rule r {\n cost = 3 # the same\n path = {'/a', '/b'} }"));
	assert_int_not_equal(one, digest("rule q { path = {'/a', '/b'} cost = 3 }"));
	assert_int_not_equal(one, digest("rule r { path = {'/a', '/c'} cost = 3 }"));
	assert_int_not_equal(one, digest("rule r { path = {'/b', '/a'} cost = 3 }"));
	assert_int_not_equal(one, digest("rule r { path = {'/a/b'} cost = 3 }"));
	assert_int_not_equal(one, digest("rule r { path = {'/a', '/b'} cost = 4 }"));
	assert_int_not_equal(one, digest("rule r { path = {'/a', '/b'} cost = 3 priority = low }"));
	assert_int_not_equal(digest("rule r { cookie = a cost = 1 }"),
			     digest("rule r { header = a cost = 1 }"));
	assert_int_not_equal(digest("rule r { deny = yes }"), digest("rule r { deny = no }"));
	assert_int_not_equal(digest("rule r { deny = yes status = 403 }"),
			     digest("rule r { deny = yes status = 404 }"));
	assert_int_not_equal(digest("rule r { deny = yes body = a }"),
			     digest("rule r { deny = yes body = b }"));
	assert_int_not_equal(digest("rule r { cookie = a affinity = route }"),
			     digest("rule r { cookie = a affinity = route when_drained = stay }"));
	/* The same on every machine and in every version, those included that did not know `deny`. */
	assert_true(digest("rule r { path = {'/a', '/b'} cost = 3 }") == 0xe07c46e677e2019bULL);
	assert_true(digest("location /a/ { nodes = {n1, n2} }") == 0xd71e390b06a42c29ULL);
}

/* Each ```conf block of the page is right as it stands, with three nodes and the services around it. */
static void check_document(const char *path, unsigned int least)
{
	FILE *file = fopen(path, "r");
	char *text = NULL, *at;
	unsigned int blocks = 0;
	size_t size = 0;

	assert_non_null(file);
	assert_true(getdelim(&text, &size, 0, file) > 0);
	fclose(file);
	for (at = text; (at = strstr(at, "\n```conf\n")); blocks++) {
		char *end = strstr(at + 9, "\n```");
		struct es_conf *conf;

		assert_non_null(end);
		*end = 0;
		conf = parse_ok(at + 9);
		assert_true(conf->rule_count || conf->service_count > 2);
		assert_int_equal(conf->warning_count, 0);
		es_conf_free(&conf);
		at = end + 1;
	}
	assert_true(blocks >= least);
	free(text);
}

static void test_document(void **state)
{
	(void)state;
	check_document(EARSHOT_SOURCE "/docs/rules.md", 6);
	check_document(EARSHOT_SOURCE "/docs/sessions.md", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_set), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_bounds),	       cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_digest),	       cmocka_unit_test(test_document),
		cmocka_unit_test(test_routes),	       cmocka_unit_test(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
