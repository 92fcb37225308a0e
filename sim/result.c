// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The definitions of the results; docs/simulator.md repeats them in words.
 */
#include <math.h>
#include "sim/model.h"

double es_result_throughput_rps(const struct es_sim_result *result)
{
	return result->measured_ns ? (double)result->measured.served * 1e9 / (double)result->measured_ns : 0;
}

double es_result_hit_rate(const struct es_sim_result *result)
{
	__u64 looked_up = result->measured.hits + result->measured.misses;

	return looked_up ? (double)result->measured.hits / (double)looked_up : 0;
}

double es_result_imbalance(const struct es_sim_result *result, unsigned int nodes)
{
	double most = 0, sum = 0;

	for (unsigned int i = 0; i < nodes; i++) {
		most = fmax(most, result->node[i].active_ns);
		sum += result->node[i].active_ns;
	}
	return sum > 0 ? most * nodes / sum : 1;
}

double es_result_imbalance_served(const struct es_sim_result *result, unsigned int nodes)
{
	double most = 0, sum = 0;

	for (unsigned int i = 0; i < nodes; i++) {
		most = fmax(most, (double)result->node[i].served);
		sum += (double)result->node[i].served;
	}
	return sum > 0 ? most * nodes / sum : 1;
}

unsigned int es_latency_class(__u64 latency_ns)
{
	double at = latency_ns > 1000 ? log2((double)latency_ns / 1000) * 8 : 0;

	return at < ES_LATENCY_CLASSES - 1 ? (unsigned int)at : ES_LATENCY_CLASSES - 1;
}

double es_result_latency_ms(const struct es_sim_result *result, double share)
{
	__u64 sum = 0, count = 0;
	unsigned int i;

	for (i = 0; i < ES_LATENCY_CLASSES; i++)
		count += result->latency[i];
	if (!count)
		return 0;
	for (i = 0; i < ES_LATENCY_CLASSES - 1; i++) {
		sum += result->latency[i];
		if ((double)sum >= share * (double)count)
			break;
	}
	return exp2((i + 1) / 8.0) / 1000;
}

double es_result_busy(const struct es_sim_result *result, unsigned int nodes, enum es_station_kind kind)
{
	double sum = 0;

	for (unsigned int i = 0; i < nodes; i++)
		sum += (double)result->node[i].busy_ns[kind];
	return result->measured_ns ? sum / (double)result->measured_ns / nodes : 0;
}
