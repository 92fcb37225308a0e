// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which metrics there are, what each is called and what it says. Where the values come from is the daemon's.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "earshot_version.h"
#include "inspector/datapath/pins.h"
#include "inspector/rules/rules.h"
#include "inspector/status/metrics.h"
#include "inspector/status/metrics_tls.h"
#include "kmod/core/counters.h"

static const char *name_of(const struct es_metrics *m, unsigned int node)
{
	return m->conf->nodes[node].name;
}

static void put_node(struct es_exposition *e, const struct es_metrics *m)
{
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "build_info", "What runs here; always 1");
	es_exposition_add(e, 1, "version", EARSHOT_VERSION, "datapath", m->datapath, "cluster",
			  m->conf->cluster.name, "node", name_of(m, m->self), NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "start_time_seconds",
			     "When the daemon was started, in seconds since 1970");
	es_exposition_add(e, m->start_time_s, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "cluster_members", "Nodes on the ring");
	es_exposition_add(e, m->members, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "cluster_nodes",
			     "Nodes that would be on the ring if all were there");
	es_exposition_add(e, m->nodes, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "cluster_quorate",
			     "Whether this side of the cluster counts; always 1 with static membership");
	es_exposition_add(e, m->is_quorate, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "ring_epoch", "Number of the ring that is in force");
	es_exposition_add(e, m->epoch, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "silent",
			     "Whether this node takes no requests, as it is not sure of its membership");
	es_exposition_add(e, m->is_silent, NULL);
	if (isnan(m->lease_remaining_s))
		return;
	es_exposition_family(
		e, ES_EXPOSITION_GAUGE, "lease_remaining_seconds",
		"How long this node may still take itself for a member without hearing the others");
	es_exposition_add(e, m->lease_remaining_s, NULL);
}

/* The next one from @node on that there is. */
static unsigned int node_from(const struct es_metrics *m, unsigned int node)
{
	while (node < m->conf->node_count && m->conf->nodes[node].removed)
		node++;
	return node;
}

static void put_nodes(struct es_exposition *e, const struct es_metrics *m)
{
	const unsigned int count = m->conf->node_count;

	es_exposition_family(e, ES_EXPOSITION_GAUGE, "ring_share_ratio",
			     "Share of the ring, and so of the new connections, that the node inspects");
	for (unsigned int i = node_from(m, 0); i < count; i = node_from(m, i + 1))
		es_exposition_add(e, m->shares[i], "node", name_of(m, i), NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "node_up",
			     "Whether the node is given requests, as this node sees it");
	for (unsigned int i = node_from(m, 0); i < count; i = node_from(m, i + 1))
		es_exposition_add(e, m->is_up[i], "node", name_of(m, i), NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "node_draining", "Whether the node is drained");
	for (unsigned int i = node_from(m, 0); i < count; i = node_from(m, i + 1))
		es_exposition_add(e, m->is_draining[i], "node", name_of(m, i), NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "node_settings_differing",
			     "Settings in which the node differs from the others, as this node sees it");
	for (unsigned int i = node_from(m, 0); i < count; i = node_from(m, i + 1))
		es_exposition_add(e, m->differs[i], "node", name_of(m, i), NULL);
	if (!m->has_findings)
		return;
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "check_findings",
			     "Findings of the last earshot check that the daemon ran on this node");
	es_exposition_add(e, m->errors, "severity", "error", NULL);
	es_exposition_add(e, m->warnings, "severity", "warning", NULL);
}

/*
 * In a large cluster nearly everything that could be counted by service and target never is. Left out is what
 * the configuration rules out, and of a target with which nothing was done yet all but the first kind: so a
 * rate has a beginning, and no series that was there goes.
 */
static int is_told(const unsigned long long *counts, int kinds, int kind, int may_be)
{
	int is_live = kind == 0;

	for (int i = 0; i < kinds; i++)
		is_live |= counts[i] > 0;
	return counts[kind] || (may_be && is_live);
}

