/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MEMORY_H
#define ES_NETFILTER_NODE_MEMORY_H

/*
 * The node's memory: a file below /run, which it maps. So it outlives the daemon, as the kernel's tables do
 * for the other datapaths, and the next daemon takes it over. The file says whose it is; if its layout, boot
 * or network namespace is another, it is made anew.
 */
#include <stddef.h>
#include "kmod/core/abi.h"
#include "kmod/core/counters.h"
#include "kmod/core/decisions.h"
#include "kmod/core/firsts.h"
#include "kmod/core/handover.h"
#include "kmod/core/replay.h"
#include "kmod/core/resets.h"
#include "kmod/core/settled.h"
#include "kmod/core/strays.h"
#include "kmod/core/syns.h"
#include "netfilter/node/every.h"
#include "netfilter/node/fresh.h"
#include "netfilter/node/program_notes.h"
#include "netfilter/node/unproven_table.h"

/**
 * struct es_nf_memory - its tables point into the file. The engine's thread writes them; the daemon also
 * writes @state, @decisions and @resets.
 * @fd: the file, which others may map: @state at state_off, @decisions at decisions_off, @resets at
 * resets_off, each on a page of its own
 * @adopted: the file was there, perhaps of a version with fewer tables; @replaced: there was a file of this
 * namespace that this version cannot use
 * @settled: es_settled_sets() of them; @replays: indexed by source node * ES_STREAMS_MAX + stream
 */
struct es_nf_memory {
	int fd;
	int adopted;
	int replaced;
	void *at;
	size_t bytes;
	size_t state_off;
	size_t decisions_off;
	size_t resets_off;
	unsigned int decision_sets;
	struct es_state *state;
	struct es_decision_set *decisions;
	struct es_settled_set *settled;
	struct es_replay *replays;
	struct es_reset *resets;
	struct es_stray *strays;
	struct es_overheard *syns;
	struct es_overheard *firsts;
	struct es_overheard *heard_flows;
	struct es_nf_fresh *fresh;
	struct es_nf_unproven_set *unproven;
	__u64 *counters;
	struct es_nf_connection_set *connections;
	struct es_nf_program_note_set *programs;
};

/**
 * es_nf_memory_open() - take over the file @path, or make it
 * @decision_sets: a power of two. Only one process can have the file: -EBUSY while another has it.
 * Returns 0 or -errno.
 */
int es_nf_memory_open(const char *path, unsigned int decision_sets, struct es_nf_memory *ret_memory);

/* es_nf_memory_close() - the file stays; may be called again, and on a zeroed structure */
void es_nf_memory_close(struct es_nf_memory *memory);

#endif
