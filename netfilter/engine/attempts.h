/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ATTEMPTS_H
#define ES_NETFILTER_ENGINE_ATTEMPTS_H

/*
 * Attempts to make connections (rebuild.h) that are not over: nobody waits for them, so one whose SYN a rule has dropped costs others
 * nothing. Each is looked at again, ever more rarely, for a tenth of a second; then it is withdrawn. No patience is had with a client whose
 * last attempt came to nothing so, for a second, nor where there is no room for another attempt: what is not there at once is withdrawn.
 */
#include "netfilter/node/node.h"
#include "netfilter/rebuild/rebuild.h"

#define ES_NF_ATTEMPTS 128
#define ES_NF_ATTEMPTS_KEPT                                                                                  \
	32768 /* bytes behind a request; what a client sends before it is answered is half of that, mostly */
#define ES_NF_ATTEMPTS_CLIENT                                                                                \
	256 /* whose last one came to nothing; of two in one place, the later one is known */

struct es_nf_attempts;

/**
 * es_nf_attempts_fn() - called when an attempt is over that es_nf_attempts_begin() has not ended
 * @rc: what es_nf_rebuild() returns; with ES_NF_REBUILT, the connection is struct es_nf_rebuild's @made
 */
typedef void (*es_nf_attempts_fn)(void *ctx, const struct es_nf_request *request,
				  const struct es_nf_making *making, int rc);

/* es_nf_attempts_kept_fn() - called behind that for each packet that was kept, in the order in which they came; not if there is no connection */
typedef void (*es_nf_attempts_kept_fn)(void *ctx, const struct es_nf_frame *frame);

/* es_nf_attempts_new() - @rebuild: not owned. Returns 0 or -ENOMEM. */
int es_nf_attempts_new(struct es_nf_rebuild *rebuild, es_nf_attempts_fn fn, es_nf_attempts_kept_fn kept_fn,
		       void *ctx, struct es_nf_attempts **ret_attempts);

/* es_nf_attempts_free() - those that are there are not ended: es_nf_attempts_give_up() before. Takes NULL. */
void es_nf_attempts_free(struct es_nf_attempts **attempts);

/**
 * es_nf_attempts_begin() - es_nf_rebuild(), but for the waiting; @making: copied
 * Returns what that does; or -EINPROGRESS: the function is called later. -ENOBUFS also if the flow has an attempt that is not over.
 */
int es_nf_attempts_begin(struct es_nf_attempts *attempts, const struct es_nf_request *request,
			 const struct es_nf_making *making, __u64 now_ns);

/* es_nf_attempts_has() - is there one of the flow, as its client or as its server's socket has it? */
int es_nf_attempts_has(const struct es_nf_attempts *attempts, const struct es_flow *flow);

/**
 * es_nf_attempts_keep() - what a client sends behind the request of which its connection is being made
 * Only the client knows what it must acknowledge. What there is no room for, it repeats.
 * Returns 1: there is a copy; 0: it says nothing, nothing is being made of the flow, or there is no room.
 */
int es_nf_attempts_keep(struct es_nf_attempts *attempts, const struct es_flow *flow,
			const struct es_segment *seg, const struct es_nf_frame *frame);

/* es_nf_attempts_go_on() - look at those whose time has come. A node that must not make any (its lease) gives them up. */
void es_nf_attempts_go_on(struct es_nf_attempts *attempts, __u64 now_ns);

/* es_nf_attempts_give_up() - the flow's, or all: NULL; the function is called */
void es_nf_attempts_give_up(struct es_nf_attempts *attempts, const struct es_flow *flow);

/* es_nf_attempts_wait_ms() - until one is to be looked at; -1: there is none */
int es_nf_attempts_wait_ms(const struct es_nf_attempts *attempts, __u64 now_ns);

#endif
