/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASK_WIRE_H
#define ES_ASK_WIRE_H

/*
 * Between a process that reads requests itself (earshot-tls) and the earshotd of the same machine: a Unix
 * socket of type SOCK_SEQPACKET, NODE.ask in the daemon's directory. A message asks where a request shall be
 * served, and gets one answer, not always in order; the asking process carries it out and tells what became
 * of the request. The other messages are not answered.
 *
 * Besides answers a process gets news, which belong to no question: their id is 0, and one that does not know
 * them leaves them aside.
 *
 * A request is in hand on this node from the question (or ES_ASK_TAKEN) on until ES_ASK_MOVED or ES_ASK_DONE;
 * when the process closes its socket, all its requests are over. That is this node's load, so each of them
 * has to come to an end. After ES_ASK_REJECT and ES_ASK_RESET nothing needs to be told.
 *
 * All is in this machine's byte order but @flow. A message that is wrong closes the socket, and so does a
 * process that does not take its answers: it connects again, and meanwhile serves by itself.
 */
#include <stdint.h>
#include "kmod/core/flow.h"

#define ES_ASK_MAGIC	 0x45534151u /* "ESAQ" */
#define ES_ASK_VERSION	 1
#define ES_ASK_TEXT_MAX	 65536 /* of a head */
#define ES_ASK_BODY_MAX	 8192  /* of a body */
#define ES_ASK_NODE_SIZE 64
#define ES_ASK_SUFFIX	 ".ask"
#define ES_ASK_PAGE_MAX	 2048 /* of ES_ASK_REJECT's bytes */

/*
 * ES_ASK_REQUEST and ES_ASK_TAKEN have the request in plain text behind the struct: its whole head, and as
 * much of its body as is there (for plugins, which else decide without), but nothing of the next request.
 */
enum es_ask_kind {
	ES_ASK_REQUEST, /* where to? */
	ES_ASK_MOVED,	/* what was told has been done: its connection is at the node now */
	ES_ASK_STAYED,	/* it could not be moved, and is served here */
	ES_ASK_DONE,	/* it is over (status, bytes, duration) */
	ES_ASK_TAKEN,	/* another node has decided, and its connection has moved here: it is served here */
};

/**
 * struct es_ask - a message
 * @id: of the request, the asking process's, for the answer and later messages about it. If one is used anew,
 * its request before is over.
 * @flow: the client's connection, with the service's own address and port (of IPv4, mapped addresses); of
 * ES_ASK_REQUEST and ES_ASK_TAKEN
 * @moves: how often its connection has moved; @first: is it the connection's first request?
 * @status, @bytes, @duration_us: of ES_ASK_DONE: the response with its head, before encryption, and the time
 * from when the request was given to the server until the response's last byte was. @status 0: there was no
 * whole response.
 */
struct es_ask {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint64_t id;
	struct es_flow flow;
	uint16_t moves;
	uint8_t first;
	uint8_t tls_version; /* 2 or 3; 0: none */
	uint32_t status;
	uint32_t reserved;
	uint64_t bytes;
	uint64_t duration_us;
};
_Static_assert(sizeof(struct es_ask) == 80, "no padding");

enum es_ask_word {
	ES_ASK_STAY,
	ES_ASK_MOVE,   /* to @node */
	ES_ASK_REJECT, /* with the bytes behind the struct, a whole response; its connection ends */
	ES_ASK_RESET,  /* no node can serve it */
	/* News of the service @node; until then, on a new socket: ES_ASK_SERVES. */
	ES_ASK_DRAINS, /* this node is drained of it: clients that would stay should leave, and come again */
	ES_ASK_SERVES, /* it is not, or no more */
};

struct es_ask_answer {
	uint32_t magic;
	uint16_t version;
	uint16_t word;
	uint64_t id;
	char node[ES_ASK_NODE_SIZE];
};
_Static_assert(sizeof(struct es_ask_answer) == 80, "no padding");

#endif
