// SPDX-License-Identifier: GPL-2.0-or-later
/* The file in which earshot-tls counts: who writes where, what is read, and what goes on after a restart. */
#include "cmocka_all.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tls/serve/counters.h"
#include "tls/serve/ledger.h"

static char path[64];

static int begin(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/earshot-ledger-%d.tls", (int)getpid());
	unlink(path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct es_settings *settings_of(const char *first, const char *second)
{
	struct es_settings *s = calloc(1, sizeof(*s));

	s->count = second ? 2 : 1;
	snprintf(s->service[0].name, sizeof(s->service[0].name), "%s", first);
	if (second)
		snprintf(s->service[1].name, sizeof(s->service[1].name), "%s", second);
	return s;
}

static struct es_serve_ledger opened(struct es_settings *settings)
{
	struct es_serve_ledger ledger;
	struct es_conf_error err = {};

	assert_int_equal(es_serve_ledger_open(path, 5, &ledger, &err), 0);
	assert_string_equal(err.text, "");
	es_serve_ledger_publish(&ledger, settings);
	return ledger;
}

static void closed(struct es_serve_ledger *ledger)
{
	munmap(ledger->file, sizeof(*ledger->file));
	close(ledger->fd);
}

static uint64_t count_of(const struct es_ledger *ledger, const char *service, enum es_ledger_counter which)
{
	int s = es_ledger_find(&ledger->head, service);

	assert_true(s >= 0);
	return ledger->count[s][which];
}

/* Workers write at once, in places of their own; one that dies leaves no connections. */
static void test_sums(void **state)
{
	struct es_settings *settings = settings_of("a", "b");
	struct es_serve_ledger ledger = opened(settings);
	static struct es_ledger read;

	(void)state;
	for (unsigned int place = 0; place < 3; place++) {
		struct es_ledger_block *block = es_serve_ledger_place(&ledger, place);

		assert_non_null(block);
		if (!fork()) {
			for (int i = 0; i < 1000; i++) {
				es_serve_count(&block[settings->service[0].number], ES_SERVE_accepted);
				es_serve_count_by(&block[settings->service[1].number], ES_SERVE_bytes_in, 7);
			}
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	es_serve_ledger_workers(&ledger, 3, 1);
	es_serve_ledger_died(&ledger);
	assert_int_equal(es_ledger_read(path, &read), 0);
	assert_int_equal(count_of(&read, "a", ES_LEDGER_accepted), 3000);
	assert_int_equal(count_of(&read, "a", ES_LEDGER_bytes_in), 0);
	assert_int_equal(count_of(&read, "b", ES_LEDGER_bytes_in), 21000);
	assert_int_equal(es_ledger_open_connections(read.count[es_ledger_find(&read.head, "a")]), 3000);
	assert_int_equal(es_serve_ledger_sum(&ledger, ES_LEDGER_accepted), 3000);
	assert_int_equal(read.head.workers, 3);
	assert_int_equal(read.head.leaving, 1);
	assert_int_equal(read.head.died, 1);
	assert_int_equal(read.head.pid, getpid());
	es_serve_ledger_leave(&ledger, 1);
	assert_int_equal(es_ledger_read(path, &read), 0);
	assert_int_equal(es_ledger_open_connections(read.count[es_ledger_find(&read.head, "a")]), 2000);
	assert_int_equal(count_of(&read, "a", ES_LEDGER_cut_off), 1000);
	assert_int_equal(count_of(&read, "b", ES_LEDGER_cut_off), 0);
	closed(&ledger);
	free(settings);
}

/* Is it said to run? Asked by another process: one's own locks do not count. */
static int runs(void)
{
	static struct es_ledger read;
	int status;

	if (!fork())
		_exit(es_ledger_read(path, &read) ? 2 : read.runs);
	assert_true(wait(&status) > 0);
	return WEXITSTATUS(status);
}

static void test_runs(void **state)
{
	struct es_settings *settings = settings_of("a", NULL);
	struct es_serve_ledger ledger = opened(settings), second;
	struct es_conf_error err = {};
	int status;

	(void)state;
	assert_int_equal(runs(), 1);
	/* Another one beside it must not write there. */
	if (!fork()) {
		int rc = es_serve_ledger_open(path, 5, &second, &err);

		_exit(!rc && second.fd < 0 && second.file && strstr(err.text, "another earshot-tls") ? 0 : 1);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_int_equal(runs(), 1);
	closed(&ledger);
	assert_int_equal(runs(), 0);
	free(settings);
}

/* Counters never go back: not when it is started anew, nor when services come and go. */
static void test_goes_on(void **state)
{
	struct es_settings *settings = settings_of("a", "b"), *others = settings_of("c", "b");
	struct es_serve_ledger ledger = opened(settings);
	static struct es_ledger read;
	unsigned int b = settings->service[1].number;

	(void)state;
	es_serve_count_by(&es_serve_ledger_place(&ledger, 4)[b], ES_SERVE_requests, 50);
	es_serve_count_by(&es_serve_ledger_place(&ledger, 4)[b], ES_SERVE_accepted, 9);
	closed(&ledger);
	ledger = opened(others);
	assert_int_equal(others->service[1].number, b);
	assert_int_not_equal(others->service[0].number, b);
	es_serve_count_by(&es_serve_ledger_place(&ledger, 0)[b], ES_SERVE_requests, 5);
	assert_int_equal(es_ledger_read(path, &read), 0);
	assert_int_equal(count_of(&read, "b", ES_LEDGER_requests), 55);
	assert_int_equal(es_ledger_open_connections(read.count[b]), 0);
	assert_int_equal(read.head.service[es_ledger_find(&read.head, "a")].state, ES_LEDGER_GONE);
	assert_int_equal(read.head.service[es_ledger_find(&read.head, "c")].state, ES_LEDGER_SERVED);
	closed(&ledger);
	free(settings);
	free(others);
}

static struct es_settings *settings_of_many(unsigned int count)
{
	struct es_settings *s = calloc(1, sizeof(*s));

	for (; s->count < count; s->count++)
		snprintf(s->service[s->count].name, sizeof(s->service[0].name), "s%u", s->count);
	return s;
}

/*
 * Where the file system is full, whoever wants a page of a hole is ended by SIGBUS, also to read it. The
 * first process must not be, so it wants none: neither of services that came later, nor of a process before.
 */
static void test_holes_stay_holes(void **state)
{
	struct es_settings *few = settings_of_many(1), *many = settings_of_many(ES_CONF_SERVICES_MAX);
	struct es_serve_ledger ledger;
	struct stat before, after;

	(void)state;
	snprintf(path, sizeof(path), "/dev/shm/earshot-ledger-%d.tls", (int)getpid()); /* as /run is one */
	ledger = opened(few);
	es_serve_count(&es_serve_ledger_place(&ledger, 2)[few->service[0].number], ES_SERVE_accepted);
	es_serve_ledger_publish(&ledger, many);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(es_serve_ledger_sum(&ledger, ES_LEDGER_accepted), 1);
	for (unsigned int place = 0; place < 3; place++)
		es_serve_ledger_leave(&ledger, place);
	assert_int_equal(es_serve_ledger_sum(&ledger, ES_LEDGER_cut_off), 1);
	closed(&ledger);
	ledger = opened(many);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	closed(&ledger);
	free(few);
	free(many);
}

/* More services than there are numbers, in the course of time: those that are gone make room. */
static void test_many_services(void **state)
{
	struct es_serve_ledger ledger;
	char name[16];

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct es_settings *settings;

		snprintf(name, sizeof(name), "s%d", i);
		settings = settings_of(name, "kept");
		if (!i)
			ledger = opened(settings);
		else
			es_serve_ledger_publish(&ledger, settings);
		assert_int_not_equal(settings->service[0].number, settings->service[1].number);
		assert_string_equal(ledger.file->head.service[settings->service[0].number].name, name);
		assert_string_equal(ledger.file->head.service[settings->service[1].number].name, "kept");
		free(settings);
	}
	closed(&ledger);
}

static void test_files_that_are_none(void **state)
{
	struct es_settings *settings = settings_of("a", NULL);
	static struct es_ledger read;
	struct es_serve_ledger ledger;
	struct es_conf_error err = {};
	int fd;

	(void)state;
	assert_int_equal(es_ledger_read(path, &read), -ENOENT);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(es_ledger_read(path, &read), -EPROTO);
	assert_int_equal(write(fd, "nonsense", 8), 8);
	close(fd);
	assert_int_equal(es_ledger_read(path, &read), -EPROTO);
	/* It is made anew. */
	ledger = opened(settings);
	assert_int_equal(es_ledger_read(path, &read), 0);
	/* More places than there are */
	ledger.file->head.places = ES_LEDGER_PLACES + 1;
	assert_int_equal(es_ledger_read(path, &read), -EPROTO);
	closed(&ledger);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_not_equal(es_ledger_read(path, &read), 0);
	assert_int_equal(es_serve_ledger_open(path, 5, &ledger, &err), 0);
	assert_int_equal(ledger.fd, -1);
	assert_non_null(strstr(err.text, "cannot be made"));
	/* And it counts all the same. */
	es_serve_ledger_publish(&ledger, settings);
	es_serve_count(&es_serve_ledger_place(&ledger, 0)[settings->service[0].number], ES_SERVE_requests);
	assert_int_equal(es_serve_ledger_sum(&ledger, ES_LEDGER_requests), 1);
	munmap(ledger.file, sizeof(*ledger.file));
	free(settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, begin, end),
		cmocka_unit_test_setup_teardown(test_runs, begin, end),
		cmocka_unit_test_setup_teardown(test_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(test_holes_stay_holes, begin, end),
		cmocka_unit_test_setup_teardown(test_many_services, begin, end),
		cmocka_unit_test_setup_teardown(test_files_that_are_none, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