/* Can this be decided about requests for the service? */
static int may_decide(const struct es_conf_service *service, enum es_tally_decision decision)
{
	if (decision == ES_TALLY_stay || decision == ES_TALLY_move)
		return es_conf_service_reads(service) == ES_INSPECT_EVERY;
	return es_conf_service_reads(service) != ES_INSPECT_NEVER;
}

static int may_hand(const struct es_conf_service *service, enum es_tally_result result)
{
	return result == ES_TALLY_stayed ? es_conf_service_reads(service) == ES_INSPECT_EVERY
					 : es_conf_service_reads(service) != ES_INSPECT_NEVER;
}

static void put_target_requests(struct es_exposition *e, const struct es_metrics *m, unsigned int s,
				unsigned int n)
{
	const struct es_conf_service *service = &m->conf->services[s];
	unsigned long long counts[ES_TALLY_DECISION_COUNT] = {};

	for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
		for (unsigned int w = 0; w < m->tally_count; w++)
			counts[k] += es_tally_request(m->tallies[w], s, n, (enum es_tally_decision)k);
	for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
		if (is_told(counts, ES_TALLY_DECISION_COUNT, k,
			    may_decide(service, (enum es_tally_decision)k)))
			es_exposition_count(e, counts[k], "service", service->name, "target", name_of(m, n),
					    "decision", es_tally_decision_name[k], NULL);
}

static void put_requests(struct es_exposition *e, const struct es_metrics *m)
{
	const struct es_conf *conf = m->conf;

	es_exposition_family(e, ES_EXPOSITION_COUNTER, "requests",
			     "Requests that this node decided on, by the node that serves them");
	for (unsigned int s = 0; s < conf->service_count; s++)
		for (unsigned int n = 0; n < conf->node_count; n++)
			put_target_requests(e, m, s, n);
}

static void put_moves(struct es_exposition *e, const struct es_metrics *m)
{
	es_exposition_family(e, ES_EXPOSITION_COUNTER, "moves",
			     "Later requests that this node moved to another one, by reason");
	for (unsigned int i = 0; i < ES_METRICS_MOVES; i++)
		if (m->moves[i].reason)
			es_exposition_count(e, m->moves[i].count, "reason", m->moves[i].reason, NULL);
}

static void put_target_handovers(struct es_exposition *e, const struct es_metrics *m, unsigned int s,
				 unsigned int n)
{
	const struct es_conf_service *service = &m->conf->services[s];
	unsigned long long counts[ES_TALLY_RESULT_COUNT] = {};

	for (int k = 0; k < ES_TALLY_RESULT_COUNT; k++)
		for (unsigned int w = 0; w < m->tally_count; w++)
			counts[k] += es_tally_handover(m->tallies[w], s, n, (enum es_tally_result)k);
	for (int k = 0; k < ES_TALLY_RESULT_COUNT; k++)
		if (is_told(counts, ES_TALLY_RESULT_COUNT, k, may_hand(service, (enum es_tally_result)k)))
			es_exposition_count(e, counts[k], "service", service->name, "target", name_of(m, n),
					    "result", es_tally_result_name[k], NULL);
}

static void put_handovers(struct es_exposition *e, const struct es_metrics *m)
{
	const struct es_conf *conf = m->conf;

	es_exposition_family(e, ES_EXPOSITION_COUNTER, "handovers",
			     "Connections handed over to another node, and those of them that came back");
	for (unsigned int s = 0; s < conf->service_count; s++)
		for (unsigned int n = 0; n < conf->node_count; n++)
			if (n != m->self)
				put_target_handovers(e, m, s, n);
}

/* No rule has such a name. */
static const char *rule_name(const struct es_conf *conf, unsigned int rule)
{
	switch (rule) {
	case ES_RULES_BY_PLUGIN:
		return "(plugin)";
	case ES_RULES_BY_ADMIT_LOW:
		return "(admit_low)";
	case ES_RULES_BY_ADMIT_NORMAL:
		return "(admit_normal)";
	case ES_RULES_BY_LOCATION:
		return "(location)";
	case ES_RULES_BY_ALL_DOWN:
		return "(all_down)";
	case ES_RULES_BY_UNFINISHED:
		return "(unfinished)";
	default:
		return conf->rules[rule - ES_RULES_BY_RULE].name;
	}
}

