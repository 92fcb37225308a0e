/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_BY_HAND_H
#define ES_BY_HAND_H

/*
 * An operator's settings of a node, and who made them, when, until when and why: that it is drained, or
 * another weight than the configuration has. All nodes know it of all, for people; the node itself keeps it
 * in a file, so that it holds over restarts of its daemon and its machine. The other nodes could tell it, but
 * not when all are restarted.
 */
#include <json-c/json.h>
#include "membership/wire.h"

#define ES_STATE_DIRECTORY     "/var/lib/earshot"
#define ES_BY_HAND_TEXT_SIZE   320
#define ES_BY_HAND_SECONDS_MAX 31622400u /* a year */

/* struct es_by_hand - of a node */
struct es_by_hand {
	struct es_wire_by_hand state;  /* value: an enum es_node_state */
	struct es_wire_by_hand weight; /* value: the weight */
};

/**
 * es_by_hand_read() - what the file at @path has, for es_wire_by_hand's @what
 * An empty file, which the version before made, says only that the node is drained. Returns 0, -ENOENT, or
 * another -errno; -EBADMSG for a file that says nothing.
 */
int es_by_hand_read(const char *path, uint8_t what, struct es_wire_by_hand *ret);

/*
 * es_by_hand_write() - make the file, and its directory; NULL removes it. Whole or not at all. Returns 0 or
 * -errno.
 */
int es_by_hand_write(const char *path, const struct es_wire_by_hand *by_hand);

/*
 * es_by_hand_text() - " by alice@n1, until 2026-11-25 12:00: new disk", as much of that as is known. Returns
 * @text.
 */
const char *es_by_hand_text(const struct es_wire_by_hand *by_hand, char *text, size_t size);

/* es_by_hand_json(), es_by_hand_parse() - as docs/json.md says; node and @what are not in it. Parsing returns
 * 0 or -EBADMSG. */
struct json_object *es_by_hand_json(const struct es_wire_by_hand *by_hand);
int es_by_hand_parse(struct json_object *object, struct es_wire_by_hand *ret);

/**
 * es_by_hand_left_ms() - how long a drain that was kept in a file goes on
 * @wall_ms: now, since 1970. A wall clock that was put back prolongs nothing beyond what was asked for. 0: it
 * is over.
 */
uint64_t es_by_hand_left_ms(const struct es_wire_by_hand *by_hand, uint64_t wall_ms);

#endif
