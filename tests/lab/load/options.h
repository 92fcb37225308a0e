/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_OPTIONS_H
#define ES_LOAD_OPTIONS_H

#include <stdint.h>
#include "inspector/base/sockaddr.h"

/* How a connection ends once its responses are complete. */
enum es_load_ending {
	ES_LOAD_SERVER, /* "Connection: close": the server closes first and has the TIME_WAIT */
	ES_LOAD_CLIENT, /* keep-alive: the client closes first, and waits for the server's FIN */
	ES_LOAD_HALF,	/* the client closes its direction right behind the request */
	ES_LOAD_SERIES, /* several requests, then the client closes without a further look */
	ES_LOAD_RESET,	/* keep-alive: the client ends with RST (not among "mixed") */
	ES_LOAD_ENDINGS,
};
#define ES_LOAD_MIXED ((1u << ES_LOAD_RESET) - 1)

#define ES_LOAD_SERVERS_MAX 8

struct es_load_options {
	union es_sockaddr servers[ES_LOAD_SERVERS_MAX]; /* the connections' in turn; ports: all the same */
	unsigned int server_count;
	unsigned int port;
	const char *manifest;
	uint64_t seed;
	uint64_t max_bytes;  /* no larger objects */
	uint64_t half_bytes; /* nor these for ES_LOAD_HALF: nginx gives up what it cannot send at once */
	unsigned int connections;
	unsigned int parallel;
	unsigned int requests; /* of ES_LOAD_SERIES */
	unsigned int endings;  /* bits 1 << enum es_load_ending */
	unsigned int timeout_ms;
	unsigned int max_seconds;
	unsigned int first_port, last_port; /* 0: the kernel chooses */
	unsigned int mss;		    /* 0: as the interface has it */
	int any_node;			    /* within a series too */
	int json;
};

extern const char *const es_load_ending_names[ES_LOAD_ENDINGS];

/* Ends the program if they are wrong, or after --help. */
void es_load_options_parse(struct es_load_options *options, int argc, char **argv);

#endif
