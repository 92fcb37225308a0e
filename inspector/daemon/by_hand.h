/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_BY_HAND_H
#define ES_DAEMON_BY_HAND_H

/*
 * The states and weights that operators have set by hand, on the bus and in this node's files
 * (self/by_hand.h). When a node joins, each of the others says again what was set on itself.
 */
#include "inspector/config/config.h"
#include "inspector/self/by_hand.h"
#include "membership/group.h"

/*
 * struct es_daemon_by_hand_ops - @say: to all nodes, this one, too; @unkept: whether a setting of this node
 * is unkept has changed
 */
struct es_daemon_by_hand_ops {
	void (*say)(void *ctx, const struct es_wire_by_hand *by_hand);
	void (*unkept)(void *ctx);
};

/**
 * struct es_daemon_by_hand
 * @group: of which this node is one; its states and weights are read, and changed by es_group_change()
 * @conf: where the configured weights are
 * @drained_path, @weight_path: this node's files; the first is there while it is drained
 * @is_drained: so that it lasts
 * @node: the settings of each node. A state that is not the node's any more, or a weight that the
 * configuration has, does not count.
 * @state: each node's when it was last looked at
 * @kept: what this node's files have; value 0 of a state, set_ms and value 0 of a weight: no file
 * @has_drain, @has_weight: there is a file
 * @is_drain_unkept, @is_weight_unkept: the file could not be made as it must be, or not removed; @again_ms:
 * when that is tried again
 * @end_ms: CLOCK_MONOTONIC: when this node's drain ends by itself; 0: never
 */
struct es_daemon_by_hand {
	const struct es_daemon_by_hand_ops *ops;
	void *ctx;
	struct es_group *group;
	struct es_conf *const *conf;
	const char *drained_path;
	const char *weight_path;
	int is_drained;
	struct es_by_hand node[ES_NODES_MAX];
	uint8_t state[ES_NODES_MAX];
	struct es_by_hand kept;
	int has_drain;
	int has_weight;
	int is_drain_unkept;
	int is_weight_unkept;
	uint64_t again_ms;
	uint64_t end_ms;
};

/* es_by_hand_init() - @ops are called with @ctx; the rest: as above, for as long as @by_hand lasts */
void es_by_hand_init(struct es_daemon_by_hand *by_hand, const struct es_daemon_by_hand_ops *ops, void *ctx,
		     struct es_group *group, struct es_conf *const *conf, const char *drained_path,
		     const char *weight_path);

/* es_by_hand_begin() - what the files have is this node's state and weight, before it joins */
void es_by_hand_begin(struct es_daemon_by_hand *by_hand);

/* es_by_hand_own_weight() - the weight that this node says it has: by hand, or as configured */
unsigned int es_by_hand_own_weight(const struct es_daemon_by_hand *by_hand);

/*
 * es_by_hand_changed() - after the story was told: some node has another state or weight, or the
 * configuration has
 */
void es_by_hand_changed(struct es_daemon_by_hand *by_hand);

/* es_by_hand_view() - others may have come: tell them about this node */
void es_by_hand_view(struct es_daemon_by_hand *by_hand);

/**
 * es_by_hand_set() - any node's state or weight, by an operator's word (self/by_hand.h)
 * Returns 0; -ENOTCONN without a group.
 */
int es_by_hand_set(struct es_daemon_by_hand *by_hand, const struct es_wire_by_hand *word);

/* es_by_hand_message() - an ES_WIRE_BY_HAND from the bus */
void es_by_hand_message(struct es_daemon_by_hand *by_hand, const void *payload, size_t len);

/* es_by_hand_tick() - ends a drain whose time is over, and tries again to keep what could not be kept */
void es_by_hand_tick(struct es_daemon_by_hand *by_hand);

/* es_by_hand_is_unkept() - would this node's next start find another state or weight than was set by hand? */
int es_by_hand_is_unkept(const struct es_daemon_by_hand *by_hand);

/* es_by_hand_shown() - the word by which @what of @node was set by hand, if that holds now; else NULL */
const struct es_wire_by_hand *es_by_hand_shown(const struct es_daemon_by_hand *by_hand, unsigned int node,
					       enum es_wire_change_what what);

#endif
