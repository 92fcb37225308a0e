/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_HISTORY_H
#define ES_ROLLOUT_HISTORY_H

/*
 * The files that a node has had by rollout, and those that they replaced: the evidence by which a node that
 * was away knows whether its file is only older than the others', or somebody has changed it since. No clock
 * is asked: of two files the older one is that which the other's history has.
 */
#include <json-c/json.h>

#define ES_ROLLOUT_HISTORY_MAX 32
#define ES_ROLLOUT_NAME_SIZE   256
#define ES_ROLLOUT_BY_SIZE     96

/**
 * struct es_rollout_past - a file
 * @number: of its rollout, which all nodes have alike; 0: it came otherwise, and a rollout replaced it
 * @digest: es_conf_digest() of its text; @time_ms: since 1970, by the clock of who led the rollout
 * @name, @by: as the operator called it, and who he is
 */
struct es_rollout_past {
	unsigned long long number;
	unsigned long long digest;
	unsigned long long time_ms;
	char name[ES_ROLLOUT_NAME_SIZE];
	char by[ES_ROLLOUT_BY_SIZE];
};

/* struct es_rollout_history - the last one is of the last rollout; all zero: there was none */
struct es_rollout_history {
	unsigned int count;
	struct es_rollout_past past[ES_ROLLOUT_HISTORY_MAX];
};

enum es_rollout_age {
	ES_ROLLOUT_SAME,
	ES_ROLLOUT_OLDER,   /* the others had it, and this node nothing later */
	ES_ROLLOUT_CHANGED, /* it was changed by hand, since the last rollout or without one */
	ES_ROLLOUT_APART,   /* the last rollout here is none of the others' */
};

/* es_rollout_history_last() - NULL: there was no rollout */
const struct es_rollout_past *es_rollout_history_last(const struct es_rollout_history *history);

/* es_rollout_history_add() - the file with digest @before was replaced by @past, in a rollout */
void es_rollout_history_add(struct es_rollout_history *history, unsigned long long before,
			    const struct es_rollout_past *past);

/*
 * es_rollout_history_age() - how old is a file with @digest, on the node that has @own, compared with the
 * last of @others?
 */
enum es_rollout_age es_rollout_history_age(const struct es_rollout_history *own, unsigned long long digest,
					   const struct es_rollout_history *others);

/* As an array; parsing returns 0, or -EBADMSG. */
struct json_object *es_rollout_history_json(const struct es_rollout_history *history);
int es_rollout_history_parse(struct json_object *array, struct es_rollout_history *ret_history);

/* In a file. Reading returns 0, -ENOENT, or another -errno; writing 0 or -errno. */
int es_rollout_history_read(const char *path, struct es_rollout_history *ret_history);
int es_rollout_history_write(const char *path, const struct es_rollout_history *history);

#endif
