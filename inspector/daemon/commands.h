/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_COMMANDS_H
#define ES_DAEMON_COMMANDS_H

/* Control commands that have a file of their own; each is an es_control_fn whose context is the daemon. */
#include <json-c/json.h>
#include "inspector/daemon/daemon.h"

struct es_wire_by_hand;

int es_daemon_table(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err);
int es_daemon_explain(void *ctx, struct json_object *request, struct json_object **ret_result,
		      struct es_conf_error *err);

/* commands_crash.c */
int es_daemon_crash(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err);

/* commands_nodes.c */
int es_daemon_drain(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err);
int es_daemon_undrain(void *ctx, struct json_object *request, struct json_object **ret_result,
		      struct es_conf_error *err);
int es_daemon_weight(void *ctx, struct json_object *request, struct json_object **ret_result,
		     struct es_conf_error *err);

/*
 * es_daemon_named_node() - that a request names, or this one; -1 and @err for an unknown one, with those
 * that there are
 */
int es_daemon_named_node(const struct es_daemon *daemon, struct json_object *request,
			 struct es_conf_error *err);

/* es_daemon_by_hand_take() - who wants it, why, and for how long. Returns 0, or -EINVAL and @err. */
int es_daemon_by_hand_take(const struct es_daemon *daemon, struct json_object *request,
			   struct es_wire_by_hand *word, struct es_conf_error *err);

/* commands_services.c */
int es_daemon_drain_service(void *ctx, struct json_object *request, struct json_object **ret_result,
			    struct es_conf_error *err);
int es_daemon_undrain_service(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err);

/* commands_events.c */
int es_daemon_events(void *ctx, struct json_object *request, struct json_object **ret_result,
		     struct es_conf_error *err);

#endif
