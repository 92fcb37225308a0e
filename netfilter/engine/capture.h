/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_CAPTURE_H
#define ES_NETFILTER_ENGINE_CAPTURE_H

/*
 * Takes packets out of the kernel's queue (rules.h), many at a time, and tells it what becomes of each. What the kernel
 * had merged it cuts again before, and fills in checksums that were left to hardware.
 */
#include "netfilter/kernel/netlink.h"
#include "netfilter/node/node.h"
#include "netfilter/kernel/why.h"

#define ES_NF_CAPTURE_BATCH 32

struct es_nf_capture;

/**
 * struct es_nf_capture_params
 * @queue: ES_NF_RULES_QUEUE, …
 * @is_headers: the first bytes of each packet will do, and what the kernel has merged stays merged
 * @may_pass: called when all of a batch are decided, with @ctx: may those pass that are to? NULL: always
 */
struct es_nf_capture_params {
	unsigned int queue;
	int is_headers;
	int (*may_pass)(void *ctx);
	void *ctx;
};

/* es_nf_capture_new() - be the reader of a queue. Returns 0; -EBUSY: it has another one; or -errno, with @why. */
int es_nf_capture_new(const struct es_nf_capture_params *params, struct es_nf_capture **ret_capture,
		      struct es_nf_why *why);

/* es_nf_capture_free() - what is in the queue, and what comes from now on, is dropped. Takes NULL. */
void es_nf_capture_free(struct es_nf_capture **capture);

/* es_nf_capture_fd() - readable while there are packets */
int es_nf_capture_fd(const struct es_nf_capture *capture);

/**
 * es_nf_capture_read() - take at most ES_NF_CAPTURE_BATCH packets, without waiting
 * @fn: called for each; says what becomes of it
 * Returns how many came, or -errno.
 */
typedef enum es_nf_fate (*es_nf_capture_fn)(void *ctx, const struct es_nf_frame *frame);
int es_nf_capture_read(struct es_nf_capture *capture, es_nf_capture_fn fn, void *ctx);

#endif
