// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The binary interface of the installed headers, as it was published: plugins and programs that were built
 * against an older version must run with this one. Structures and the host's table only grow at their ends;
 * what is checked here may be added to, and never changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "earshot/handover.h"
#include "earshot/plugin.h"
#include "earshot/ring.h"
#include "inspector/plugin/host_internal.h"

#define AT(type, member, offset) assert_int_equal(offsetof(struct type, member), offset)

/* Offsets are those of machines with 64 bits. Others have no packages yet. */
_Static_assert(sizeof(void *) == 8, "the numbers below are of 64 bits");

/* Structures that the plugin's code and the host hand each other by value or by the caller's memory. */
static void test_values(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct es_plugin_text), 16);
	assert_int_equal(sizeof(struct es_plugin_set), 16);
	assert_int_equal(sizeof(struct es_plugin_address), 18);
	assert_int_equal(sizeof(struct es_plugin_content), 24);
	AT(es_plugin_content, target, 0);
	AT(es_plugin_content, size_bytes, 8);
	AT(es_plugin_content, cost, 16);
	AT(es_plugin_content, content_class, 20);
	AT(es_plugin_node, name, 0);
	AT(es_plugin_node, address, 8);
	AT(es_plugin_node, is_target, 26);
	AT(es_plugin_node, is_draining, 27);
	AT(es_plugin_node, weight, 32);
	AT(es_plugin_node, active, 40);
	AT(es_plugin_node, load, 48);
	AT(es_plugin_node, cpu, 56);
	AT(es_plugin_node, disk, 64);
	AT(es_plugin_answer, node, 0);
	AT(es_plugin_answer, more_bytes, 4);
	AT(es_plugin_answer, status, 8);
	AT(es_plugin_answer, retry_after_s, 12);
	AT(es_plugin_answer, nodes, 16);
	/* 1.4 */
	AT(es_plugin_answer, content, 32);
	AT(es_plugin_answer, content_cost, 40);
	AT(es_plugin_answer, content_name, 44);
	assert_int_equal(ES_PLUGIN_CONTENT_NAME_SIZE, 100);
	/* Sizes that a plugin of 1.0 says of its own structures: the host takes these for ever. */
	assert_int_equal(ES_PLUGIN_SIZE_1_0, 88);
	assert_int_equal(ES_PLUGIN_ANSWER_SIZE_1_0, 32);
	assert_int_equal(ES_PLUGIN_NODE_SIZE_1_0, 72);
	assert_int_equal(sizeof(struct es_plugin_metric), 24);
}

static void test_descriptor(void **state)
{
	(void)state;
	assert_int_equal(ES_PLUGIN_MAGIC, 0x4553504cu);
	assert_int_equal(ES_PLUGIN_ABI_MAJOR, 1);
	assert_string_equal(ES_PLUGIN_SYMBOL, "earshot_plugin");
	AT(es_plugin, magic, 0);
	AT(es_plugin, abi_major, 4);
	AT(es_plugin, abi_minor, 6);
	AT(es_plugin, size, 8);
	AT(es_plugin, answer_size, 12);
	AT(es_plugin, node_size, 16);
	AT(es_plugin, name, 24);
	AT(es_plugin, version, 32);
	AT(es_plugin, description, 40);
	AT(es_plugin, configure, 48);
	AT(es_plugin, release, 56);
	AT(es_plugin, thread_new, 64);
	AT(es_plugin, thread_free, 72);
	AT(es_plugin, route, 80);
	AT(es_plugin, timer, 88);
	AT(es_plugin, timer_ms, 96);
	AT(es_plugin, metrics, 104);
}

/*
 * The table of functions: one pointer after the other following its header, in the order of their versions.
 */
