// SPDX-License-Identifier: GPL-2.0-or-later
/* The metrics' text: names, labels and their escapes, what is left out, and how the two formats differ. */
#include "tests/unit/config_text.h"
#include <math.h>
#include "inspector/rules/rules.h"
#include "inspector/status/metrics.h"

#define TEXT                                                                                                 \
	DATAPATH "cluster { name = 'a \"b\" \\c' }\nnode n1 { address = 10.78.0.1 }\n"                       \
		 "node n2 { address = 10.78.0.2 }\n" SERVICE                                                 \
		 "rule only { path = \"/o/\"  nodes = n2  otherwise = reject }\n"                            \
		 "rule all { path = \"/a/\"  nodes = n2 }\n"                                                 \
		 "rule gone { path = \"/g/\"  deny = yes }\n"

static struct es_load_sums sums;
static unsigned long long counters[ES_COUNTER_COUNT];

static char *text_of(struct es_metrics *m, enum es_exposition_format format)
{
	size_t len;
	char *text;

	m->conf = parse_ok(TEXT);
	m->sums = &sums;
	m->datapath = "bpf";
	assert_int_equal(es_metrics_text(m, format, &text, &len), 0);
	assert_int_equal(len, strlen(text));
	es_conf_free((struct es_conf **)&m->conf);
	return text;
}

static void expect(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("not there: %s\nin: %s", line, text);
}

static void expect_none(const char *text, const char *line)
{
	if (strstr(text, line))
		fail_msg("there: %s\nin: %s", line, text);
}

