/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_CHECK_H
#define ES_HEALTH_CHECK_H

/*
 * One check of a service's server on this node: a connection to an address of the service, which the kernel routes by lo,
 * so no packet of it leaves and none meets the datapath's programs. A kernel makes a connection whether or not the
 * server still lives, so the connection must be accepted in time, too. It waits behind those of clients, so it is
 * accepted only when the accept queue has drained that far. One that nobody accepts is kept and looked at again: a
 * server that hangs finds one check in its queue, however long it hung. Nothing here waits.
 */
#include "inspector/config/config.h"

enum es_check_result { ES_CHECK_PENDING, ES_CHECK_PASSED, ES_CHECK_FAILED };

/**
 * struct es_check - a check, and what became of the last one
 * @fd: of the connection; -1: there is none
 * @elapsed_ms: how long this check has been watched; time in which the daemon slept does not count
 * @duration_s: of the last one that passed: until the connection was made, or, by HTTP, the status was there
 * @why: why the last one failed
 */
struct es_check {
	struct es_conf_check conf;
	struct es_addr address;
	unsigned int port;
	int fd;
	int is_connected;
	int is_sent;
	int is_overdue;
	unsigned int elapsed_ms;
	unsigned int got;
	unsigned long long began_ns;
	unsigned long long looked_ns;
	double duration_s;
	char answer[16];
	char why[128];
};

/* es_check_init() - for @service by @address, which is one of its own */
void es_check_init(struct es_check *check, const struct es_conf_service *service,
		   const struct es_addr *address);

/* es_check_begin() - a new one; one that nobody has accepted yet goes on instead. What fails is told by step(). */
void es_check_begin(struct es_check *check, unsigned long long now_ns);

/**
 * es_check_step() - go on as far as that is possible without waiting
 * Called when @fd can be read or written, and several times until the timeout.
 */
enum es_check_result es_check_step(struct es_check *check, unsigned long long now_ns);

/* Does it wait until @fd can be written? Else until it can be read. */
static inline int es_check_wants_write(const struct es_check *check)
{
	return !check->is_connected || (check->conf.type == ES_CONF_CHECK_HTTP && !check->is_sent);
}

/* es_check_end() - close its connection, if there is one */
void es_check_end(struct es_check *check);

#endif
