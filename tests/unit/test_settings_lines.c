// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lines in which nodes tell each other their settings. Nodes of different versions compare them, so the lines
 * of the version before stay as they are, to the byte.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "inspector/plugin/host.h"
#include "inspector/member/settings.h"
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
	"again content_host = no\n"
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
	"service v6 { address = 2001:db8::2 port = 443 inspect = every outlier { max_errors = 5 "
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
			   "=service.web.T_high=65\n"
			   "=service.web.unsafe=again\n"
			   "=service.web.content_host=no\n"
			   "=service.web.admit=1,2\n"
			   "=service.web.backup=n2\n"
			   "=service.1.mail=10.77.0.101:25,inspect:never,policy:ring\n"
			   "=service.2.v6=2001:db8::2:443,inspect:every,policy:uri-hash\n"
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

/* Those with '~' that the version before tells, too: more may come. */
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
	static const struct es_network network = {.mss = 1400, .wscale = 10, .sack = 1, .timestamps = 1};
	struct es_keys keys = {.count = 1};
	struct es_plugins *plugins = NULL;
	struct es_conf *conf = NULL;
	struct es_conf_error err;

	if (es_conf_parse(text, strlen(text), "t.conf", &conf, &err))
		fail_msg("%s\n%s", err.text, text);
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s\n%s", err.text, text);
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

int main(void)
{
	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
