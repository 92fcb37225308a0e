// SPDX-License-Identifier: GPL-2.0-or-later
/* The metrics of earshot-tls. Each of its counters is one sample of a family, or the sum of some others. */
#include "inspector/status/metrics_tls.h"

#include <stddef.h>

struct sample {
	enum es_ledger_counter counter;
	const char *label;
	const char *value;
	const char *label2;
	const char *value2;
};

struct family {
	const char *name;
	const char *help;
	struct sample sample[8];
};

#define COUNT(counter, ...)                                                                                  \
	{                                                                                                    \
		ES_LEDGER_##counter, __VA_ARGS__                                                             \
	}
#define END                                                                                                  \
	{                                                                                                    \
		ES_LEDGER_COUNTER_COUNT, NULL, NULL, NULL, NULL                                              \
	}
#define PLAIN(counter)                                                                                       \
	{                                                                                                    \
		COUNT(counter, NULL, NULL, NULL, NULL), END                                                  \
	}
#define BY(counter, label, value) COUNT(counter, label, value, NULL, NULL)

static const struct family families[] = {
	{"tls_connections_accepted", "Connections that clients have made", PLAIN(accepted)},
	{"tls_handshakes",
	 "Handshakes that were completed, by version and kind: with a ticket (resumed) or in full",
	 {COUNT(full_12, "version", "1.2", "kind", "full"),
	  COUNT(resumed_12, "version", "1.2", "kind", "resumed"),
	  COUNT(full_13, "version", "1.3", "kind", "full"),
	  COUNT(resumed_13, "version", "1.3", "kind", "resumed"), END}},
	{"tls_handshakes_failed",
	 "Handshakes that failed, by reason",
	 {BY(failed_no_tls, "reason", "no_tls"), BY(failed_nothing_common, "reason", "nothing_common"),
	  BY(failed_alert, "reason", "alert"), BY(failed_certificate, "reason", "certificate"),
	  BY(failed_left, "reason", "left"), BY(handshakes_late, "reason", "late"),
	  BY(failed_other, "reason", "other"), END}},
	{"tls_arrivals",
	 "Connections that other nodes have moved here, by what became of their state",
	 {BY(arrived, "result", "taken"), BY(arrived_bad, "result", "bad"),
	  BY(arrived_late, "result", "late"), BY(arrived_repeated, "result", "repeated"),
	  BY(arrived_unknown, "result", "unknown"), BY(arrived_full, "result", "full"), END}},
	{"tls_moves",
	 "Connections that should move to another node, by what became of that",
	 {BY(moved, "result", "moved"), BY(stayed_unsealable, "result", "unsealable"),
	  BY(stayed_unacknowledged, "result", "unacknowledged"), BY(stayed_ended, "result", "ended"),
	  BY(stayed_refused, "result", "refused"), BY(moves_lost, "result", "lost"), END}},
	{"tls_requests", "Requests that were read, refused ones too", PLAIN(requests)},
	{"tls_requests_refused",
	 "Requests that got no node, by who has refused them",
	 {BY(requests_bad, "by", "syntax"), BY(refused, "by", "daemon"), END}},
	{"tls_questions", "Questions to the daemon about requests", PLAIN(asked)},
	{"tls_questions_unanswered", "Questions to which no answer came in time", PLAIN(asked_in_vain)},
	{"tls_upstream_connections", "Connections to the server behind", PLAIN(upstream_connected)},
	{"tls_upstream_reused", "Requests on such a connection that was there", PLAIN(upstream_reused)},
	{"tls_upstream_failures",
	 "Failures of the server behind: no answer (502, 504), one that is none or was cut off, and "
	 "connections that it had ended, whose request was sent again",
	 {BY(upstream_failed, "result", "unanswered"), BY(upstream_bad, "result", "bad"),
	  BY(upstream_repeated, "result", "repeated"), END}},
	{"tls_tunnels", "Connections that were upgraded (101)", PLAIN(tunnels)},
	{"tls_records_bad", "Connections that ended for a record that the client has sent",
	 PLAIN(records_bad)},
	{"tls_bytes",
	 "Bytes from and to clients, encrypted",
	 {BY(bytes_in, "direction", "in"), BY(bytes_out, "direction", "out"), END}},
};

static int is_shown(const struct es_ledger *ledger, unsigned int s)
{
	return ledger->head.service[s].name[0] && ledger->head.service[s].state != ES_LEDGER_GONE;
}

static void put_gauges(struct es_exposition *e, const struct es_ledger *ledger)
{
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "tls_up", "Whether earshot-tls runs on this node");
	es_exposition_count(e, (unsigned int)ledger->runs, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "tls_workers",
			     "Processes of earshot-tls that serve clients, by whether they accept more");
	es_exposition_count(e, ledger->runs ? ledger->head.workers : 0, "state", "accepting", NULL);
	es_exposition_count(e, ledger->runs ? ledger->head.leaving : 0, "state", "leaving", NULL);
	es_exposition_family(e, ES_EXPOSITION_COUNTER, "tls_workers_died",
			     "Such processes that ended without having been told to");
	es_exposition_count(e, ledger->head.died, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "tls_service_up",
			     "Whether earshot-tls serves the service on this node");
	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
		if (is_shown(ledger, s))
			es_exposition_count(e,
					    ledger->runs && ledger->head.service[s].state == ES_LEDGER_SERVED,
					    "service", ledger->head.service[s].name, NULL);
	es_exposition_family(e, ES_EXPOSITION_GAUGE, "tls_connections",
			     "Connections of clients that are open");
	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
		if (is_shown(ledger, s))
			es_exposition_count(e,
					    ledger->runs ? es_ledger_open_connections(ledger->count[s]) : 0,
					    "service", ledger->head.service[s].name, NULL);
}

static void put_family(struct es_exposition *e, const struct family *family, const struct es_ledger *ledger)
{
	es_exposition_family(e, ES_EXPOSITION_COUNTER, family->name, family->help);
	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
		for (const struct sample *i = family->sample;
		     is_shown(ledger, s) && i->counter != ES_LEDGER_COUNTER_COUNT; i++)
			es_exposition_count(e, ledger->count[s][i->counter], "service",
					    ledger->head.service[s].name, i->label, i->value, i->label2,
					    i->value2, NULL);
}

void es_metrics_tls_put(struct es_exposition *e, const struct es_ledger *ledger)
{
	put_gauges(e, ledger);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		put_family(e, &families[i], ledger);
}
