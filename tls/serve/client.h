/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_CLIENT_H
#define ES_SERVE_CLIENT_H

/*
 * A client's connection: the socket, the handshake or the state that another node has sent, then records. It
 * gives text, takes text, and knows what another node needs to go on from where the text stands.
 */
#include "tls/handshake/handshake.h"
#include "tls/record/record.h"
#include "tls/serve/buffer.h"
#include "tls/serve/offload.h"
#include "tls/serve/serve.h"

enum es_client_phase {
	ES_CLIENT_BEGINS,  /* nothing has come yet */
	ES_CLIENT_ARRIVES, /* the state of a moved connection is coming */
	ES_CLIENT_SHAKES,
	ES_CLIENT_OPEN,
	ES_CLIENT_LEAVES, /* what is left is sent, then FIN; what the client sends is not read any more */
};

/* Why no more text comes. */
enum es_client_over {
	ES_CLIENT_NOT_OVER,
	ES_CLIENT_CLOSED, /* close_notify or FIN: it still reads */
	ES_CLIENT_BROKEN, /* it, or what came on it; an alert in @out may still be sent */
};

/**
 * struct es_client
 * @in: encrypted bytes; the first @decoded of them have been read and are kept, since @text is not taken yet
 * @text: what was read of them
 * @start: the state before the record that @in begins with; @start_taken: bytes of its text that are taken
 * @last: the state before the record that was read last, @last_at: where it is in @in, @last_len: its text
 * @offload: the kernel writes its records, and @out is text; NULL: @records does
 * @is_kept: all of what @text was read from is in @in
 * @changed: called when the connection may have something new; @expired: its time is over
 */
struct es_client {
	struct es_serve *serve;
	struct es_serve_service *service;
	struct es_flow flow;
	int fd;
	enum es_client_phase phase;
	enum es_client_over over;
	const char *why; /* of ES_CLIENT_BROKEN */
	ev_io io;
	ev_timer timer;
	ev_timer soon;
	struct es_buffer in;
	size_t decoded;
	struct es_buffer text;
	struct es_buffer out;
	struct es_tls_handshake *handshake;
	struct es_tls_records *records;
	struct es_offload *offload;
	struct es_tls_state start;
	size_t start_taken;
	size_t text_max; /* of a record that it is sent */
	struct es_tls_state last;
	size_t last_at;
	size_t last_len;
	int is_kept;
	int is_arrived; /* another node has moved it here */
	int is_drained; /* the kernel has had no more bytes: until it tells of some, it is not asked */
	int is_fin;	/* the client has closed its side of TCP */
	int is_shut;	/* this side is closed */
	int is_holding; /* @out, and @handshake's tickets, wait for es_client_release() */
	int is_unwritable;
	int is_not_offloaded;	      /* the kernel has refused it */
	unsigned long long leaves_ns; /* of ES_CLIENT_LEAVES: until then it may go on sending */
	unsigned long long read_ns;   /* of ES_CLIENT_LEAVES: when it was seen to read; 0: nothing was left */
	size_t unread;		      /* bytes that were left for it then */
	int is_lingering;	      /* it reads them later than others do */
	size_t skip;		      /* bytes of the next record's text that the other node has dealt with */
	void (*changed)(void *ctx);
	void (*expired)(void *ctx);
	void *ctx;
};

/* es_client_init() - of an accepted socket, which it owns from now on */
void es_client_init(struct es_client *client, struct es_serve *serve, struct es_serve_service *service,
		    int fd, const struct es_flow *flow);
/* es_client_fini() - the socket is closed, by RST if @is_reset */
void es_client_fini(struct es_client *client, int is_reset);

/* es_client_within() - @expired is called after @seconds without another call of this; 0: never */
static inline void es_client_within(struct es_client *client, double seconds)
{
	client->timer.repeat = seconds;
	ev_timer_again(client->serve->loop, &client->timer);
}

/*
 * es_client_soon() - call @changed when the others had their turn: there is more to do than can be waited
 * for
 */
void es_client_soon(struct es_client *client);

/* es_client_shake() - go on to ES_CLIENT_OPEN, as far as what has come allows; @over says if it failed */
void es_client_shake(struct es_client *client);

