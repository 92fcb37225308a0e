/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_RULES_WORLD_H
#define ES_TESTS_RULES_WORLD_H

/* The rules of a configuration, four nodes, and requests that are asked about. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/rules/rules.h"
#include "inspector/http/head.h"

#define BASE                                                                                                 \
	"datapath { interface = eth0 cluster_interface = eth1 }\n"                                           \
	"node n0 { address = 10.78.0.1 } node n1 { address = 10.78.0.2 } node n2 { address = 10.78.0.3 }\n"  \
	"node n3 { address = 10.78.0.4 }\n"                                                                  \
	"service web { address = 10.77.0.100 port = 80 admit_low = 10 admit_normal = 20 retry_after_s = 7 "  \
	"}\n"                                                                                                \
	"service api { address = 10.77.0.100 port = 81 }\n"
#define NODES 4

static struct es_conf *conf;
static struct es_rules *rules;
static struct es_ring *ring;
static struct es_url_table *table;
static struct es_node_view node[NODES];
static struct es_explain explain;
static struct es_request_view request;
static struct es_rules_refusal refusal;

static inline int setup(void **state)
{
	struct es_ring_node nodes[NODES] = {};

	(void)state;
	for (unsigned int i = 0; i < NODES; i++) {
		nodes[i].address = es_addr_from_v4(htonl(0x0a4e0001 + i));
		nodes[i].virtual_nodes = 63;
		nodes[i].id = (__u16)i;
		node[i] = (struct es_node_view){.weight = 100, .is_target = 1};
	}
	return es_ring_new(nodes, NODES, &ring);
}

static inline int teardown(void **state)
{
	(void)state;
	es_rules_free(&rules);
	es_conf_free(&conf);
	es_ring_free(&ring);
	es_url_table_free(&table);
	return 0;
}

static inline void with(const char *text)
{
	struct es_conf_error err;
	char *all = NULL;

	es_rules_free(&rules);
	es_conf_free(&conf);
	assert_true(asprintf(&all, BASE "%s", text) > 0);
	if (es_conf_parse(all, strlen(all), "t.conf", &conf, &err))
		fail_msg("%s", err.text);
	free(all);
	assert_int_equal(es_rules_new(conf, &rules), 0);
}

/* Asks the rules about a request for @service; @line: "GET /path", @headers: with CRLF each. */
static inline int ask_of(unsigned int service, const char *line, const char *headers, const char *client)
{
	static struct es_http_head head;
	static char text[1024];
	struct es_addr address = {};
	struct es_cluster_view view = {
		.count = NODES,
		.node = node,
		.ring = ring,
		.explain = &explain,
	};
	int len = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s\r\n", line, headers);

	memset(&explain, 0, sizeof(explain));
	memset(&refusal, 0, sizeof(refusal));
	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, (size_t)len), ES_HTTP_DONE);
	request = (struct es_request_view){
		.flow_hash = 12345,
		.current = -1,
		.cost = 1,
		.head = &head,
		.text = text,
		.len = (size_t)len,
		.uri = text + head.path.off,
		.uri_len = head.path.len + (head.has_query ? 1 + head.query.len : 0),
	};
	if (client) {
		assert_int_equal(es_conf_addr_parse(client, &address), 0);
		request.client = &address;
	}
	len = es_rules_apply(rules, service, table, &request, &view, &refusal);
	request.client = NULL;
	return len;
}

static inline int ask(const char *line)
{
	return ask_of(0, line, "Host: h\r\n", NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

#endif