static void test_samples(void **state)
{
	struct es_metrics m = {.members = 2, .epoch = 7, .is_quorate = 1, .lease_remaining_s = 0.25};
	struct es_conf *conf = parse_ok(TEXT);
	struct es_responses responses = {};
	struct es_tally *tally[2];
	char *text;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(es_tally_new(conf, NULL, NULL, &tally[i]), 0);
		m.tallies[i] = tally[i];
		es_tally_decided(tally[i], 0, 1, ES_TALLY_move);
		es_tally_handed(tally[i], 0, 1, ES_TALLY_sent);
		es_tally_took(tally[i], 7000);
	}
	es_tally_rejected(tally[1], 0, ES_RULES_BY_RULE);
	es_tally_rejected(tally[1], 0, ES_RULES_BY_RULE + 2);
	m.tally_count = 2;
	es_responses_add(&responses, 503, 1000, 0);
	es_responses_add(&responses, 101, 7, 0);
	es_responses_add(&responses, 204, 4000000000u, 1500000);
	es_responses_add(&responses, 204, 4000000000u, 70000000000);
	es_responses_busy(&responses, 2, 1000000000);
	es_responses_busy(&responses, 4, 2500000000);
	m.responses[0] = &responses;
	m.tables[0] = (struct es_metrics_table){"targets", 3, 100};
	m.table_count = 1;
	m.moves[0] = (struct es_metrics_move){"locality", 6};
	m.moves[4] = (struct es_metrics_move){"home", 0};
	m.shares[1] = 0.5;
	m.is_up[0] = 1;
	sums.service[0] = (struct es_load_sum){.flows = 4, .active = 3};
	counters[ES_COUNT_syn_answered] = 12345678901234ULL;
	counters[ES_COUNT_pin_tls] = 9;
	counters[ES_COUNT_pin_pipelined] = 1;
	counters[ES_COUNT_pin_program] = 2;
	m.counters = counters;
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect(text, "\nearshot_requests_total{service=\"web\",target=\"n2\",decision=\"move\"} 2\n");
	expect(text, "\nearshot_requests_total{service=\"web\",target=\"n1\",decision=\"first\"} 0\n");
	expect(text,
	       "\nearshot_moves_total{reason=\"locality\"} 6\nearshot_moves_total{reason=\"home\"} 0\n");
	expect(text, "\nearshot_handovers_total{service=\"web\",target=\"n2\",result=\"sent\"} 2\n");
	expect(text, "\nearshot_requests_rejected_total{service=\"web\",rule=\"only\"} 1\n");
	expect(text, "\nearshot_requests_rejected_total{service=\"web\",rule=\"gone\"} 1\n");
	expect(text, "\nearshot_requests_rejected_total{service=\"web\",rule=\"(admit_low)\"} 0\n");
	expect(text, "\nearshot_decision_duration_seconds_bucket{le=\"5e-06\"} 0\n");
	expect(text, "\nearshot_decision_duration_seconds_bucket{le=\"1e-05\"} 2\n");
	expect(text, "\nearshot_decision_duration_seconds_bucket{le=\"+Inf\"} 2\n");
	expect(text, "\nearshot_decision_duration_seconds_sum 1.4e-05\n");
	expect(text, "\nearshot_decision_duration_seconds_count 2\n");
	expect(text, "\nearshot_lease_remaining_seconds 0.25\n");
	expect(text, "\nearshot_connections{service=\"web\"} 4\n");
	expect(text, "\nearshot_requests_active{service=\"web\",node=\"n1\"} 3\n");
	expect(text, "\nearshot_datapath_packets_total{verdict=\"syn_answered\"} 12345678901234\n");
	expect(text, "\nearshot_connections_pinned_total{reason=\"tls\"} 9\n");
	expect(text, "\nearshot_connections_pinned_total{reason=\"pipelined\"} 1\n");
	expect(text, "\nearshot_connections_pinned_total{reason=\"program\"} 2\n");
	expect(text, "\nearshot_table_limit{table=\"targets\"} 100\n");
	expect(text, "\nearshot_ring_share_ratio{node=\"n2\"} 0.5\n");
	expect(text, "\nearshot_responses_total{service=\"web\",class=\"5xx\"} 1\n");
	expect(text, "\nearshot_responses_total{service=\"web\",class=\"3xx\"} 0\n");
	expect(text, "\nearshot_response_bytes_total{service=\"web\"} 8000001000\n");
	expect(text, "# TYPE earshot_response_time_seconds summary\n");
	expect(text, "\nearshot_response_time_seconds_sum{service=\"web\"} 4.5\n");
	expect(text, "\nearshot_response_time_seconds_count{service=\"web\"} 3\n");
	expect(text, "# TYPE earshot_response_duration_seconds histogram\n");
	expect(text, "\nearshot_response_duration_seconds_bucket{service=\"web\",le=\"0.001\"} 0\n");
	expect(text, "\nearshot_response_duration_seconds_bucket{service=\"web\",le=\"0.0025\"} 1\n");
	expect(text, "\nearshot_response_duration_seconds_bucket{service=\"web\",le=\"2.5\"} 1\n");
	expect(text, "\nearshot_response_duration_seconds_bucket{service=\"web\",le=\"10.0\"} 1\n");
	expect(text, "\nearshot_response_duration_seconds_bucket{service=\"web\",le=\"+Inf\"} 2\n");
	expect(text, "\nearshot_response_duration_seconds_sum{service=\"web\"} 70.0015\n");
	expect(text, "\nearshot_response_duration_seconds_count{service=\"web\"} 2\n");
	expect(text, "\nearshot_ring_epoch 7\n");
	expect(text, "cluster=\"a \\\"b\\\" \\\\c\",node=\"n1\"} 1\n");
	expect(text, "# TYPE earshot_requests_total counter\n");
	expect_none(text, "rule=\"all\"");
	expect_none(text, "verdict=\"pin_");
	expect_none(text, "# EOF");
	free(text);
	es_tally_free(&tally[0]);
	es_tally_free(&tally[1]);
	es_conf_free(&conf);
}

static void test_openmetrics(void **state)
{
	struct es_metrics m = {.lease_remaining_s = NAN, .server_up = {-1}};
	char *text = text_of(&m, ES_EXPOSITION_OPENMETRICS);

	(void)state;
	expect(text, "# TYPE earshot_requests counter\n");
	expect(text, "\nearshot_requests_total{");
	expect(text, "_bucket{le=\"1.0\"} 0\n");
	expect_none(text, "lease_remaining");
	expect_none(text, "server_up{");
	expect_none(text, "response_bytes_total{");
	expect_none(text, "responses_total{"); /* where they are not read */
	expect_none(text, "datapath_packets");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
}

