// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The netfilter datapath's ring buffers, read by the reader that the workers have.
 */
#include "cmocka_all.h"
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include "inspector/datapath/ring_reader.h"
#include "netfilter/node/queue.h"

#define BYTES 4096

struct taken {
	unsigned int count;
	unsigned int next; /* the number that is expected */
	size_t len;	   /* of each packet */
};

static void take(void *ctx, const void *data, size_t size)
{
	const struct es_record *record = data;
	const unsigned char *packet = (const unsigned char *)(record + 1);
	struct taken *t = ctx;

	assert_int_equal(size, sizeof(*record) + t->len);
	assert_int_equal(record->flow_hash, t->next);
	for (size_t i = 0; i < t->len; i++)
		assert_int_equal(packet[i], (unsigned char)(t->next + i));
	t->count++;
	t->next++;
}

static int push(struct es_nf_ring *ring, __u32 *awake, unsigned int number, size_t len)
{
	const struct es_record record = {.flow_hash = number, .len = (__u32)len};
	unsigned char packet[BYTES];

	for (size_t i = 0; i < len; i++)
		packet[i] = (unsigned char)(number + i);
	return es_nf_queue_push(ring, awake, &record, packet);
}

static int is_woken(const struct es_nf_ring *ring)
{
	struct pollfd fd = {.fd = es_nf_ring_wake_fd(ring), .events = POLLIN};
	uint64_t count;

	if (poll(&fd, 1, 0) != 1)
		return 0;
	assert_int_equal(read(fd.fd, &count, sizeof(count)), sizeof(count));
	return 1;
}

/* Many times round, so that records of odd lengths lie across the end at each place. */
static void test_no_record_is_cut(void **state)
{
	struct taken taken = {.len = 333};
	struct es_ring_reader *reader;
	struct es_nf_ring *ring;
	__u32 awake = 1;

	(void)state;
	assert_int_equal(es_nf_ring_new(BYTES, &ring), 0);
	assert_int_equal(es_ring_reader_new(es_nf_ring_fd(ring), BYTES, take, &taken, &reader), 0);
	for (unsigned int i = 0; i < 200; i++) {
		assert_int_equal(push(ring, &awake, i, taken.len), 0);
		if (i % 3 == 0)
			es_ring_reader_consume(reader);
	}
	es_ring_reader_consume(reader);
	assert_int_equal(taken.count, 200);
	es_ring_reader_free(&reader);
	es_nf_ring_free(&ring);
}

static void test_a_full_one_drops(void **state)
{
	struct taken taken = {.len = 1000};
	struct es_ring_reader *reader;
	struct es_nf_ring *ring;
	unsigned int count = 0;
	__u32 awake = 1;

	(void)state;
	assert_int_equal(es_nf_ring_new(BYTES, &ring), 0);
	assert_int_equal(es_ring_reader_new(es_nf_ring_fd(ring), BYTES, take, &taken, &reader), 0);
	while (!push(ring, &awake, count, taken.len))
		count++;
	assert_int_equal(count, 3);
	assert_int_equal(push(ring, &awake, count, taken.len), -ENOSPC);
	assert_int_equal(es_ring_reader_consume(reader), 3);
	assert_int_equal(push(ring, &awake, count, taken.len), 0);
	assert_int_equal(es_ring_reader_consume(reader), 1);
	es_ring_reader_free(&reader);
	es_nf_ring_free(&ring);
}

static void test_who_sleeps_is_woken_once(void **state)
{
	struct es_nf_ring *ring;
	__u32 awake = 1;

	(void)state;
	assert_int_equal(es_nf_ring_new(BYTES, &ring), 0);
	push(ring, &awake, 0, 10);
	assert_false(is_woken(ring));
	awake = 0;
	push(ring, &awake, 1, 10);
	assert_int_equal(awake, 1);
	push(ring, &awake, 2, 10);
	assert_true(is_woken(ring));
	assert_false(is_woken(ring));
	es_nf_ring_free(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_record_is_cut),
		cmocka_unit_test(test_a_full_one_drops),
		cmocka_unit_test(test_who_sleeps_is_woken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
