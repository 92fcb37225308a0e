// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lines in which nodes tell each other their settings. Nodes of different versions compare them, so the
 * lines of the version before stay as they are, to the byte. And each key of the configuration is compared as
 * its table says.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/config/internal.h"
#include "inspector/plugin/host.h"
#include "inspector/self/settings.h"
#include "membership/group.h"

/* Has nearly every key. */
static const char everything[] =
	"cluster { handover_port = 7360 virtual_nodes = 64 ring_hash = jhash }\n"
	"datapath { interface = eth0 cluster_interface = eth1 mac_mode = unicast cookie_lifetime_s = "
	"400 }\n"
	"inspector { gather_timeout_ms = 300 race_window_ms = 60 settle_ms = 0 poison = refuse }\n"
	"status { port = 7352 }\n"
	"log { to = file file = \"/var/log/a b.log\" format = json service = web }\n"
	"node n1 { address = 10.78.0.1 route = one }\n"
	"node n2 { address = 10.78.0.2 weight = 50 }\n"
	"node n3 { address = 10.78.0.3 removed = yes }\n"
	"service web {\n"
	"  address = \"10.77.0.100, 2001:db8::1\" port = 80 nodes = {n2, n1} backup = n2 unsafe = "
	"again survive = off resume = off content_host = no\n"
	"  policy = lard parameters = \"T_low=20\" admit_low = 1 admit_normal = 2 document_root = "
	"\"/var/my www\"\n"
	"  server_address = \"127.0.0.1, ::1\" server_port = 8080 load_bound = 0 handover_cost = 2 "
	"retry_after_s = 7 when_all_down = reject\n"
	"  content_on_disk = no\n"
	"  check { type = https port = 81 path = \"/a\" host = \"h:1\" ca_file = /ca.pem status = "
	"{\"200..299\", \"401\"} body = \"all is well\" interval_ms = 500 timeout_ms = 600 rise = 4 "
	"fall = 5 }\n"
	"  otherwise { status = 500 body = \"Back soon.\" }\n"
	"  plugin p { file = \"debug.so\" fail = closed config = \"answer node 1\" }\n"
	"}\n"
	"service mail { address = 10.77.0.101 port = 25 inspect = never check { type = none } "
	"outlier { max_out = 1 } }\n"
	"service v6 { address = 2001:db8::2 port = 443 inspect = every survive = 2 resume = on outlier { "
	"max_errors = 5 "
	"max_slow = 6 slow_ms = 7 interval_ms = 8000 min_responses = 9 out_s = 10 out_max_s = 11 "
	"max_out = 2 } otherwise { file = \"/sorry.html\" } }\n"
	"rule s { cookie = a affinity = route }\n"
	"location \"/x/\" { cost = 3 }\n"
	"rule full { service = web method = {GET, HEAD} host = a.example path = {\"/a/\", /b} suffix "
	"= .gif client = 192.0.2.0/24 header = \"X-A\" nodes = n1 backup = n2 otherwise = reject "
	"type = static class = cpu cost = 7 priority = low affinity = yes }\n"
	"rule no { path = /old deny = yes status = 410 body = \"Gone.\" }\n"
	"rule slow { client = 2001:db8::/32 rate = \"10/m\" burst = 5 }\n"
	"rule kept { cookie = k affinity = route when_drained = stay }\n"
	"location \"/y/\" { service = web nodes = n1 backup = n2 otherwise = any type = dynamic "
	"class = disk cost = 9 priority = high size_bytes = 5000 }\n";

