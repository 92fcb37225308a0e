/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_PLUGIN_WORLD_H
#define ES_TESTS_PLUGIN_WORLD_H

/*
 * Plugins in es_route(): the debug plugin answers what each request's X-Debug says. Four nodes, of which the
 * last is no target.
 */
#include "cmocka_all.h"
#include <earshot/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/inspect/route.h"

static struct es_name content_name; /* large */

#define DOWN 3

static struct es_conf *conf;
static struct es_plugins *plugins;
static struct es_cluster *cluster;
static struct es_health health;
static struct es_router router;
static struct es_http_head head;
static struct es_request_view request;
static struct es_rejection rejection;
static struct es_explain explain;

/* @chain: the service's plugins */
static inline void begin(const char *chain)
{
	struct es_conf_error err = {};
	char text[2048];

	snprintf(text, sizeof(text),
		 "datapath { interface = eth0 cluster_interface = eth1 }\n"
		 "node n0 { address = 10.78.0.1 }\nnode n1 { address = 10.78.0.2 }\n"
		 "node n2 { address = 10.78.0.3 }\nnode n3 { address = 10.78.0.4 }\n"
		 "service web { address = 10.77.0.100 port = 80\n%s\n}\n",
		 chain);
	if (es_conf_parse(text, strlen(text), "t.conf", &conf, &err) ||
	    es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s", err.text);
	assert_int_equal(es_cluster_new(conf, 0, 1, NULL, NULL, &cluster), 0);
	cluster->plugins = plugins;
	memset(&health, 0, sizeof(health));
	es_health_set_state(&health, DOWN, ES_NODE_DOWN);
	assert_int_equal(es_router_init(&router, cluster, &health, NULL), 0);
}

static inline void end(void)
{
	es_router_fini(&router);
	es_plugins_free(&plugins);
	es_cluster_free(&cluster);
	es_conf_free(&conf);
}

static inline int ask_bytes(const void *bytes, size_t len, int truncated)
{
	es_http_head_init(&head);
	es_http_head_scan(&head, bytes, len);
	request = (struct es_request_view){.current = -1, .truncated = truncated};
	es_request_describe(&request, &head, bytes, len, 1, &content_name);
	return es_route(&router, 0, &request, 1000, NULL, &rejection);
}

/* The node for a request with X-Debug: @wish. */
static inline int ask_uri(const char *uri, const char *wish)
{
	static char text[512];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\nX-Debug: %s\r\n\r\n", uri, wish);
	return ask_bytes(text, strlen(text), 0);
}

static inline int ask(const char *wish)
{
	return ask_uri("/a?b", wish);
}

static inline struct es_plugin_report *report_of(unsigned int index)
{
	static struct es_plugin_report report;

	es_plugins_describe(plugins, index, &report);
	return &report;
}

static inline unsigned long long failures(unsigned int index)
{
	unsigned long long sum = 0;

	for (unsigned int i = 0; i < ES_PLUGIN_FAILURE_COUNT; i++)
		sum += report_of(index)->failures[i];
	return sum;
}

/* Not measured: on a busy machine any call may take longer than a budget. Those of
 * test_answers_that_come_too_late() are. */
#define DEBUG_BUDGET(name, us, more) "plugin " name " { file = \"debug.so\" budget_us = " us " " more " }\n"
#define DEBUG(name, more)	     DEBUG_BUDGET(name, "0", more)

#endif
