/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_CONNECTION_H
#define ES_LOAD_CONNECTION_H

/*
 * One connection from connect() to its end, in an event loop. A place for a connection is used again and
 * again, until all connections of the run have been begun.
 */
#include <ev.h>
#include "tests/lab/load/manifest.h"
#include "tests/lab/load/options.h"
#include "tests/lab/load/report.h"
#include "tests/lab/load/response.h"

struct es_load {
	struct es_load_options options;
	struct es_load_manifest manifest;
	struct es_load_report report;
	struct ev_loop *loop;
	size_t small; /* objects that do for ES_LOAD_HALF */
	unsigned int active;
	unsigned int port_cursor; /* of --local-ports: the next one's distance from the first */
};

struct es_connection {
	struct es_load *load;
	struct ev_io io;
	struct ev_timer timer;
	struct es_response response;
	uint64_t random;
	uint64_t begun_us;
	unsigned int number;
	unsigned int requests_left;
	enum es_load_ending ending;
	int fd; /* -1: between two connections */
	int connected;
	int ends; /* the responses are complete, only the end is to come */
	char node[16];
};

int es_connection_init(struct es_connection *c, struct es_load *load);
void es_connection_fini(struct es_connection *c);

/* Begin the next connection of the run; if there is none left and none goes on, the loop ends. */
void es_connection_next(struct es_connection *c);

/* The run's time is up. */
void es_connection_give_up(struct es_connection *c);

uint64_t es_load_now_us(void);

#endif
