/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CONTROL_INTERNAL_H
#define ES_INSPECTOR_CONTROL_INTERNAL_H

/* Shared by the control socket's listener and its clients' connections. */
#include <ev.h>
#include <sys/types.h>

#include "inspector/control/control.h"

struct es_control_command {
	const char *name;
	es_control_fn fn;
	void *ctx;
};

/**
 * struct es_control_client - one connection
 * @in: what has arrived of requests, at most one whole line is handled at a time; @in_size: its room, which
 * grows
 * @out: the unsent rest of one reply; while there is one, nothing more is read
 * @closing: close once @out is sent
 */
struct es_control_client {
	struct es_control *control;
	struct es_control_client *next;
	int fd;
	ev_io readable;
	ev_io writable;
	ev_timer idle;
	char *in;
	size_t in_len;
	size_t in_size;
	char *out;
	size_t out_len;
	size_t out_sent;
	int at_end;
	int closing;
};

struct es_control {
	struct ev_loop *loop;
	char *path;
	dev_t dev; /* of the socket file, so that only our own is removed */
	ino_t ino;
	int fd;
	ev_io acceptable;
	ev_timer pause; /* accept again after file descriptors ran out */
	double idle_timeout_s;
	unsigned int client_count;
	struct es_control_client *clients;
	unsigned int command_count;
	struct es_control_command commands[ES_CONTROL_COMMANDS_MAX];
};

/* Takes over @fd, which is closed on failure too. Return: 0 or -ENOMEM. */
int es_control_client_new(struct es_control *control, int fd);
void es_control_client_free(struct es_control_client *client);

/* Sends what the socket takes now. */
void es_control_client_flush(struct es_control_client *client);

/* The reply to one request line, without its newline. The caller frees it. NULL: out of memory. */
char *es_control_answer(struct es_control *control, const char *line, size_t len, size_t *ret_len);

/* The line {"ok":false,"error":...} with its newline; the caller frees it. */
char *es_control_error_line(const char *text, size_t *ret_len);

#endif
