/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_POISON_H
#define ES_REPORT_POISON_H

#include <json-c/json.h>
#include "inspector/config/config.h"
#include "kmod/core/poison.h"

/* es_report_poison() - requests that have ended daemons, as `status` shows them: an array */
struct json_object *es_report_poison(const struct es_conf *conf, const struct es_poisons *poisons,
				     unsigned long long now_ns);

#endif
