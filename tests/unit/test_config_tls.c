// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service whose TLS Earshot ends: what is read of tls { }, what the datapath and what requests are told of
 * such a service, what nodes tell each other of it, and the message for each way of being wrong.
 */
#include "tests/unit/config_text.h"

#include "inspector/config/alike.h"

#define SERVER "server = \"127.0.0.1:8080\"\n"
#define FILES  "certificate = /a.pem\nkey = /a.key\n"
#define INTERMEDIATE                                                                                         \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"           \
	"ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define OPEN	DATAPATH NODE "service web { address = 10.77.0.100  port = 443\n" /* the next line is 4 */
#define TLS	"tls { " FILES SERVER "}\n"					  /* 4 lines */
#define SHORTER "tls { certificate = /a.pem  key = /a.key  server = \"127.0.0.1:8080\" "

static void test_defaults(void **state)
{
	struct es_conf *conf = parse_ok(OPEN TLS "}");
	const struct es_conf_service *service = &conf->services[0];
	const struct es_conf_tls *tls = &service->tls;

	(void)state;
	assert_int_equal(tls->line, 4);
	assert_int_equal(tls->certificate_count, 1);
	assert_string_equal(tls->certificate[0], "/a.pem");
	assert_string_equal(tls->key[0], "/a.key");
	assert_string_equal(tls->ocsp[0], "");
	assert_string_equal(tls->alpn, "http/1.1");
	assert_int_equal(tls->minimum, 0x0303);
	assert_string_equal(tls->ciphers, "");
	assert_string_equal(tls->suites, "");
	assert_string_equal(tls->client_ca, "");
	assert_string_equal(tls->server, "127.0.0.1:8080");
	assert_int_equal(tls->tell, ES_CONF_TELL_X_FORWARDED);
	assert_int_equal(tls->ktls, 0);
	assert_int_equal(tls->workers, 0);
	assert_int_equal(tls->max_connections, 0);
	assert_int_equal(tls->resume, ES_CONF_RESUME_HOME);
	assert_int_equal(tls->inspect, ES_INSPECT_FIRST);
	assert_string_equal(service->policy, "uri-hash");
	es_conf_free(&conf);
}

static void test_alpn(void **state)
{
	static const char *const cases[][2] = {
		{"h2", "h2"},
		{"\"h2,http/1.1\"", "h2, http/1.1"},
		{"h2, http/1.1", "h2, http/1.1"},
		{"\" http/1.1 ,  h2 \"", "http/1.1, h2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct es_conf *conf;

		snprintf(text, sizeof(text), OPEN SHORTER "alpn = %s\n} }", cases[i][0]);
		conf = parse_ok(text);
		assert_string_equal(conf->services[0].tls.alpn, cases[i][1]);
		es_conf_free(&conf);
	}
}

static void test_all(void **state)
{
	struct es_conf *conf = parse_ok(
		OPEN
		"inspect = every\n"
		"tls { certificate = { /a.pem, \"/b c.pem\" } key = { /a.key, /b.key } ocsp = { /a.der, "
		"/b.der }\n"
		"alpn = http/1.1 minimum = 1.3 suites = \"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384\"\n"
		"client_ca = /ca.pem client_required = no server = \"unix:/run/web.sock\" tell = proxy "
		"ktls = auto resume = ring workers = 3 max_connections = 9 } }");
	const struct es_conf_tls *tls = &conf->services[0].tls;

	(void)state;
	assert_int_equal(tls->certificate_count, 2);
	assert_string_equal(tls->certificate[1], "/b c.pem");
	assert_string_equal(tls->key[1], "/b.key");
	assert_string_equal(tls->ocsp[1], "/b.der");
	assert_string_equal(tls->alpn, "http/1.1");
	assert_int_equal(tls->minimum, 0x0304);
	assert_string_equal(tls->suites, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384");
	assert_string_equal(tls->client_ca, "/ca.pem");
	assert_int_equal(tls->client_required, 0);
	assert_int_equal(tls->tell, ES_CONF_TELL_PROXY);
	assert_int_equal(tls->ktls, 1);
	assert_int_equal(tls->workers, 3);
	assert_int_equal(tls->max_connections, 9);
	assert_int_equal(tls->resume, ES_CONF_RESUME_RING);
	assert_int_equal(conf->services[0].inspect, ES_INSPECT_NEVER);
	assert_int_equal(tls->inspect, ES_INSPECT_EVERY);
	es_conf_free(&conf);
}

/*
 * The datapath has the ClientHello read at most, and hands over to earshot-tls; requests are placed as the
 * file says.
 */
static void test_words(void **state)
{
	struct es_conf *conf =
		parse_ok(DATAPATH NODE "node n2 { address = 10.78.0.2 }\n"
				       "service web { address = 10.77.0.100, 2001:db8::10  port = 443\n"
				       "inspect = every\npolicy = lard\n" TLS "otherwise { body = sorry }\n"
				       "outlier { max_errors = 50 }\nplugin p { }\n}\n"
				       "service plain { address = 10.77.0.100  port = 80 }\n"
				       "rule r { service = web  path = /x  nodes = n1 }\n"
				       "location /y { service = web  nodes = n1 }\n");
	const struct es_conf_service *service = &conf->services[0];

	(void)state;
	assert_int_equal(service->inspect, ES_INSPECT_FIRST);
	assert_int_equal(es_conf_service_reads(service), ES_INSPECT_EVERY);
	assert_int_equal(es_conf_service_reads(&conf->services[1]), ES_INSPECT_FIRST);
	assert_int_equal(service->server_port, 443);
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		assert_true(es_addr_equal(es_conf_server_of(service, family),
					  es_conf_service_of(service, family)));
	assert_null(es_conf_server_of(&conf->services[1], 0));
	es_conf_free(&conf);
	/* One family alone has a server of that family alone. */
	conf = parse_ok(OPEN TLS "}");
	assert_non_null(es_conf_server_of(&conf->services[0], 0));
	assert_null(es_conf_server_of(&conf->services[0], 1));
	es_conf_free(&conf);
}

#define ALPN "expected h2 and http/1.1, or one of them, with \", \" between them"

static const struct {
	const char *text;
	const char *error;
} errors[] = {
	{OPEN "tls { " FILES "} }", "t.conf:4: service web: tls: server is missing: expected server = VALUE"},
	{OPEN "tls { certificate = /a.pem\n" SERVER "} }",
	 "t.conf:4: service web: tls: key is missing: expected key = VALUE"},
	{OPEN "tls { key = /a.pem\n" SERVER "} }",
	 "t.conf:4: service web: tls: certificate is missing: expected certificate = VALUE"},
	{OPEN SHORTER "} tls { } }", "t.conf:4: service web: tls: first defined on line 4: expected one"},
	{OPEN SHORTER "certificates = /b } }",
	 "t.conf:4: tls: unknown key \"certificates\": expected certificate | key | ocsp | alpn | minimum | "
	 "ciphers | "
	 "suites | client_ca | client_required | server | tell | ktls | resume | workers | "
	 "max_connections"},
	{OPEN "tls { certificate = a.pem } }",
	 "t.conf:4: tls: certificate = a.pem: expected an absolute path"},
	{OPEN "tls { certificate = { /a.pem, /b.pem }\nkey = /a.key\n" SERVER "} }",
	 "t.conf:5: service web: tls: key: 1 of them, and certificate has 2: expected the key of each "
	 "certificate, "
	 "in the same order"},
	{OPEN "tls { certificate = /a.pem\nkey = { /a.key, /b.key }\n" SERVER "} }",
	 "t.conf:5: service web: tls: key: 2 of them, and certificate has 1: expected the key of each "
	 "certificate, "
	 "in the same order"},
	{OPEN "tls { certificate = { /a, /b, /a } key = { /c, /d, /c }\n" SERVER "} }",
	 "t.conf:4: service web: tls: certificate = /a: expected each once"},
	{OPEN "tls { certificate = { /a, /b } key = { /c, /d }\nocsp = /e\n" SERVER "} }",
	 "t.conf:5: service web: tls: ocsp: 1 of them, and certificate has 2: expected the answer for each "
	 "certificate, in the same order, or none"},
	{OPEN
	 "tls { certificate = { /1, /2, /3, /4, /5, /6, /7, /8, /9, /a, /b, /c, /d, /e, /f, /g, /h } } }",
	 "t.conf:4: tls: certificate = /h: too many: expected at most 16"},
	{OPEN SHORTER "alpn = spdy } }", "t.conf:4: tls: alpn = spdy: " ALPN},
	{OPEN SHORTER "alpn = \"\" } }", "t.conf:4: tls: alpn = : " ALPN},
	{OPEN SHORTER "alpn = \"h2,\" } }", "t.conf:4: tls: alpn = h2,: " ALPN},
	{OPEN SHORTER "alpn = \"h2 http/1.1\" } }", "t.conf:4: tls: alpn = h2 http/1.1: " ALPN},
	{OPEN SHORTER "alpn = \"h2, h2\" } }", "t.conf:4: tls: alpn = h2, h2: " ALPN},
	{OPEN SHORTER "alpn = \"http/1.1, h3\" } }", "t.conf:4: tls: alpn = http/1.1, h3: " ALPN},
	{OPEN SHORTER "minimum = 1.1 } }", "t.conf:4: tls: minimum = 1.1: expected 1.2 | 1.3"},
	{OPEN SHORTER "ciphers = \"AES 128\" } }",
	 "t.conf:4: tls: ciphers = AES 128: expected names of OpenSSL with \":\" between them, at most 2047 "
	 "characters"},
	{OPEN SHORTER "minimum = 1.2\nciphers = \"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-AES\" } }",
	 "t.conf:5: service web: tls: ciphers: OpenSSL knows no ECDHE-AES: expected names of "
	 "openssl-ciphers(1), "
	 "as in " INTERMEDIATE},
	{OPEN SHORTER "ciphers = ECDHE-RSA-AES128-SHA } }",
	 "t.conf:4: service web: tls: ciphers: ECDHE-RSA-AES128-SHA cannot be used: expected ECDHE with "
	 "AES-GCM "
	 "or CHACHA20-POLY1305, as in " INTERMEDIATE},
	{OPEN SHORTER "ciphers = \"ECDHE+AESGCM:!ECDHE\" } }",
	 "t.conf:4: service web: tls: ciphers: none: expected ECDHE with AES-GCM or CHACHA20-POLY1305"},
	{OPEN SHORTER "minimum = 1.3\nsuites = TLS_AES_128_CCM_SHA256 } }",
	 "t.conf:5: service web: tls: suites: TLS_AES_128_CCM_SHA256 cannot be used: expected of "
	 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"},
	{OPEN SHORTER "minimum = 1.3\nciphers = AES128 } }",
	 "t.conf:5: service web: tls: ciphers are of TLS 1.2, and minimum is 1.3: expected suites"},
	{OPEN SHORTER "\nclient_required = no } }", "t.conf:5: service web: tls: client_required has no "
						    "effect without client_ca: expected client_ca = FILE "
						    "besides"},
	{OPEN SHORTER "client_required = maybe } }",
	 "t.conf:4: tls: client_required = maybe: expected yes | no"},
	{OPEN SHORTER "tell = x-real-ip } }",
	 "t.conf:4: tls: tell = x-real-ip: expected x-forwarded | forwarded | proxy | nothing"},
	{OPEN SHORTER "ktls = on } }", "t.conf:4: tls: ktls = on: expected auto | off"},
	{OPEN SHORTER "workers = 257 } }",
	 "t.conf:4: tls: workers = 257: expected 0 (one for each CPU) or 1..256"},
	{OPEN "tls { " FILES "server = \"10.77.0.100:443\" } }",
	 "t.conf:6: service web: tls: server = 10.77.0.100:443: earshot-tls listens there itself: expected "
	 "another "
	 "port or address, for the server behind it"},
	{OPEN TLS "server_port = 80 }", "t.conf:8: service web: server_port: with tls { } connections are "
					"handed over to earshot-tls: expected "
					"server = ADDRESS:PORT in tls { }, for the server behind it"},
	{OPEN "server_address = 127.0.0.1\n" TLS "}",
	 "t.conf:4: service web: server_address: with tls { } connections are handed over to earshot-tls: "
	 "expected "
	 "server = ADDRESS:PORT in tls { }, for the server behind it"},
	/* Requests that nobody reads: as without TLS. */
	{OPEN "inspect = never\npolicy = lard\n" TLS "}",
	 "t.conf:5: service web: policy = lard: with inspect = never expected ring"},
	{OPEN "inspect = never\n" TLS "plugin p { }\n}",
	 "t.conf:9: service web: plugin p: with inspect = never no request is seen: expected inspect = first "
	 "or "
	 "every"},
	{OPEN "inspect = never\n" TLS "otherwise { body = x }\n}",
	 "t.conf:9: service web: otherwise: with inspect = never nobody is answered: expected inspect = "
	 "first or "
	 "every"},
	{OPEN TLS "outlier { max_errors = 50 }\n}", "t.conf:8: service web: outlier: with inspect = first no "
						    "responses are read: expected inspect = every"},
	{OPEN "inspect = never\n" TLS "}\nrule r { path = /x  deny = yes\nservice = web }",
	 "t.conf:11: rule r: service = web: it has inspect = never: expected affinity = source, with no "
	 "condition "
	 "but client, or a service whose requests are inspected"},
};

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		check_error(errors[i].text, strlen(errors[i].text), errors[i].error);
}

static void test_endpoints(void **state)
{
	static const char *const wrong[] = {
		"",
		"127.0.0.1",
		":8080",
		"127.0.0.1:",
		"127.0.0.1:0",
		"127.0.0.1:x",
		"127.0.0.1:65536",
		"127.0.0.1:8080 ",
		"localhost:80",
		"0.0.0.0:80",
		"[::]:80",
		"::1:80",
		"[::1]80",
		"[::1]",
		"[127.0.0.1]:80",
		"[]:80",
		"[:80",
		"224.0.0.1:80",
		"[ff02::1]:80",
		"[fe80::1]:80",
		"unix:",
		"unix:run/web.sock",
		"unix:/",
		"/run/web.sock",
		"[::ffff:10.0.0.1]:80",
		"127.0.0.1:000080",
	};
	struct es_conf_endpoint endpoint;
	char text[160], address[64];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!es_conf_endpoint_parse(wrong[i], &endpoint))
			fail_msg("%s is taken", wrong[i]);
	assert_int_equal(es_conf_endpoint_parse("127.0.0.1:8080", &endpoint), 0);
	assert_string_equal(es_conf_addr_text(&endpoint.address, address), "127.0.0.1");
	assert_int_equal(endpoint.port, 8080);
	assert_string_equal(endpoint.path, "");
	assert_int_equal(es_conf_endpoint_parse("[2001:db8::1]:65535", &endpoint), 0);
	assert_string_equal(es_conf_addr_text(&endpoint.address, address), "2001:db8::1");
	assert_int_equal(endpoint.port, 65535);
	assert_int_equal(es_conf_endpoint_parse("unix:/run/web.sock", &endpoint), 0);
	assert_string_equal(endpoint.path, "/run/web.sock");
	/* As many characters as a socket's name may have (unix(7)), and one more. */
	snprintf(text, sizeof(text), "unix:/%0106d", 1);
	assert_int_equal(es_conf_endpoint_parse(text, &endpoint), 0);
	snprintf(text, sizeof(text), "unix:/%0107d", 1);
	assert_int_equal(es_conf_endpoint_parse(text, &endpoint), -EINVAL);
}

static void note(void *ctx, const char *name, const char *value)
{
	char *told = ctx;
	size_t used = strlen(told);

	if (!strncmp(name, "service.web.tls", 15))
		snprintf(told + used, 4096 - used, "%s=%s\n", name, value);
}

/*
 * The lines that nodes compare keep their form, since other versions read them; a long list is told by its
 * digest.
 */
static void test_alike(void **state)
{
	static const char format[] =
		OPEN "tls { certificate = { /%0200d, /%0200d, /%0200d } key = { /a, /b, /c } " SERVER "} }";
	char told[4096] = "", text[2048], other[4096] = "";
	struct es_conf *conf = parse_ok(OPEN TLS "}");

	(void)state;
	es_conf_should_each(conf, note, told);
	assert_string_equal(told,
			    "service.web.tls.files=certificate:/a.pem,key:/a.key,ocsp:,client_ca:\n"
			    "service.web.tls=alpn:http/1.1,minimum:1.2,ciphers:,suites:,client_required:yes,"
			    "server:127.0.0.1:8080,tell:x-forwarded\n");
	es_conf_free(&conf);
	for (int i = 0; i < 2; i++) {
		told[0] = 0;
		snprintf(text, sizeof(text), format, 1, 2, 3 + i);
		conf = parse_ok(text);
		es_conf_should_each(conf, note, told);
		es_conf_free(&conf);
		assert_int_equal(strspn(strstr(told, "certificate:") + 12, "0123456789abcdef"), 16);
		assert_string_not_equal(told, other);
		memcpy(other, told, sizeof(other));
	}
	told[0] = 0;
	conf = parse_ok(MINIMAL);
	es_conf_should_each(conf, note, told);
	assert_string_equal(told, "");
	es_conf_free(&conf);
}

/* Connections have their clients' names there, too, so no two of them have the same. */
static void test_netfilter(void **state)
{
	static const char text[] = "datapath { type = netfilter interface = e cluster_interface = f }\n" NODE
				   "service web { address = 10.77.0.100  port = 443\n" TLS "}";
	struct es_conf *conf = parse_ok(text);

	(void)state;
	es_conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_all),
		cmocka_unit_test(test_alpn),	 cmocka_unit_test(test_words),
		cmocka_unit_test(test_errors),	 cmocka_unit_test(test_endpoints),
		cmocka_unit_test(test_alike),	 cmocka_unit_test(test_netfilter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
