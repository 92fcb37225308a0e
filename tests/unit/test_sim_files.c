// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files as the simulator gets them: compressed by gzip, plain text after that and before it, cut off,
 * damaged, and everything that is no access log and must be called by its name.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "sim/trace.h"

#define WHEN "[10/Oct/2000:13:55:36 -0700]"

/* The bytes that are read at once. */
#define ES_PIECE 65536

static char g_path[] = "/tmp/earshot-sim-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(g_path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(g_path);
}

static void write_file(const void *data, size_t len, int how)
{
	int fd = open(g_path, O_WRONLY | O_CREAT | how, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static long file_size(void)
{
	int fd = open(g_path, O_RDONLY);
	long size = lseek(fd, 0, SEEK_END);

	close(fd);
	return size;
}

/* @count lines for as many files, from number @from on. */
static void append_plain(int from, int count)
{
	char line[200];

	for (int i = from; i < from + count; i++) {
		snprintf(line, sizeof(line), "h%d - - %s \"GET /%d HTTP/1.0\" 200 %d\n", i % 7, WHEN, i, i);
		write_file(line, strlen(line), O_APPEND);
	}
}

/* The same as one member. */
static void append_gzip(int from, int count)
{
	gzFile file = gzopen(g_path, "ab");

	assert_non_null(file);
	for (int i = from; i < from + count; i++)
		gzprintf(file, "h%d - - %s \"GET /%d HTTP/1.0\" 200 %d\n", i % 7, WHEN, i, i);
	gzclose(file);
}

static void expect(unsigned int requests, unsigned int unusable)
{
	struct es_trace t;

	assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 0), 0);
	assert_int_equal(es_trace_read(&t, g_path), 0);
	assert_int_equal(t.request_count, requests);
	assert_int_equal(t.files.count, requests);
	assert_int_equal(es_trace_unusable(t.skipped), unusable);
	assert_false(t.is_truncated);
	es_trace_fini(&t);
}

static void test_gzip(void **state)
{
	struct es_trace t;
	long size;
	int fd;

	(void)state;
	write_file("", 0, O_TRUNC);
	append_gzip(0, 5000);
	expect(5000, 0);
	assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 10), 0);
	assert_int_equal(es_trace_read(&t, g_path), 0);
	assert_int_equal(t.request_count, 10);
	es_trace_fini(&t);

	/* Cut off: what is there counts. */
	fd = open(g_path, O_RDWR);
	size = lseek(fd, 0, SEEK_END);
	assert_int_equal(ftruncate(fd, size / 2), 0);
	close(fd);
	assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 0), 0);
	assert_int_equal(es_trace_read(&t, g_path), 0);
	assert_true(t.is_truncated && t.request_count > 100 && t.request_count < 5000);
	es_trace_fini(&t);

	/* Damaged. */
	write_file("\xff\xff\xff\xff\xff\xff\xff\xff", 8, O_APPEND);
	assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 0), 0);
	assert_int_equal(es_trace_read(&t, g_path), -EIO);
	assert_true(t.request_count > 100);
	es_trace_fini(&t);
}

static void test_no_file(void **state)
{
	struct es_trace t;

	(void)state;
	assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 0), 0);
	assert_int_equal(es_trace_read(&t, "/nosuch"), -ENOENT);
	assert_int_equal(es_trace_read(&t, "/"), -EISDIR);
	es_trace_fini(&t);
	write_file("", 0, O_TRUNC);
	expect(0, 0);
}

/* In any order, members padded with zeros, and a line that a member begins in the middle of is no line. */
static void test_parts(void **state)
{
	(void)state;
	write_file("", 0, O_TRUNC);
	append_gzip(0, 1000);
	append_plain(1000, 500);
	expect(1500, 0);
	append_gzip(1500, 300);
	append_gzip(1800, 200);
	expect(2000, 0);
	write_file("\0\0\0\0\0\0\0\0", 8, O_APPEND);
	append_plain(2000, 1);
	expect(2001, 0);
	append_gzip(2001, 3);
	write_file("\0", 1, O_APPEND);
	expect(2004, 0);

	write_file("", 0, O_TRUNC);
	append_plain(0, 3000);
	append_gzip(3000, 10);
	append_plain(3010, 1);
	expect(3011, 0);
	/* Not at a line's beginning: it is text. */
	write_file("", 0, O_TRUNC);
	append_plain(0, 3);
	write_file("x\x1f\x8b\x08 y\n", 7, O_APPEND);
	append_plain(3, 3);
	expect(6, 1);
}

/* Wherever the buffer ends within the bytes that begin a member. */
static void test_parts_at_any_place(void **state)
{
	char fill[400];

	(void)state;
	memset(fill, 'x', sizeof(fill));
	for (long i = 0; i < 12; i++) {
		struct es_trace t;

		write_file("", 0, O_TRUNC);
		append_plain(0, 1);
		while (file_size() < ES_PIECE - 300) {
			write_file(fill, 99, O_APPEND);
			write_file("\n", 1, O_APPEND);
		}
		write_file(fill, (size_t)(ES_PIECE - file_size() - 1 - i), O_APPEND);
		write_file("\n", 1, O_APPEND);
		append_gzip(1, 100);
		assert_int_equal(es_trace_init(&t, ES_TRACE_AUTO, 0), 0);
		assert_int_equal(es_trace_read(&t, g_path), 0);
		assert_int_equal(t.request_count, 101);
		es_trace_fini(&t);
	}
}

