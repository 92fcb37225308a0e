/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_SERVER_CHECK_H
#define ES_HEALTH_SERVER_CHECK_H

/*
 * One check of a service's server on this node: a connection to an address of the service, which the kernel
 * routes by lo, so no packet of it leaves and none meets the datapath's programs. A kernel makes a connection
 * whether or not the server still lives, so the connection must be accepted in time, too. It waits behind
 * those of clients, so it is accepted only when the accept queue has drained that far. One that nobody
 * accepts is kept and looked at again: a server that hangs finds one check in its queue, however long it
 * hung. Nothing here waits.
 *
 * A queue that moves is no hung server, only a busy one. Whether it moves, the kernel's count of what waits
 * there says: only accept() makes it smaller, so no client can (es_server_check_queue).
 *
 * By HTTPS, TLS is spoken on that connection (tls.h). A server that a check by HTTP finds mute, or that does
 * not understand it, is asked once, on a connection of its own, whether it speaks TLS: that is what people
 * forget to say. It has failed either way.
 *
 * A server logs a connection that is reset. So its end is waited for when the check is over
 * (es_server_check_rest()).
 */
#include "inspector/health/answer.h"
#include "inspector/health/tls.h"

enum es_server_check_result {
	ES_SERVER_CHECK_PENDING,
	ES_SERVER_CHECK_PASSED,
	ES_SERVER_CHECK_FAILED,
	ES_SERVER_CHECK_QUEUED, /* neither: nobody has accepted it in time, but the queue moves; it goes on */
};

#define ES_SERVER_CHECK_LISTENERS  32
#define ES_SERVER_CHECK_REST_BYTES (1U << 18) /* of an answer, so much is read to its end */
#define ES_SERVER_CHECK_REST_S	   1.0

/**
 * struct es_server_check_queue - the accept queues in one of which a check may wait
 * @is_over: there are more of them; @cookie: of each listening socket, by which the kernel tells it from
 * others
 * @waiting: connections, when it was looked at last; @moves: fewer than when it was looked at before
 */
struct es_server_check_queue {
	unsigned int count;
	int is_over;
	struct {
		unsigned int cookie[2];
		unsigned int waiting;
		int moves;
	} of[ES_SERVER_CHECK_LISTENERS];
};

/**
 * struct es_server_check - a check, and what became of the last one
 * @port: that is asked; @is_own_port: it is that of the service
 * @fd: of the connection; -1: there is none
 * @rest_fd: of the one before, whose end is waited for; -1: there is none; @rest_left: bytes that may come
 * yet
 * @accepted_ms: of @elapsed_ms, when it was found that somebody had accepted it
 * @is_shaken: the handshake of TLS is over
 * @is_asking: only whether the server speaks TLS; @speaks: what was found, since a check has passed
 * @elapsed_ms: how long this check has been watched; time in which the daemon slept does not count
 * @duration_s: of the last one that passed: until the connection was made, or, by HTTP, the status was there
 * @is_refused: the last one failed since the kernel refused its connection, at the service's own port: nobody
 * listens for its clients, which none of them can cause
 * @why: why the last one failed
 */
struct es_server_check {
	struct es_conf_check conf;
	struct es_addr address;
	unsigned int port;
	int fd;
	int rest_fd;
	unsigned int rest_left;
	int is_own_port;
	int is_connected;
	int is_sent;
	int is_accepted;
	int is_overdue;
	int is_shaken;
	int is_asking;
	int is_refused;
	enum {
		ES_SERVER_CHECK_SPEAKS_UNKNOWN,
		ES_SERVER_CHECK_SPEAKS_TLS,
		ES_SERVER_CHECK_SPEAKS_NO_TLS
	} speaks;
	unsigned int elapsed_ms;
	unsigned int accepted_ms;
	unsigned long long began_ns;
	unsigned long long looked_ns;
	double duration_s;
	struct es_server_check_queue queue;
	struct es_tls tls;
	struct es_answer answer;
	char why[160];
};

/* es_server_check_init() - for @service by @address, which is one of its own */
void es_server_check_init(struct es_server_check *check, const struct es_conf_service *service,
			  const struct es_addr *address);

/*
 * es_server_check_begin() - a new one; one that nobody has accepted yet goes on instead. step() tells what
 * fails.
 */
void es_server_check_begin(struct es_server_check *check, unsigned long long now_ns);

/**
 * es_server_check_step() - go on as far as that is possible without waiting
 * Called when @fd can be read or written, and several times until the timeout.
 */
enum es_server_check_result es_server_check_step(struct es_server_check *check, unsigned long long now_ns);

/* Does it wait until @fd can be written? Else until it can be read. */
static inline int es_server_check_wants_write(const struct es_server_check *check)
{
	if (!check->is_connected)
		return 1;
	return check->tls.ssl ? check->tls.wants_write
			      : check->conf.type == ES_CONF_CHECK_HTTP && !check->is_sent;
}

/**
 * es_server_check_rest() - read what comes behind the answer of the last check, up to the end of its
 * connection
 * Called when @rest_fd can be read. Returns whether more is waited for.
 */
int es_server_check_rest(struct es_server_check *check);

/*
 * es_server_check_rest_end() - reset that connection, if it has not ended: at the latest when the next check
 * begins
 */
void es_server_check_rest_end(struct es_server_check *check);

/* es_server_check_end() - reset its connections, if there are any; nothing of it is left in memory */
void es_server_check_end(struct es_server_check *check);

#endif
