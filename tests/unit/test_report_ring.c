// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The answers to `earshot ring`: the ring as docs/json.md shows it, the node of a flow, and what a request
 * may ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "tests/unit/report_world.h"

static void test_ring(void **state)
{
	static const struct es_report_point points[] = {{0, 1}, {0xffffffffffffffffULL, 0}};
	static const unsigned int virtual_nodes[] = {63, 0};
	static const double shares[] = {1, 0};
	struct es_report_ring ring = {
		.conf = conf,
		.epoch = 7,
		.virtual_nodes = virtual_nodes,
		.shares = shares,
		.points = points,
		.point_count = 2,
	};
	struct json_object *report = es_report_ring(&ring);

	(void)state;
	expect_as_documented("ring", report);
	assert_string_equal(
		json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN),
		"{\"epoch\":7,\"virtual_nodes\":63,\"members\":[{\"name\":\"n1\",\"address\":\"10.78.0.1\","
		"\"virtual_nodes\":63,\"share\":1.000000}],\"points\":[[\"0000000000000000\",\"n2\"],"
		"[\"ffffffffffffffff\",\"n1\"]]}");
	json_object_put(report);
	ring.points = NULL;
	report = es_report_ring(&ring);
	assert_false(json_object_object_get_ex(report, "points", NULL));
	json_object_put(report);
}

static int lookup_flow(const char *request_text, struct es_flow *flow, unsigned int *service,
		       struct es_conf_error *err)
{
	struct json_object *request = json_tokener_parse(request_text);
	int r;

	assert_non_null(request);
	r = es_report_lookup_flow(conf, request, flow, service, err);
	json_object_put(request);
	return r;
}

static void test_lookup(void **state)
{
	struct json_object *report;
	struct es_conf_error err;
	unsigned int service = 9;
	struct es_flow flow;

	(void)state;
	assert_int_equal(lookup_flow("{\"command\":\"ring\"}", &flow, &service, &err), -ENOENT);
	assert_int_equal(
		lookup_flow("{\"lookup\":{\"address\":\"192.0.2.7\",\"port\":40000,\"service\":\"l4\"}}",
			    &flow, &service, &err),
		0);
	assert_int_equal(service, 1);
	assert_int_equal(flow.client.w[3], inet_addr("192.0.2.7"));
	assert_int_equal(flow.service.w[3], inet_addr("10.77.0.100"));
	assert_int_equal(flow.client_port, htons(40000));
	assert_int_equal(flow.service_port, htons(443));
	report = es_report_lookup(conf, 7, &flow, service, 0x00c0ffeeULL << 32, 1);
	expect_as_documented("lookup", report);
	assert_string_equal(
		json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN),
		"{\"epoch\":7,\"lookup\":{\"address\":\"192.0.2.7\",\"port\":40000,\"service\":\"l4\","
		"\"position\":\"00c0ffee00000000\",\"node\":\"n2\",\"node_address\":\"10.78.0.2\"}}");
	json_object_put(report);
}

/* The flow is to the service's address of the client's family. */
static void test_lookup_families(void **state)
{
	static const struct {
		const char *addresses, *client, *service; /* NULL: refused */
	} tests[] = {
		{"192.0.2.10", "198.51.100.7", "192.0.2.10"},
		{"192.0.2.10", "2001:db8::7", NULL},
		{"2001:db8::10", "2001:db8::7", "2001:db8::10"},
		{"2001:db8::10", "198.51.100.7", NULL},
		{"192.0.2.10, 2001:db8::10", "198.51.100.7", "192.0.2.10"},
		{"192.0.2.10, 2001:db8::10", "2001:db8::7", "2001:db8::10"},
	};
	struct es_addr client, service;
	struct es_conf_error err;
	struct es_flow flow;

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct es_conf *made = NULL;
		char text[512];
		int len =
			snprintf(text, sizeof(text),
				 "datapath { interface = a cluster_interface = b }\n"
				 "node n1 { address = 10.78.0.1 }\nservice web { address = %s port = 80 }\n",
				 tests[i].addresses);

		assert_int_equal(es_conf_parse(text, (size_t)len, "t.conf", &made, NULL), 0);
		assert_int_equal(es_conf_addr_parse(tests[i].client, &client), 0);
		assert_int_equal(es_report_flow_of(&made->services[0], &client, 40000, &flow, &err),
				 tests[i].service ? 0 : -EINVAL);
		if (tests[i].service) {
			assert_int_equal(es_conf_addr_parse(tests[i].service, &service), 0);
			assert_memory_equal(&flow.service, &service, sizeof(service));
			assert_memory_equal(&flow.client, &client, sizeof(client));
			assert_int_equal(flow.client_port, htons(40000));
			assert_int_equal(flow.service_port, htons(80));
		}
		es_conf_free(&made);
	}
}

static void test_lookup_errors(void **state)
{
	static const struct {
		const char *lookup;
		const char *error;
	} errors[] = {
		{"{}", "bad client address \"\", expected an IP address"},
		{"1", "bad client address \"\", expected an IP address"},
		{"{\"address\":\"::g\",\"port\":1}", "bad client address \"::g\", expected an IP address"},
		{"{\"address\":null,\"port\":1}", "bad client address \"\", expected an IP address"},
		{"{\"address\":\"2001:db8::7\",\"port\":1,\"service\":\"web\"}",
		 "service web has no IPv6 address, expected a client with IPv4"},
		{"{\"address\":\"1.2.3.4\"}", "bad client port, expected 1..65535"},
		{"{\"address\":\"1.2.3.4\",\"port\":\"1\"}", "bad client port, expected 1..65535"},
		{"{\"address\":\"1.2.3.4\",\"port\":65536}", "bad client port, expected 1..65535"},
		{"{\"address\":\"1.2.3.4\",\"port\":1}",
		 "there are 2 services, expected the name of one of them"},
		{"{\"address\":\"1.2.3.4\",\"port\":1,\"service\":\"x\"}", "no service named \"x\""},
		{"{\"address\":\"1.2.3.4\",\"port\":1,\"service\":null}", "no service named \"\""},
	};
	unsigned int service = 9;
	struct es_conf_error err;
	struct es_flow flow;
	char request[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		snprintf(request, sizeof(request), "{\"lookup\":%s}", errors[i].lookup);
		assert_int_equal(lookup_flow(request, &flow, &service, &err), -EINVAL);
		assert_string_equal(err.text, errors[i].error);
		assert_int_equal(service, 9);
	}
	conf->service_count = 1;
	assert_int_equal(
		lookup_flow("{\"lookup\":{\"address\":\"1.2.3.4\",\"port\":1}}", &flow, &service, &err), 0);
	assert_int_equal(service, 0);
	conf->service_count = 2;
}

static void test_points_wanted(void **state)
{
	struct json_object *request = json_tokener_parse("{\"command\":\"ring\"}");

	(void)state;
	assert_false(es_report_wants_points(request));
	json_object_object_add(request, "points", json_object_new_boolean(0));
	assert_false(es_report_wants_points(request));
	json_object_object_add(request, "points", json_object_new_boolean(1));
	assert_true(es_report_wants_points(request));
	json_object_put(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_lookup_families),
		cmocka_unit_test(test_lookup_errors),
		cmocka_unit_test(test_points_wanted),
	};

	return cmocka_run_group_tests_name("report_ring", tests, load, unload);
}
