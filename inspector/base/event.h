/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_EVENT_H
#define ES_EVENT_H

/*
 * The events of this node and its cluster, for people: each one is a line of the log, and stays in a journal
 * of two files that outlives the daemon. The control thread's; it waits for no disk (no fsync), so a machine
 * that loses its power may lose the last ones.
 */
#include <json-c/json.h>
#include <stddef.h>
#include "inspector/base/log.h"

#define ES_EVENT_SUFFIX	   ".events"
#define ES_EVENT_NODE_SIZE 64
#define ES_EVENT_TEXT_SIZE 400
#define ES_EVENT_FILE_MAX  (256U * 1024) /* bytes; then it becomes PATH.1, in the place of the one before */
#define ES_EVENT_KEPT	   1024		 /* in memory */

#define ES_EVENT_KINDS(X)                                                                                    \
	X(start)                                                                                             \
	X(stop)                                                                                              \
	X(serving)                                                                                           \
	X(silent)                                                                                            \
	X(quorum)                                                                                            \
	X(join)                                                                                              \
	X(leave)                                                                                             \
	X(crash)                                                                                             \
	X(ring)                                                                                              \
	X(drain)                                                                                             \
	X(undrain)                                                                                           \
	X(weight)                                                                                            \
	X(server_down)                                                                                       \
	X(server_up)                                                                                         \
	X(reload)                                                                                            \
	X(reload_refused)                                                                                    \
	X(outlier)                                                                                           \
	X(rollout)                                                                                           \
	X(rollout_refused)                                                                                   \
	X(check_failed)                                                                                      \
	X(check_passed)

enum es_event_kind {
#define X(name) ES_EVENT_##name,
	ES_EVENT_KINDS(X)
#undef X
		ES_EVENT_KIND_COUNT
};

/**
 * struct es_event - one event
 * @id: of a journal, ascending, over restarts of the daemon, too; @time_ms: since 1970
 * @node: that it is about
 */
struct es_event {
	unsigned long long id;
	unsigned long long time_ms;
	enum es_event_kind kind;
	enum es_log_level level;
	char node[ES_EVENT_NODE_SIZE];
	char text[ES_EVENT_TEXT_SIZE];
};

/**
 * es_event_open() - read the journal at @path, and write there from now on
 * @self: this node's name. Returns 0 or -errno; then events are only in the log and in memory.
 */
int es_event_open(const char *path, const char *self);
void es_event_close(void);

/*
 * es_event() - it happened now, to @node (NULL: this one). A journal that cannot be written is reported once.
 */
void es_event(enum es_event_kind kind, enum es_log_level level, const char *node, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* es_event_newest() - copies the newest @max, the oldest of them first. Returns how many there are. */
size_t es_event_newest(struct es_event *ret_events, size_t max);

/* es_event_read() - calls @fn for each event of the journal at @path, oldest first, and skips lines that are
 * none. Returns 0, or -errno if there is neither file. */
int es_event_read(const char *path, void (*fn)(void *ctx, const struct es_event *event), void *ctx);

/* es_event_kind_name(), es_event_kind_of() - -1: there is none of that name */
const char *es_event_kind_name(enum es_event_kind kind);
int es_event_kind_of(const char *name);

/* As docs/json.md says; es_event_parse() returns 0 or -EINVAL. */
struct json_object *es_event_json(const struct es_event *event);
int es_event_parse(struct json_object *object, struct es_event *ret_event);

#endif