/* All lines with '='. */
static const char must[] = "=protocol=3\n"
			   "=ring_secret=5cce47f8ddf30d10\n"
			   "=key=5cce47f8ddf30d10\n"
			   "=cookie_lifetime_s=400\n"
			   "=receive_window_scale=10\n"
			   "=handshake=mss:1400,wscale:10,sack:1,timestamps:1,ecn:0\n"
			   "=handover_port=7360\n"
			   "=virtual_nodes=64\n"
			   "=ring_hash=jhash\n"
			   "=service.0.web=10.77.0.100:80,inspect:first,policy:lard\n"
			   "=service.0.web.address6=2001:db8::1\n"
			   "=service.web.nodes=n1,n2\n"
			   "=service.web.T_low=20\n"
			   "=service.web.T_high=65 auto\n"
			   "=service.web.unsafe=again\n"
			   "=service.web.content_host=no\n"
			   "=service.web.admit=1,2\n"
			   "=service.web.backup=n2\n"
			   "=service.1.mail=10.77.0.101:25,inspect:never,policy:ring\n"
			   "=service.2.v6=2001:db8::2:443,inspect:every,policy:uri-hash\n"
			   "=service.v6.survive=2\n"
			   "=service.v6.resume=on\n"
			   "=nodes=n1@10.78.0.1,n2@10.78.0.2,n3@removed\n"
			   "=node.routes=932142e01cd49e58\n"
			   "=plugin.0.web.p=debug@1.0,fail:closed,config:ece7557f82016feb\n"
			   "=rule.0.s=c6dcb04ed3c98e79\n"
			   "=location.1./x/=17c757361fb6517d\n"
			   "=rule.2.full=556fd0639e98696a\n"
			   "=rule.3.no=420ed0f96fc1152a\n"
			   "=rule.4.slow=7a72aac622732a35\n"
			   "=rule.5.kept=5bbb4f900837f7cd\n"
			   "=location.6./y/=f7174cf48380c986\n"
			   "=rules=aefe2b1c273b6aa3\n";

/* The lines with '~' that the version before tells, too: more may follow. */
static const char should[] =
	"~datapath.mac=unicast:02bf0a4d0064\n"
	"~datapath.fallback_after_ms=1000\n"
	"~inspector=gather_timeout_ms:300,race_window_ms:60,settle_ms:0,poison:refuse\n"
	"~status.port=7352\n"
	"~log=to:file,file:/var/log/a_b.log,facility:21,format:json,service:web\n"
	"~service.web.check=https,path:/a,host:h:1,expect:0,interval_ms:500,timeout_ms:600,rise:4,"
	"fall:5\n"
	"~service.web.check_asks=port:81,ca_file:/ca.pem,body:all_is_well,status:200..299;401\n"
	"~service.web.outlier=max_errors:0,max_slow:0,slow_ms:1000,interval_ms:10000,"
	"min_responses:20,out_s:30,out_max_s:300,max_out:1\n"
	"~service.web.otherwise=status:500,file:,body:Back_soon.\n"
	"~service.web.document_root=/var/my_www\n"
	"~service.web.serving=load_bound:0,handover_cost:2,retry_after_s:7,when_all_down:reject\n"
	"~service.web.content_on_disk=no\n"
	"~service.web.server=127.0.0.1:8080\n"
	"~service.web.server6=::1\n"
	"~service.mail.check=none,path:/,host:,expect:0,interval_ms:1000,timeout_ms:2000,rise:2,"
	"fall:3\n"
	"~service.mail.check_asks=port:0,ca_file:,body:,status:\n"
	"~service.mail.outlier=max_errors:0,max_slow:0,slow_ms:1000,interval_ms:10000,"
	"min_responses:20,out_s:30,out_max_s:300,max_out:1\n"
	"~service.mail.otherwise=status:503,file:,body:\n"
	"~service.mail.document_root=none\n"
	"~service.mail.serving=load_bound:125,handover_cost:1,retry_after_s:5,when_all_down:serve\n"
	"~service.mail.server=127.0.0.1:0\n"
	"~service.v6.check=tcp,path:/,host:,expect:0,interval_ms:1000,timeout_ms:2000,rise:2,fall:3\n"
	"~service.v6.check_asks=port:0,ca_file:,body:,status:\n"
	"~service.v6.outlier=max_errors:5,max_slow:6,slow_ms:7,interval_ms:8000,min_responses:9,"
	"out_s:10,out_max_s:11,max_out:2\n"
	"~service.v6.otherwise=status:503,file:/sorry.html,body:\n"
	"~service.v6.document_root=none\n"
	"~service.v6.serving=load_bound:125,handover_cost:1,retry_after_s:5,when_all_down:serve\n"
	"~service.v6.server=127.0.0.1:0\n"
	"~node.n1.weight=100\n"
	"~node.n2.weight=50\n";

static void settings_of(const char *text, char *ret_settings, size_t size)
{
	struct es_network network = {.wscale = 10, .sack = 1, .timestamps = 1};
	struct es_keys keys = {.count = 1};
	struct es_plugins *plugins = NULL;
	struct es_conf *conf = NULL;
	struct es_conf_error err;

	if (es_conf_parse(text, strlen(text), "t.conf", &conf, &err))
		fail_msg("%s\n%s", err.text, text);
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s\n%s", err.text, text);
	network.mss = es_network_mss(conf->datapath.mtu ? conf->datapath.mtu : 1440);
	assert_true(es_settings_text(conf, &keys, &network, plugins, ret_settings, size) < size);
	es_plugins_free(&plugins);
	es_conf_free(&conf);
}

