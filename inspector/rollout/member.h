/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_MEMBER_H
#define ES_ROLLOUT_MEMBER_H

/*
 * A node's part in a rollout that another node leads: it fetches the text, checks it, and switches or forgets
 * it as it is told. One at a time. Without a word of the leader for ES_ROLLOUT_PATIENCE_MS it goes on as it
 * is: one that has not switched never will.
 */
#include "inspector/rollout/ops.h"
#include "kmod/core/abi.h"

#define ES_ROLLOUT_PATIENCE_MS 8000

/* A node asks for so many parts at a time. */
#define ES_ROLLOUT_WINDOW 32U

/**
 * struct es_rollout_member
 * @self: this node; @leader: -1: it takes part in none; @rollout, @member: numbers of the one that it does
 * @state: ES_ROLLOUT_NONE while the text is not all there; @why: of it
 * @heard_ns: the leader's last word; @asked_ns: when parts up to @asked were asked for; @has: parts from the
 * first on, without a gap; @got: a bit for each part
 * @last: the number of each leader's last offer
 */
struct es_rollout_member {
	const struct es_rollout_ops *ops;
	void *ctx;
	unsigned int self;
	int leader;
	unsigned long long rollout;
	unsigned long long member;
	unsigned long long number;
	enum es_rollout_state state;
	char why[sizeof(struct es_conf_error)];
	unsigned long long heard_ns;
	unsigned long long asked_ns;
	unsigned int asked;
	unsigned int has;
	char *text;
	size_t total;
	__u64 got[ES_ROLLOUT_PARTS_MAX / 64];
	unsigned long long last[ES_NODES_MAX];
};

/*
 * es_rollout_member_init() - @number: the first that it gives its parts; higher than any of its former life
 */
void es_rollout_member_init(struct es_rollout_member *member, const struct es_rollout_ops *ops, void *ctx,
			    unsigned int self, unsigned long long number);

/* es_rollout_member_message() - a leader's word. @is_leading: this node leads one itself. */
void es_rollout_member_message(struct es_rollout_member *member, const struct es_rollout_message *message,
			       int is_leading);

void es_rollout_member_tick(struct es_rollout_member *member);

static inline int es_rollout_member_is_busy(const struct es_rollout_member *member)
{
	return member->leader >= 0;
}

/* es_rollout_member_stop() - forget it; may be called at any time */
void es_rollout_member_stop(struct es_rollout_member *member);

#endif