static const struct {
	const char *bytes;
	size_t len;
	const char *what;
} g_foreign[] = {
#define BYTES(text) text, sizeof(text) - 1
	{BYTES("\xfd"
	       "7zXZ\0\0\4"),
	 "xz"},
	{BYTES("\x28\xb5\x2f\xfd\x24"), "zstd"},
	{BYTES("BZh91AY&SY"), "bzip2"},
	{BYTES("\x04\x22\x4d\x18\x64"), "lz4"},
	{BYTES("LZIP\x01\x0c"), "lzip"},
	{BYTES("\x1f\x9d\x90"), "compress"},
	{BYTES("PK\x03\x04\x14"), "zip"},
	{BYTES("7z\xbc\xaf\x27\x1c\0"), "7z"},
	{BYTES("Rar!\x1a\x07\x01"), "rar"},
	{BYTES("LPKSHHRH\0"), "journal"},
	{BYTES("\xff\xfe"
	       "1\0"
	       "9\0"
	       "2\0"),
	 "UTF-16"},
	{BYTES("\xfe\xff\0"
	       "1\0"
	       "9\0"
	       "2"),
	 "UTF-16"},
	{BYTES("1\0"
	       "9\0"
	       "2\0.\0"
	       "0\0.\0"
	       "2\0.\0"
	       "1\0"),
	 "UTF-16"},
	{BYTES("#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n"), "W3C"},
	{BYTES("#Version: 1.0\n#Fields: date time cs-method cs-uri-stem\n"), "W3C"},
	{BYTES("{\"time\":\"2024-10-10T13:55:36+02:00\",\"request\":\"GET /a HTTP/1.1\"}\n"), "JSON"},
	{BYTES("\xef\xbb\xbf\n[ {\"request\":1}]"), "JSON"},
	{BYTES("<!DOCTYPE html><html>not found</html>"), "HTML"},
	{BYTES("\x7f"
	       "ELF\x02\x01"),
	 "program"},
	{BYTES("\x35\x01\x02\x03\x04\x05\x06\x07\x0e\x0f\x10\x11\x12"), "binary"},
};

static void expect_foreign(enum es_trace_format format, const char *what)
{
	struct es_trace t;

	assert_int_equal(es_trace_init(&t, format, 0), 0);
	assert_int_equal(es_trace_read(&t, g_path), -ENOTSUP);
	assert_non_null(t.foreign);
	if (!strstr(t.foreign->what, what))
		fail_msg("%s is called %s", what, t.foreign->what);
	assert_true(t.foreign->command || t.foreign->cure);
	assert_int_equal(t.request_count, 0);
	es_trace_fini(&t);
}

static void test_foreign(void **state)
{
	gzFile file;

	(void)state;
	for (size_t i = 0; i < sizeof(g_foreign) / sizeof(g_foreign[0]); i++) {
		write_file(g_foreign[i].bytes, g_foreign[i].len, O_TRUNC);
		expect_foreign(ES_TRACE_AUTO, g_foreign[i].what);
		/* the same within gzip */
		write_file("", 0, O_TRUNC);
		file = gzopen(g_path, "ab");
		assert_int_equal(gzwrite(file, g_foreign[i].bytes, (unsigned int)g_foreign[i].len),
				 g_foreign[i].len);
		gzclose(file);
		expect_foreign(ES_TRACE_AUTO, g_foreign[i].what);
	}
	/* An archive is none the less one if the user calls it a log, or something came before it. */
	write_file(g_foreign[0].bytes, g_foreign[0].len, O_TRUNC);
	expect_foreign(ES_TRACE_LOG, "xz");
}

static void test_tar(void **state)
{
	static const char magic[8] = {'u', 's', 't', 'a', 'r', 0, '0', '0'};
	char block[1024] = "access.log";

	(void)state;
	memcpy(block + 257, magic, sizeof(magic));
	write_file(block, sizeof(block), O_TRUNC);
	expect_foreign(ES_TRACE_AUTO, "tar");
	memcpy(block + 257, "ustar  ", 8);
	write_file(block, sizeof(block), O_TRUNC);
	expect_foreign(ES_TRACE_AUTO, "tar");
}

/* Texts that look odd, and are logs. */
static void test_not_foreign(void **state)
{
	const struct es_trace_foreign *foreign;
	static const char *const logs[] = {
		"h - - " WHEN " \"GET /\xe9t\xe9 HTTP/1.0\" 200 5\n",
		"\xef\xbb\xbfh - - " WHEN " \"GET / HTTP/1.0\" 200 5\n",
		"[10/Oct/2000:13:55:36 -0700] {a} \"GET / HTTP/1.0\" 200 5\n",
		"# a comment\nh - - " WHEN " \"GET / HTTP/1.0\" 200 5\n",
		"x",
		"",
	};
	static const char hole[] = "h - - " WHEN " \"GET /\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0h - - " WHEN;

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
		assert_int_equal(es_trace_detect(logs[i], strlen(logs[i]), &foreign), ES_TRACE_LOG);
	assert_int_equal(es_trace_detect(hole, sizeof(hole) - 1, &foreign), ES_TRACE_LOG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gzip),	    cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_parts),	    cmocka_unit_test(test_parts_at_any_place),
		cmocka_unit_test(test_foreign),	    cmocka_unit_test(test_tar),
		cmocka_unit_test(test_not_foreign),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
