// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reports about plugins: their descriptions, and sums of the counts of their threads, which go on counting
 * meanwhile.
 */
#include <string.h>
#include "inspector/plugin/host_internal.h"

static unsigned long long get(const _Atomic unsigned long long *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void add(struct es_plugin_report *report, unsigned long long *time_ns, unsigned long long *max_ns,
		const struct es_plugin_thread *thread)
{
	report->calls += get(&thread->calls);
	*time_ns += get(&thread->time_ns);
	if (get(&thread->max_ns) > *max_ns)
		*max_ns = get(&thread->max_ns);
	for (unsigned int i = 0; i < ES_PLUGIN_KINDS; i++)
		report->answers[i] += get(&thread->answers[i]);
	for (unsigned int i = 0; i < ES_PLUGIN_FAILURE_COUNT; i++)
		report->failures[i] += get(&thread->failures[i]);
	for (unsigned int i = 0; i < report->metric_count; i++)
		report->metric[i].value += (long long)get(&thread->metric[i]);
}

static void describe(const struct es_plugin_instance *instance, struct es_plugin_report *report)
{
	const struct es_plugin *plugin = &instance->plugin;

	report->what = plugin->name;
	report->version = plugin->version;
	report->description = plugin->description;
	report->digest = instance->digest;
	report->metric_count = instance->metric_count;
	for (unsigned int i = 0; i < instance->metric_count; i++) {
		report->metric[i].name = plugin->metrics[i].name;
		report->metric[i].description = plugin->metrics[i].description;
		report->metric[i].is_gauge = plugin->metrics[i].is_gauge;
		report->metric[i].value = atomic_load_explicit(&instance->gauge[i], memory_order_relaxed);
	}
}

unsigned int es_plugins_count(const struct es_plugins *plugins)
{
	return plugins ? plugins->count : 0;
}

void es_plugins_describe(struct es_plugins *plugins, unsigned int index, struct es_plugin_report *ret_report)
{
	struct es_plugin_instance *instance = &plugins->instance[index];
	unsigned long long time_ns = 0, max_ns = 0;

	*ret_report = (struct es_plugin_report){
		.service = instance->conf->service,
		.name = instance->conf->name,
		.file = instance->file,
		.is_loaded = instance->object != NULL,
		.what = instance->what,
		.version = "",
		.description = "",
		.is_closed = instance->conf->fail == ES_CONF_FAIL_CLOSED,
		.budget_us = instance->conf->budget_us,
	};
	if (!instance->object)
		return;
	ret_report->crashes = atomic_load_explicit(&instance->crashes, memory_order_relaxed);
	ret_report->is_off = es_plugin_is_off(instance);
	describe(instance, ret_report);
	add(ret_report, &time_ns, &max_ns, &instance->control);
	pthread_mutex_lock(&instance->lock);
	for (const struct es_plugin_thread *t = instance->threads; t; t = t->next)
		add(ret_report, &time_ns, &max_ns, t);
	memcpy(ret_report->last_error, instance->last_error, sizeof(ret_report->last_error));
	pthread_mutex_unlock(&instance->lock);
	if (ret_report->calls)
		ret_report->mean_us = (double)time_ns / 1000 / (double)ret_report->calls;
	ret_report->max_us = (double)max_ns / 1000;
}
