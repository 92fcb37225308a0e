// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts connections by what a crash of their node would do to them. */
#include "inspector/report/crash.h"
#include "inspector/report/report.h"

static const char *const fates[ES_CRASH_FATES] = {
	[ES_CRASH_SURVIVES] = "survive",  [ES_CRASH_RESUMES] = "resume", [ES_CRASH_ANSWERING] = "answering",
	[ES_CRASH_DECIDING] = "deciding", [ES_CRASH_PINNED] = "pinned",	 [ES_CRASH_NOT_TOLD] = "not_told",
	[ES_CRASH_OFF] = "off",		  [ES_CRASH_UNREAD] = "unread",
};

static enum es_crash_fate idle_fate(const struct es_conf_service *service, int is_told)
{
	if (!service->survive)
		return ES_CRASH_OFF;
	return is_told ? ES_CRASH_SURVIVES : ES_CRASH_NOT_TOLD;
}

void es_report_crash_add(struct es_report_crash *report, const struct es_conf *conf,
			 const struct es_track_entry *entry, int is_told)
{
	const struct es_conf_service *service = es_report_flow_service(conf, &entry->flow);
	unsigned long long *of;

	if (!service)
		return;
	of = report->fates[service - conf->services];
	switch (es_report_flow_state(entry)) {
	case ES_REPORT_FLOW_IDLE:
		of[idle_fate(service, is_told)]++;
		break;
	case ES_REPORT_FLOW_SERVING:
		of[is_told ? ES_CRASH_RESUMES : ES_CRASH_ANSWERING]++;
		break;
	case ES_REPORT_FLOW_DECIDING:
		of[ES_CRASH_DECIDING]++;
		break;
	case ES_REPORT_FLOW_PINNED:
		of[ES_CRASH_PINNED]++;
		break;
	default: /* closing: its client has what it wanted */
		break;
	}
}

/* Adds them to @object, by their names. Returns how many end. */
static unsigned long long fates_put(struct json_object *object, const unsigned long long of[ES_CRASH_FATES])
{
	struct json_object *reset = json_object_new_object();
	unsigned long long ends = 0;

	for (int i = ES_CRASH_RESUMES + 1; i < ES_CRASH_FATES; i++) {
		json_object_object_add(reset, fates[i], json_object_new_uint64(of[i]));
		ends += of[i];
	}
	for (int i = ES_CRASH_SURVIVES; i <= ES_CRASH_RESUMES; i++)
		json_object_object_add(object, fates[i], json_object_new_uint64(of[i]));
	json_object_object_add(object, "reset", json_object_new_uint64(ends));
	json_object_object_add(object, "reasons", reset);
	return ends;
}

void es_report_crash_kept(struct es_report_crash *report, const struct es_conf *conf,
			  const struct es_flow *flow, enum es_crash_fate fate)
{
	const struct es_conf_service *service = es_report_flow_service(conf, flow);

	if (service)
		report->fates[service - conf->services][fate]++;
}

static void head_put(struct json_object *result, const char *node, const char *from, int is_partial)
{
	json_object_object_add(result, "node", json_object_new_string(node));
	json_object_object_add(result, "from", json_object_new_string(from));
	json_object_object_add(result, "partial", json_object_new_boolean(is_partial));
}

/* @with_reasons: of those that end. Each is by service, and all together are before them. */
static void services_put(struct json_object *result, const struct es_report_crash *report,
			 const struct es_conf *conf, int with_reasons)
{
	struct json_object *services = json_object_new_array();
	unsigned long long survive = 0, resume = 0, reset = 0;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		struct json_object *service = json_object_new_object();

		json_object_object_add(service, "service", json_object_new_string(conf->services[i].name));
		reset += fates_put(service, report->fates[i]);
		if (!with_reasons)
			json_object_object_del(service, "reasons");
		survive += report->fates[i][ES_CRASH_SURVIVES];
		resume += report->fates[i][ES_CRASH_RESUMES];
		json_object_array_add(services, service);
	}
	json_object_object_add(result, "survive", json_object_new_uint64(survive));
	json_object_object_add(result, "resume", json_object_new_uint64(resume));
	json_object_object_add(result, "reset", json_object_new_uint64(reset));
	json_object_object_add(result, "services", services);
}

struct json_object *es_report_crash_part(const struct es_report_crash *report, const struct es_conf *conf,
					 const struct es_report_crash_part *part)
{
	struct json_object *result = json_object_new_object();

	head_put(result, part->node, part->from, 1);
	json_object_object_add(result, "lost", json_object_new_boolean(part->is_lost));
	json_object_object_add(result, "awaited", json_object_new_boolean(part->is_awaited));
	services_put(result, report, conf, 0);
	return result;
}

struct json_object *es_report_crash_finish(const struct es_report_crash *report, const struct es_conf *conf,
					   const char *node)
{
	struct json_object *result = json_object_new_object();

	head_put(result, node, node, 0);
	services_put(result, report, conf, 1);
	return result;
}
