/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_LEDGER_H
#define ES_SERVE_LEDGER_H

/*
 * The first process's side of the file of inspector/ask/ledger.h: it makes it, and says who writes where.
 */
#include "inspector/ask/ledger.h"
#include "inspector/base/error.h"
#include "tls/serve/settings.h"

/* struct es_serve_ledger - @file: shared with the workers; @fd: -1: it is memory that nobody else reads */
struct es_serve_ledger {
	struct es_ledger_file *file;
	int fd;
};

/**
 * es_serve_ledger_open() - go on with the file of @path, or make it
 * Returns 0, or -ENOMEM. If the file cannot be had, @err says why, and counters are in memory alone.
 */
int es_serve_ledger_open(const char *path, uint64_t wall_ns, struct es_serve_ledger *ret_ledger,
			 struct es_conf_error *err);

/* es_serve_ledger_publish() - these services from now on; each gets its number */
void es_serve_ledger_publish(struct es_serve_ledger *ledger, struct es_settings *settings);

/* es_serve_ledger_workers() - so many are there, of the newest generation and of those before */
void es_serve_ledger_workers(struct es_serve_ledger *ledger, unsigned int workers, unsigned int leaving);

/* es_serve_ledger_died() - one of them has ended that nobody had told to */
void es_serve_ledger_died(struct es_serve_ledger *ledger);

/* es_serve_ledger_place() - for a new process: a block for each number. NULL: there is no room for it. */
struct es_ledger_block *es_serve_ledger_place(struct es_serve_ledger *ledger, unsigned int place);

/* es_serve_ledger_leave() - the process of that place has ended, and its connections with it */
void es_serve_ledger_leave(struct es_serve_ledger *ledger, unsigned int place);

/* es_serve_ledger_sum() - of all places and services */
uint64_t es_serve_ledger_sum(const struct es_serve_ledger *ledger, enum es_ledger_counter which);

#endif
