// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reply to `flows`: the connections of this node, as the datapath lists them.
 */
#include <arpa/inet.h>
#include "inspector/datapath/pins.h"
#include "inspector/report/report.h"

static const char *const states[ES_REPORT_FLOW_STATES] = {
	[ES_REPORT_FLOW_IDLE] = "idle",		[ES_REPORT_FLOW_SERVING] = "serving",
	[ES_REPORT_FLOW_DECIDING] = "deciding", [ES_REPORT_FLOW_PINNED] = "pinned",
	[ES_REPORT_FLOW_CLOSING] = "closing",
};

enum es_report_flow_state es_report_flow_state(const struct es_track_entry *entry)
{
	if (entry->tcp_state != ES_REPORT_TCP_ESTABLISHED)
		return ES_REPORT_FLOW_CLOSING;
	if (entry->track.pin != ES_PIN_none)
		return ES_REPORT_FLOW_PINNED;
	if (entry->track.state != ES_TRACK_SERVED)
		return ES_REPORT_FLOW_DECIDING;
	return entry->track.response.phase == ES_RESPONSE_DONE ? ES_REPORT_FLOW_IDLE : ES_REPORT_FLOW_SERVING;
}

const struct es_conf_service *es_report_flow_service(const struct es_conf *conf, const struct es_flow *flow)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_conf_service_has(&conf->services[i], &flow->service) &&
		    conf->services[i].port == es_ntohs(flow->service_port))
			return &conf->services[i];
	return NULL;
}

void es_report_flows_init(struct es_report_flows *report, const struct es_conf *conf,
			  struct json_object *request)
{
	struct json_object *value;

	*report = (struct es_report_flows){.conf = conf, .limit = ES_REPORT_FLOWS_DEFAULT};
	report->flows = json_object_new_array();
	if (json_object_object_get_ex(request, "limit", &value) && json_object_get_int64(value) >= 0)
		report->limit = (unsigned long long)json_object_get_int64(value);
	if (report->limit > ES_REPORT_FLOWS_MAX)
		report->limit = ES_REPORT_FLOWS_MAX;
	report->only_pinned =
		json_object_object_get_ex(request, "pinned", &value) && json_object_get_boolean(value);
}

void es_report_flows_add(void *ctx, const void *data)
{
	const struct es_track_entry *entry = data;
	const enum es_report_flow_state state = es_report_flow_state(entry);
	struct es_report_flows *report = ctx;
	const struct es_conf_service *service;
	struct json_object *flow;
	char text[INET6_ADDRSTRLEN];

	report->total++;
	report->states[state]++;
	if ((report->only_pinned && entry->track.pin == ES_PIN_none) ||
	    json_object_array_length(report->flows) >= report->limit)
		return;
	service = es_report_flow_service(report->conf, &entry->flow);
	flow = json_object_new_object();
	json_object_object_add(flow, "address",
			       json_object_new_string(es_conf_addr_text(&entry->flow.client, text)));
	json_object_object_add(flow, "port", json_object_new_int(es_ntohs(entry->flow.client_port)));
	json_object_object_add(flow, "service", json_object_new_string(service ? service->name : "?"));
	json_object_object_add(flow, "state", json_object_new_string(states[state]));
	json_object_object_add(flow, "requests", json_object_new_uint64(entry->track.requests));
	json_object_object_add(flow, "moves", json_object_new_uint64(entry->track.moves));
	json_object_object_add(flow, "pin", json_object_new_string(es_pin_name(entry->track.pin)));
	json_object_array_add(report->flows, flow);
}

static void add_kept(void *ctx, const struct es_kept *kept, unsigned long long told_ns)
{
	struct es_report_flows *report = ctx;
	const struct es_conf_service *service = es_report_flow_service(report->conf, &kept->flow);
	struct json_object *flow = json_object_new_object();
	char text[INET6_ADDRSTRLEN];

	(void)told_ns;
	json_object_object_add(flow, "address",
			       json_object_new_string(es_conf_addr_text(&kept->flow.client, text)));
	json_object_object_add(flow, "port", json_object_new_int(es_ntohs(kept->flow.client_port)));
	json_object_object_add(flow, "service", json_object_new_string(service ? service->name : "?"));
	json_object_object_add(flow, "node",
			       json_object_new_string(kept->owner < report->conf->node_count
							      ? report->conf->nodes[kept->owner].name
							      : "?"));
	json_object_array_add(json_object_object_get(report->kept, "flows"), flow);
}

void es_report_flows_kept(struct es_report_flows *report, struct es_directory *directory, unsigned int told)
{
	struct json_object *kept = json_object_new_object();
	struct es_directory_figures figures;

	es_directory_figures(directory, &figures);
	json_object_object_add(kept, "own", json_object_new_uint64(told));
	json_object_object_add(kept, "total", json_object_new_uint64(figures.entries));
	json_object_object_add(kept, "bytes", json_object_new_uint64(figures.bytes));
	json_object_object_add(kept, "told", json_object_new_uint64(figures.told));
	json_object_object_add(kept, "forgotten", json_object_new_uint64(figures.forgotten));
	json_object_object_add(kept, "expired", json_object_new_uint64(figures.expired));
	json_object_object_add(kept, "dropped", json_object_new_uint64(figures.dropped));
	json_object_object_add(kept, "flows", json_object_new_array());
	report->kept = kept;
	es_directory_list(directory, report->limit, add_kept, report);
}

struct json_object *es_report_flows_finish(struct es_report_flows *report)
{
	struct json_object *result = json_object_new_object(), *by_state = json_object_new_object();

	json_object_object_add(result, "total", json_object_new_uint64(report->total));
	for (int i = 0; i < ES_REPORT_FLOW_STATES; i++)
		json_object_object_add(by_state, states[i], json_object_new_uint64(report->states[i]));
	json_object_object_add(result, "states", by_state);
	json_object_object_add(result, "flows", report->flows);
	json_object_object_add(result, "kept", report->kept);
	if (report->waiting)
		json_object_object_add(result, "waiting", report->waiting);
	if (report->downloads)
		json_object_object_add(result, "downloads", report->downloads);
	report->flows = report->kept = report->waiting = report->downloads = NULL;
	return result;
}