/* Lost nodes' connections, where a service survives. */
static void test_survival(void **state)
{
	struct es_resume_figures downloads = {.whole = 3, .broken = 1};
	struct es_metrics m = {.lease_remaining_s = NAN};
	char *text = text_of(&m, ES_EXPOSITION_PROMETHEUS);

	(void)state;
	expect_none(text, "survived");
	expect_none(text, "connections_reset");
	free(text);
	downloads.reset[ES_RESUME_WHY_validator] = 2;
	m.survival = (struct es_metrics_survival){.has_idle = 1, .idle = 12, .idle_unsafe = 4, .waiting = 5};
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect(text, "\nearshot_connections_survived_total{kind=\"idle\"} 12\n");
	expect(text, "\nearshot_connections_reset_total{kind=\"idle\",reason=\"unsafe\"} 4\n");
	expect(text, "\nearshot_connections_reset_total{kind=\"request\",reason=\"answering\"} 5\n");
	expect_none(text, "kind=\"download\"");
	free(text);
	m.survival.downloads = &downloads;
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect(text, "\nearshot_connections_survived_total{kind=\"download\"} 3\n");
	expect(text, "\nearshot_connections_reset_total{kind=\"download\",reason=\"broken\"} 1\n");
	expect(text, "\nearshot_connections_reset_total{kind=\"download\",reason=\"validator\"} 2\n");
	expect(text, "\nearshot_connections_reset_total{kind=\"download\",reason=\"request\"} 0\n");
	expect_none(text, "reason=\"none\"");
	free(text);
}

/* When certificates end, but not of one that could not be used. */
static void test_certificates(void **state)
{
	struct es_metrics m = {.sums = &sums, .datapath = "bpf", .lease_remaining_s = NAN};
	struct es_conf *conf =
		parse_ok(DATAPATH NODE "service web { address = 10.77.0.100  port = 443\n"
				       "tls { certificate = { /a.pem, /b.pem } key = { /a, /b } "
				       "server = \"unix:/s\" } }");
	char *text;
	size_t len;

	(void)state;
	m.conf = conf;
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	expect_none(text, "certificate");
	free(text);
	conf->services[0].tls.until_s[1] = 1800000000;
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	expect(text, "\nearshot_certificate_expiry_time_seconds{service=\"web\",certificate=\"/b.pem\"} "
		     "1800000000\n");
	expect_none(text, "/a.pem");
	expect_none(text, "ocsp");
	/* Its requests are read, although packets tell nothing of them. */
	expect(text, "earshot_requests_rejected_total{service=\"web\",rule=\"(location)\"} 0\n");
	free(text);
	conf->services[0].tls.ocsp_until_s[0] = 1700000000;
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	expect(text,
	       "\nearshot_ocsp_expiry_time_seconds{service=\"web\",certificate=\"/a.pem\"} 1700000000\n");
	free(text);
	es_conf_free(&conf);
}

/* A service that earshot-tls has; one that is gone from the configuration is told no more. */
static void test_tls(void **state)
{
	static struct es_ledger ledger = {.runs = 1, .head = {.workers = 2, .leaving = 1, .died = 3}};
	struct es_metrics m = {.lease_remaining_s = NAN, .tls = &ledger};
	char *text;

	(void)state;
	strcpy(ledger.head.service[0].name, "former");
	strcpy(ledger.head.service[2].name, "shop");
	ledger.head.service[2].state = ES_LEDGER_SERVED;
	ledger.count[2][ES_LEDGER_accepted] = 10;
	ledger.count[2][ES_LEDGER_ended] = 7;
	ledger.count[2][ES_LEDGER_resumed_13] = 4;
	ledger.count[2][ES_LEDGER_handshakes_late] = 1;
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect(text, "\nearshot_tls_up 1\n");
	expect(text, "\nearshot_tls_workers{state=\"leaving\"} 1\n");
	expect(text, "\nearshot_tls_workers_died_total 3\n");
	expect(text, "\nearshot_tls_service_up{service=\"shop\"} 1\n");
	expect(text, "\nearshot_tls_connections{service=\"shop\"} 3\n");
	expect(text, "\nearshot_tls_handshakes_total{service=\"shop\",version=\"1.3\",kind=\"resumed\"} 4\n");
	expect(text, "\nearshot_tls_handshakes_failed_total{service=\"shop\",reason=\"late\"} 1\n");
	expect(text, "\nearshot_tls_bytes_total{service=\"shop\",direction=\"out\"} 0\n");
	expect_none(text, "former");
	free(text);
	ledger.runs = 0;
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect(text, "\nearshot_tls_up 0\n");
	expect(text, "\nearshot_tls_service_up{service=\"shop\"} 0\n");
	expect(text, "\nearshot_tls_connections{service=\"shop\"} 0\n");
	expect(text, "\nearshot_tls_connections_accepted_total{service=\"shop\"} 10\n");
	free(text);
	m.tls = NULL;
	text = text_of(&m, ES_EXPOSITION_PROMETHEUS);
	expect_none(text, "earshot_tls_");
	free(text);
}

