// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply about earshot-tls. */
#include "inspector/report/tls.h"

#include "inspector/report/json.h"
#include "inspector/report/report.h"

static struct json_object *service_of(const struct es_ledger *ledger, unsigned int s)
{
	const struct es_ledger_service *service = &ledger->head.service[s];
	struct json_object *object = json_object_new_object(), *counters = json_object_new_object();

	es_json_string(object, "name", service->name);
	json_object_object_add(object, "served",
			       json_object_new_boolean(ledger->runs && service->state == ES_LEDGER_SERVED));
	es_json_string(object, "problem", service->why);
	es_json_number(object, "connections",
		       ledger->runs ? es_ledger_open_connections(ledger->count[s]) : 0);
	for (unsigned int i = 0; i < ES_LEDGER_COUNTER_COUNT; i++)
		es_json_number(counters, es_ledger_counter_name[i], ledger->count[s][i]);
	json_object_object_add(object, "counters", counters);
	return object;
}

struct json_object *es_report_tls(const struct es_ledger *ledger, unsigned long long wall_ns)
{
	const struct es_ledger_head *head = &ledger->head;
	struct json_object *object = json_object_new_object(), *services = json_object_new_array();
	int lives = ledger->runs && wall_ns > head->started_wall_ns && head->started_wall_ns;

	json_object_object_add(object, "running", json_object_new_boolean(ledger->runs));
	es_json_number(object, "pid", ledger->runs ? head->pid : 0);
	es_json_number(object, "workers", ledger->runs ? head->workers : 0);
	es_json_number(object, "leaving", ledger->runs ? head->leaving : 0);
	es_json_number(object, "died", head->died);
	es_json_fraction(object, "uptime_s", lives ? (double)(wall_ns - head->started_wall_ns) / 1e9 : 0, 3);
	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
		if (head->service[s].name[0] && head->service[s].state != ES_LEDGER_GONE)
			json_object_array_add(services, service_of(ledger, s));
	json_object_object_add(object, "services", services);
	return object;
}

void es_report_tls_counters(struct json_object *report, const struct es_ledger *ledger)
{
	for (unsigned int i = 0; i < ES_LEDGER_COUNTER_COUNT; i++) {
		unsigned long long sum = 0;
		char name[64];

		for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
			sum += ledger->count[s][i];
		snprintf(name, sizeof(name), "tls_%s", es_ledger_counter_name[i]);
		es_report_counter_add(report, name, sum, es_ledger_counter_text[i]);
	}
}
