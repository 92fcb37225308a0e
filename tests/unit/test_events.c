// SPDX-License-Identifier: GPL-2.0-or-later
/* The journal of events: it outlives who wrote it, stays small, and survives a line that was torn. */
#include "tests/unit/cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/event.h"

static char directory[64], path[128], older[160];

/* The log. */
void es_log(enum es_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

void es_log_fields(enum es_log_level level, const char *kind, const char *node, const char *text)
{
	(void)level;
	(void)kind;
	(void)node;
	(void)text;
}

static int set_up(void **state)
{

	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/events-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/n1.events", directory);
	snprintf(older, sizeof(older), "%s.1", path);
	return es_event_open(path, "n1");
}

static int tear_down(void **state)
{
	(void)state;
	es_event_close();
	unlink(path);
	unlink(older);
	return rmdir(directory);
}

static void test_outlives_the_daemon(void **state)
{
	struct es_event event[4];

	(void)state;
	es_event(ES_EVENT_start, ES_LOG_INFO, NULL, "node %s", "n1");
	es_event(ES_EVENT_crash, ES_LOG_WARNING, "n3", "n3 left: \"died\"\nh\xe9re: \xc3\xa9");
	assert_int_equal(es_event_open(path, "n1"), 0);
	es_event(ES_EVENT_start, ES_LOG_INFO, NULL, "again");
	assert_int_equal(es_event_newest(event, 4), 3);
	assert_int_equal(event[0].kind, ES_EVENT_start);
	assert_string_equal(event[0].node, "n1");
	assert_int_equal(event[1].kind, ES_EVENT_crash);
	assert_int_equal(event[1].level, ES_LOG_WARNING);
	assert_string_equal(event[1].node, "n3");
	assert_string_equal(event[1].text, "n3 left: \"died\" h?re: \xc3\xa9");
	assert_true(event[2].id == 3 && event[1].id == 2 && event[2].time_ms >= event[1].time_ms);
	assert_int_equal(es_event_newest(event, 2), 2);
	assert_string_equal(event[1].text, "again");
}

static void test_torn_line(void **state)
{
	struct es_event event[4];
	FILE *file;

	(void)state;
	es_event(ES_EVENT_join, ES_LOG_INFO, "n2", "n2 joined");
	es_event_close();
	file = fopen(path, "a");
	assert_non_null(file);
	fputs("{\"id\":2,\"time_ms\":17,\"kind\":\"jo", file);
	fclose(file);
	assert_int_equal(es_event_open(path, "n1"), 0);
	es_event(ES_EVENT_leave, ES_LOG_INFO, "n2", "n2 left");
	assert_int_equal(es_event_open(path, "n1"), 0);
	assert_int_equal(es_event_newest(event, 4), 2);
	assert_string_equal(event[0].text, "n2 joined");
	assert_string_equal(event[1].text, "n2 left");
}

static void count_up(void *ctx, const struct es_event *event)
{
	unsigned long long *last = ctx;

	if (*last)
		assert_int_equal(event->id, *last + 1);
	*last = event->id;
}

static void test_stays_small(void **state)
{
	unsigned long long last = 0;
	struct es_event newest;
	struct stat st;

	(void)state;
	for (unsigned int i = 0; i < 6000; i++)
		es_event(ES_EVENT_ring, ES_LOG_INFO, NULL, "%0100u", i);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= ES_EVENT_FILE_MAX);
	assert_int_equal(stat(older, &st), 0);
	assert_true(st.st_size <= ES_EVENT_FILE_MAX && st.st_size > ES_EVENT_FILE_MAX / 2);
	assert_int_equal(es_event_read(path, count_up, &last), 0);
	assert_int_equal(last, 6000);
	assert_int_equal(es_event_open(path, "n1"), 0);
	assert_int_equal(es_event_newest(&newest, 1), 1);
	assert_int_equal(newest.id, 6000);
}

static void test_without_a_file(void **state)
{
	struct es_event newest;

	(void)state;
	assert_true(es_event_open("/nonexistent/n1.events", "n1") < 0);
	es_event(ES_EVENT_stop, ES_LOG_INFO, NULL, "stops");
	assert_int_equal(es_event_newest(&newest, 1), 1);
	assert_string_equal(newest.text, "stops");
}

static void test_kinds(void **state)
{
	(void)state;
	for (int i = 0; i < ES_EVENT_KIND_COUNT; i++)
		assert_int_equal(es_event_kind_of(es_event_kind_name((enum es_event_kind)i)), i);
	assert_int_equal(es_event_kind_of("jo"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_outlives_the_daemon, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_torn_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stays_small, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_file, set_up, tear_down),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
