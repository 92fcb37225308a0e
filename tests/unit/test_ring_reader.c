// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consumer of a ring buffer, against a producer in this process: a file in memory with the ring's layout,
 * whose second copy of the data is written by hand, since no kernel maps it here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "inspector/datapath/datapath.h"
#include "inspector/datapath/ring_reader.h"

#define RECORDS_MAX 8

struct ring {
	int fd;
	size_t page;
	unsigned char *memory;
	struct es_ring_reader *reader;
	size_t count;
	uint32_t taken[RECORDS_MAX]; /* the first word of each record */
	size_t size[RECORDS_MAX];
};

static void take(void *ctx, const void *data, size_t size)
{
	struct ring *r = ctx;

	assert_true(r->count < RECORDS_MAX);
	memcpy(&r->taken[r->count], data, sizeof(uint32_t));
	r->size[r->count++] = size;
}

static unsigned long *position(struct ring *r, int which)
{
	return (unsigned long *)(r->memory + (size_t)which * r->page);
}

/* Put @word at a position of the data, in both copies. */
static void put(struct ring *r, unsigned long at, uint32_t word)
{
	for (size_t i = 0; i < sizeof(word); i++) {
		size_t off = (at + i) & (r->page - 1);

		memcpy(r->memory + 2 * r->page + off, (const char *)&word + i, 1);
		memcpy(r->memory + 3 * r->page + off, (const char *)&word + i, 1);
	}
}

static unsigned long produce(struct ring *r, uint32_t len, uint32_t flags, uint32_t word)
{
	unsigned long at = *position(r, 1);

	put(r, at, len | flags);
	put(r, at + 4, 0);
	put(r, at + BPF_RINGBUF_HDR_SZ, word);
	__atomic_store_n(position(r, 1), at + ((len + BPF_RINGBUF_HDR_SZ + 7) & ~7UL), __ATOMIC_RELEASE);
	return at;
}

static int setup(void **state)
{
	static struct ring ring;
	struct ring *r = &ring;

	memset(r, 0, sizeof(*r));
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(r->fd >= 0);
	assert_int_equal(ftruncate(r->fd, (off_t)(4 * r->page)), 0);
	r->memory = mmap(NULL, 4 * r->page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	assert_true(r->memory != MAP_FAILED);
	assert_int_equal(es_ring_reader_new(r->fd, r->page, take, r, &r->reader), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct ring *r = *state;

	es_ring_reader_free(&r->reader);
	munmap(r->memory, 4 * r->page);
	close(r->fd);
	return 0;
}

static void test_in_order(void **state)
{
	struct ring *r = *state;

	assert_int_equal(es_ring_reader_consume(r->reader), 0);
	produce(r, 4, 0, 11);
	produce(r, 13, 0, 12);
	assert_int_equal(es_ring_reader_consume(r->reader), 2);
	assert_int_equal(r->taken[0], 11);
	assert_int_equal(r->size[0], 4);
	assert_int_equal(r->taken[1], 12);
	assert_int_equal(r->size[1], 13);
	assert_int_equal(*position(r, 0), *position(r, 1));
}

static void test_busy_stops(void **state)
{
	struct ring *r = *state;
	unsigned long busy = produce(r, 4, BPF_RINGBUF_BUSY_BIT, 21);

	produce(r, 4, 0, 22);
	assert_int_equal(es_ring_reader_consume(r->reader), 0);
	assert_int_equal(*position(r, 0), busy);
	put(r, busy, 4);
	assert_int_equal(es_ring_reader_consume(r->reader), 2);
	assert_int_equal(r->taken[0], 21);
	assert_int_equal(r->taken[1], 22);
}

static void test_discarded_is_passed_over(void **state)
{
	struct ring *r = *state;

	produce(r, 40, BPF_RINGBUF_DISCARD_BIT, 31);
	produce(r, 4, 0, 32);
	assert_int_equal(es_ring_reader_consume(r->reader), 1);
	assert_int_equal(r->taken[0], 32);
	assert_int_equal(*position(r, 0), *position(r, 1));
}

static void test_round_the_end(void **state)
{
	struct ring *r = *state;

	/* Its header is the last of the first copy, its data lie in the second. */
	*position(r, 0) = *position(r, 1) = 5 * r->page - 8;
	es_ring_reader_free(&r->reader);
	assert_int_equal(es_ring_reader_new(r->fd, r->page, take, r, &r->reader), 0);
	produce(r, 100, 0, 41);
	assert_int_equal(es_ring_reader_consume(r->reader), 1);
	assert_int_equal(r->taken[0], 41);
	assert_int_equal(r->size[0], 100);
}

/* Entries in the ring of responses: of this version, the one before, and one to come. */
static void test_response_entries(void **state)
{
	struct {
		struct es_response_entry entry;
		uint64_t more;
	} written = {
		.entry = {.url_key = 5, .bytes = 1000, .status = 404, .service = 2, .took_ns = 16384},
		.more = ~0ULL,
	};
	struct es_response_entry read;

	(void)state;
	for (size_t size = ES_RESPONSE_ENTRY_LEAST; size <= sizeof(written); size += 8) {
		memset(&read, 0xff, sizeof(read));
		assert_int_equal(es_datapath_response_read(&written, size, &read), 0);
		assert_int_equal(read.url_key, 5);
		assert_int_equal(read.bytes, 1000);
		assert_int_equal(read.status, 404);
		assert_int_equal(read.service, 2);
		assert_int_equal(read.took_ns, size == ES_RESPONSE_ENTRY_LEAST ? 0 : 16384);
	}
	assert_int_equal(es_datapath_response_read(&written, 8, &read), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_response_entries),
		cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_discarded_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
