// SPDX-License-Identifier: GPL-2.0-or-later
/* Services of which a node is drained: the list, its messages and its file. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/self/service_drains.h"
#include "membership/node_state.h"

static struct es_service_drain drain_of(const char *service, uint16_t state)
{
	struct es_service_drain drain = {.by = {.node = 2,
						.what = ES_WIRE_CHANGE_STATE,
						.value = state,
						.set_ms = 5,
						.who = "alice@n1",
						.why = "disk"}};

	snprintf(drain.service, sizeof(drain.service), "%s", service);
	return drain;
}

static void set(struct es_service_drains *drains, const char *service, uint16_t state, int expected)
{
	struct es_service_drain drain = drain_of(service, state);

	assert_int_equal(es_service_drains_set(drains, &drain), expected);
}

static void test_list(void **state)
{
	struct es_service_drains drains = {};
	char name[16];

	(void)state;
	set(&drains, "web", ES_NODE_UP, 0);
	set(&drains, "web", ES_NODE_DRAINING, 1);
	set(&drains, "web", ES_NODE_DRAINING, 1); /* another reason, perhaps */
	assert_int_equal(drains.count, 1);
	set(&drains, "api", ES_NODE_DRAINING, 1);
	set(&drains, "web", ES_NODE_UP, 1);
	assert_null(es_service_drains_find(&drains, "web"));
	assert_string_equal(es_service_drains_find(&drains, "api")->by.why, "disk");
	assert_null(es_service_drains_find(NULL, "api"));
	for (unsigned int i = 1; i < ES_CONF_SERVICES_MAX; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		set(&drains, name, ES_NODE_DRAINING, 1);
	}
	set(&drains, "more", ES_NODE_DRAINING, -ENOSPC);
}

static void test_messages(void **state)
{
	static uint8_t buf[ES_SERVICE_DRAINS_SIZE];
	struct es_service_drains drains = {}, read = {};
	struct es_service_drain drain = drain_of("web", ES_NODE_DRAINING), one;
	size_t len;

	(void)state;
	len = es_service_drain_put(buf, sizeof(buf), &drain);
	assert_int_equal(len, ES_SERVICE_DRAIN_SIZE);
	assert_int_equal(es_service_drain_get(buf, len, &one), 0);
	assert_string_equal(one.service, "web");
	assert_int_equal(one.by.node, 2);
	assert_int_equal(one.by.value, ES_NODE_DRAINING);
	assert_string_equal(one.by.who, "alice@n1");
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(es_service_drain_get(buf, cut, &one), -EBADMSG);
	memset(buf, 'x', ES_CONF_NAME_SIZE);
	assert_int_equal(es_service_drain_get(buf, len, &one), -EBADMSG);
	assert_int_equal(es_service_drain_put(buf, len - 1, &drain), 0);
	/* All that hold; none, too. */
	assert_int_equal(es_service_drains_put(buf, sizeof(buf), &drains), 0);
	assert_int_equal(es_service_drains_get(buf, 0, &read), 0);
	assert_int_equal(read.count, 0);
	set(&drains, "web", ES_NODE_DRAINING, 1);
	set(&drains, "api", ES_NODE_DRAINING, 1);
	len = es_service_drains_put(buf, sizeof(buf), &drains);
	assert_int_equal(es_service_drains_get(buf, len, &read), 0);
	assert_int_equal(read.count, 2);
	assert_non_null(es_service_drains_find(&read, "api"));
	assert_int_equal(es_service_drains_get(buf, len - 1, &read), -EBADMSG);
}

static void test_file(void **state)
{
	struct es_service_drains drains = {}, read;
	char folder[] = "/tmp/earshot-drains-XXXXXX", path[64];
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/n1.services", folder);
	assert_int_equal(es_service_drains_read(path, &read), 0);
	assert_int_equal(read.count, 0);
	assert_int_equal(es_service_drains_write(path, &drains), 0); /* nothing, and none was there */
	set(&drains, "web", ES_NODE_DRAINING, 1);
	assert_int_equal(es_service_drains_write(path, &drains), 0);
	assert_int_equal(es_service_drains_read(path, &read), 0);
	assert_int_equal(read.count, 1);
	assert_string_equal(es_service_drains_find(&read, "web")->by.who, "alice@n1");
	assert_int_equal(es_service_drains_find(&read, "web")->by.value, ES_NODE_DRAINING);
	file = fopen(path, "w");
	fputs("{", file);
	fclose(file);
	assert_int_equal(es_service_drains_read(path, &read), -EBADMSG);
	set(&drains, "web", ES_NODE_UP, 1);
	assert_int_equal(es_service_drains_write(path, &drains), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
