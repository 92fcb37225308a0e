/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ATTEMPTS_H
#define ES_NETFILTER_ENGINE_ATTEMPTS_H

/*
 * Unfinished attempts to make connections (rebuild.h). Nobody waits for them, so one whose SYN a rule has
 * dropped costs others nothing. Each is looked at again, at growing intervals, for a tenth of a second; then
 * it is withdrawn. Two kinds are withdrawn at the first look: those of a client whose last attempt came to
 * nothing less than a second ago, and those for which there is no room.
 */
#include "netfilter/node/node.h"
#include "netfilter/rebuild/rebuild.h"

#define ES_NF_ATTEMPTS 128
#define ES_NF_ATTEMPTS_KEPT                                                                                  \
	32768 /* bytes after a request; clients mostly send half of that before an answer */
#define ES_NF_ATTEMPTS_CLIENT                                                                                \
	256 /* places of clients whose last attempt came to nothing; the later one counts */

struct es_nf_attempts;

/**
 * es_nf_attempts_fn() - called when an attempt ends that es_nf_attempts_begin() left unfinished
 * @rc: as of es_nf_rebuild(); if it is ES_NF_REBUILT, the connection is @made of struct es_nf_rebuild
 */
typedef void (*es_nf_attempts_fn)(void *ctx, const struct es_nf_request *request,
				  const struct es_nf_making *making, int rc);

/*
 * es_nf_attempts_kept_fn() - called after that for each packet that was kept, in order of arrival, if there
 * is a connection
 */
typedef void (*es_nf_attempts_kept_fn)(void *ctx, const struct es_nf_frame *frame);

/* es_nf_attempts_new() - @rebuild: not owned. Returns 0 or -ENOMEM. */
int es_nf_attempts_new(struct es_nf_rebuild *rebuild, es_nf_attempts_fn fn, es_nf_attempts_kept_fn kept_fn,
		       void *ctx, struct es_nf_attempts **ret_attempts);

/* es_nf_attempts_free() - does not end attempts: call es_nf_attempts_give_up() before. Takes NULL. */
void es_nf_attempts_free(struct es_nf_attempts **attempts);

/**
 * es_nf_attempts_begin() - es_nf_rebuild() without waiting; @making: copied
 * Returns as es_nf_rebuild() does; or -EINPROGRESS: es_nf_attempts_fn() will be called. Also -ENOBUFS if the
 * flow has an unfinished attempt.
 */
int es_nf_attempts_begin(struct es_nf_attempts *attempts, const struct es_nf_request *request,
			 const struct es_nf_making *making, __u64 now_ns);

/* es_nf_attempts_has() - has the flow an unfinished attempt? @flow: its client's, or its server's socket's */
int es_nf_attempts_has(const struct es_nf_attempts *attempts, const struct es_flow *flow);

/**
 * es_nf_attempts_keep() - keep a packet that a client sends after the request from which its connection is
 * being made It must acknowledge what only the client knows. If there is no room, the client will repeat it.
 * Returns 1: there is a copy; 0: it says nothing, the flow has no attempt, or there is no room.
 */
int es_nf_attempts_keep(struct es_nf_attempts *attempts, const struct es_flow *flow,
			const struct es_segment *seg, const struct es_nf_frame *frame);

/* es_nf_attempts_go_on() - look at attempts that are due. If the node's lease is over, they are given up. */
void es_nf_attempts_go_on(struct es_nf_attempts *attempts, __u64 now_ns);

/* es_nf_attempts_give_up() - give up the flow's attempt, or all: NULL; calls es_nf_attempts_fn() */
void es_nf_attempts_give_up(struct es_nf_attempts *attempts, const struct es_flow *flow);

/* es_nf_attempts_wait_ms() - until the next one is due; -1: there is none */
int es_nf_attempts_wait_ms(const struct es_nf_attempts *attempts, __u64 now_ns);

#endif
