// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The numbers of the model. Defaults are for the papers' machines: Pentium 4 of 2.4 to 3.4 GHz with
 * Apache 2.0, 256 MB, one ATA disk of 7200 revolutions, gigabit Ethernet. docs/simulator.md says more about
 * each.
 */
#include "sim/params.h"

#define ES_FIELD(field) offsetof(struct es_sim_params, field)
#define ES_WHOLE	1

static const char g_cluster[] = "Cluster";
static const char g_cost[] = "Costs";
static const char g_front[] = "Inspectors";
static const char g_trace[] = "Trace";

const struct es_sim_param es_sim_param_list[] = {
	{"nodes", "N", "nodes", 8, 1, ES_NODES_MAX, ES_FIELD(nodes), ES_WHOLE, g_cluster},
	{"cache-mb", "M", "page cache of each node, MiB", 128, 0, 1e7, ES_FIELD(cache_mb), 0, g_cluster},
	{"clients", "C", "connections at any time; 0: (N-1)*65+26, as many as LARD's front-end admits", 0, 0,
	 1e6, ES_FIELD(clients), ES_WHOLE, g_cluster},
	{"requests-per-connection", "K", "requests on each connection, one after the other", 1, 1, 1e6,
	 ES_FIELD(requests_per_connection), ES_WHOLE, g_cluster},
	{"seed", "S", "of all randomness", 1, 0, 9007199254740992.0, ES_FIELD(seed), ES_WHOLE, g_cluster},
	{"warmup", "SHARE", "part of the requests that only fill the caches and are not measured", 0.4, 0,
	 0.95, ES_FIELD(warmup), 0, g_cluster},
	{"handover-cost", "R",
	 "handover_cost as in earshot.conf, requests; 0: content-blind policies too move "
	 "connections",
	 1, 0, 1e6, ES_FIELD(handover_cost), ES_WHOLE, g_cluster},
	{"load-bound", "PCT", "load_bound as in earshot.conf (uri-hash), percent; 0: none", 0, 0, 1e6,
	 ES_FIELD(load_bound), ES_WHOLE, g_cluster},
	{"settle-ms", "MS",
	 "settle_ms as in earshot.conf, of several inspectors; 0: loads count as they are at each moment",
	 100, 0, 1e5, ES_FIELD(settle_ms), ES_WHOLE, g_cluster},

	{"inspectors", "I", "inspectors; 1: the papers' front-end, which knows all loads exactly", 1, 1,
	 ES_NODES_MAX, ES_FIELD(inspectors), ES_WHOLE, g_front},
	{"bus-delay-ms", "MS", "until a message on the ordered bus is delivered, to all at once", 1, 0, 1e5,
	 ES_FIELD(bus_delay_ms), 0, g_front},
	{"publish-ms", "MS", "between a node's reports of its load", 25, 1, 1e6, ES_FIELD(publish_ms), 0,
	 g_front},
	{"targets", "N", "entries of the content table", 262144, 16, 1e8, ES_FIELD(contents), ES_WHOLE,
	 g_front},

	{"cpu-request-us", "US", "CPU: parse a request, find the file, log", 250, 0, 1e7,
	 ES_FIELD(cpu_request_us), 0, g_cost},
	{"cpu-connect-us", "US", "CPU: accept or rebuild a connection, and close it", 150, 0, 1e7,
	 ES_FIELD(cpu_connect_us), 0, g_cost},
	{"cpu-handover-us", "US", "CPU of a move, at the old node and again at the new one", 150, 0, 1e7,
	 ES_FIELD(cpu_handover_us), 0, g_cost},
	{"cpu-packet-us", "US",
	 "CPU: copy, checksum and send a packet of 1460 bytes, and take its acknowledgment", 15, 0, 1e7,
	 ES_FIELD(cpu_packet_us), 0, g_cost},
	{"dynamic-cpu-ms", "MS", "CPU: compute a dynamic response", 4, 0, 1e6, ES_FIELD(dynamic_cpu_ms), 0,
	 g_cost},
	{"dynamic-cost", "PKT", "what policies are told a dynamic request costs, in packets; 0: its packets",
	 40, 0, 1e6, ES_FIELD(dynamic_cost), 0, g_cost},
	{"disk-seek-ms", "MS", "disk: seek and rotation for each extent read", 7, 0, 1e6,
	 ES_FIELD(disk_seek_ms), 0, g_cost},
	{"disk-rate-mb", "MB", "disk: transfer, 10^6 bytes per second", 40, 0.001, 1e6,
	 ES_FIELD(disk_rate_mb), 0, g_cost},
	{"disk-extent-kb", "KB", "disk: read at a time; others come between, so each costs a seek", 128, 4,
	 1e6, ES_FIELD(disk_extent_kb), 0, g_cost},
	{"net-rate-mbit", "MBIT", "network of each node, 10^6 bits per second", 1000, 0.001, 1e6,
	 ES_FIELD(net_rate_mbit), 0, g_cost},
	{"rtt-ms", "MS", "between a response and the same client's next request", 0.3, 0, 1e6,
	 ES_FIELD(rtt_ms), 0, g_cost},

	{"requests", "N",
	 "requests: how many are generated, or the first so many of a trace; 0: a million, or all", 0, 0, 1e9,
	 ES_FIELD(requests), ES_WHOLE, g_trace},
	{"files", "N", "zipf: number of files", 26154, 1, 1e7, ES_FIELD(files), ES_WHOLE, g_trace},
	{"zipf-exponent", "X", "of Zipf's law; default 0.8 for zipf, 1.16 for worldcup98", -1, -1, 10,
	 ES_FIELD(zipf_exponent), 0, g_trace},
	{"mean-kb", "KB", "zipf: mean size of a file, 10^3 bytes", 13, 0.001, 1e6, ES_FIELD(mean_kb), 0,
	 g_trace},
	{"size-sigma", "X", "zipf: sigma of the lognormal size", 1.2, 0, 5, ES_FIELD(sigma), 0, g_trace},
	{"dynamic-share", "SHARE", "of the requests, for content that is computed", 0, 0, 1,
	 ES_FIELD(dynamic_share), 0, g_trace},
	{"hot-share", "SHARE",
	 "zipf: of the files, that are hot; alike within hot and cold (LVS-CAD Fig. 18); 0: "
	 "Zipf's law",
	 0, 0, 1, ES_FIELD(hot_share), 0, g_trace},
	{"hot-rate", "SHARE", "zipf: of the requests, for hot files (the click-through rate)", 0, 0, 1,
	 ES_FIELD(hot_rate), 0, g_trace},
	{"keepalive-s", "S", "trace: a client that was silent longer opens a new connection", 15, 0, 1e9,
	 ES_FIELD(keepalive_s), 0, g_trace},
	{},
};

void es_sim_params_init(struct es_sim_params *ret_params)
{
	*ret_params = (struct es_sim_params){};
	for (const struct es_sim_param *p = es_sim_param_list; p->name; p++)
		*es_sim_param_value(ret_params, p) = p->value;
}

__u32 es_sim_params_clients(const struct es_sim_params *params)
{
	/* Pai et al. 1998: (n - 1) * T_high + T_low + 1 */
	return (__u32)(params->clients > 0 ? params->clients : (params->nodes - 1) * 65 + 25 + 1);
}