/* The lines of @settings that begin with @kind. */
static void lines_of(const char *settings, char kind, char *ret_lines)
{
	*ret_lines = 0;
	for (const char *line = settings, *end; (end = strchr(line, '\n')); line = end + 1)
		if (*line == kind)
			strncat(ret_lines, line, (size_t)(end + 1 - line));
}

static void test_to_the_byte(void **state)
{
	char settings[ES_WIRE_SETTINGS_SIZE], lines[ES_WIRE_SETTINGS_SIZE];

	(void)state;
	settings_of(everything, settings, sizeof(settings));
	lines_of(settings, '=', lines);
	assert_string_equal(lines, must);
	for (const char *line = should, *end; (end = strchr(line, '\n')); line = end + 1) {
		snprintf(lines, sizeof(lines), "\n%.*s", (int)(end + 1 - line), line);
		if (!strstr(settings, lines))
			fail_msg("not told any more: %s", lines + 1);
	}
}

/*
 * struct sample - two values of a key that cannot just be its default and another one
 * @needs: keys of its section that it needs beside it; @b: NULL: the first one is all that there is
 */
struct sample {
	const char *section;
	const char *key;
	const char *needs;
	const char *a;
	const char *b;
};

/* Configurations of a plugin (files_make()). */
static char file_a[64], file_b[64];

#define HTTPS "type = https host = a.example"

