/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_CONFIG_TEXT_H
#define ES_TESTS_CONFIG_TEXT_H

/*
 * Configuration files of tests, as text: the smallest one, many sections, and what parsing them must give.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/config.h"

#define DATAPATH "datapath { interface = eth0  cluster_interface = eth1 }\n"
#define NODE	 "node n1 { address = 10.78.0.1 }\n"
#define SERVICE	 "service web { address = 10.77.0.100  port = 80 }\n"
#define MINIMAL	 DATAPATH NODE SERVICE

static inline struct es_conf *parse_ok(const char *text)
{
	struct es_conf_error err;
	struct es_conf *conf = NULL;

	if (es_conf_parse(text, strlen(text), "t.conf", &conf, &err))
		fail_msg("%s\nin: %s", err.text, text);
	assert_string_equal(err.text, "");
	return conf;
}

static inline void check_error(const char *text, size_t size, const char *expected)
{
	struct es_conf *conf = (void *)&conf; /* must stay untouched */
	struct es_conf_error err;

	assert_int_equal(es_conf_parse(text, size, "t.conf", &conf, &err), -EINVAL);
	if (strcmp(err.text, expected) != 0)
		fail_msg("in: %s\nexpected: %s\n     got: %s", text, expected, err.text);
	assert_ptr_equal(conf, (void *)&conf);
}

/* A wrong file, and what is said about it. */
struct wrong_text {
	const char *text;
	const char *error;
};

/* Nothing of a wrong file is left for the next one, in libconfuse's lexer least of all. */
static inline void check_errors(const struct wrong_text *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct es_conf *conf;

		check_error(wrong[i].text, strlen(wrong[i].text), wrong[i].error);
		conf = parse_ok(MINIMAL);
		es_conf_free(&conf);
	}
}

/* @count sections of one kind, made of @format with the number twice */
static inline char *many(const char *head, unsigned int count, const char *format)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	unsigned int i;

	assert_non_null(file);
	fputs(head, file);
	for (i = 1; i <= count; i++)
		fprintf(file, format, i, i);
	fclose(file);
	return text;
}

#endif
