/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_METRICS_H
#define ES_METRICS_H

/*
 * The metrics of a node, by Prometheus' conventions: base units, labels of few values (services, nodes, rules
 * and reasons, of the configuration), never what a client sends.
 */
#include "inspector/ask/ledger.h"
#include "inspector/config/config.h"
#include "inspector/health/responses.h"
#include "inspector/inspect/tally.h"
#include "inspector/status/exposition.h"
#include "inspector/status/metrics_survival.h"
#include "kmod/core/load.h"

/* struct es_metrics_table - a bounded table; @limit: how many entries it has room for */
struct es_metrics_table {
	const char *name;
	unsigned long long entries;
	unsigned long long limit;
};

#define ES_METRICS_MOVES 5

/* struct es_metrics_move - requests that moved their connection, and the reason why */
struct es_metrics_move {
	const char *reason;
	unsigned long long count;
};

/*
 * struct es_metrics_outlier - how often this node's server was put out, and how often it stayed because of
 * max_out
 */
struct es_metrics_outlier {
	int is_judged;
	unsigned long long out;
	unsigned long long kept;
};

/**
 * struct es_metrics - what there is to tell at this moment
 * @datapath: "bpf" or "module"; @start_time_s: the daemon's, seconds since 1970
 * @members, @epoch: of the ring that is in force; @nodes: how many would be on it if all were there
 * @shares, @is_up, @is_draining: of each node; @differs: in how many settings it differs from the others
 * @errors, @warnings: what the last `earshot check` of the daemon's found, if @has_findings
 * @lease_remaining_s: 0: it is over; NAN: there are none
 * @tallies: of each worker
 * @moves: by reason; one without a name is left out
 * @sums: of the connections of this node
 * @counters: ES_COUNTER_COUNT; NULL: they could not be read
 * @server_up: of each service: 1: its server listens on this node, accepts, passes its check and is no
 * outlier; 0: it does not;
 * -1: not known, or the service is not on this node
 * @check_duration_s: of the last check that passed; NAN: there was none
 * @responses: of each service whose responses are read, else NULL
 * @outlier: of each service that is judged by them
 * @rate_forgotten: clients that had to make room, if @has_rate: a rule counts them
 * @tls: what earshot-tls tells, NULL: no service of this node has tls { }
 * @log_written, @log_dropped, @log_failed: lines of the request log, if @has_log: in it; that came faster
 * than it was written; that could not be written
 */
struct es_metrics {
	const struct es_conf *conf;
	unsigned int self;
	const char *datapath;
	double start_time_s;
	unsigned int members;
	unsigned int nodes;
	unsigned int epoch;
	int is_quorate;
	int is_silent;
	double lease_remaining_s;
	double shares[ES_NODES_MAX];
	int is_up[ES_NODES_MAX];
	int is_draining[ES_NODES_MAX];
	unsigned int differs[ES_NODES_MAX];
	int has_findings;
	unsigned int errors;
	unsigned int warnings;
	unsigned int tally_count;
	const struct es_tally *tallies[ES_WORKERS_MAX];
	struct es_metrics_move moves[ES_METRICS_MOVES];
	const struct es_load_sums *sums;
	const unsigned long long *counters;
	int server_up[ES_CONF_SERVICES_MAX];
	double check_duration_s[ES_CONF_SERVICES_MAX];
	const struct es_responses *responses[ES_CONF_SERVICES_MAX];
	struct es_metrics_outlier outlier[ES_CONF_SERVICES_MAX];
	const struct es_ledger *tls;
	struct es_metrics_survival survival;
	int has_log;
	unsigned long long log_written;
	unsigned long long log_dropped;
	unsigned long long log_failed;
	unsigned int table_count;
	struct es_metrics_table tables[7];
	int has_rate;
	unsigned long long rate_forgotten;
};

/**
 * es_metrics_text() - the document
 * @ret_text: the caller frees it; @ret_len: its bytes, without the NUL behind. Returns 0 or -ENOMEM.
 */
int es_metrics_text(const struct es_metrics *metrics, enum es_exposition_format format, char **ret_text,
		    size_t *ret_len);

#endif
