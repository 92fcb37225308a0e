// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply about plugins: answers, failures, metrics. */
#include <earshot/plugin.h>
#include <stdio.h>
#include "inspector/report/report.h"
#include "inspector/report/plugins.h"
#include "inspector/report/json.h"

static const char *const kinds[ES_PLUGIN_KINDS] = {
	[ES_PLUGIN_PASS] = "pass", [ES_PLUGIN_NODE] = "node",	  [ES_PLUGIN_NODES] = "nodes",
	[ES_PLUGIN_MORE] = "more", [ES_PLUGIN_REJECT] = "reject",
};

static struct json_object *metrics_of(const struct es_plugin_report *p)
{
	struct json_object *metrics = json_object_new_object();

	for (unsigned int i = 0; i < p->metric_count; i++)
		json_object_object_add(metrics, p->metric[i].name, json_object_new_int64(p->metric[i].value));
	return metrics;
}

static struct json_object *plugin_of(const struct es_conf *conf, const struct es_plugin_report *p)
{
	struct json_object *plugin = json_object_new_object(), *answers = json_object_new_object(),
			   *failures = json_object_new_object();
	char digest[32];

	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)p->digest);
	es_json_string(plugin, "service", conf->services[p->service].name);
	es_json_string(plugin, "name", p->name);
	es_json_string(plugin, "file", p->file);
	es_json_string(plugin, "plugin", p->what);
	es_json_string(plugin, "version", p->version);
	es_json_string(plugin, "description", p->description);
	es_json_string(plugin, "config_digest", digest);
	es_json_string(plugin, "fail", p->is_closed ? "closed" : "open");
	es_json_number(plugin, "budget_us", p->budget_us);
	es_json_number(plugin, "calls", p->calls);
	for (unsigned int i = 0; i < ES_PLUGIN_KINDS; i++)
		es_json_number(answers, kinds[i], p->answers[i]);
	json_object_object_add(plugin, "answers", answers);
	for (unsigned int i = 0; i < ES_PLUGIN_FAILURE_COUNT; i++)
		es_json_number(failures, es_plugin_failure_name[i], p->failures[i]);
	json_object_object_add(plugin, "failures", failures);
	es_json_fraction(plugin, "mean_us", p->mean_us, 3);
	es_json_fraction(plugin, "max_us", p->max_us, 3);
	es_json_number(plugin, "crashes", p->crashes);
	json_object_object_add(plugin, "is_off", json_object_new_boolean(p->is_off));
	es_json_string(plugin, "last_error", p->last_error);
	json_object_object_add(plugin, "metrics", metrics_of(p));
	return plugin;
}

struct json_object *es_report_plugins(const struct es_conf *conf, struct es_plugins *plugins)
{
	struct json_object *array = json_object_new_array();
	struct es_plugin_report report;

	for (unsigned int i = 0; i < es_plugins_count(plugins); i++) {
		es_plugins_describe(plugins, i, &report);
		json_object_array_add(array, plugin_of(conf, &report));
	}
	return array;
}

static void counter(struct json_object *report, const struct es_conf *conf, const struct es_plugin_report *p,
		    const char *what, unsigned long long value, const char *description)
{
	char name[3 * ES_CONF_NAME_SIZE + 64];

	snprintf(name, sizeof(name), "plugin_%s_%s_%s", conf->services[p->service].name, p->name, what);
	es_report_counter_add(report, name, value, description);
}

void es_report_plugins_counters(struct json_object *report, const struct es_conf *conf,
				struct es_plugins *plugins)
{
	struct es_plugin_report p;

	for (unsigned int i = 0; i < es_plugins_count(plugins); i++) {
		unsigned long long failures = 0;

		es_plugins_describe(plugins, i, &p);
		for (unsigned int k = 0; k < ES_PLUGIN_FAILURE_COUNT; k++)
			failures += p.failures[k];
		counter(report, conf, &p, "calls", p.calls, "requests that the plugin was asked for");
		counter(report, conf, &p, "failures", failures,
			"answers that could not be right, or came too late");
		for (unsigned int k = 0; k < p.metric_count; k++)
			counter(report, conf, &p, p.metric[k].name, (unsigned long long)p.metric[k].value,
				p.metric[k].description ? p.metric[k].description : "");
	}
}
