/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CHECKS_H
#define ES_DAEMON_CHECKS_H

/*
 * Checks the servers of this node (health/server_check.h), each service's at its own pace, on the control
 * thread, which never waits for one. A service for which nothing listens is not checked: it is known to be
 * down (self/serving.h), and up again as soon as something does. Until its first check is over, one that
 * listens is neither up nor down.
 */
#include <ev.h>
#include "inspector/health/place.h"
#include "inspector/health/server_check.h"
#include "inspector/health/streak.h"

struct es_daemon_checks;

/**
 * struct es_daemon_check - of one address of a service
 * @why: what the last check said before the verdict fell, at @fell_ns; @duration_s: NAN before one has passed
 * @is_other: something else was asked when it said so
 * @is_refused: and the last one failed as struct es_server_check has it
 */
struct es_daemon_check {
	struct es_daemon_checks *checks;
	unsigned int service;
	unsigned int family; /* as es_conf_service_of() has it */
	char name[ES_CONF_NAME_SIZE];
	struct es_server_check check;
	struct es_streak verdict;
	int is_running;
	int is_refused;
	int is_other;
	unsigned long long fell_ns;
	double look_s;
	double duration_s;
	char why[sizeof(((struct es_server_check *)0)->why)];
	struct ev_timer timer;
	struct ev_io io;
	struct ev_io rest; /* es_server_check_rest() */
	struct ev_timer rest_limit;
};

/**
 * struct es_daemon_checks
 * @listens: by family, for which services something listens, as bits; as the last look at the servers found
 * @changed: called with @ctx when the verdict on a server, or the reason for it, is another one
 * @of: services' addresses, service by service
 * @service: of each service, by its name: this node's place among those that are out since their checks fail
 */
struct es_daemon_checks {
	struct ev_loop *loop;
	const __u64 *listens;
	void (*changed)(void *ctx);
	void *ctx;
	unsigned int count;
	struct es_daemon_check *of;
	struct {
		char name[ES_CONF_NAME_SIZE];
		struct es_place place;
	} service[ES_CONF_SERVICES_MAX];
};

/* es_daemon_checks_init() - @listens, @changed, @ctx: as above, for as long as @checks lasts */
void es_daemon_checks_init(struct es_daemon_checks *checks, struct ev_loop *loop, const __u64 *listens,
			   void (*changed)(void *ctx), void *ctx);

/*
 * es_daemon_checks_start() - before the first look at the servers of @self, this node. Returns 0 or -ENOMEM.
 */
int es_daemon_checks_start(struct es_daemon_checks *checks, const struct es_conf *conf, unsigned int self);

/* es_daemon_checks_rebind() - after a reload; what is known of a check that is as before stays known */
void es_daemon_checks_rebind(struct es_daemon_checks *checks, const struct es_conf *conf, unsigned int self);

/* es_daemon_checks_stop() - may be called without start, of zeros, too */
void es_daemon_checks_stop(struct es_daemon_checks *checks);

/*
 * es_daemon_checks_fails() - is the server of @service down, by one of its addresses? *@ret_why: why, until
 * the next check
 */
int es_daemon_checks_fails(const struct es_daemon_checks *checks, unsigned int service, const char **ret_why);

/*
 * es_daemon_checks_refuse() - does nobody listen for @service, by one of its addresses that fail? Anything
 * else that a check finds may be caused by clients (overload), or by something that all servers have in
 * common (a database).
 */
int es_daemon_checks_refuse(const struct es_daemon_checks *checks, unsigned int service);

/*
 * When servers fail all at once, each node believes at first that the others serve. So a node says that its
 * server fails, and refuses nothing before it has heard whether others say the same:
 * es_daemon_checks_is_told() says that this time is over.
 */
#define ES_CHECKS_TOLD_NS 250000000ULL
int es_daemon_checks_is_told(const struct es_daemon_checks *checks, unsigned int service);

/*
 * es_daemon_checks_is_unknown() - does something listen for @service whose first check is not over yet, by
 * one of its addresses, as far as the last look at the servers found?
 */
int es_daemon_checks_is_unknown(const struct es_daemon_checks *checks, unsigned int service);

/* How long the last check that passed took, by the slower of two addresses; NAN before there was one. */
double es_daemon_checks_duration_s(const struct es_daemon_checks *checks, unsigned int service);

#endif