static const struct sample samples[] = {
	{"cluster", "name", "", "one", "two"},
	{"cluster", "key_file", "", "/a", "/b"},
	{"datapath", "interface", "", "eth0", "eth2"},
	{"datapath", "cluster_interface", "", "eth1", "eth3"},
	{"datapath", "cluster_mac", "", "03:bf:00:00:00:01", "03:bf:00:00:00:02"},
	{"inspector", "program_group", "", "one", "two"},
	{"status", "address", "", "127.0.0.1", "127.0.0.2"},
	{"status", "allow", "", "10.0.0.0/8", "{ 10.0.0.0/8, 192.0.2.1 }"},
	{"status", "names", "", "a.example", "b.example"},
	{"log", "to", "", "syslog", "file file = /a"},
	{"log", "file", "to = file", "/a", "/b"},
	{"log", "service", "", "web", "other"},
	{"node", "address", "", "10.78.0.1", "10.78.0.11"},
	{"node", "interface", "", "eth4", "eth5"},
	{"node", "cluster_interface", "", "eth4", "eth5"},
	{"node", "id", "", "1", "9"},
	{"node", "route", "", "a", "{ a, b }"},
	{"service", "address", "", "10.77.0.100", "10.77.0.101"},
	{"service", "port", "", "80", "81"},
	{"service", "policy", "", "wrr", "wlc"},
	{"service", "server_address", "server_port = 8080", "127.0.0.1", "127.0.0.2"},
	{"service", "parameters", "policy = lard", "\"T_low=20\"", "\"T_low=30\""},
	{"service", "document_root", "", "/a", "/b"},
	{"service", "nodes", "", "n1", "{ n1, n2 }"},
	{"service", "backup", "", "n1", "n2"},
	{"service", "admit_low", "", "0", "1"},
	{"check", "path", HTTPS, "/a", "/b"},
	{"check", "host", "type = http", "a.example", "b.example"},
	{"check", "ca_file", HTTPS, "/a", "/b"},
	{"check", "body", HTTPS, "one", "two"},
	{"check", "expect", HTTPS, "200", "204"},
	{"check", "status", HTTPS, "200", "\"200..299\""},
	{"outlier", "max_errors", "max_slow = 5", "0", "1"},
	{"outlier", "max_slow", "max_errors = 5", "0", "1"},
	{"outlier", "out_max_s", "max_errors = 5", "300", "301"},
	{"outlier", "max_out", "max_errors = 5", "1", "2"},
	{"otherwise", "file", "", "/a", "/b"},
	{"otherwise", "body", "", "one", "two"},
	{"tls", "certificate", "", "/a", "/b"},
	{"tls", "key", "", "/a", "/b"},
	{"tls", "ocsp", "", "/a", "/b"},
	{"tls", "alpn", "", "http/1.1", NULL},
	{"tls", "ciphers", "", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"},
	{"tls", "suites", "", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"},
	{"tls", "client_ca", "", "/a", "/b"},
	{"tls", "client_required", "client_ca = /a", "yes", "no"},
	{"tls", "server", "", "\"127.0.0.1:1\"", "\"unix:/a\""},
	{"plugin", "file", "", "debug.so", "header-hash.so config = \"header A\""},
	{"plugin", "config_file", "file = debug.so", file_a, file_b},
	{"plugin", "config", "file = debug.so", "\"answer node 1\"", "\"answer node 2\""},
	{"plugin", "fail", "file = debug.so", "open", "closed"},
	{"plugin", "budget_us", "file = debug.so", "1", "2"},
	{"service", "survive", "inspect = every", "off", "1"},
	{"service", "resume", "inspect = every survive = 1", "off", "on"},
	{"rule", "service", "cost = 1", "web", "other"},
	{"rule", "method", "cost = 1", "GET", "{ GET, HEAD }"},
	{"rule", "host", "cost = 1", "a.example", "b.example"},
	{"rule", "path", "cost = 1", "/a", "/b"},
	{"rule", "suffix", "cost = 1", ".a", ".b"},
	{"rule", "client", "cost = 1", "192.0.2.0/24", "192.0.2.1"},
	{"rule", "header", "cost = 1", "A", "\"A: b\""},
	{"rule", "cookie", "cost = 1", "a", "b"},
	{"rule", "nodes", "", "n1", "n2"},
	{"rule", "backup", "nodes = n3", "n1", "n2"},
	{"rule", "otherwise", "nodes = n1", "any", "reject"},
	{"rule", "affinity", "cookie = a", "yes", "route"},
	{"rule", "when_drained", "cookie = a affinity = route", "leave", "stay"},
	{"rule", "status", "deny = yes", "403", "404"},
	{"rule", "body", "deny = yes", "one", "two"},
	{"rule", "rate", "cost = 1", "1/s", "2/s"},
	{"rule", "burst", "rate = \"1/s\"", "1", "2"},
	{"location", "service", "cost = 1", "web", "other"},
	{"location", "nodes", "", "n1", "n2"},
	{"location", "backup", "nodes = n3", "n1", "n2"},
	{"location", "otherwise", "nodes = n1", "any", "reject"},
};

/* Keys that the other keys of @section need. */
static const char *needs_of(const char *section)
{
	return !strcmp(section, "outlier") ? "max_errors = 5 max_slow = 5" : "";
}

/*
 * A configuration in which @key of @section is @value; each of its other sections and keys is as in all
 * others.
 */
static void text_of(const char *section, const char *key, const char *needs, const char *value, char *ret,
		    size_t size)
{
	const struct {
		const char *name;
		const char *head;
		const char *required[3][2];
		int is_apart;
	} all[] = {
		{"cluster", "cluster", {}, 0},
		{"datapath", "datapath", {{"interface", "eth0"}, {"cluster_interface", "eth1"}}, 0},
		{"inspector", "inspector", {}, 0},
		{"status", "status", {}, 0},
		{"log", "log", {}, 0},
		{"node", "node n1", {{"address", "10.78.0.1"}, {"id", "1"}}, 0},
		{"", "node n2", {{"address", "10.78.0.2"}, {"id", "2"}}, 0},
		{"", "node n3", {{"address", "10.78.0.3"}, {"id", "3"}}, 0},
		{"rule", "rule r", {}, 1},
		{"location", "location \"/l/\"", {}, 1},
		{"", "service other", {{"address", "10.77.0.9"}, {"port", "80"}}, 0},
		{"service", "service web", {{"address", "10.77.0.100"}, {"port", "80"}}, 0},
		{"check", "check", {}, 1},
		{"outlier", "outlier", {}, 1},
		{"otherwise", "otherwise", {}, 1},
		{"tls", "tls", {{"certificate", "/a"}, {"key", "/a"}, {"server", "\"127.0.0.1:1\""}}, 1},
		{"plugin", "plugin debug", {}, 1},
	};
	FILE *out = fmemopen(ret, size, "w");

	assert_non_null(out);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int is_it = !strcmp(all[i].name, section);

		if (all[i].is_apart && !is_it)
			continue;
		fprintf(out, "%s {", all[i].head);
		for (int k = 0; k < 3 && all[i].required[k][0]; k++)
			if (!is_it || strcmp(all[i].required[k][0], key) != 0)
				fprintf(out, " %s = %s", all[i].required[k][0], all[i].required[k][1]);
		/* In this section those inside it stand, and only the outlier's needs more of it. */
		if (!strcmp(all[i].name, "service") && !strcmp(section, "outlier"))
			fprintf(out, " inspect = every");
		if (is_it)
			fprintf(out, " %s %s = %s", needs, key, value);
		fprintf(out, "%s\n", strcmp(all[i].name, "service") != 0 ? " }" : "");
	}
	fprintf(out, "}\n");
	fclose(out);
}

static const struct sample *sample_of(const char *section, const char *key)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (!strcmp(samples[i].section, section) && !strcmp(samples[i].key, key))
			return &samples[i];
	return NULL;
}

