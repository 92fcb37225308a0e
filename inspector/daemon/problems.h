/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_PROBLEMS_H
#define ES_DAEMON_PROBLEMS_H

/*
 * The findings of `earshot check` on this machine: for people who look at the status page, and as events when
 * they change. The check is a program of its own, so that whatever it waits for holds up nobody else; it runs
 * now and then, and at most once a minute while somebody looks.
 */
#include <json-c/json.h>
#include "inspector/daemon/problem_events.h"
#include "inspector/daemon/run.h"

#define ES_PROBLEMS_EVERY_S 60
#define ES_PROBLEMS_LIMIT_S 30.0

/**
 * struct es_problems - all zero before the first es_problems_look()
 * @looked_ns: the last run that somebody's look began, 0: none; CLOCK_MONOTONIC, as @at_ns, when the last run
 * ended;
 * @at_s: the same since 1970
 * @error: why that one found nothing out; else @summary and @findings, errors and warnings only
 */
struct es_problems {
	struct es_run run;
	unsigned long long looked_ns;
	unsigned long long at_ns;
	unsigned long long at_s;
	char error[ES_RUN_ERR_MAX + 256];
	struct json_object *summary;
	struct json_object *findings;
	struct es_problem_events events;
};

/* struct es_problems_of - whose: the daemon with this control socket, name and configuration
 * @program: earshot; NULL: the one beside this program */
struct es_problems_of {
	const char *program;
	const char *control;
	const char *node;
	const char *config;
};

/* es_problems_look() - somebody looks; starts a check if it is time for one */
void es_problems_look(struct es_problems *problems, struct ev_loop *loop, const struct es_problems_of *of);

/* es_problems_run() - it is time for a check, whoever looks; nothing if one runs */
void es_problems_run(struct es_problems *problems, struct ev_loop *loop, const struct es_problems_of *of);

/* es_problems_report() - what the last check found, `check` of docs/json.md's `cluster`; the caller's */
struct json_object *es_problems_report(const struct es_problems *problems);

/* es_problems_stop() - end what runs, and forget what was found */
void es_problems_stop(struct es_problems *problems);

#endif
