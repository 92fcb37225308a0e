// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One client of the control socket: bytes in until a line is whole, one reply out, both without blocking. A
 * client that sends an endless line, goes idle or does not take its reply is closed. While a reply is not yet
 * taken nothing more is read, so a client costs one request and one reply of memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/control/internal.h"

#define IN_SIZE	    4096			 /* what almost all requests have room in */
#define IN_SIZE_MAX (ES_CONTROL_REQUEST_MAX + 1) /* the newline */

void es_control_client_free(struct es_control_client *client)
{
	struct es_control *control = client->control;
	struct es_control_client **at;

	for (at = &control->clients; *at; at = &(*at)->next)
		if (*at == client) {
			*at = client->next;
			control->client_count--;
			break;
		}
	ev_io_stop(control->loop, &client->readable);
	ev_io_stop(control->loop, &client->writable);
	ev_timer_stop(control->loop, &client->idle);
	close(client->fd);
	free(client->in);
	free(client->out);
	free(client);
}

void es_control_client_flush(struct es_control_client *client)
{
	ssize_t n;

	while (client->out_sent < client->out_len) {
		n = send(client->fd, client->out + client->out_sent, client->out_len - client->out_sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			client->closing = 1;
			break;
		}
		client->out_sent += (size_t)n;
		ev_timer_again(client->control->loop, &client->idle);
	}
	free(client->out);
	client->out = NULL;
	client->out_len = 0;
	client->out_sent = 0;
}

/* Handles the first whole line of @in, if there is one. Return: whether there was. */
static int handle_line(struct es_control_client *client)
{
	char *end = memchr(client->in, '\n', client->in_len);
	struct es_conf_error err;
	size_t len;

	if (!end && client->in_len == IN_SIZE_MAX) {
		es_conf_error_set(&err, "request too long, expected at most %d bytes",
				  ES_CONTROL_REQUEST_MAX);
		client->out = es_control_error_line(err.text, &client->out_len);
		client->closing = 1;
		return 1;
	}
	if (!end)
		return 0;
	len = (size_t)(end - client->in);
	client->out = es_control_answer(client->control, client->in, len, &client->out_len);
	client->in_len -= len + 1;
	memmove(client->in, end + 1, client->in_len);
	if (!client->out)
		client->closing = 1;
	return 1;
}

/* Goes as far as it gets without more input or a socket that takes more; may free @client. */
static void advance(struct es_control_client *client)
{
	struct ev_loop *loop = client->control->loop;

	es_control_client_flush(client);
	while (!client->out && !client->closing && handle_line(client))
		es_control_client_flush(client);
	if (!client->out && (client->closing || client->at_end)) {
		es_control_client_free(client);
		return;
	}
	if (client->out) {
		ev_io_stop(loop, &client->readable);
		ev_io_start(loop, &client->writable);
	} else {
		ev_io_stop(loop, &client->writable);
		ev_io_start(loop, &client->readable);
	}
}

/* Room for more of a long request. Returns whether there is some. */
static int make_room(struct es_control_client *client)
{
	size_t size = client->in_size * 2 < IN_SIZE_MAX ? client->in_size * 2 : IN_SIZE_MAX;
	char *in;

	if (client->in_len < client->in_size)
		return 1;
	in = realloc(client->in, size);
	if (!in)
		return 0;
	client->in = in;
	client->in_size = size;
	return 1;
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events)
{
	struct es_control_client *client = watcher->data;
	ssize_t n;

	(void)events;
	if (!make_room(client)) {
		es_control_client_free(client);
		return;
	}
	n = recv(client->fd, client->in + client->in_len, client->in_size - client->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		client->in_len += (size_t)n;
		ev_timer_again(loop, &client->idle);
	} else {
		client->at_end = 1; /* a client may shut down its sending side and still want its reply */
	}
	advance(client);
}

static void on_writable(struct ev_loop *loop, ev_io *watcher, int events)
{
	(void)loop;
	(void)events;
	advance(watcher->data);
}

static void on_idle(struct ev_loop *loop, ev_timer *watcher, int events)
{
	(void)loop;
	(void)events;
	es_control_client_free(watcher->data);
}

int es_control_client_new(struct es_control *control, int fd)
{
	struct es_control_client *client = calloc(1, sizeof(*client));
	char *in = malloc(IN_SIZE);

	if (!client || !in) {
		free(client);
		free(in);
		close(fd);
		return -ENOMEM;
	}
	client->control = control;
	client->fd = fd;
	client->in = in;
	client->in_size = IN_SIZE;
	ev_io_init(&client->readable, on_readable, fd, EV_READ);
	ev_io_init(&client->writable, on_writable, fd, EV_WRITE);
	ev_init(&client->idle, on_idle);
	client->idle.repeat = control->idle_timeout_s;
	client->readable.data = client;
	client->writable.data = client;
	client->idle.data = client;
	client->next = control->clients;
	control->clients = client;
	control->client_count++;
	ev_io_start(control->loop, &client->readable);
	ev_timer_again(control->loop, &client->idle);
	return 0;
}
