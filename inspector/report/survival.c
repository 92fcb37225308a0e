// SPDX-License-Identifier: GPL-2.0-or-later
/* Other nodes' idle connections and long responses, in `flows` and in `counters`. */
#include <stdio.h>
#include "inspector/report/survival.h"

#include "inspector/report/json.h"
#include "inspector/report/report.h"

struct json_object *es_report_downloads(const struct es_resume_figures *figures,
					const struct es_downloads *own, const struct es_downloads *others)
{
	struct json_object *report = json_object_new_object(), *reset = json_object_new_object();
	size_t own_bytes, bytes;

	es_json_number(report, "own", es_downloads_count(own, &own_bytes));
	es_json_number(report, "total", es_downloads_count(others, &bytes));
	es_json_number(report, "bytes", own_bytes + bytes);
	es_json_number(report, "told", figures->told);
	es_json_number(report, "whole", figures->whole);
	es_json_number(report, "broken", figures->broken);
	for (unsigned int i = ES_RESUME_WHY_none + 1; i < ES_RESUME_WHY_COUNT; i++)
		es_json_number(reset, es_resume_why_name[i], figures->reset[i]);
	json_object_object_add(report, "reset", reset);
	return report;
}

struct json_object *es_report_waiting(unsigned int own, const struct es_directory_figures *waiting)
{
	struct json_object *report = json_object_new_object();

	es_json_number(report, "own", own);
	es_json_number(report, "total", waiting->entries);
	es_json_number(report, "bytes", waiting->bytes);
	es_json_number(report, "told", waiting->told);
	es_json_number(report, "dropped", waiting->dropped);
	return report;
}

void es_report_survival_counters(struct json_object *report, const struct es_directory_figures *kept,
				 const struct es_directory_figures *waiting,
				 const struct es_resume_figures *downloads)
{
	char name[64], text[160];

	es_report_counter_add(report, "kept_told", kept->told,
			      "records of other nodes' idle connections that came, each time");
	es_report_counter_add(report, "kept_forgotten", kept->forgotten,
			      "of these, records that their nodes have taken back");
	es_report_counter_add(report, "kept_expired", kept->expired,
			      "of these, records that were not told again in time");
	es_report_counter_add(report, "kept_dropped", kept->dropped,
			      "of these, records that had to make room: their connections would not survive");
	es_report_counter_add(
		report, "waiting_told", waiting->told,
		"records of other nodes' clients that have waited for an answer for a second, each "
		"time");
	es_report_counter_add(report, "waiting_dropped", waiting->dropped,
			      "of these, records that had to make room");
	es_report_counter_add(report, "downloads_told", downloads->told,
			      "records of other nodes' long responses that came, each time");
	es_report_counter_add(report, "downloads_whole", downloads->whole,
			      "long responses of a lost node that were sent to their end here");
	es_report_counter_add(report, "downloads_broken", downloads->broken,
			      "such responses that were begun here, and did not come to their end");
	for (unsigned int i = ES_RESUME_WHY_none + 1; i < ES_RESUME_WHY_COUNT; i++) {
		snprintf(name, sizeof(name), "downloads_reset_%s", es_resume_why_name[i]);
		snprintf(text, sizeof(text), "such responses answered with RST at once: %s",
			 es_resume_why_text[i]);
		es_report_counter_add(report, name, downloads->reset[i], text);
	}
}