static void test_host(void **state)
{
	static const size_t published[] = {
#define MEMBER(name) offsetof(struct es_plugin_host, name)
		/* 1.0 */
		MEMBER(config_text),
		MEMBER(config_file),
		MEMBER(config_line),
		MEMBER(config_fail),
		MEMBER(config_node),
		MEMBER(protocol),
		MEMBER(method),
		MEMBER(target),
		MEMBER(path),
		MEMBER(query),
		MEMBER(host),
		MEMBER(header),
		MEMBER(cookie),
		MEMBER(hello),
		MEMBER(sni),
		MEMBER(alpn),
		MEMBER(bytes),
		MEMBER(is_truncated),
		MEMBER(client),
		MEMBER(service),
		MEMBER(current),
		MEMBER(content),
		MEMBER(allowed),
		MEMBER(node_count),
		MEMBER(self),
		MEMBER(node),
		MEMBER(ring),
		MEMBER(ring_target),
		MEMBER(hash),
		MEMBER(now_ns),
		MEMBER(explain),
		MEMBER(is_explain),
		/* 1.1 */
		MEMBER(count),
		MEMBER(gauge),
		/* 1.2 */
		MEMBER(config_node_name),
		MEMBER(fail),
		/* 1.3 */
		MEMBER(normal_path),
#undef MEMBER
	};

	(void)state;
	AT(es_plugin_host, size, 0);
	AT(es_plugin_host, abi_major, 4);
	AT(es_plugin_host, abi_minor, 6);
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		assert_int_equal(published[i], 8 + 8 * i);
	assert_true(sizeof(struct es_plugin_host) >= 8 + sizeof(published));
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(ES_PLUGIN_NONE, -1);
	assert_int_equal(ES_PLUGIN_NODES_MAX, 128);
	assert_int_equal(ES_PLUGIN_HTTP, 0);
	assert_int_equal(ES_PLUGIN_TLS, 1);
	assert_int_equal(ES_PLUGIN_HTTP2, 2);
	assert_int_equal(ES_PLUGIN_OTHER, 3);
	assert_int_equal(ES_PLUGIN_HELLO_NONE, 0);
	assert_int_equal(ES_PLUGIN_HELLO_PARTIAL, 1);
	assert_int_equal(ES_PLUGIN_HELLO_COMPLETE, 2);
	assert_int_equal(ES_PLUGIN_CLASS_NORMAL, 0);
	assert_int_equal(ES_PLUGIN_CLASS_CPU, 1);
	assert_int_equal(ES_PLUGIN_CLASS_DISK, 2);
	assert_int_equal(ES_PLUGIN_CLASS_DISK_CPU, 3);
	assert_int_equal(ES_PLUGIN_PASS, 0);
	assert_int_equal(ES_PLUGIN_NODE, 1);
	assert_int_equal(ES_PLUGIN_NODES, 2);
	assert_int_equal(ES_PLUGIN_MORE, 3);
	assert_int_equal(ES_PLUGIN_REJECT, 4);
}

/* The structures of libearshot-ring that programs allocate; the bound and the one function of libearshot. */
static void test_libraries(void **state)
{
	int (*handover)(int fd, const char *node, const void *buf, size_t len) = request_handover;

	(void)state;
	assert_non_null(handover);
	assert_int_equal(ES_HANDOVER_BYTES_MAX, 65536);
	assert_int_equal(ES_RING_POINTS_MAX, 16384);
	assert_int_equal(ES_RING_SLOTS, 65536);
	assert_int_equal(ES_NODES_MAX, 128);
	assert_int_equal(ES_NODE_NONE, 0x3fff);
	assert_int_equal(sizeof(struct es_ring_node), 24);
	AT(es_ring_node, address, 0);
	AT(es_ring_node, virtual_nodes, 16);
	AT(es_ring_node, id, 20);
	assert_int_equal(sizeof(struct es_ring_point), 16);
	AT(es_ring_point, position, 0);
	AT(es_ring_point, id, 8);
	assert_int_equal(sizeof(struct es_ring_walk), 40);
	assert_int_equal(sizeof(struct es_ring_table), 2 * ES_RING_SLOTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	  cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_host),	  cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_libraries),
	};

	return cmocka_run_group_tests_name("installed_abi", tests, NULL, NULL);
}
