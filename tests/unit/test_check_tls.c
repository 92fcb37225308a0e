// SPDX-License-Identifier: GPL-2.0-or-later
/* `earshot check` of services whose TLS Earshot ends: certificates, keys, names and the server behind. */
#include "made_certificate.h"
#define put tree_put
#include "check_world.h"
#undef put
#include <sys/socket.h>
#include <sys/un.h>

#define DAY 86400L

static const struct made good = {
	.key = "p256", .names = "DNS:a.example,DNS:*.b.example", .until_s = 90 * DAY + 3600};

/* The service "web" of the world has one certificate, and its server behind is @listener. */
static int listener = -1;

static void make(const struct made *made)
{
	struct pair pair = made_pair(made, NULL);

	put_pair("web", &pair, NULL);
	pair_free(&pair);
}

/* The daemon tells this of earshot-tls. */
static void told(const char *json)
{
	json_object_object_del(facts.daemon.status, "tls");
	if (json)
		json_object_object_add(facts.daemon.status, "tls", json_tokener_parse(json));
}

#define RUNS(services) "{\"running\": true, \"workers\": 2, \"services\": [" services "]}"

/* Reads the facts anew, and expects that all is well with them. */
static void look(void)
{
	es_facts_tls_fini(&facts.tls);
	es_facts_read_tls(conf, -1, &facts);
	run_again();
}

static void expect_now(const char *id, enum es_check_severity severity, const char *words)
{
	look();
	expect_one(id, severity, words);
}

static int begin(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct es_conf_tls *tls;
	int rc = setup(state);

	strcpy(conf->inspector.program_group, "earshot-tls");
	tls = &conf->services[0].tls;
	tls->line = 1;
	tls->certificate_count = 1;
	snprintf(tls->certificate[0], sizeof(tls->certificate[0]), "%s", made_path("web.pem"));
	snprintf(tls->key[0], sizeof(tls->key[0]), "%s", made_path("web.key"));
	snprintf(tls->server, sizeof(tls->server), "unix:%s", made_path("s"));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", made_path("s"));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(listener, 128), 0);
	make(&good);
	told(RUNS("{\"name\": \"web\", \"served\": true}"));
	return rc;
}

static int end(void **state)
{
	close(listener);
	unlink(made_path("s"));
	return teardown(state);
}

static void test_right(void **state)
{
	(void)state;
	look();
	assert_int_equal(check.totals[ES_CHECK_ERROR] + check.totals[ES_CHECK_WARNING], 0);
	assert_string_equal(finding("tls.certificate")->found, "1 certificates, all readable");
	assert_string_equal(finding("tls.names")->found, "certificates are for a.example, *.b.example");
	assert_string_equal(finding("tls.expiry")->found, "the first certificate to end does so in 90 days");
	assert_int_equal(finding("tls.server")->severity, ES_CHECK_OK);
	/* A service that is not on this node is not its business. */
	es_node_set_add(&conf->services[0].nodes, 1);
	unlink(made_path("web.pem"));
	es_facts_tls_fini(&facts.tls);
	es_facts_read_tls(conf, 0, &facts);
	run_again();
	assert_string_equal(finding("tls.certificate")->found, "Earshot ends no service's TLS on this node");
}

static void test_files(void **state)
{
	(void)state;
	chmod(made_path("web.key"), 0644);
	expect_now("tls.key", ES_CHECK_ERROR, "mode 0644 lets everybody use the key");
	assert_non_null(strstr(finding("tls.key")->action, "chmod 600"));
	unlink(made_path("web.key"));
	expect_now("tls.key", ES_CHECK_ERROR, "cannot be read: No such file");
	make(&good);
	assert_int_equal(rename(made_path("web.key"), made_path("other.key")), 0);
	make(&good);
	assert_int_equal(rename(made_path("other.key"), made_path("web.key")), 0);
	expect_now("tls.key", ES_CHECK_ERROR, "the key does not fit");
	put_text("web.pem", "no certificate\n");
	look();
	assert_non_null(strstr(finding("tls.certificate")->found, "service web: "));
	assert_non_null(strstr(finding("tls.certificate")->found, "has no certificate"));
	assert_int_equal(finding("tls.certificate")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("tls.expiry")->severity, ES_CHECK_UNCHECKED);
	/* Another user's run cannot say. */
	facts.tls.certificate[0].rc = -EACCES;
	run_again();
	assert_int_equal(finding("tls.certificate")->severity, ES_CHECK_UNCHECKED);
}

