// SPDX-License-Identifier: GPL-2.0-or-later
/* How `earshot drain`, `undrain` and `weight` begin, for a node as for a service on it. */
#include <string.h>
#include <time.h>

#include "inspector/base/when.h"
#include "inspector/cli/drain.h"
#include "inspector/self/by_hand.h"

double es_cli_drain_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A time like "2h"; 0 without one. */
static int for_read(const char *text, unsigned long long *ret_s)
{
	double span_s = 0;

	*ret_s = 0;
	if (!text)
		return ES_CLI_OK;
	if (es_when_span(text, &span_s) || span_s < 1 || span_s > ES_BY_HAND_SECONDS_MAX)
		return es_cli_usage(
			"drain: bad --for \"%.80s\": expected e.g. 90s, 30m, 2h or 7d, at most 366d", text);
	*ret_s = (unsigned long long)span_s;
	return ES_CLI_OK;
}

struct json_object *es_cli_drain_request(const struct es_cli *cli, const char *command)
{
	struct json_object *request;
	unsigned long long for_s;

	if (for_read(cli->for_time, &for_s))
		return NULL;
	if (cli->reason && strlen(cli->reason) >= ES_WIRE_WHY_SIZE) {
		es_cli_usage("--reason has %zu bytes: expected at most %d", strlen(cli->reason),
			     ES_WIRE_WHY_SIZE - 1);
		return NULL;
	}
	request = es_cli_command_request(command);
	json_object_object_add(request, "by", json_object_new_string(es_cli_operator()));
	if (cli->reason)
		json_object_object_add(request, "reason", json_object_new_string(cli->reason));
	if (for_s)
		json_object_object_add(request, "for_s", json_object_new_uint64(for_s));
	return request;
}