/* A dozen nodes and eight services: nearly all of what this node could count it never does. */
static struct es_conf *large(void)
{
	char text[8192] = DATAPATH;
	size_t used = strlen(text);

	for (int i = 1; i <= 12; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "node n%d { address = 10.78.0.%d }\n", i, i);
	for (int i = 1; i <= 8; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "service s%d { address = 10.77.0.100  port = %d%s }\n", i, 80 + i,
					 i == 7	  ? "  inspect = every"
					 : i == 8 ? "  inspect = never"
						  : "");
	return parse_ok(text);
}

static unsigned int samples_of(const char *text)
{
	unsigned int count = 0;

	for (const char *at = text; (at = strchr(at, '\n')) && at[1]; at++)
		count += at[1] != '#';
	return count;
}

static void test_many(void **state)
{
	struct es_metrics m = {.lease_remaining_s = NAN, .server_up = {-1}, .sums = &sums, .datapath = "bpf"};
	struct es_conf *conf = large();
	struct es_tally *tally;
	unsigned int samples;
	char *text;
	size_t len;

	(void)state;
	m.conf = conf;
	m.tally_count = 1;
	assert_int_equal(es_tally_new(conf, NULL, NULL, &tally), 0);
	m.tallies[0] = tally;
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	/* A series whose rate needs a beginning is there, with 0. */
	expect(text, "\nearshot_requests_total{service=\"s1\",target=\"n12\",decision=\"first\"} 0\n");
	expect(text, "\nearshot_handovers_total{service=\"s1\",target=\"n12\",result=\"sent\"} 0\n");
	expect_none(text, "service=\"s1\",target=\"n12\",decision=\"again\"");
	expect_none(text, "service=\"s1\",target=\"n12\",result=\"refused\"");
	expect_none(text, "requests_total{service=\"s8\"");
	expect_none(text, "handovers_total{service=\"s8\"");
	expect(text, "\nearshot_requests_rejected_total{service=\"s1\",rule=\"(all_down)\"} 0\n");
	expect_none(text, "rejected_total{service=\"s8\"");
	samples = samples_of(text);
	assert_true(samples < 350); /* 887, where all that could be counted was told */
	free(text);

	/* With the first that is counted of a target, all of its kinds are there. */
	es_tally_decided(tally, 0, 11, ES_TALLY_first);
	es_tally_handed(tally, 0, 11, ES_TALLY_sent);
	es_tally_decided(tally, 6, 10, ES_TALLY_stay);
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	expect(text, "\nearshot_requests_total{service=\"s1\",target=\"n12\",decision=\"again\"} 0\n");
	expect(text, "\nearshot_handovers_total{service=\"s1\",target=\"n12\",result=\"unreachable\"} 0\n");
	expect_none(text, "service=\"s1\",target=\"n12\",decision=\"stay\""); /* not with inspect = first */
	expect_none(text, "service=\"s1\",target=\"n12\",result=\"stayed\"");
	expect(text, "\nearshot_requests_total{service=\"s7\",target=\"n11\",decision=\"move\"} 0\n");
	assert_int_equal(samples_of(text), samples + 1 + 2 + 3);
	free(text);

	/* Counts from another configuration are told for as long as the daemon runs. */
	es_tally_decided(tally, 0, 0, ES_TALLY_move);
	es_tally_decided(tally, 7, 0, ES_TALLY_first);
	es_tally_handed(tally, 0, 3, ES_TALLY_stayed);
	es_tally_rejected(tally, 7, ES_RULES_BY_ADMIT_LOW);
	assert_int_equal(es_metrics_text(&m, ES_EXPOSITION_PROMETHEUS, &text, &len), 0);
	expect(text, "\nearshot_requests_total{service=\"s1\",target=\"n1\",decision=\"move\"} 1\n");
	expect(text, "\nearshot_requests_total{service=\"s8\",target=\"n1\",decision=\"first\"} 1\n");
	expect(text, "\nearshot_handovers_total{service=\"s1\",target=\"n4\",result=\"stayed\"} 1\n");
	expect(text, "\nearshot_requests_rejected_total{service=\"s8\",rule=\"(admit_low)\"} 1\n");
	free(text);
	es_tally_free(&tally);
	es_conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),	 cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_survival), cmocka_unit_test(test_certificates),
		cmocka_unit_test(test_tls),	 cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
