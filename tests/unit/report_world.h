/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_REPORT_WORLD_H
#define ES_TESTS_REPORT_WORLD_H

/*
 * The configuration that reports are made of, and the comparison of a report with docs/json.md, member by
 * member and type by type. Include after cmocka.h.
 */
#include "inspector/report/report.h"
#include "tests/unit/doc_examples.h"

/* Two nodes, of which one has half the weight, and two services; load() and unload() are a group's. */
static struct es_conf *conf;

static inline void expect_shape(struct json_object *example, struct json_object *built, const char *where);

static inline void expect_object_shape(struct json_object *example, struct json_object *built,
				       const char *where)
{
	if (json_object_object_length(example) != json_object_object_length(built))
		fail_msg("%s: %s", where, json_object_to_json_string(built));
	json_object_object_foreach(example, key, value)
	{
		struct json_object *other;

		if (!json_object_object_get_ex(built, key, &other))
			fail_msg("%s: %s is missing", where, key);
		expect_shape(value, other, key);
	}
}

static inline void expect_shape(struct json_object *example, struct json_object *built, const char *where)
{
	if (json_object_get_type(example) != json_object_get_type(built))
		fail_msg("%s: %s", where, json_object_to_json_string(built));
	if (json_object_is_type(example, json_type_object))
		expect_object_shape(example, built, where);
	if (json_object_is_type(example, json_type_array)) {
		assert_true(json_object_array_length(example) > 0);
		assert_true(json_object_array_length(built) > 0);
		expect_shape(json_object_array_get_idx(example, 0), json_object_array_get_idx(built, 0),
			     where);
	}
}

/* @built has the members of docs/json.md's example @name, and their types. */
static inline void expect_as_documented(const char *name, struct json_object *built)
{
	struct json_object *example = doc_example(name);

	assert_non_null(example);
	assert_non_null(built);
	expect_shape(example, built, name);
	json_object_put(example);
}

static inline int load(void **state)
{
	static const char text[] =
		"cluster { name = lab }\ndatapath { interface = a cluster_interface = b }\n"
		"node n1 { address = 10.78.0.1 }\nnode n2 { address = 10.78.0.2 weight = 50 }\n"
		"service web { address = 10.77.0.100 port = 80 }\n"
		"service l4 { address = 10.77.0.100 port = 443 inspect = never }\n";

	(void)state;
	return es_conf_parse(text, sizeof(text) - 1, "t.conf", &conf, NULL);
}

static inline int unload(void **state)
{
	(void)state;
	es_conf_free(&conf);
	return 0;
}

#endif
