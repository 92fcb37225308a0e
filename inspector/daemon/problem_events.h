/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_PROBLEM_EVENTS_H
#define ES_DAEMON_PROBLEM_EVENTS_H

/*
 * The findings of `earshot check`, as events: a check that fails from now on, or passes again. The text of
 * each begins with the check's name and a colon, by which the daemon knows after a restart what it has told.
 */
#include <json-c/json.h>
#include "inspector/base/log.h"

#define ES_PROBLEM_EVENTS_KNOWN 64 /* checks that fail at a time; more are not told */
#define ES_PROBLEM_EVENTS_MAX	16 /* events of one run; the rest are told with the next */
#define ES_PROBLEM_ID_SIZE	64

/**
 * struct es_problem_events - all zero at first
 * @known: the checks that fail, as told, @count of them; @level: ES_LOG_WARNING or ES_LOG_ERR
 * @is_begun: the journal was read
 */
struct es_problem_events {
	struct {
		char id[ES_PROBLEM_ID_SIZE];
		enum es_log_level level;
	} known[ES_PROBLEM_EVENTS_KNOWN];
	unsigned int count;
	int is_begun;
};

/* es_problem_events_take() - @findings: all of a run, as `earshot check --json` prints them. A check that
 * could not be made this time is neither new nor over. */
void es_problem_events_take(struct es_problem_events *events, struct json_object *findings);

#endif
