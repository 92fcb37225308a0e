// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The request log: its lines, and the thread that writes them to a syslog, to a file that fails, and to one
 * that hangs.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "inspector/base/clock.h"
#include "inspector/daemon/log_writer.h"
#include "inspector/report/log_line.h"

static struct es_trace_entry entry_of(const char *request)
{
	struct es_trace_entry entry = {.service = "web", .node = "n2", .why = "policy"};

	assert_int_equal(es_conf_addr_parse("198.51.100.7", &entry.client), 0);
	es_trace_request(&entry, request, strlen(request));
	return entry;
}

static void check_line(const struct es_trace_entry *entry, const char *expected)
{
	char line[ES_LOG_LINE_SIZE];
	size_t len = es_report_log_line(entry, ES_CONF_LOG_COMMON, "n1", 86400000000000ULL, line);

	assert_int_equal(len, strlen(expected));
	assert_memory_equal(line, expected, len);
}

static void test_common(void **state)
{
	struct es_trace_entry entry = entry_of("GET /a?b HTTP/1.1\r\n");

	(void)state;
	setenv("TZ", "UTC", 1);
	check_line(&entry, "198.51.100.7 - - [02/Jan/1970:00:00:00 +0000] \"GET /a?b HTTP/1.1\" - -\n");
	entry.status = 403;
	entry.bytes = 14;
	check_line(&entry, "198.51.100.7 - - [02/Jan/1970:00:00:00 +0000] \"GET /a?b HTTP/1.1\" 403 14\n");
	entry.decision = ES_TALLY_again;
	check_line(&entry, "");
	entry = entry_of("GET /\"\\\x1b\xff HTTP/1.0\r\n");
	check_line(
		&entry,
		"198.51.100.7 - - [02/Jan/1970:00:00:00 +0000] \"GET /\\x22\\x5C\\x1B\\xFF HTTP/1.0\" - -\n");
	entry = entry_of("GET /a\r\n");
	check_line(&entry, "198.51.100.7 - - [02/Jan/1970:00:00:00 +0000] \"GET /a\" - -\n");
	entry = entry_of("\x16\x03\x01");
	check_line(&entry, "198.51.100.7 - - [02/Jan/1970:00:00:00 +0000] \"-\" - -\n");
}

/* The longest request of bytes that become the most. */
static void test_longest(void **state)
{
	char request[2 * ES_TRACE_TEXT], line[ES_LOG_LINE_SIZE];
	struct es_trace_entry entry;
	size_t len;

	(void)state;
	memset(request, '\x01', sizeof(request));
	memcpy(request, "GET /", 5);
	request[sizeof(request) - 1] = 0;
	entry = entry_of(request);
	assert_true(entry.is_cut);
	for (int format = ES_CONF_LOG_COMMON; format <= ES_CONF_LOG_JSON; format++) {
		len = es_report_log_line(&entry, (enum es_conf_log_format)format, "n1", 0, line);
		assert_true(len > 0 && len < ES_LOG_LINE_SIZE);
		assert_int_equal(line[len - 1], '\n');
	}
}

static struct es_log_writer *writer_of(const struct es_conf_log *conf, const char *syslog)
{
	struct es_log_writer *writer;

	assert_int_equal(es_log_writer_new(conf, NULL, "n1", syslog, 1, &writer), 0);
	return writer;
}

static unsigned int put(struct es_log_writer *writer, unsigned int count)
{
	struct es_trace_entry entry = entry_of("GET /a HTTP/1.1\r\n");
	unsigned int taken = 0;

	while (count--)
		taken += es_trace_put(es_log_writer_ring(writer, 0), &entry) > 0;
	return taken;
}

static void test_syslog(void **state)
{
	const struct es_conf_log conf = {.is_on = 1, .to = ES_CONF_LOG_SYSLOG, .facility = 21, .service = -1};
	char folder[] = "/tmp/earshot-log-XXXXXX", message[512];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = 10};
	struct es_log_counts counts = {};
	struct es_log_writer *writer;
	ssize_t n;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/log", folder);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	writer = writer_of(&conf, address.sun_path);
	assert_int_equal(put(writer, 1), 1);
	n = recv(fd, message, sizeof(message) - 1, 0);
	assert_true(n > 0);
	message[n] = 0;
	assert_memory_equal(message, "<174>", 5); /* local5, info */
	assert_non_null(strstr(message, " earshot["));
	assert_non_null(strstr(message, "]: 198.51.100.7 - - ["));
	assert_string_equal(message + n - strlen("\"GET /a HTTP/1.1\" - -"), "\"GET /a HTTP/1.1\" - -");
	/* Nobody reads any more. */
	close(fd);
	unlink(address.sun_path);
	assert_int_equal(put(writer, 1), 1);
	es_log_writer_end(&writer, 5000, &counts);
	assert_int_equal(counts.written, 1);
	assert_int_equal(counts.failed, 1);
	rmdir(folder);
}

static void test_full_disk(void **state)
{
	const struct es_conf_log conf = {
		.is_on = 1, .to = ES_CONF_LOG_FILE, .file = "/dev/full", .service = -1};
	struct es_log_counts counts = {};
	struct es_log_writer *writer = writer_of(&conf, "");

	(void)state;
	assert_int_equal(put(writer, 3), 3);
	es_log_writer_end(&writer, 5000, &counts);
	assert_int_equal(counts.written, 0);
	assert_int_equal(counts.failed, 3);
}

/* To open a pipe that nobody reads takes for ever, as a disk may. */
static void test_hangs(void **state)
{
	struct es_conf_log conf = {.is_on = 1, .to = ES_CONF_LOG_FILE, .service = -1};
	char folder[] = "/tmp/earshot-log-XXXXXX";
	unsigned long long begin_ns, ended_ns;
	struct es_log_counts counts = {};
	struct es_log_writer *writer;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(conf.file, sizeof(conf.file), "%s/pipe", folder);
	assert_int_equal(mkfifo(conf.file, 0600), 0);
	writer = writer_of(&conf, "");
	begin_ns = es_clock_now_ns();
	assert_int_equal(put(writer, 3 * ES_TRACE_ENTRIES), ES_TRACE_ENTRIES);
	assert_int_equal(es_log_writer_ring(writer, 0)->left_out, 2 * ES_TRACE_ENTRIES);
	es_log_writer_end(&writer, 50, &counts);
	ended_ns = es_clock_now_ns();
	assert_true(ended_ns - begin_ns < 5000000000ULL);
	assert_int_equal(counts.written + counts.failed, 0);
	unlink(conf.file);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_common), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_syslog), cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