/*
 * es_client_read() - read one more record into @text. Returns 1 if there is more of it, 0: nothing has come,
 * -1: @over says why nothing will.
 */
int es_client_read(struct es_client *client);

/*
 * es_client_hear() - take from the kernel what is not wanted yet, a little of it: so the end of the
 * connection is heard while a response is awaited
 */
#define ES_CLIENT_HEARS 4096
static inline int es_client_may_hear(const struct es_client *client)
{
	return es_buffer_len(&client->in) - client->decoded < ES_CLIENT_HEARS;
}
void es_client_hear(struct es_client *client);

/* es_client_take() - @len bytes of @text are dealt with */
void es_client_take(struct es_client *client, size_t len);

/**
 * es_client_pack() - what @node needs to go on at the first byte of @text
 *
 *	ES_TLS_SEALED_BYTES	the state (sealed.h)
 *	2 bytes			how many bytes follow, in network order
 *	...			these: to be sent to the client as they are
 *
 * and then what es_client_kept() has. All that is held back travels along, since the client acknowledges
 * nothing that it has not got. Returns the length; -EMSGSIZE: there is too much of it; or -errno.
 */
#define ES_CLIENT_HELD_MAX 4096
#define ES_CLIENT_PACK_MAX (ES_TLS_SEALED_BYTES + 2 + ES_CLIENT_HELD_MAX)
long es_client_pack(struct es_client *client, const char *node, uint8_t ret_pack[ES_CLIENT_PACK_MAX]);
size_t es_client_kept(const struct es_client *client, const uint8_t **ret_bytes);

/*
 * es_client_release() - send what is held back: the tickets of TLS 1.3. A client acknowledges them when it
 * likes, and until it has, its first request could not move; with a response they cost no packet, either.
 */
void es_client_release(struct es_client *client);

/*
 * es_client_name_home() - the node that serves the first request is number @home: tickets that are held back
 * name it. Otherwise they name this one.
 */
void es_client_name_home(struct es_client *client, unsigned int home);

/* es_client_is_settled() - has the client acknowledged all that it was sent? */
int es_client_is_settled(const struct es_client *client);

/* es_client_send() - protect and queue text. Returns 0 or -errno. */
int es_client_send(struct es_client *client, const void *text, size_t len);

/* es_client_queued() - is anything still to be given to TCP? */
static inline size_t es_client_queued(const struct es_client *client)
{
	return es_buffer_len(&client->out) + (client->offload ? es_offload_waiting(client->offload) : 0);
}

/* es_client_has_room() - may more be read of what it shall be sent? */
static inline int es_client_has_room(const struct es_client *client)
{
	return es_buffer_len(&client->out) < ES_SERVE_BUFFER &&
	       !(client->offload && es_offload_waiting(client->offload));
}

/**
 * es_client_pass() - send it text of a long body from @fd, unread, by the kernel's record layer
 * @left: bytes of the body that are to come. Returns those that were taken; -EOPNOTSUPP: they must be read
 * and es_client_send() be called; otherwise as es_upstream_receive().
 */
ssize_t es_client_pass(struct es_client *client, int fd, uint64_t left);

/* es_client_is_used_up() - must it end after the response that is under way, for want of a new key? */
int es_client_is_used_up(const struct es_client *client);

/*
 * es_client_flush() - send what is queued, as far as it goes. Returns 0; -errno: nothing can be sent any
 * more.
 */
int es_client_flush(struct es_client *client);

/*
 * es_client_leave() - say close_notify, then end in the orderly way; es_client_is_left() says when that is
 * over
 */
void es_client_leave(struct es_client *client);
int es_client_is_left(struct es_client *client);

/*
 * es_client_lingers() - it leaves, and its time is over: does it get more? TCP may have much for a client
 * that reads slowly, or pauses, and a RST would take that back. ES_SERVE_STUCK_S without reading is too long.
 */
int es_client_lingers(struct es_client *client);

/*
 * es_client_watch() - wait for what can go on: for the client's bytes if @wants_more, and for room to send
 */
void es_client_watch(struct es_client *client, int wants_more);
/* es_client_unwatch() - wait for nothing: the socket is in other hands */
void es_client_unwatch(struct es_client *client);

#endif
