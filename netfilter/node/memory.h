/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MEMORY_H
#define ES_NETFILTER_NODE_MEMORY_H

/*
 * What the engine knows, in one file below /run, which it maps: so it outlives the daemon, as the kernel's tables do for
 * the other datapaths, and the next daemon takes it over. Which one it is, the file itself says; of another layout,
 * another boot or another network namespace, it is made anew.
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
#include "netfilter/node/program_notes.h"
#include "netfilter/node/fresh.h"
#include "netfilter/node/unproven_table.h"

/**
 * struct es_nf_memory - each points into the file; written by the engine's thread; state, decisions and resets by the daemon, too
 * @fd: the file, which others may map: @state is at state_off, @decisions at decisions_off, @resets at resets_off, each on a page of its own
 * @adopted: it was there, maybe of a version that knew the first tables only; @replaced: there was one of this namespace
 * that means nothing to this version
 * @settled: es_settled_sets() of them; @replays: by source node * ES_STREAMS_MAX + stream
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
 * es_nf_memory_open() - take over the tables in the file @path, or make them
 * @decision_sets: a power of two. The file belongs to one process at a time: -EBUSY while another has it.
 * Returns 0 or -errno.
 */
int es_nf_memory_open(const char *path, unsigned int decision_sets, struct es_nf_memory *ret_memory);

/* es_nf_memory_close() - let go of the file, which stays. May be called again, and for zeroed ones. */
void es_nf_memory_close(struct es_nf_memory *memory);

#endif
