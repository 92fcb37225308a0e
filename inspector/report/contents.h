/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_CONTENTS_H
#define ES_REPORT_CONTENTS_H

/* The replies of `earshot table` and `earshot explain`, in the shape of docs/json.md. */
#include <json-c/json.h>
#include "inspector/config/config.h"
#include "inspector/inspect/hot.h"
#include "inspector/inspect/route.h"
#include "inspector/cluster/content_sync.h"
#include "kmod/core/flow.h"

#define ES_REPORT_CONTENTS_DEFAULT 20

/**
 * es_report_service() - the service that a request names; without a name the only one
 * Return: 0, or -EINVAL with @err.
 */
int es_report_service(const struct es_conf *conf, struct json_object *request, unsigned int *ret_service,
		      struct es_conf_error *err);

/* struct es_report_table - @contents: NULL if the policy needs no table; @hot: most requests first */
struct es_report_table {
	const struct es_conf *conf;
	unsigned int service;
	struct es_contents *contents;
	struct es_content_sync_state sync;
	const struct es_hot_content *hot;
	size_t hot_count;
	unsigned long long now_ns;
};

/* @request may have "limit" */
struct json_object *es_report_table(const struct es_report_table *table, struct json_object *request);

/**
 * es_report_explain_request() - what an `explain` request asks
 * @ret_current: the node that has the connection, -1 for a new one; @ret_text, @ret_len: the request, or its
 * head, @request's Return: 0, or -EINVAL with @err.
 */
int es_report_explain_request(const struct es_conf *conf, struct json_object *request,
			      struct es_flow *ret_flow, unsigned int *ret_service, int *ret_current,
			      const char **ret_text, size_t *ret_len, struct es_conf_error *err);

/* struct es_report_explanation - @node, @inspecting: -1 for none; @rejection: if @node is ES_ROUTE_REJECT */
struct es_report_explanation {
	const struct es_conf *conf;
	unsigned int service;
	const struct es_request_view *request;
	int node;
	int inspecting;
	struct es_rejection rejection;
	unsigned int node_count;
	struct es_node_view nodes[ES_NODES_MAX];
	struct es_explain explain;
};

struct json_object *es_report_explain(const struct es_report_explanation *explanation);

#endif
