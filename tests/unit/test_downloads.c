// SPDX-License-Identifier: GPL-2.0-or-later
/* Long responses of other nodes: the table, and the datagrams by which they are told. */
#include <errno.h>
#include <string.h>
#include "cmocka_all.h"
#include "inspector/peers/download_words.h"

#define S 1000000000ULL

static const struct es_keys keys = {
	.count = 1,
	.key[0].handover = {.k0 = 0x0706050403020100ULL, .k1 = 0x0f0e0d0c0b0a0908ULL},
};

static struct es_download download_of(unsigned int owner)
{
	return (struct es_download){
		.flow = {.client = es_addr_from_v4(es_htonl(0x0a000001)),
			 .service = es_addr_from_v4(es_htonl(0xc000020a)),
			 .client_port = es_htons(40000),
			 .service_port = es_htons(80)},
		.options = {.mss = 1460, .snd_wscale = 7, .rcv_wscale = 8, .wscale_ok = 1, .sack_ok = 1},
		.next_request_seq = 0xfffffff0,
		.response_seq = 0xffffff00,
		.head_len = 300,
		.requests = 3,
		.tsval = 0x12345678,
		.length = 20000000,
		.first = 7,
		.total = 30000000,
		.moves = 1,
		.request_len = 5,
		.service = 2,
		.owner = (__u8)owner,
		.flags = ES_DOWNLOAD_F_RESUMES,
		.etag = "\"abc\"",
		.request = "GET /",
	};
}

static void test_end_seq(void **state)
{
	struct es_download download = download_of(1);

	(void)state;
	assert_int_equal(es_download_end_seq(&download), 20000000 + 300 - 256);
	download.length = 0x500000000ULL; /* sequence numbers go round */
	assert_int_equal(es_download_end_seq(&download), 300 - 256);
}

/* One for each flow; the one that was told first goes when there is no room. */
static void test_table(void **state)
{
	const struct es_download download = download_of(1), other = download_of(2);
	struct es_download_kept *kept;
	struct es_downloads *d;
	size_t bytes;

	(void)state;
	assert_int_equal(es_downloads_new(3, &d), 0);
	assert_null(es_downloads_each(d, NULL));
	for (__u64 flow = 1; flow <= 3; flow++)
		assert_non_null(es_downloads_keep(d, flow, &download, flow));
	assert_int_equal(es_downloads_keep(d, 1, &other, 4)->told_ns, 4);
	assert_int_equal(es_downloads_count(d, &bytes), 3);
	assert_int_equal(bytes, 3 * sizeof(*kept));
	assert_int_equal(es_downloads_find(d, 1)->download.owner, 2);
	es_downloads_keep(d, 4, &download, 5);
	assert_null(es_downloads_find(d, 2));
	kept = es_downloads_each(d, NULL);
	assert_int_equal(kept->flow_hash, 3);
	es_downloads_drop(d, kept);
	assert_null(es_downloads_find(d, 3));
	kept = es_downloads_each(d, NULL);
	assert_int_equal(kept->flow_hash, 1);
	kept = es_downloads_each(d, kept);
	assert_int_equal(kept->flow_hash, 4);
	assert_null(es_downloads_each(d, kept));
	es_downloads_clear(d);
	assert_int_equal(es_downloads_count(d, &bytes), 0);
	assert_int_equal(es_downloads_count(NULL, &bytes), 0);
	es_downloads_free(&d);
	assert_null(d);
}

static void test_words(void **state)
{
	struct es_download_word word = {.download = download_of(1)}, got;
	struct es_download_message message;
	__u64 heard[ES_NODES_MAX] = {};
	size_t len;

	(void)state;
	len = es_download_message_make(&message, 1, 0, 5, 1000 * S, &word, &keys.key[0].handover);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got), 0);
	assert_memory_equal(&got, &word, sizeof(word));
	/* It was heard already. */
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got),
			 -EBADMSG);
	word.is_over = 1;
	len = es_download_message_make(&message, 1, 0, 6, 1000 * S, &word, &keys.key[0].handover);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got), 0);
	assert_true(got.is_over);
}

/* Nothing is taken that another one could have made or changed, that is old, or is for another node. */
static void test_forged(void **state)
{
	const struct es_download_word word = {.download = download_of(1)};
	struct es_download_message message, changed;
	__u64 heard[ES_NODES_MAX] = {};
	struct es_download_word got;
	struct es_keys other = keys;
	size_t len;

	(void)state;
	len = es_download_message_make(&message, 1, 0, 5, 1000 * S, &word, &keys.key[0].handover);
	for (size_t at = 0; at < len; at++) {
		changed = message;
		((uint8_t *)&changed)[at] ^= 1;
		assert_int_equal(es_download_message_read(&changed, len, 0, 4, &keys, 1000 * S, heard, &got),
				 -EBADMSG);
	}
	for (size_t shorter = 0; shorter < len; shorter++)
		assert_int_equal(
			es_download_message_read(&message, shorter, 0, 4, &keys, 1000 * S, heard, &got),
			-EBADMSG);
	other.key[0].handover.k0++;
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &other, 1000 * S, heard, &got),
			 -EBADMSG);
	assert_int_equal(es_download_message_read(&message, len, 2, 4, &keys, 1000 * S, heard, &got),
			 -EBADMSG);
	assert_int_equal(es_download_message_read(&message, len, 0, 1, &keys, 1000 * S, heard, &got),
			 -EBADMSG);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1121 * S, heard, &got),
			 -EBADMSG);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got), 0);
}

/* A word of a node that has the key, but no sense. */
static void test_senseless(void **state)
{
	struct es_download_word word = {.download = download_of(1)}, got;
	struct es_download_message message;
	__u64 heard[ES_NODES_MAX] = {};
	size_t len;

	(void)state;
	word.download.options.snd_wscale = 15;
	len = es_download_message_make(&message, 1, 0, 5, 1000 * S, &word, &keys.key[0].handover);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got),
			 -EBADMSG);
	word.download = download_of(1);
	memset(word.download.etag, 'x', sizeof(word.download.etag));
	len = es_download_message_make(&message, 1, 0, 6, 1000 * S, &word, &keys.key[0].handover);
	assert_int_equal(es_download_message_read(&message, len, 0, 4, &keys, 1000 * S, heard, &got),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_seq),	  cmocka_unit_test(test_table),
		cmocka_unit_test(test_words),	  cmocka_unit_test(test_forged),
		cmocka_unit_test(test_senseless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
