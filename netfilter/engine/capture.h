/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_CAPTURE_H
#define ES_NETFILTER_ENGINE_CAPTURE_H

/*
 * Takes packets out of one of the kernel's queues (rules.h), many at a time, and returns their verdicts. The
 * kernel splits merged packets before, and fills in checksums that were left to hardware.
 */
#include "netfilter/kernel/netlink.h"
#include "netfilter/kernel/why.h"
#include "netfilter/node/node.h"

#define ES_NF_CAPTURE_BATCH 32

struct es_nf_capture;

/**
 * struct es_nf_capture_params
 * @queue: ES_NF_RULES_QUEUE, …
 * @is_headers: take only the first bytes of each packet, and leave merged packets merged
 * @may_pass: called with @ctx after a batch is decided: may its accepted packets pass? NULL: always
 */
struct es_nf_capture_params {
	unsigned int queue;
	int is_headers;
	int (*may_pass)(void *ctx);
	void *ctx;
};

/*
 * es_nf_capture_new() - become the reader of a queue. Returns 0; -EBUSY: it has another reader; or -errno,
 * with @why.
 */
int es_nf_capture_new(const struct es_nf_capture_params *params, struct es_nf_capture **ret_capture,
		      struct es_nf_why *why);

/* es_nf_capture_free() - from now on, the kernel drops the queue's packets. Takes NULL. */
void es_nf_capture_free(struct es_nf_capture **capture);

/* es_nf_capture_fd() - readable while there are packets */
int es_nf_capture_fd(const struct es_nf_capture *capture);

/**
 * es_nf_capture_read() - take at most ES_NF_CAPTURE_BATCH packets, without waiting
 * @fn: called for each; returns its fate
 * Returns how many came, or -errno.
 */
typedef enum es_nf_fate (*es_nf_capture_fn)(void *ctx, const struct es_nf_frame *frame);
int es_nf_capture_read(struct es_nf_capture *capture, es_nf_capture_fn fn, void *ctx);

#endif