/*
 * Can @rule (enum es_rules_by) refuse a request for the service? A rule that neither denies nor says that
 * only some nodes serve a request refuses nothing.
 */
static int may_reject(const struct es_conf *conf, unsigned int service, unsigned int rule)
{
	const struct es_conf_rule *r;

	if (es_conf_service_reads(&conf->services[service]) == ES_INSPECT_NEVER)
		return 0;
	if (rule < ES_RULES_BY_RULE)
		return 1;
	r = &conf->rules[rule - ES_RULES_BY_RULE];
	return !r->is_location && (r->deny == ES_CONF_DENY_YES || r->otherwise == ES_CONF_OTHERWISE_REJECT) &&
	       (r->service < 0 || r->service == (int)service);
}

static void put_rejections(struct es_exposition *e, const struct es_metrics *m)
{
	const struct es_conf *conf = m->conf;

	es_exposition_family(e, ES_EXPOSITION_COUNTER, "requests_rejected",
			     "Requests that this node refused, by the rule that said so");
	for (unsigned int s = 0; s < conf->service_count; s++)
		for (unsigned int r = 0; r < ES_RULES_BY_RULE + conf->rule_count; r++) {
			unsigned long long sum = 0;

			for (unsigned int w = 0; w < m->tally_count; w++)
				sum += es_tally_rejection(m->tallies[w], s, r);
			if (sum || may_reject(conf, s, r))
				es_exposition_count(e, sum, "service", conf->services[s].name, "rule",
						    rule_name(conf, r), NULL);
		}
}

static void put_worker_histogram(struct es_exposition *e, const unsigned long long *bucket,
				 unsigned long long sum_ns)
{
	const struct es_exposition_buckets histogram = {
		.bounds = ES_HISTOGRAM_BOUNDS,
		.bound_ns = es_histogram_bound_ns,
		.count = bucket,
		.sum_s = (double)sum_ns / 1e9,
	};

	es_exposition_histogram(e, &histogram, NULL);
}

static void put_histograms(struct es_exposition *e, const struct es_metrics *m)
{
	unsigned long long decision[ES_HISTOGRAM_BOUNDS + 1] = {}, decision_ns = 0;
	unsigned long long handover[ES_HISTOGRAM_BOUNDS + 1] = {}, handover_ns = 0;

	for (unsigned int w = 0; w < m->tally_count; w++) {
		es_histogram_read(&m->tallies[w]->decision, decision, &decision_ns);
		es_histogram_read(&m->tallies[w]->handover, handover, &handover_ns);
	}
	es_exposition_family(e, ES_EXPOSITION_HISTOGRAM, "decision_duration_seconds",
			     "Time from taking up a request's last packet until its node was known");
	put_worker_histogram(e, decision, decision_ns);
	es_exposition_family(
		e, ES_EXPOSITION_HISTOGRAM, "handover_duration_seconds",
		"Time from taking up a request until its handover message was sent; of a move, from "
		"the decision on, its socket's end included");
	put_worker_histogram(e, handover, handover_ns);
}

