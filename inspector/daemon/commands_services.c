// SPDX-License-Identifier: GPL-2.0-or-later
/* The control commands that drain a node of one service, and undo that. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/daemon/commands.h"
#include "inspector/daemon/service_drains.h"
#include "membership/wire.h"

static int change(struct es_daemon *d, struct json_object *request, enum es_node_state state,
		  struct json_object **ret_result, struct es_conf_error *err)
{
	struct es_service_drain drain = {.by = {.what = ES_WIRE_CHANGE_STATE, .value = (uint16_t)state}};
	const char *service = es_json_string(request, "service");
	int node = es_daemon_named_node(d, request, err), rc;
	unsigned int i = 0;

	if (node < 0)
		return -ENOENT;
	while (i < d->conf->service_count && strcmp(d->conf->services[i].name, service) != 0)
		i++;
	if (i == d->conf->service_count) {
		es_conf_error_set(err, "no service \"%.64s\" is configured", service);
		return -ENOENT;
	}
	snprintf(drain.service, sizeof(drain.service), "%s", service);
	drain.by.node = (uint16_t)node;
	rc = es_daemon_by_hand_take(d, request, &drain.by, err);
	if (rc)
		return rc;
	if (!d->membership) {
		es_conf_error_set(err,
				  "membership is static: a node is drained of a service with corosync only");
		return -EINVAL;
	}
	if (es_daemon_service_drains_ask(d, &drain)) {
		es_conf_error_set(
			err,
			"%s: cannot be changed now: it, or this node, is not a member of the cluster: "
			"expected both to have joined (earshot nodes)",
			d->conf->nodes[node].name);
		return -ENOTCONN;
	}
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "node", json_object_new_string(d->conf->nodes[node].name));
	json_object_object_add(*ret_result, "service", json_object_new_string(service));
	return 0;
}

int es_daemon_drain_service(void *ctx, struct json_object *request, struct json_object **ret_result,
			    struct es_conf_error *err)
{
	return change(ctx, request, ES_NODE_DRAINING, ret_result, err);
}

int es_daemon_undrain_service(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err)
{
	return change(ctx, request, ES_NODE_UP, ret_result, err);
}