/* Two values of a number or a choice: its default, and another one. */
static void values_of(const struct es_conf_section *section, const struct es_conf_key *key, char *a, char *b,
		      size_t size)
{
	const char *def = key->def && *key->def ? key->def : NULL;
	unsigned int number = def ? (unsigned int)strtoul(def, NULL, 10) : key->max;

	switch (key->kind) {
	case ES_CONF_KIND_NUMBER:
		snprintf(a, size, "%u", number);
		snprintf(b, size, "%u", number != key->min ? key->min : key->max);
		break;
	case ES_CONF_KIND_CHOICE:
		snprintf(a, size, "%s", def ? def : key->choices[0].name);
		snprintf(b, size, "%s", key->choices[!strcmp(a, key->choices[0].name)].name);
		break;
	default:
		fail_msg("%s: %s: a new key of this kind needs a sample here", section->name, key->name);
	}
}

/* struct found - in how many settings two configurations differ */
struct found {
	unsigned int must;
	unsigned int should;
};

static void on_difference(void *ctx, const struct es_group_setting *setting)
{
	struct found *found = ctx;

	if (setting->must)
		found->must++;
	else
		found->should++;
}

static void key_check(const struct es_conf_section *section, const struct es_conf_key *key)
{
	static const char *const said[] = {
		"nothing", [ES_CONF_MUST] = "MUST", "SHOULD", "LISTED", "OWN",
	};
	char text_a[4096], text_b[4096], a[256], b[256], one[ES_WIRE_SETTINGS_SIZE],
		other[ES_WIRE_SETTINGS_SIZE];
	const struct sample *sample = sample_of(section->name, key->name);
	const char *needs = sample ? sample->needs : needs_of(section->name);
	struct found found = {};
	int is_shown;

	if (sample && !sample->b)
		return;
	if (sample) {
		snprintf(a, sizeof(a), "%s", sample->a);
		snprintf(b, sizeof(b), "%s", sample->b);
	} else {
		values_of(section, key, a, b, sizeof(a));
	}
	text_of(section->name, key->name, needs, a, text_a, sizeof(text_a));
	text_of(section->name, key->name, needs, b, text_b, sizeof(text_b));
	settings_of(text_a, one, sizeof(one));
	settings_of(text_b, other, sizeof(other));
	es_group_settings_each(one, other, on_difference, &found);
	is_shown = key->alike == ES_CONF_SHOULD || key->alike == ES_CONF_LISTED;
	if (!!found.must != (key->alike == ES_CONF_MUST) || !!found.should != is_shown)
		fail_msg("%s: %s = %s and %s: %u that must be alike differ and %u that should, and the table "
			 "says %s",
			 section->name, key->name, a, b, found.must, found.should, said[key->alike]);
}

/*
 * If two nodes differ in one key, the other node is refused, or the difference is shown, or nobody cares: as
 * the table says.
 */
static void test_each_key(void **state)
{
	unsigned int keys = 0;

	(void)state;
	for (int s = 0; s < ES_CONF_SECTIONS; s++)
		for (const struct es_conf_key *key = es_conf_sections[s].keys; key->name; key++) {
			key_check(&es_conf_sections[s], key);
			keys++;
		}
	assert_true(keys > 100);
}

static char directory[] = "/tmp/earshot-test-settings-XXXXXX";

static void file_make(char *path, size_t size, const char *name, const char *text)
{
	FILE *file;

	snprintf(path, size, "%s/%s", directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int files_make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	file_make(file_a, sizeof(file_a), "a", "answer node 1\n");
	file_make(file_b, sizeof(file_b), "b", "answer node 2\n");
	return 0;
}

static int files_remove(void **state)
{
	(void)state;
	unlink(file_a);
	unlink(file_b);
	return rmdir(directory);
}

int main(void)
{
	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_byte),
		cmocka_unit_test(test_each_key),
	};

	return cmocka_run_group_tests(tests, files_make, files_remove);
}
