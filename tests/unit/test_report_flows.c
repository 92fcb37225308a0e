// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replies of the control socket about connections, those of lost nodes among them, and what a crash of a
 * node would do: they have the shape that docs/json.md promises, and the counters tell the same numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "inspector/base/json.h"
#include "inspector/report/crash.h"
#include "inspector/report/report.h"
#include "inspector/report/survival.h"
#include "kmod/core/counters.h"
#include "tests/unit/report_world.h"

static struct es_track_entry flow_entry(__u16 port, enum es_pin pin, enum es_response_phase phase)
{
	struct es_track_entry entry = {
		.flow = {.client = es_addr_from_v4(es_htonl(0x0a4d0101)),
			 .service = conf->services[0].address,
			 .client_port = es_htons(port),
			 .service_port = es_htons(conf->services[0].port)},
		.tcp_state = ES_REPORT_TCP_ESTABLISHED,
	};

	entry.track.requests = 17;
	entry.track.moves = 5;
	entry.track.pin = (__u8)pin;
	entry.track.response.phase = (__u8)phase;
	return entry;
}

static void test_flows(void **state)
{
	struct json_object *request = json_tokener_parse("{\"command\":\"flows\",\"limit\":2}"), *built;
	struct es_track_entry entry[] = {
		flow_entry(40312, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(40318, ES_PIN_upgrade, ES_RESPONSE_UPGRADED),
		flow_entry(40319, ES_PIN_none, ES_RESPONSE_BODY),
		flow_entry(40320, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(40321, ES_PIN_none, ES_RESPONSE_DONE),
	};
	const struct es_kept kept = {
		.flow = {.client = es_addr_from_v4(es_htonl(0x0a4d0109)), .client_port = es_htons(51200)},
		.owner = 1,
	};
	const struct es_resume_figures figures = {.told = 9, .whole = 3};
	const struct es_directory_figures waiting = {.entries = 1, .told = 4};
	struct es_report_flows report;
	struct es_directory *directory;

	(void)state;
	assert_int_equal(es_directory_new(8, &directory), 0);
	es_directory_keep(directory, 1, &kept, 0);
	entry[3].track.state = ES_TRACK_QUEUED;
	entry[4].tcp_state = 8;
	es_report_flows_init(&report, conf, request);
	for (size_t i = 0; i < sizeof(entry) / sizeof(entry[0]); i++)
		es_report_flows_add(&report, &entry[i]);
	es_report_flows_kept(&report, directory, 1);
	report.waiting = es_report_waiting(2, &waiting);
	report.downloads = es_report_downloads(&figures, NULL, NULL);
	built = es_report_flows_finish(&report);
	expect_as_documented("flows", built);
	json_object_object_del(built, "downloads");
	json_object_object_del(built, "waiting");
	assert_string_equal(
		json_object_to_json_string_ext(built, JSON_C_TO_STRING_PLAIN),
		"{\"total\":5,\"states\":{\"idle\":1,\"serving\":1,\"deciding\":1,\"pinned\":1,\"closing\":1}"
		","
		"\"flows\":[{\"address\":\"10.77.1.1\",\"port\":40312,\"service\":\"web\",\"state\":\"idle\","
		"\"requests\":17,\"moves\":5,\"pin\":\"none\"},{\"address\":\"10.77.1.1\",\"port\":40318,"
		"\"service\":\"web\",\"state\":\"pinned\",\"requests\":17,\"moves\":5,\"pin\":\"upgrade\"}],"
		"\"kept\":{\"own\":1,\"total\":1,\"bytes\":1576,\"told\":1,\"forgotten\":0,\"expired\":0,"
		"\"dropped\":0,\"flows\":[{\"address\":\"10.77.1.9\",\"port\":51200,\"service\":\"?\","
		"\"node\":\"n2\"}]}}");
	es_directory_free(&directory);
	json_object_put(built);
	json_object_object_add(request, "pinned", json_object_new_boolean(1));
	es_report_flows_init(&report, conf, request);
	for (size_t i = 0; i < sizeof(entry) / sizeof(entry[0]); i++)
		es_report_flows_add(&report, &entry[i]);
	built = es_report_flows_finish(&report);
	assert_int_equal(json_object_array_length(json_object_object_get(built, "flows")), 1);
	json_object_put(built);
	json_object_put(request);
}

/*
 * Each number of @object, whose name begins with @prefix in `counters`. Returns how many there were.
 */
static size_t expect_counted(struct json_object *counters, struct json_object *object, const char *prefix)
{
	size_t count = 0;
	char name[64];

	json_object_object_foreach(object, key, value)
	{
		struct json_object *counter;

		if (json_object_is_type(value, json_type_object)) {
			snprintf(name, sizeof(name), "%s%s_", prefix, key);
			count += expect_counted(counters, value, name);
			continue;
		}
		snprintf(name, sizeof(name), "%s%s", prefix, key);
		counter = es_json_find(counters, "name", name);
		if (!counter)
			fail_msg("no counter %s", name);
		assert_int_equal(es_json_number(counter, "value"), json_object_get_uint64(value));
		assert_true(*es_json_string(counter, "description"));
		count++;
	}
	return count;
}

/* All that `flows` has counted of other nodes' connections, `counters` has under the same names. */
static void test_survival(void **state)
{
	const struct es_directory_figures kept = {.told = 12, .forgotten = 3, .expired = 2, .dropped = 1};
	const struct es_directory_figures waiting = {.entries = 8, .told = 7, .dropped = 6};
	struct es_resume_figures figures = {.told = 9, .whole = 3, .broken = 1};
	struct json_object *report = json_tokener_parse("{\"counters\":[]}"), *downloads, *clients,
			   *idle = json_tokener_parse(
				   "{\"told\":12,\"forgotten\":3,\"expired\":2,\"dropped\":1}");
	struct json_object *counters = json_object_object_get(report, "counters");

	(void)state;
	for (unsigned int i = 0; i < ES_RESUME_WHY_COUNT; i++)
		figures.reset[i] = 100 + i;
	es_report_survival_counters(report, &kept, &waiting, &figures);
	assert_int_equal(expect_counted(counters, idle, "kept_"), 4);
	downloads = es_report_downloads(&figures, NULL, NULL);
	clients = es_report_waiting(3, &waiting);
	/* How many there are now is no counter. */
	json_object_object_del(downloads, "own");
	json_object_object_del(downloads, "total");
	json_object_object_del(downloads, "bytes");
	json_object_object_del(clients, "own");
	json_object_object_del(clients, "total");
	json_object_object_del(clients, "bytes");
	assert_int_equal(expect_counted(counters, clients, "waiting_"), 2);
	assert_int_equal(expect_counted(counters, downloads, "downloads_"), 3 + ES_RESUME_WHY_COUNT - 1);
	assert_int_equal(json_object_array_length(counters), 4 + 2 + 3 + ES_RESUME_WHY_COUNT - 1);
	json_object_put(clients);
	json_object_put(downloads);
	json_object_put(idle);
	json_object_put(report);
}

/* By service, each connection with its reason; those that are closing, or of no service, do not count. */
static void test_crash(void **state)
{
	struct es_track_entry entry[] = {
		flow_entry(1, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(2, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(3, ES_PIN_none, ES_RESPONSE_BODY),
		flow_entry(4, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(5, ES_PIN_upgrade, ES_RESPONSE_UPGRADED),
		flow_entry(6, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(7, ES_PIN_none, ES_RESPONSE_DONE),
		flow_entry(8, ES_PIN_none, ES_RESPONSE_BODY),
	};
	struct es_report_crash report = {};
	struct json_object *built;

	(void)state;
	conf->services[0].survive = 1;
	entry[3].track.state = ES_TRACK_QUEUED;
	entry[5].tcp_state = 8;
	entry[6].flow.service_port = es_htons(1);
	for (size_t i = 0; i < sizeof(entry) / sizeof(entry[0]); i++)
		es_report_crash_add(&report, conf, &entry[i], i != 1 && i != 2);
	conf->services[0].survive = 0;
	es_report_crash_add(&report, conf, &entry[0], 1);
	report.fates[1][ES_CRASH_UNREAD] = 4;
	built = es_report_crash_finish(&report, conf, "n2");
	expect_as_documented("crash", built);
	assert_string_equal(
		json_object_to_json_string_ext(built, JSON_C_TO_STRING_PLAIN),
		"{\"node\":\"n2\",\"from\":\"n2\",\"partial\":false,\"survive\":1,\"resume\":1,\"reset\":9,"
		"\"services\":["
		"{\"service\":\"web\",\"survive\":1,\"resume\":1,\"reset\":5,\"reasons\":{\"answering\":1,"
		"\"deciding\":1,\"pinned\":1,\"not_told\":1,\"off\":1,\"unread\":0}},"
		"{\"service\":\"l4\",\"survive\":0,\"resume\":0,\"reset\":4,\"reasons\":{\"answering\":0,"
		"\"deciding\":0,\"pinned\":0,\"not_told\":0,\"off\":0,\"unread\":4}}]}");
	json_object_put(built);
}

/* A node that can only tell what it keeps for another one says so. */
static void test_crash_part(void **state)
{
	const struct es_report_crash_part part = {.node = "n2", .from = "n1", .is_lost = 1};
	struct es_track_entry web = flow_entry(1, ES_PIN_none, ES_RESPONSE_DONE), none = web;
	struct es_report_crash report = {};
	struct json_object *built;

	(void)state;
	none.flow.service_port = es_htons(1);
	es_report_crash_kept(&report, conf, &web.flow, ES_CRASH_SURVIVES);
	es_report_crash_kept(&report, conf, &web.flow, ES_CRASH_SURVIVES);
	es_report_crash_kept(&report, conf, &web.flow, ES_CRASH_RESUMES);
	es_report_crash_kept(&report, conf, &web.flow, ES_CRASH_ANSWERING);
	es_report_crash_kept(&report, conf, &none.flow, ES_CRASH_SURVIVES);
	built = es_report_crash_part(&report, conf, &part);
	expect_as_documented("crash_part", built);
	assert_string_equal(
		json_object_to_json_string_ext(built, JSON_C_TO_STRING_PLAIN),
		"{\"node\":\"n2\",\"from\":\"n1\",\"partial\":true,\"lost\":true,\"awaited\":false,"
		"\"survive\":2,\"resume\":1,\"reset\":1,\"services\":["
		"{\"service\":\"web\",\"survive\":2,\"resume\":1,\"reset\":1},"
		"{\"service\":\"l4\",\"survive\":0,\"resume\":0,\"reset\":0}]}");
	json_object_put(built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_survival),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_crash_part),
	};

	return cmocka_run_group_tests_name("report_flows", tests, load, unload);
}
