/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_NODE_H
#define ES_SIM_NODE_H

/*
 * A modelled node: a page cache, one CPU, one disk, one network card. Each of the three does one thing at a
 * time, in the order in which they came: so all there is to know of its queue is when it will be idle.
 */
#include "sim/lru.h"
#include "sim/params.h"

/* struct es_station - @free_ns: when all that it was given is done; @busy_ns: work given, ever */
struct es_station {
	__u64 free_ns;
	__u64 busy_ns;
};

enum es_station_kind { ES_CPU, ES_DISK, ES_NIC, ES_STATION_COUNT };

/**
 * struct es_sim_node -
 * @reading: by file: the first of the requests that wait for it to be read, +1; ES_READING_ALONE if none does
 * besides the one that reads; 0 if it is not being read
 * @active, @connections, @load: requests in hand, open connections, sum of the requests' costs
 * @active_ns: integral of @active over time, up to @as_of_ns
 * @mean_ns: of a request's time here, a moving average
 * @share: of each station, busy in the last publishing interval
 */
struct es_sim_node {
	struct es_lru cache;
	struct es_station station[ES_STATION_COUNT];
	__u32 *reading;
	__u32 active;
	__u32 connections;
	double load;
	double active_ns;
	__u64 as_of_ns;
	double mean_ns;
	__u64 busy_before_ns[ES_STATION_COUNT];
	double share[ES_STATION_COUNT];
	/* since the start */
	__u64 served;
	__u64 hits;
	__u64 misses;
	__u64 bytes;
	__u64 moves_in;
};

#define ES_READING_ALONE (~(__u32)0)

int es_sim_node_init(struct es_sim_node *node, __u32 file_count, __u64 cache_bytes);
void es_sim_node_fini(struct es_sim_node *node);

/* es_station_work() - @work_ns more; returns when that is done */
__u64 es_station_work(struct es_station *station, __u64 now_ns, __u64 work_ns);

/* es_sim_node_count() - @active is about to change: bring @active_ns up to date */
void es_sim_node_count(struct es_sim_node *node, __u64 now_ns);

/* es_sim_node_shares() - an interval of @interval_ns ends @now_ns */
void es_sim_node_shares(struct es_sim_node *node, __u64 now_ns, __u64 interval_ns);

#endif
