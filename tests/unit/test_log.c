// SPDX-License-Identifier: GPL-2.0-or-later
/* The log, where whoever reads it does not, and then does: nobody waits, and what is missing is counted. */
#include "cmocka_all.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/log.h"

#define LINES	2000
#define GIVE_UP 20 /* seconds, after which SIGALRM ends a test that waits */

/* Standard error goes to @to; all that is logged meanwhile is this test's. */
static int redirect(int to)
{
	int before = dup(STDERR_FILENO);

	fflush(stderr);
	assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
	return before;
}

/* Returns the text that can be read now. */
static char *drain(int fd)
{
	char *text = calloc(1, 1 << 20);
	size_t used = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (used < (1 << 20) - 1 && (n = read(fd, text + used, (1 << 20) - 1 - used)) > 0)
		used += (size_t)n;
	return text;
}

static unsigned int lines_of(const char *text, const char *with)
{
	unsigned int count = 0;

	for (const char *at = text; (at = strstr(at, with)); at += strlen(with))
		count++;
	return count;
}

static void not_read(int reader, int writer, int keeps_flags)
{
	int flags = fcntl(writer, F_GETFL), before = redirect(writer);
	char *first, *second, wanted[64];
	unsigned int there;

	alarm(GIVE_UP);
	for (int i = 0; i < LINES; i++)
		es_log(ES_LOG_INFO, "line %d.", i);
	first = drain(reader);
	es_log(ES_LOG_INFO, "read again.");
	es_log_fields(ES_LOG_INFO, "kind", "n1", "complete.");
	second = drain(reader);
	alarm(0);
	redirect(before);
	close(before);
	assert_true(!keeps_flags || fcntl(writer, F_GETFL) == flags);
	there = lines_of(first, " line ");
	assert_true(there > 0 && there < LINES);
	assert_int_equal(lines_of(first, "\n"), there); /* whole ones */
	snprintf(wanted, sizeof(wanted), "warning: the log is not complete: %u lines", LINES - there);
	if (!strstr(second, wanted) || strstr(second, wanted) > strstr(second, "read again."))
		fail_msg("not there: %s\nin: %s", wanted, second);
	assert_int_equal(lines_of(second, "\n"), 3);
	free(first);
	free(second);
}

static void test_pipe(void **state)
{
	int ends[2];

	(void)state;
	assert_false(pipe(ends));
	fcntl(ends[1], F_SETPIPE_SZ, 4096);
	not_read(ends[0], ends[1], 1);
	close(ends[0]);
	close(ends[1]);
}

static void test_fifo(void **state)
{
	char directory[] = "/tmp/test_log.XXXXXX", path[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_false(mkfifo(path, 0600));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	not_read(fd, fd, 0); /* one file: to read it without waiting is to write so */
	close(fd);
	unlink(path);
	rmdir(directory);
}

static void test_socket(void **state)
{
	int ends[2], room = 4096;

	(void)state;
	assert_false(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	not_read(ends[0], ends[1], 1);
	close(ends[0]);
	close(ends[1]);
}

/* The reader is gone: no signal, and the next reader is told. */
static void test_reader_gone(void **state)
{
	int ends[2], before;
	char *text;

	(void)state;
	assert_false(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	close(ends[0]);
	before = redirect(ends[1]);
	es_log(ES_LOG_INFO, "lost.");
	close(ends[1]);
	assert_false(pipe(ends));
	close(redirect(ends[1]));
	es_log(ES_LOG_INFO, "here.");
	text = drain(ends[0]);
	redirect(before);
	close(before);
	assert_non_null(strstr(text, "1 line could not be written"));
	assert_null(strstr(text, "lost."));
	assert_non_null(strstr(text, "here."));
	close(ends[0]);
	close(ends[1]);
	free(text);
}

/* A file keeps what is in it, wherever the program that opened it is. */
static void test_file(void **state)
{
	FILE *file = tmpfile();
	int before;
	char *text;

	(void)state;
	assert_non_null(file);
	before = redirect(fileno(file));
	for (int i = 0; i < LINES; i++)
		es_log(ES_LOG_INFO, "line %d.", i);
	redirect(before);
	close(before);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
	text = drain(fileno(file));
	assert_int_equal(lines_of(text, " line "), LINES);
	free(text);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipe),   cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_socket), cmocka_unit_test(test_reader_gone),
		cmocka_unit_test(test_file),
	};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