static void test_expiry(void **state)
{
	struct made made = good;

	(void)state;
	made.until_s = 21 * DAY - 60;
	make(&made);
	expect_now("tls.expiry", ES_CHECK_WARNING, "the certificate ends in 20 days");
	made.until_s = -60;
	make(&made);
	expect_now("tls.expiry", ES_CHECK_ERROR, "the certificate has expired");
	made = good;
	made.from_s = 3600;
	make(&made);
	expect_now("tls.expiry", ES_CHECK_ERROR, "the certificate is not valid before");
	made = good;
	made.until_s = 21 * DAY + 3600;
	make(&made);
	look();
	assert_int_equal(finding("tls.expiry")->severity, ES_CHECK_OK);
}

static void test_ocsp(void **state)
{
	struct es_conf_tls *tls = &conf->services[0].tls;

	(void)state;
	look();
	assert_string_equal(finding("tls.ocsp")->found, "0 OCSP answers, all in time");
	snprintf(tls->ocsp[0], sizeof(tls->ocsp[0]), "%s", made_path("web.ocsp"));
	expect_now("tls.ocsp", ES_CHECK_WARNING, "web.ocsp: cannot be read");
	put_text("web.ocsp", "no answer\n");
	expect_now("tls.ocsp", ES_CHECK_WARNING, "is no OCSP response in DER");
	facts.tls.certificate[0].ocsp_rc = 0;
	facts.tls.certificate[0].ocsp_until_s = facts.tls.wall_s - 1;
	expect_one("tls.ocsp", ES_CHECK_WARNING, "web.ocsp: the OCSP answer is over");
	facts.tls.certificate[0].ocsp_until_s = facts.tls.wall_s + 3 * 3600;
	expect_one("tls.ocsp", ES_CHECK_WARNING, "the OCSP answer is over in 3 hours");
	facts.tls.certificate[0].ocsp_until_s = facts.tls.wall_s + 30 * 3600;
	run_again();
	assert_string_equal(finding("tls.ocsp")->found, "1 OCSP answers, all in time");
	facts.tls.certificate[0].ocsp_rc = -EACCES;
	run_again();
	assert_int_equal(finding("tls.ocsp")->severity, ES_CHECK_UNCHECKED);
	tls->ocsp[0][0] = 0;
}

static void test_strength(void **state)
{
	struct made made = good;

	(void)state;
	made.key = "rsa1024";
	make(&made);
	expect_now("tls.strength", ES_CHECK_WARNING, "its RSA key has less than 2048 bits");
	made = good;
	made.is_sha1 = 1;
	make(&made);
	expect_now("tls.strength", ES_CHECK_WARNING, "it is signed with SHA-1");
}

static void rule_of(int service, const char *host)
{
	free(conf->rules->hosts.text);
	conf->rule_count = 1;
	strcpy(conf->rules->name, "shop");
	conf->rules->service = service;
	conf->rules->hosts = (struct es_conf_list){1, (unsigned int)strlen(host) + 1, strdup(host)};
}

static void test_names(void **state)
{
	static const struct {
		const char *host;
		int is_covered;
	} cases[] = {{"a.example", 1}, {"A.Example", 1},     {"x.b.example", 1}, {"*.b.example", 1},
		     {"b.example", 0}, {"x.y.b.example", 0}, {"*.example", 0},	 {"c.example", 0}};

	(void)state;
	conf->rules = calloc(1, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rule_of(0, cases[i].host);
		look();
		assert_int_equal(finding("tls.names")->severity,
				 cases[i].is_covered ? ES_CHECK_OK : ES_CHECK_WARNING);
		if (!cases[i].is_covered)
			assert_non_null(strstr(finding("tls.names")->found, cases[i].host));
	}
	/* A rule for another service, or for all, may be about names of others. */
	rule_of(1, "c.example");
	look();
	assert_int_equal(finding("tls.names")->severity, ES_CHECK_OK);
	rule_of(-1, "c.example");
	look();
	assert_int_equal(finding("tls.names")->severity, ES_CHECK_OK);
	conf->services[0].check.type = ES_CONF_CHECK_HTTPS;
	strcpy(conf->services[0].check.host, "d.example:443");
	expect_now("tls.names", ES_CHECK_WARNING, "no certificate is for d.example, which check { } names");
}

