/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_OPS_H
#define ES_ROLLOUT_OPS_H

/*
 * The things that a rollout wants done, in either role. Nothing in this folder knows the daemon, a socket or
 * a clock.
 */
#include "inspector/base/error.h"
#include "inspector/rollout/message.h"

#define ES_ROLLOUT_NS_PER_MS 1000000ULL

/* es_rollout_leader_tick() and es_rollout_member_tick() are called so often. */
#define ES_ROLLOUT_TICK_MS 100

/**
 * struct es_rollout_ops
 * @now_ns: CLOCK_MONOTONIC
 * @send: to @message->target; what is lost is said again
 * @check: would this node take @text (docs/json.md)? The file is then beside the one in force. Returns 0, or
 * -errno, @err.
 * @commit: put what was checked in force; on failure all is as before. Returns 0, or -errno and @err.
 * @revert: what was in force before @commit is again. Returns 0, or -errno and @err.
 * @discard: forget what was checked, and what was before; not called twice for one @check
 * @check, @commit: @err of one that succeeds: what waits for another start of this daemon
 * @may_restart: do all nodes but @node serve? Returns 0, or -errno, and @err: which one does not
 * @restart: this daemon ends, and begins anew
 * @has_begun: does it serve, as before it was told to begin anew?
 */
struct es_rollout_ops {
	unsigned long long (*now_ns)(void *ctx);
	void (*send)(void *ctx, const struct es_rollout_message *message);
	int (*check)(void *ctx, const char *text, size_t len, struct es_conf_error *err);
	int (*commit)(void *ctx, struct es_conf_error *err);
	int (*revert)(void *ctx, struct es_conf_error *err);
	void (*discard)(void *ctx);
	int (*may_restart)(void *ctx, unsigned int node, struct es_conf_error *err);
	void (*restart)(void *ctx);
	int (*has_begun)(void *ctx);
};

#endif
