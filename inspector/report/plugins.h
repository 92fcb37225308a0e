/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_PLUGINS_H
#define ES_REPORT_PLUGINS_H

/* Plugins in `earshot status` and `earshot counters`, in the shape of docs/json.md. */
#include <json-c/json.h>
#include "inspector/plugin/host.h"

/* es_report_plugins() - an array, in the configuration's order; the caller's */
struct json_object *es_report_plugins(const struct es_conf *conf, struct es_plugins *plugins);

/* es_report_plugins_counters() - add to a report of es_report_counters(): plugin_SERVICE_NAME_WHAT */
void es_report_plugins_counters(struct json_object *report, const struct es_conf *conf,
				struct es_plugins *plugins);

#endif