static void test_server(void **state)
{
	(void)state;
	close(listener);
	expect_now("tls.server", ES_CHECK_ERROR, "Connection refused");
	unlink(made_path("s"));
	expect_now("tls.server", ES_CHECK_ERROR, "No such file");
	strcpy(conf->services[0].tls.server, "127.0.0.1:1");
	expect_now("tls.server", ES_CHECK_ERROR, "the server behind, 127.0.0.1:1: Connection refused");
	listener = -1;
}

static void test_process(void **state)
{
	(void)state;
	look();
	assert_string_equal(finding("tls.process")->found, "earshot-tls runs, with 2 workers");
	told(NULL);
	expect_one("tls.process", ES_CHECK_UNCHECKED, "no daemon tells");
	told("{\"running\": false, \"services\": []}");
	expect_one("tls.process", ES_CHECK_ERROR, "earshot-tls does not run");
	told(RUNS("{\"name\": \"web\", \"served\": false, \"problem\": \"/x.pem: no\"}"));
	expect_one("tls.process", ES_CHECK_ERROR, "service web is not served: /x.pem: no");
	told(RUNS("{\"name\": \"old\", \"served\": true}"));
	expect_one("tls.process", ES_CHECK_ERROR, "service web is not known");
	/* One of another version is seen by its questions only. */
	told(RUNS(""));
	run_again();
	assert_int_equal(finding("tls.process")->severity, ES_CHECK_OK);
}

static void test_group(void **state)
{
	(void)state;
	conf->inspector.program_group[0] = 0;
	expect_now("tls.group", ES_CHECK_WARNING, "no program_group");
}

static void test_ktls(void **state)
{
	struct es_conf_tls *tls = &conf->services[0].tls;

	(void)state;
	tls->ktls = 1;
	look();
	assert_int_equal(finding("tls.ktls")->severity, ES_CHECK_OK);
	assert_non_null(
		strstr(finding("tls.ktls")->found, facts.tls.has_ktls ? "can write" : "is not loaded"));
	facts.tls.has_ktls = 0;
	run_again();
	assert_non_null(strstr(finding("tls.ktls")->found, "is not loaded"));
	facts.tls.has_ktls = 1;
	run_again();
	assert_non_null(strstr(finding("tls.ktls")->found, "the kernel can write"));
	tls->ktls = 0;
	run_again();
	assert_non_null(strstr(finding("tls.ktls")->found, "ktls = off"));
}

/* One listener, on the service's own address, is for clients and for what other nodes hand over. */
static void test_listen(void **state)
{
	struct es_conf_service *service = &conf->services[0];

	(void)state;
	service->server_address = service->address;
	service->server_port = service->port;
	facts.listeners[0].address = service->address;
	facts.datapath = ES_DATAPATH_NETFILTER;
	look();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);
	facts.listeners[0].port = 1;
	run_again();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_ERROR);
	assert_non_null(strstr(finding("server.listen")->action, "earshot-tls"));
}

static int group_begin(void **state)
{
	return make_directory(state) || group_setup(state);
}

static int group_end(void **state)
{
	return remove_directory(state) || group_teardown(state);
}

#define OWN(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWN(test_right), OWN(test_files),  OWN(test_expiry), OWN(test_strength),
		OWN(test_names), OWN(test_server), OWN(test_listen), OWN(test_process),
		OWN(test_ocsp),	 OWN(test_group),  OWN(test_ktls),
	};

	return cmocka_run_group_tests(tests, group_begin, group_end);
}
