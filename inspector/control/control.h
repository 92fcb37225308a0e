/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CONTROL_H
#define ES_INSPECTOR_CONTROL_H

/*
 * The control socket: a Unix stream socket on which a client sends one JSON object per line and gets one line
 * for each, in order (docs/json.md):
 *
 *	{"command":"status"}
 *	{"ok":true,"result":{...}}  or  {"ok":false,"error":"..."}
 *
 * It never blocks the loop, and everything in it has a bound.
 */
#include <json-c/json.h>
#include <stddef.h>

#include "inspector/base/error.h"

struct ev_loop;
struct es_control;

#define ES_CONTROL_DIRECTORY	  "/run/earshot"
#define ES_CONTROL_REQUEST_MAX	  (1024 * 1024)	     /* bytes of one request line */
#define ES_CONTROL_REPLY_MAX	  (16 * 1024 * 1024) /* bytes of one reply line */
#define ES_CONTROL_CLIENTS_MAX	  32
#define ES_CONTROL_COMMANDS_MAX	  32
#define ES_CONTROL_IDLE_TIMEOUT_S 30

/* Path of a node's socket, ES_CONTROL_DIRECTORY/NODE.sock. Return: 0 or -ENAMETOOLONG. */
int es_control_path(const char *node, char *path, size_t size);

/**
 * typedef es_control_fn - answers one command, on the loop's thread, without blocking
 * It must not free the control socket; a handler that ends the daemon breaks the loop and answers.
 * @request: the whole request object; the caller owns it
 * @ret_result: the reply's result, owned by the caller then; NULL stands for {}
 * Return: 0, or -errno with the text for the user in @err (strerror's if it was left empty).
 */
typedef int (*es_control_fn)(void *ctx, struct json_object *request, struct json_object **ret_result,
			     struct es_conf_error *err);

/**
 * es_control_new() - listen on @path (mode 0660), making its directory if that is missing
 * A socket file that nobody answers on is removed first.
 * Return: 0; -EADDRINUSE when another daemon answers on @path; -EEXIST when @path is no socket; or what
 * failed.
 */
int es_control_new(struct ev_loop *loop, const char *path, struct es_control **ret_control,
		   struct es_conf_error *err);

/* Closes all clients, after one more try to give them their replies, and removes the socket file. */
void es_control_free(struct es_control **control);

/* Adds a command. @name must outlive @control. Return: 0, -EEXIST or -ENOSPC. */
int es_control_register(struct es_control *control, const char *name, es_control_fn fn, void *ctx);

/* Closes clients that neither send nor take a byte for so long; for those that connect from now on. */
void es_control_set_idle_timeout(struct es_control *control, double seconds);

#endif
