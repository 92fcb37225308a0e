/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_PARAMS_H
#define ES_SIM_PARAMS_H

/*
 * The parameters of a simulation: each number is an option of the command line (params.c), which has its
 * unit, default, limits and reason.
 */
#include <stddef.h>
#include <linux/types.h>
#include "inspector/policy/policy.h"

struct es_sim_params {
	const struct es_policy *policy;
	struct es_policy_settings settings;
	int inspect_every;
	double nodes;
	double cache_mb;
	double requests_per_connection;
	double seed;
	double clients;
	double warmup;
	double handover_cost;
	double load_bound;
	double settle_ms;
	double inspectors;
	double bus_delay_ms;
	double publish_ms;
	double contents;
	double cpu_request_us;
	double cpu_connect_us;
	double cpu_handover_us;
	double cpu_packet_us;
	double dynamic_cpu_ms;
	double dynamic_cost;
	double disk_seek_ms;
	double disk_rate_mb;
	double disk_extent_kb;
	double net_rate_mbit;
	double rtt_ms;
	/* of generated traces */
	double requests;
	double files;
	double zipf_exponent;
	double mean_kb;
	double sigma;
	double dynamic_share;
	double hot_share;
	double hot_rate;
	/* of traces that were read */
	double keepalive_s;
};

/* struct es_sim_param - one of them */
struct es_sim_param {
	const char *name;
	const char *unit;
	const char *doc;
	double value; /* the default */
	double min;
	double max;
	size_t offset;
	int is_whole;
	const char *group;
};

/* All of them; ends with a name that is NULL. */
extern const struct es_sim_param es_sim_param_list[];

void es_sim_params_init(struct es_sim_params *ret_params);

static inline double *es_sim_param_value(struct es_sim_params *params, const struct es_sim_param *param)
{
	return (double *)((char *)params + param->offset);
}

/* es_sim_params_clients() - as asked for, or by default the connections that LARD's front-end lets in */
__u32 es_sim_params_clients(const struct es_sim_params *params);

#endif
