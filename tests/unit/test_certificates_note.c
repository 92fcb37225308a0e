// SPDX-License-Identifier: GPL-2.0-or-later
/* The certificates of services are noted with their configuration: when they end, and which they are. */
#include "made_certificate.h"
#include <errno.h>
#include "inspector/base/wall.h"
#include "inspector/self/certificates.h"

/* Two certificates, of which the file names the second one first. @nodes: of the service */
static struct es_conf *conf_of(const char *nodes)
{
	struct es_conf_error err;
	struct es_conf *conf = NULL;
	char text[1024];

	snprintf(text, sizeof(text),
		 "datapath { interface = eth0  cluster_interface = eth1 }\n"
		 "node n1 { address = 10.78.0.1 }\nnode n2 { address = 10.78.0.2 }\n"
		 "service plain { address = 10.77.0.100  port = 80 }\n"
		 "service web { address = 10.77.0.100  port = 443  %s\n"
		 "tls { certificate = { %s, %s }  key = { %s, %s }  server = \"unix:/s\" } }\n",
		 nodes, made_path("b.pem"), made_path("a.pem"), made_path("b.key"), made_path("a.key"));
	if (es_conf_parse(text, strlen(text), "t.conf", &conf, &err))
		fail_msg("%s", err.text);
	return conf;
}

static void make(const char *name, long until_s)
{
	struct pair pair = made_pair(&(struct made){.key = "p256", .until_s = until_s}, NULL);

	put_pair(name, &pair, NULL);
	pair_free(&pair);
}

static unsigned long long digest_of(unsigned int self)
{
	struct es_conf *conf = conf_of("");
	struct es_conf_error err;
	unsigned long long digest;

	assert_int_equal(es_certificates_note(conf, self, &err), 0);
	digest = conf->services[1].tls.certificates_digest;
	es_conf_free(&conf);
	return digest;
}

static void test_noted(void **state)
{
	long long now_s = (long long)(es_wall_ns() / 1000000000ULL);
	struct es_conf *conf = conf_of("");
	struct es_conf_tls *tls = &conf->services[1].tls;
	unsigned long long before;
	struct es_conf_error err;

	(void)state;
	make("a", 1000);
	make("b", -1000); /* has expired, which is for `earshot check` to say */
	assert_int_equal(es_certificates_note(conf, 0, &err), 0);
	assert_in_range(tls->until_s[0], now_s - 1010, now_s - 990);
	assert_in_range(tls->until_s[1], now_s + 990, now_s + 1010);
	assert_int_equal(conf->services[0].tls.certificates_digest, 0);
	/* On all nodes the same, and another one with another certificate. */
	before = digest_of(1);
	assert_true(before && before == tls->certificates_digest);
	make("a", 1000);
	assert_int_not_equal(digest_of(0), before);
	es_conf_free(&conf);
}

/* The first that cannot be used is named, with its line; the others are noted all the same. */
static void test_unusable(void **state)
{
	struct es_conf *conf = conf_of("");
	struct es_conf_error err;
	char expected[512];

	(void)state;
	make("a", 1000);
	make("b", 1000);
	assert_int_equal(unlink(made_path("b.key")), 0);
	assert_int_equal(es_certificates_note(conf, 0, &err), -ENOENT);
	snprintf(expected, sizeof(expected),
		 "t.conf:6: service web: tls: %s: cannot be read: No such file or directory",
		 made_path("b.key"));
	assert_string_equal(err.text, expected);
	assert_int_equal(conf->services[1].tls.until_s[0], 0);
	assert_true(conf->services[1].tls.until_s[1] > 0);
	es_conf_free(&conf);
	/* A node that the service is not on needs none. */
	conf = conf_of("nodes = n1");
	assert_int_equal(es_certificates_note(conf, 1, &err), 0);
	assert_int_equal(conf->services[1].tls.certificates_digest, 0);
	assert_int_equal(es_certificates_note(conf, 0, &err), -ENOENT);
	es_conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_noted), cmocka_unit_test(test_unusable)};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
