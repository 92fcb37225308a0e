/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_ROLLOUT_H
#define ES_DAEMON_ROLLOUT_H

/*
 * `earshot rollout`: one configuration for all nodes, or for none. This node leads it, or takes part
 * (rollout/leader.h, rollout/member.h); both check and switch as a reload does.
 */
#include <ev.h>
#include <json-c/json.h>
#include "inspector/base/error.h"
#include "inspector/daemon/catch_up.h"
#include "inspector/rollout/file.h"
#include "inspector/rollout/history.h"
#include "inspector/rollout/leader.h"
#include "inspector/rollout/member.h"

struct es_daemon;

/**
 * struct es_daemon_rollout - all zero: there was none
 * @timer: runs while there is something to wait for
 * @file: the configuration's place here; @name: what the operator calls the file; @by: who he is, "" if it is
 * not known
 * @has_told: what became of the one that this node led is an event; @restarts: daemons may begin anew for it
 * @history: up to the file of the last rollout here; @before: until then; @next: with the one that is being
 * rolled out
 * @is_catch_up: what this node takes part in is for it alone
 */
struct es_daemon_rollout {
	struct es_rollout_leader leader;
	struct es_rollout_member member;
	struct es_rollout_file file;
	struct es_rollout_history history, before, next;
	struct es_daemon_catch_up catch_up;
	struct ev_timer timer;
	char name[ES_ROLLOUT_NAME_SIZE];
	char by[ES_ROLLOUT_BY_SIZE];
	int has_told;
	int restarts;
	int is_catch_up;
};

/* es_daemon_rollout_start() - take part from now on. Returns 0. */
int es_daemon_rollout_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_rollout_stop() - may be called without start; what is only checked is forgotten */
void es_daemon_rollout_stop(struct es_daemon *daemon);

/* The actions of a rollout on this node, whoever leads it; their context is the daemon. */
extern const struct es_rollout_ops es_daemon_rollout_ops;

/*
 * es_daemon_rollout_stage() - may this node take @text, and may nodes with these two settings be in one
 * cluster? Then it is beside the file in force, and @err says what waits for a restart. @leaders_settings:
 * "": there is no other node's
 */
struct es_daemon_text;
int es_daemon_rollout_stage(struct es_daemon *daemon, const struct es_daemon_text *text,
			    const char *leaders_settings, char *ret_settings, struct es_conf_error *err);

/* The next six: rollout_state.c. */

/*
 * es_daemon_rollout_text() - the text at @key of a request, or of the document that is offered; "" for none
 */
const char *es_daemon_rollout_text(struct json_object *object, const char *key);

/*
 * es_daemon_rollout_send() - to another node; what is lost is said again. @daemon: for struct es_rollout_ops
 */
void es_daemon_rollout_send(void *daemon, const struct es_rollout_message *message);

/* es_daemon_rollout_number() - for the rollout that this node leads next: higher than that of any before */
unsigned long long es_daemon_rollout_number(const struct es_daemon *daemon);

/*
 * es_daemon_rollout_document() - what is offered, with @history up to the file with @text; @settings: of this
 * node with it
 */
struct json_object *es_daemon_rollout_document(const struct es_rollout_history *history, const char *settings,
					       const char *text);

/*
 * es_daemon_rollout_past_add() - @history goes on with the file with @digest, named as struct
 * es_daemon_rollout has it
 */
void es_daemon_rollout_past_add(const struct es_daemon *daemon, struct es_rollout_history *history,
				unsigned long long number, unsigned long long digest);

/* es_daemon_rollout_is_busy() - one is under way that this node leads, or takes part in */
int es_daemon_rollout_is_busy(const struct es_daemon *daemon);

/* es_daemon_rollout_go_on() - there is something to wait for now, or not any more */
void es_daemon_rollout_go_on(struct es_daemon *daemon);

/* es_daemon_rollout_message() - a datagram of es_rollout_get(); returns 0, or -EBADMSG: it is none */
int es_daemon_rollout_message(void *daemon, const void *data, size_t len);

/* es_daemon_rollout_report() (rollout_report.c) - how the one that this node leads stands; the caller's */
struct json_object *es_daemon_rollout_report(const struct es_daemon *daemon);

/*
 * es_daemon_rollout_told() (rollout_report.c) - for `status`: the last one here, and whether its file is in
 * force
 */
struct json_object *es_daemon_rollout_told(const struct es_daemon *daemon);

/*
 * es_daemon_rollout_command() - the control command `rollout`: begins one, or tells how it stands; an
 * es_control_fn
 */
int es_daemon_rollout_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err);

#endif
