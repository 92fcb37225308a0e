/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_BATCH_H
#define ES_NETFILTER_ENGINE_BATCH_H

/* Reads the kernel's queues (rules.h) in batches, and has each packet decided. For one thread. */
#include "netfilter/engine/capture.h"
#include "netfilter/engine/hands.h"
#include "netfilter/engine/tap.h"

#define ES_NF_BATCH_TICK_MS 100 /* the queues are looked at this often in any case */
#define ES_NF_LET_IN_MAX    128 /* bytes; a packet's headers */

/* The queues, in the order in which they are read. */
enum es_nf_captures {
	ES_NF_CAPTURE_UNPROVEN,
	ES_NF_CAPTURE_UNPROVEN_HERE,
	ES_NF_CAPTURE_HERE,
	ES_NF_CAPTURE_ENDED,
	ES_NF_CAPTURE_KNOWN,
	ES_NF_CAPTURE_SERVICE,
	ES_NF_CAPTURES,
};

/* Sources that may have something to read: the queues, ARP, the tap. Usually it is one of them. */
enum {
	ES_NF_READY_UNPROVEN = 1 << ES_NF_CAPTURE_UNPROVEN,
	ES_NF_READY_UNPROVEN_HERE = 1 << ES_NF_CAPTURE_UNPROVEN_HERE,
	ES_NF_READY_HERE = 1 << ES_NF_CAPTURE_HERE,
	ES_NF_READY_ENDED = 1 << ES_NF_CAPTURE_ENDED,
	ES_NF_READY_KNOWN = 1 << ES_NF_CAPTURE_KNOWN,
	ES_NF_READY_SERVICE = 1 << ES_NF_CAPTURE_SERVICE,
	ES_NF_READY_ARP = 1 << ES_NF_CAPTURES,
	ES_NF_READY_TAP = 2 << ES_NF_CAPTURES,
	ES_NF_READY_ALL = (4 << ES_NF_CAPTURES) - 1,
	ES_NF_READY_LOSSES = 4 << ES_NF_CAPTURES, /* read in any case */
	ES_NF_READY_STOP = 8 << ES_NF_CAPTURES,
};

/**
 * struct es_nf_batch
 * @node, @kernel, @tap: not owned; @capture: the queues' readers
 * @poll_fd: watches all sources; @ready: those that may have something, bits ES_NF_READY_…
 * @let_in: packets of unproven connections that were let in within a batch, @let_in_count of them
 * @looked_ns: when the sources were last looked at; @is_late: what has been found since then had waited too
 * long
 */
struct es_nf_batch {
	struct es_nf_node *node;
	struct es_nf_hand_state *kernel;
	struct es_nf_tap *tap;
	struct es_nf_capture *capture[ES_NF_CAPTURES];
	int poll_fd;
	unsigned int ready;
	size_t let_in_count;
	size_t let_in_len[ES_NF_CAPTURE_BATCH];
	uint8_t let_in[ES_NF_CAPTURE_BATCH][ES_NF_LET_IN_MAX];
	__u64 looked_ns;
	int is_late;
};

/**
 * es_nf_batch_open() - become the reader of all queues; the caller sets the other fields
 * @stop_fd: not owned; readable when the reader is to end. Returns 0 or -errno, with @why.
 */
int es_nf_batch_open(struct es_nf_batch *batch, int stop_fd, struct es_nf_why *why);

/* es_nf_batch_close() - may be called again, and on a structure that is zero but for poll_fd = -1 */
void es_nf_batch_close(struct es_nf_batch *batch);

/*
 * es_nf_batch_wait() - until there is something to read, or for a while. Returns 0; 1: the reader is to end.
 */
int es_nf_batch_wait(struct es_nf_batch *batch);

/* es_nf_batch_read() - read some of it, without waiting. Returns 1 if there may be more. */
int es_nf_batch_read(struct es_nf_batch *batch);

/* es_nf_batch_end() - everything has been read */
void es_nf_batch_end(struct es_nf_batch *batch);

#endif