static void put_services(struct es_exposition *e, const struct es_metrics *m)
{
	const struct es_conf *conf = m->conf;

	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "locality_hits",
		"Requests decided for the node that the one before for the same content went to, too");
	for (unsigned int s = 0; s < conf->service_count; s++) {
		unsigned long long sum = 0;

		for (unsigned int w = 0; w < m->tally_count; w++)
			sum += es_tally_hit(m->tallies[w], s);
		es_exposition_count(e, sum, "service", conf->services[s].name, NULL);
	}
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "connections", "Connections of this node");
	for (unsigned int s = 0; s < conf->service_count; s++)
		es_exposition_count(e, m->sums->service[s].flows, "service", conf->services[s].name, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "requests_active",
			     "Requests that the server of this node has in hand");
	for (unsigned int s = 0; s < conf->service_count; s++)
		es_exposition_count(e, m->sums->service[s].active, "service", conf->services[s].name, "node",
				    name_of(m, m->self), NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "server_up",
			     "Whether the service's server on this node listens, has room in its accept "
			     "queue, passes its check and is no outlier");
	for (unsigned int s = 0; s < conf->service_count; s++)
		if (m->server_up[s] >= 0)
			es_exposition_add(e, m->server_up[s], "service", conf->services[s].name, NULL);
	es_exposition_family(
		e, ES_EXPOSITION_GAUGE, "server_check_duration_seconds",
		"How long the last check that passed took: to connect, or by HTTP until the status");
	for (unsigned int s = 0; s < conf->service_count; s++)
		if (!isnan(m->check_duration_s[s]))
			es_exposition_add(e, m->check_duration_s[s], "service", conf->services[s].name, NULL);
}

/* As they were when the configuration was read. */
static void put_certificates(struct es_exposition *e, const struct es_metrics *m, int is_ocsp)
{
	int is_begun = 0;

	for (unsigned int s = 0; s < m->conf->service_count; s++) {
		const struct es_conf_tls *tls = &m->conf->services[s].tls;

		for (unsigned int i = 0; tls->line && i < tls->certificate_count; i++) {
			long long until_s = is_ocsp ? tls->ocsp_until_s[i] : tls->until_s[i];

			if (!until_s)
				continue;
			if (!is_begun++)
				es_exposition_family(
					e, ES_EXPOSITION_GAUGE,
					is_ocsp ? "ocsp_expiry_time_seconds"
						: "certificate_expiry_time_seconds",
					is_ocsp ? "When the OCSP answer for a certificate is over, since 1970"
						: "When a certificate that clients are shown ends, since "
						  "1970");
			es_exposition_add(e, (double)until_s, "service", m->conf->services[s].name,
					  "certificate", tls->certificate[i], NULL);
		}
	}
}

static void put_durations(struct es_exposition *e, const struct es_durations *durations, const char *service)
{
	const struct es_exposition_buckets histogram = {
		.bounds = ES_DURATION_BOUNDS,
		.bound_ns = es_duration_bound_ns,
		.count = durations->count,
		.sum_s = durations->sum_s,
	};

	es_exposition_histogram(e, &histogram, service);
}

static void put_responses(struct es_exposition *e, const struct es_metrics *m)
{
	const struct es_conf *conf = m->conf;

	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "responses",
		"Responses of this node's server that were read to their end, by class of status");
	for (unsigned int s = 0; s < conf->service_count; s++)
		for (int k = 0; m->responses[s] && k < ES_RESPONSE_CLASSES; k++)
			es_exposition_count(e, m->responses[s]->count[k], "service", conf->services[s].name,
					    "class", es_response_class_name[k], NULL);
	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "response_bytes",
		"Bytes of these responses, heads and bodies, each once however often it was sent");
	for (unsigned int s = 0; s < conf->service_count; s++)
		if (m->responses[s])
			es_exposition_count(e, m->responses[s]->bytes, "service", conf->services[s].name,
					    NULL);
	es_exposition_family(
		e, ES_EXPOSITION_SUMMARY, "response_time_seconds",
		"Time that requests spent on this node, as the mean number in hand tells, and the "
		"responses that were read");
	for (unsigned int s = 0; s < conf->service_count; s++)
		if (m->responses[s])
			es_exposition_summary(e, m->responses[s]->busy_s, es_responses_total(m->responses[s]),
					      conf->services[s].name);
	es_exposition_family(
		e, ES_EXPOSITION_HISTOGRAM, "response_duration_seconds",
		"Time from giving a request to this node's server until its response's last byte went out, "
		"of the responses that were read");
	for (unsigned int s = 0; s < conf->service_count; s++)
		if (m->responses[s])
			put_durations(e, &m->responses[s]->durations, conf->services[s].name);
}

