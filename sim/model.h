/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_MODEL_H
#define ES_SIM_MODEL_H

/*
 * The simulation: clients that ask for a workload as fast as they get answers, an inspector that decides, and
 * nodes that take their time. docs/simulator.md says what is modelled and how each result is defined.
 */
#include "sim/frontend.h"

/* Latencies are counted in classes that are 1/8 of a factor of two wide, from 1 us on. */
#define ES_LATENCY_CLASSES 256

/* struct es_sim_tally - what can be counted over any part of a run, of one node or of all */
struct es_sim_tally {
	__u64 served;
	__u64 hits;
	__u64 misses;
	__u64 dynamic;
	__u64 disk_reads;
	__u64 bytes;
	__u64 moves;
	__u64 moves_why[ES_MOVE_WHY_COUNT];
	double active_ns;
	__u64 busy_ns[ES_STATION_COUNT];
};

/**
 * struct es_sim_result -
 * @total: of the whole run; @measured: of the part between warm-up and the last connection's opening, which
 * took @measured_ns; @is_whole: the trace is so short that this is the whole run
 * @node: of the measured part
 */
struct es_sim_result {
	struct es_sim_tally total;
	struct es_sim_tally measured;
	struct es_sim_tally node[ES_NODES_MAX];
	__u64 asked;
	__u64 connections;
	__u64 duration_ns;
	__u64 measured_ns;
	int is_whole;
	__u64 events;
	__u64 cached_bytes;
	__u64 latency[ES_LATENCY_CLASSES];
	struct es_frontend_counts front;
};

/* es_sim_run() - @progress is told the done part, 0..1, now and then; may be NULL. Returns 0 or -errno. */
int es_sim_run(const struct es_sim_params *params, const struct es_workload *workload,
	       void (*progress)(void *ctx, double done), void *ctx, struct es_sim_result *ret_result);

/* --- what the reports say, result.c */

double es_result_throughput_rps(const struct es_sim_result *result);
double es_result_hit_rate(const struct es_sim_result *result);

/* es_result_imbalance() - the busiest node's requests in hand, over time, in relation to the mean */
double es_result_imbalance(const struct es_sim_result *result, unsigned int nodes);

/* es_result_imbalance_served() - the same of the requests served */
double es_result_imbalance_served(const struct es_sim_result *result, unsigned int nodes);

/* es_result_latency_ms() - the class's upper end below which @share of the measured requests were */
double es_result_latency_ms(const struct es_sim_result *result, double share);

/* es_result_busy() - mean over nodes of a station's share of time */
double es_result_busy(const struct es_sim_result *result, unsigned int nodes, enum es_station_kind kind);

/* es_latency_class() - where a latency is counted */
unsigned int es_latency_class(__u64 latency_ns);

#endif
