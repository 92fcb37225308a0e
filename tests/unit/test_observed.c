// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node's knowledge of responses: what is counted, what is told to the others, and what becomes of what they
 * tell.
 */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/content_sync.h"
#include "inspector/daemon/observed.h"
#include "inspector/urls/url_table.h"
#include "kmod/core/track.h"
#include "membership/number.h"

/* struct told - the words of this node, and how long responses took */
struct told {
	unsigned int words;
	size_t len;
	__u8 last[sizeof(((struct es_daemon_observed *)0)->payload)];
	unsigned long long took_ns[2];
};

static struct es_daemon_observed observed;
static struct es_conf *conf;
static struct told told;

static void on_took(void *ctx, unsigned int service, unsigned long long took_ns)
{
	((struct told *)ctx)->took_ns[service] += took_ns;
}

static void on_tell(void *ctx, const void *payload, size_t len)
{
	struct told *t = ctx;

	t->words++;
	t->len = len;
	memcpy(t->last, payload, len);
}

static void name_services(const char *first, const char *second)
{
	conf->service_count = second ? 2 : 1;
	snprintf(conf->services[0].name, sizeof(conf->services[0].name), "%s", first);
	snprintf(conf->services[1].name, sizeof(conf->services[1].name), "%s", second ? second : "");
}

static int set_up(void **state)
{
	static const struct es_observed_ops ops = {.took = on_took, .tell = on_tell};

	(void)state;
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	memset(&told, 0, sizeof(told));
	name_services("web", "app");
	es_observed_init(&observed, &ops, &told);
	es_observed_rebind(&observed, conf);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(conf);
	return 0;
}

static void response(unsigned int service, unsigned int status, __u64 content, __u32 bytes)
{
	const struct es_response_entry entry = {.service = (__u8)service,
						.status = (__u16)status,
						.url_key = content,
						.bytes = bytes,
						.took_ns = 1000000};

	es_observed_response(&observed, &entry);
}

/* Only 200 says how long the content is; the others count all the same. */
static void test_counted_and_told(void **state)
{
	(void)state;
	response(0, 200, 17, 5000);
	response(0, 304, 17, 100);
	response(0, 503, 18, 200);
	response(0, 200, 0, 300);  /* without a name */
	response(2, 200, 19, 400); /* of no service that there is */
	assert_int_equal(told.words, 0);
	es_observed_flush(&observed);
	assert_int_equal(told.words, 1);
	assert_int_equal(told.len, 4 + 16);
	assert_int_equal(es_get32(told.last), es_content_sync_tag("web"));
	assert_int_equal(es_get64(told.last + 4), 17);
	assert_int_equal(es_get64(told.last + 12), 5000);
	assert_int_equal(observed.mean[0].count, 1);
	assert_int_equal(observed.of[0].responses.count[ES_RESPONSE_5XX], 1);
	assert_int_equal(es_responses_total(&observed.of[0].responses), 4);
	assert_int_equal(told.took_ns[0], 4000000);
	es_observed_flush(&observed); /* it was told */
	assert_int_equal(told.words, 1);
}

/* A response of which the status alone is asked for is not told. */
static void test_status_only(void **state)
{
	const struct es_response_entry entry = {
		.status = 200, .url_key = 17, .bytes = 5000, .request_flags = ES_REQUEST_F_STATUS};

	(void)state;
	es_observed_response(&observed, &entry);
	es_observed_flush(&observed);
	assert_int_equal(told.words, 0);
	assert_int_equal(es_responses_total(&observed.of[0].responses), 1);
}

/* A word is of one service, and has room for so many. */
static void test_words(void **state)
{
	(void)state;
	response(0, 200, 1, 10);
	response(1, 200, 2, 20);
	assert_int_equal(told.words, 1);
	assert_int_equal(es_get32(told.last), es_content_sync_tag("web"));
	for (unsigned int i = 0; i < ES_OBSERVED_MAX; i++)
		response(1, 200, 100 + i, 30);
	assert_int_equal(told.words, 2);
	assert_int_equal(told.len, sizeof(told.last));
	assert_int_equal(es_get32(told.last), es_content_sync_tag("app"));
	es_observed_flush(&observed);
	assert_int_equal(told.words, 3);
	assert_int_equal(told.len, 4 + 16);
	assert_int_equal(es_get64(told.last + 4), 100 + ES_OBSERVED_MAX - 1);
}

/*
 * Services are known by their names: what is counted of one goes on over a reload, whatever number it has
 * then.
 */
static void test_reload(void **state)
{
	(void)state;
	response(0, 200, 17, 5000);
	response(1, 503, 0, 0);
	name_services("app", "new");
	es_observed_rebind(&observed, conf);
	assert_int_equal(observed.of[0].responses.count[ES_RESPONSE_5XX], 1);
	assert_int_equal(es_responses_total(&observed.of[1].responses), 0);
	assert_int_equal(observed.mean[0].count, 0);
	es_observed_flush(&observed); /* what was to be told of "web" would be told of "app" */
	assert_int_equal(told.words, 0);
	response(1, 200, 20, 6000);
	es_observed_flush(&observed);
	assert_int_equal(es_get32(told.last), es_content_sync_tag("new"));
}

static void test_message(void **state)
{
	static const struct es_sipkey key = {1, 2};
	struct es_url_table *urls[ES_CONF_SERVICES_MAX] = {};
	struct es_url_stats stats;

	(void)state;
	assert_int_equal(es_url_table_new(ES_URL_ENTRIES_MIN, &urls[1]), 0);
	es_url_table_set_key(urls[1], &key);
	response(1, 200, 17, 5000);
	response(1, 200, 18, 6000);
	es_observed_flush(&observed);
	es_observed_message(&observed, urls, told.last, 3);
	es_observed_message(&observed, urls, told.last, 4 + 15);
	es_url_table_stats(urls[1], &stats);
	assert_int_equal(stats.observed, 0);
	es_observed_message(&observed, urls, told.last, told.len);
	es_url_table_stats(urls[1], &stats);
	assert_int_equal(stats.observed, 2);
	/* The message is about a service that is not here, or that has no table. */
	es_put64(told.last + 4, 19);
	es_put32(told.last, es_content_sync_tag("other"));
	es_observed_message(&observed, urls, told.last, told.len);
	es_put32(told.last, es_content_sync_tag("web"));
	es_observed_message(&observed, urls, told.last, told.len);
	es_url_table_stats(urls[1], &stats);
	assert_int_equal(stats.observed, 2);
	es_url_table_free(&urls[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counted_and_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reload, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_message, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