static void put_outliers(struct es_exposition *e, const struct es_metrics *m)
{
	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "server_ejections",
		"How often this node's server was put out for its responses, or was kept though it should "
		"have been, since as many as may be were out");
	for (unsigned int s = 0; s < m->conf->service_count; s++) {
		if (!m->outlier[s].is_judged)
			continue;
		es_exposition_count(e, m->outlier[s].out, "service", m->conf->services[s].name, "result",
				    "out", NULL);
		es_exposition_count(e, m->outlier[s].kept, "service", m->conf->services[s].name, "result",
				    "kept", NULL);
	}
}

static void put_log(struct es_exposition *e, const struct es_metrics *m)
{
	if (!m->has_log)
		return;
	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "log_lines",
		"Lines of the request log, by what became of them: written, dropped (they came faster "
		"than they were written) or failed (they could not be written)");
	es_exposition_count(e, m->log_written, "result", "written", NULL);
	es_exposition_count(e, m->log_dropped, "result", "dropped", NULL);
	es_exposition_count(e, m->log_failed, "result", "failed", NULL);
}

static void put_datapath(struct es_exposition *e, const struct es_metrics *m)
{
	static const char *const names[ES_COUNTER_COUNT] = {
#define X(name, description) #name,
		ES_COUNTERS(X)
#undef X
	};

	if (!m->counters)
		return;
	es_exposition_family(e, ES_EXPOSITION_COUNTER, "connections_pinned",
			     "Connections of this node that are inspected no more, by reason");
	for (unsigned int i = ES_PIN_none + 1; i < ES_PIN_COUNT; i++)
		es_exposition_count(e, es_pin_counted(m->counters, i), "reason", es_pin_name(i), NULL);
	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "datapath_packets",
		"Packets that the datapath decided on, by what became of them (earshot counters)");
	for (int i = 0; i < ES_COUNTER_FIRST_PIN; i++)
		es_exposition_count(e, m->counters[i], "verdict", names[i], NULL);
}

static void put_tables(struct es_exposition *e, const struct es_metrics *m)
{
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "table_entries", "Entries of a table");
	for (unsigned int i = 0; i < m->table_count; i++)
		es_exposition_count(e, m->tables[i].entries, "table", m->tables[i].name, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "table_limit", "Entries that a table has room for");
	for (unsigned int i = 0; i < m->table_count; i++)
		es_exposition_count(e, m->tables[i].limit, "table", m->tables[i].name, NULL);
	if (!m->has_rate)
		return;
	es_exposition_family(e, ES_EXPOSITION_COUNTER, "rate_forgotten",
			     "Clients that a rule's rate counted and that had to make room for others");
	es_exposition_count(e, m->rate_forgotten, NULL);
}

int es_metrics_text(const struct es_metrics *m, enum es_exposition_format format, char **ret_text,
		    size_t *ret_len)
{
	struct es_exposition e = {.format = format};
	char *text = NULL;
	int failed;

	e.file = open_memstream(&text, ret_len);
	if (!e.file)
		return -ENOMEM;
	put_node(&e, m);
	put_nodes(&e, m);
	put_requests(&e, m);
	put_rejections(&e, m);
	put_moves(&e, m);
	put_handovers(&e, m);
	es_metrics_survival_put(&e, &m->survival);
	put_histograms(&e, m);
	put_services(&e, m);
	put_certificates(&e, m, 0);
	put_certificates(&e, m, 1);
	if (m->tls)
		es_metrics_tls_put(&e, m->tls);
	put_responses(&e, m);
	put_outliers(&e, m);
	put_log(&e, m);
	put_datapath(&e, m);
	put_tables(&e, m);
	es_exposition_end(&e);
	failed = ferror(e.file);
	if (fclose(e.file) || failed) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}
