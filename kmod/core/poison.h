/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_POISON_H
#define ES_CORE_POISON_H

/*
 * Which request ended a daemon. Each worker marks what it inspects in the datapath's memory, which outlives
 * the daemon: whatever ends that in the middle of a request (a crash, SIGKILL, or that it never returns)
 * leaves the mark behind. Its finder (inspector/daemon/keeper.c at once, or the next daemon at its start)
 * makes a poison of it and tells all nodes: no node inspects that request again. The datapath only lends its
 * memory.
 */
#include "flow.h"

/* Bytes of a marked packet that are kept: its headers, and enough of its payload to know it again. */
#define ES_MARK_BYTES 1000

/**
 * struct es_mark - what a worker does at this moment
 * @busy: a number of its own for each packet, 0 while none is inspected. Written last, and cleared first.
 * @count: the last such number; @tid: the thread
 * @len: of the IP packet, of which the first ES_MARK_BYTES are in @packet
 */
struct es_mark {
	__u32 busy;
	__u32 count;
	__u64 flow_hash;
	__u32 tid;
	__u16 len;
	__u8 service;
	__u8 pad;
	__u8 packet[ES_MARK_BYTES];
};
_Static_assert(sizeof(struct es_mark) == 1024, "whole cache lines");

#define ES_POISONS 32

/* So long a request is not inspected again; who has mended what it broke restarts the daemons, or waits. */
#define ES_POISON_HOLD_NS (3600ULL * 1000000000ULL)

/* So many different ones within so long: the next request may be another,
 * so none is inspected for as long. */
#define ES_POISON_STORM	   3
#define ES_POISON_STORM_NS (60ULL * 1000000000ULL)

/* enum es_poison_kind - what the request did to the daemon */
enum es_poison_kind {
	ES_POISON_DIED = 0, /* it is gone, whatever ended it */
	ES_POISON_HUNG = 1,
	ES_POISON_OVER = 2, /* it hung, and goes on; only in messages */
};

/**
 * struct es_poison - a request that ended a daemon
 * @at_ns: CLOCK_MONOTONIC time at which this node learned of it; 0: an empty place. Written last.
 * @flow_hash: its connection; @request: a hash of its bytes (inspector/inspect/poison.h), 0 if there were
 * none
 * @node: whose daemon; @kind: an enum es_poison_kind
 */
struct es_poison {
	__u64 at_ns;
	__u64 flow_hash;
	__u64 request;
	struct es_addr client;
	__be16 client_port;
	__u8 service;
	__u8 node;
	__u8 kind;
	__u8 pad[3];
};
_Static_assert(sizeof(struct es_poison) == 48, "no padding");

/**
 * struct es_poisons - those that this node knows; the control thread writes, workers read
 * @until_ns: nothing is known from then on, so that workers need not look
 * @storm_until_ns: so many were new in a moment that no first request is inspected until then
 */
struct es_poisons {
	__u64 until_ns;
	__u64 storm_until_ns;
	__u64 pad[6];
	struct es_poison poison[ES_POISONS];
};

#endif
