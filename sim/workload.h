/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_WORKLOAD_H
#define ES_SIM_WORKLOAD_H

/*
 * The clients' workload: files, and connections with requests for them.
 */
#include <stddef.h>
#include <linux/types.h>
#include "inspector/policy/policy.h"

/**
 * struct es_sim_file -
 * @uri: path and query, behind "//host" (@host_len bytes) if it is known which site has the file
 * @name: what the daemon would call it (inspector/policy/name.h), in @uri; @content: the hash of that
 * @cost: in response packets
 */
struct es_sim_file {
	char *uri;
	const char *name;
	__u32 host_len;
	__u64 content;
	__u32 cost;
	__u8 is_dynamic;
};

/**
 * struct es_workload -
 * @size: bytes of each file's response, beside @file as the page caches read nothing else
 * @request: numbers of files, connection by connection; @first: each connection's first request, and behind
 * the last one the count of requests
 */
struct es_workload {
	struct es_sim_file *file;
	__u64 *size;
	__u32 file_count;
	__u32 *request;
	__u32 *first;
	__u32 request_count;
	__u32 connection_count;
};

void es_workload_fini(struct es_workload *workload);

/* The payload of a packet on Ethernet, and what else goes over the wire for each: headers with timestamps,
 * frame, preamble and gap. */
#define ES_SIM_PACKET_BYTES   1460
#define ES_SIM_OVERHEAD_BYTES 90

static inline __u64 es_sim_packets(__u64 bytes)
{
	return bytes ? (bytes + ES_SIM_PACKET_BYTES - 1) / ES_SIM_PACKET_BYTES : 1;
}

/* es_workload_price() - sets every file's name, content and cost; @has_host: the host is part of the name;
 * @dynamic_cost: a dynamic one's cost, 0 for its packets */
void es_workload_price(struct es_workload *workload, int has_host, double dynamic_cost);

/* es_workload_cut() - makes connections of @per_connection requests each; returns 0 or -ENOMEM */
int es_workload_cut(struct es_workload *workload, __u32 per_connection);

/* --- synthetic.c */

#define ES_WC98_FILES	    10562
#define ES_WC98_LARGE_BYTES (500 * 1024)

/**
 * struct es_synthetic - what a generated trace is like
 * @exponent: of Zipf's law; @mean_bytes, @sigma: of a lognormal size
 * @dynamic_share: of the requests, all for content that is computed
 * @hot_share, @hot_rate: part of the files that are hot, and of the requests that go to them, alike within
 * both groups (LVS-CAD section 6.4); 0: Zipf's law
 */
struct es_synthetic {
	__u64 seed;
	__u32 requests;
	__u32 files;
	double exponent;
	double mean_bytes;
	double sigma;
	double dynamic_share;
	double hot_share;
	double hot_rate;
};

/* es_synthetic_zipf() - returns 0 or -ENOMEM; connections are not cut yet */
int es_synthetic_zipf(const struct es_synthetic *s, struct es_workload *ret_workload);

/* es_synthetic_worldcup98() - the size mix of HyLARD section 4.3; uses @seed, @requests, @exponent and
 * @dynamic_share */
int es_synthetic_worldcup98(const struct es_synthetic *s, struct es_workload *ret_workload);

#endif
