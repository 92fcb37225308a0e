/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_MAPS_H
#define ES_BPF_MAPS_H

/*
 * The datapath's tables. All are bounded; none needs the daemon to be alive. A daemon that starts adopts
 * those of a datapath that is attached already (inspector/datapath/bpf.c), by name.
 */
#include "kmod/core/abi.h"
#include "kmod/core/challenges.h"
#include "kmod/core/counters.h"
#include "kmod/core/decisions.h"
#include "kmod/core/firsts.h"
#include "kmod/core/handover.h"
#include "kmod/core/lease.h"
#include "kmod/core/replay.h"
#include "kmod/core/resets.h"
#include "kmod/core/kept.h"
#include "kmod/core/strays.h"
#include "kmod/core/syns.h"
#include "kmod/core/node_ring.h"
#include "kmod/core/track.h"

/* Two versions of configuration and ring: the inactive one is written, then es_state.active is switched. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct es_config);
} es_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct es_node_ring);
} es_rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct es_state);
} es_states SEC(".maps");

/* max_entries is set by the loader: the configuration's decision_entries / ES_DECISION_WAYS */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct es_decision_set);
} es_decisions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ES_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} es_counters SEC(".maps");

/* One ring buffer a worker: the way of packets to the inspector. */
struct es_queue {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ES_WORKERS_MAX);
	__type(key, __u32);
	__array(values, struct es_queue);
} es_queues SEC(".maps");

struct es_replay_slot {
	struct bpf_spin_lock lock;
	struct es_replay replay;
};

/* Anti-replay window of each sender: source node * ES_STREAMS_MAX + stream. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_NODES_MAX *ES_STREAMS_MAX);
	__type(key, __u32);
	__type(value, struct es_replay_slot);
} es_replays SEC(".maps");

/*
 * Requests rebuilt here lately: what is known of the connection until its socket exists and can keep that
 * itself.
 */
struct es_rebuilt_key {
	__u64 flow_hash;
	__u32 seq;
	__u32 pad;
};

struct es_rebuilt {
	__u64 at_ns;
	__u32 source;	   /* the node that handed it over */
	__u8 acknowledged; /* without an answer: the client does not repeat its request any more */
	__u8 is_cancelled; /* a program's handover that was called off: there is no socket of it */
	__u8 is_pending;   /* its packet is on its way to es_public, which makes the socket */
	__u8 pad;
	__be64 handover; /* a program's: the id in its messages, else 0 */
	struct es_track track;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct es_rebuilt_key);
	__type(value, struct es_rebuilt);
} es_rebuilts SEC(".maps");

/* Connections that the stack here has ended with a RST. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_RESETS);
	__type(key, __u32);
	__type(value, struct es_reset);
} es_resets SEC(".maps");

/* Segments that may be nobody's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_STRAYS);
	__type(key, __u32);
	__type(value, struct es_stray);
} es_strays SEC(".maps");

/* Other nodes' idle connections. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ES_KEPT_SLOTS);
	__type(key, __u32);
	__type(value, struct es_kept_slot);
} es_kepts SEC(".maps");

/* Open connections whose clients were asked for them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_CHALLENGES);
	__type(key, __u32);
	__type(value, struct es_challenge);
} es_challenges SEC(".maps");

/* SYNs that were heard, whoever answered them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_SYNS);
	__type(key, __u32);
	__type(value, struct es_overheard);
} es_syns SEC(".maps");

/* First requests that were heard when they were another node's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_FIRSTS);
	__type(key, __u32);
	__type(value, struct es_overheard);
} es_firsts SEC(".maps");

/* Flows of which a SYN was heard. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ES_HEARD_FLOWS);
	__type(key, __u32);
	__type(value, struct es_overheard);
} es_heard_flows SEC(".maps");

/* Connections of services that inspect every request: lives and dies with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct es_track);
} es_tracks SEC(".maps");

/* Lengths of responses that the inspector asked for; the daemon takes them some times a second. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ES_RESPONSES_BYTES);
} es_responses SEC(".maps");

/*
 * es_array_at() - the entry of an array map
 * The index is written into a whole word of the stack. The verifier takes a word that is written in part for
 * one that may still be read, and would verify what follows again for each thing that was in it before.
 */
static __always_inline void *es_array_at(void *map, __u32 index)
{
	__u64 key = (__u64)index << (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 32 : 0);

	return bpf_map_lookup_elem(map, &key);
}

static __always_inline void es_count(__u32 counter)
{
	__u64 *value = es_array_at(&es_counters, counter);

	if (value)
		*value += 1;
}

static __always_inline struct es_state *es_state_get(void)
{
	return es_array_at(&es_states, 0);
}

static __always_inline struct es_config *es_config_get(const struct es_state *state)
{
	return es_array_at(&es_configs, state->active & 1);
}

/* The ring in force. */
static __always_inline struct es_node_ring *es_ring_get(const struct es_state *state)
{
	return es_array_at(&es_rings, state->active & 1);
}

static __always_inline struct es_reset *es_reset_slot(__u64 flow_hash)
{
	return es_array_at(&es_resets, es_reset_index(flow_hash));
}

static __always_inline struct es_stray *es_stray_slot(__u64 flow_hash)
{
	return es_array_at(&es_strays, es_stray_index(flow_hash));
}

static __always_inline struct es_kept_slot *es_kept_slot(__u64 flow_hash)
{
	return es_array_at(&es_kepts, es_kept_index(flow_hash));
}

static __always_inline struct es_challenge *es_challenge_slot(__u64 flow_hash)
{
	return es_array_at(&es_challenges, es_challenge_index(flow_hash));
}

static __always_inline struct es_overheard *es_syn_slot(__u64 key)
{
	return es_array_at(&es_syns, es_overheard_index(key, ES_SYNS));
}

static __always_inline struct es_overheard *es_heard_flow_slot(__u64 key)
{
	return es_array_at(&es_heard_flows, es_overheard_index(key, ES_HEARD_FLOWS));
}

static __always_inline struct es_overheard *es_first_slot(__u64 key)
{
	return es_array_at(&es_firsts, es_overheard_index(key, ES_FIRSTS));
}

static __always_inline int es_is_silent(const struct es_state *state)
{
	return es_lease_is_over(state->lease_ns, bpf_ktime_get_coarse_ns());
}

/* Does the ring give @hash to this node, and may it answer? */
static __always_inline int es_ring_is_mine(const struct es_state *state, __u64 hash)
{
	struct es_node_ring *ring = es_ring_get(state);

	return state->attached && ring && es_node_ring_answers(ring, hash) && !es_is_silent(state);
}

#endif
