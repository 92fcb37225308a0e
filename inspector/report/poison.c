// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply about requests that have ended daemons. */
#include <arpa/inet.h>
#include "inspector/inspect/poison.h"
#include "inspector/report/json.h"
#include "inspector/report/poison.h"

static struct json_object *poison_of(const struct es_conf *conf, const struct es_poison *poison,
				     unsigned long long now_ns)
{
	struct json_object *object = json_object_new_object();
	char client[INET6_ADDRSTRLEN];

	es_json_string(object, "node", poison->node < conf->node_count ? conf->nodes[poison->node].name : "");
	es_json_string(object, "service",
		       poison->service < conf->service_count ? conf->services[poison->service].name : "");
	es_json_string(object, "client", es_conf_addr_text(&poison->client, client));
	es_json_number(object, "port", es_ntohs(poison->client_port));
	es_json_string(object, "daemon", poison->kind == ES_POISON_HUNG ? "hung" : "died");
	es_json_fraction(object, "age_s", (double)(now_ns - poison->at_ns) / 1e9, 1);
	return object;
}

struct json_object *es_report_poison(const struct es_conf *conf, const struct es_poisons *poisons,
				     unsigned long long now_ns)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < ES_POISONS; i++)
		if (es_poison_find(poisons, poisons->poison[i].flow_hash, 0, now_ns) == &poisons->poison[i])
			json_object_array_add(array, poison_of(conf, &poisons->poison[i], now_ns));
	return array;
}
