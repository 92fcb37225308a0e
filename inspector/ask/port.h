/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASK_PORT_H
#define ES_ASK_PORT_H

/*
 * A worker's part of the ask socket: the processes that ask this worker, their questions, and what is in hand
 * for them. The worker alone reads and answers, and waits for none of them. The control thread gives it
 * connections, and reads loads and responses, without a lock.
 */
#include <stdatomic.h>
#include "inspector/ask/table.h"
#include "inspector/ask/wire.h"
#include "inspector/config/config.h"
#include "kmod/core/abi.h"

struct es_inspector;

#define ES_ASK_PROCESSES_MAX 64	  /* that ask one worker */
#define ES_ASK_RESPONSES     4096 /* that wait for the control thread; a power of two */
#define ES_ASK_BATCH	     8	  /* messages that are read, and answers that are sent, at a time */

/*
 * struct es_asker - a process; @is_taken: the control thread sets it, and the worker clears it
 * @drained: of which services, a bit each, it believes that this node is drained, in @conf_version's numbers;
 * of none if it @is_new
 */
struct es_asker {
	_Atomic int is_taken;
	int fd;
	uint64_t drained;
	uint32_t conf_version;
	int is_new;
	struct es_ask_table in_hand;
};

/* struct es_ask_load - requests in hand, and their costs, of the service with this es_content_sync_tag() */
struct es_ask_load {
	_Atomic uint32_t tag;
	_Atomic unsigned int active;
	_Atomic unsigned long long cost;
};

/* struct es_ask_reply - an answer that is to be sent; @text, @len: behind it */
struct es_ask_reply {
	struct es_ask_answer head;
	size_t len;
	char text[ES_ASK_PAGE_MAX];
};

/**
 * struct es_ask_port - @news_fd: a timer: is there something that processes do not know?
 * @begun: requests that were begun here so far, but for connections' first ones
 * @written, @taken: of @response, by the worker and by the control thread; what finds no room is lost
 * @reply: @replies of them, to the process whose messages are in @message
 */
struct es_ask_port {
	int epoll_fd;
	int news_fd;
	struct es_asker asker[ES_ASK_PROCESSES_MAX];
	struct es_ask_load load[ES_CONF_SERVICES_MAX];
	_Atomic unsigned long long begun;
	_Atomic unsigned int written;
	_Atomic unsigned int taken;
	struct es_response_entry response[ES_ASK_RESPONSES];
	unsigned int replies;
	struct es_ask_reply reply[ES_ASK_BATCH];
	uint8_t message[ES_ASK_BATCH][sizeof(struct es_ask) + ES_ASK_TEXT_MAX + ES_ASK_BODY_MAX];
};

int es_ask_port_init(struct es_ask_port *port);

/* es_ask_port_fini() - when its worker does not run any more */
void es_ask_port_fini(struct es_ask_port *port);

/* es_ask_port_serve() - an es_worker_fn, with the port; takes what has been asked, so far as it is bounded */
void es_ask_port_serve(struct es_inspector *inspector, void *port);

/* The control thread's: how many processes there are, and one more, by @fd. Returns 0 or -errno */
unsigned int es_ask_port_count(const struct es_ask_port *port);
int es_ask_port_add(struct es_ask_port *port, int fd);

/* es_ask_port_load() - add what is in hand here of the service with @tag */
void es_ask_port_load(const struct es_ask_port *port, uint32_t tag, unsigned int *active,
		      unsigned long long *cost);

/* es_ask_port_response() - take the oldest one. Returns 0 if there is none. */
int es_ask_port_response(struct es_ask_port *port, struct es_response_entry *ret_entry);

#endif
