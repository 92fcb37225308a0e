/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASK_WIRE_H
#define ES_ASK_WIRE_H

/*
 * Between a process that reads requests itself (earshot-tls) and the earshotd of the same machine: a Unix
 * socket of type SOCK_SEQPACKET, NODE.ask in the daemon's directory. Each message asks where a request shall be
 * served, with its head in plain text behind the struct, and gets one answer, not always in order. The asking
 * process carries the answer out.
 */
#include <stdint.h>
#include "kmod/core/flow.h"

#define ES_ASK_MAGIC	 0x45534151u /* "ESAQ" */
#define ES_ASK_VERSION	 1
#define ES_ASK_TEXT_MAX	 65536
#define ES_ASK_BODY_MAX	 8192
#define ES_ASK_NODE_SIZE 64
#define ES_ASK_SUFFIX	 ".ask"

enum es_ask_kind {
	ES_ASK_REQUEST, /* where to? */
	ES_ASK_MOVED,	/* what was told has been done: its connection is at the node now */
	ES_ASK_STAYED,	/* it could not be moved, and is served here */
	ES_ASK_DONE,	/* its response is complete (status, bytes) */
};

/**
 * struct es_ask - @id: of the request, the asking process's, for answers and later messages about it
 * @flow: the client's connection; @first: is it the connection's first request?
 * @moves: how often its connection has moved
 * @status, @bytes, @duration_us: of ES_ASK_DONE
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
	uint64_t bytes;
	uint64_t duration_us;
};

enum es_ask_word {
	ES_ASK_STAY,
	ES_ASK_MOVE, /* to @node */
	ES_ASK_REJECT, /* answer it with the bytes behind the struct, a whole response, and end the connection */
	ES_ASK_RESET, /* no node can serve it */
};

struct es_ask_answer {
	uint32_t magic;
	uint16_t version;
	uint16_t word;
	uint64_t id;
	char node[ES_ASK_NODE_SIZE];
};

#endif
