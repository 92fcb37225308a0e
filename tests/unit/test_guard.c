// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guarded calls: what ends one, and what must not.
 */
#include "tests/unit/cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/plugin/guard.h"

/* A function whose crash is wanted: a sanitizer would end the program instead. */
#define CRASHES __attribute__((no_sanitize("address", "undefined")))

#ifdef __SANITIZE_ADDRESS__
/* A guarded thread has an alternate stack of its own, which the sanitizer would take for its own. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif

/* No test takes so long. */
#define FOREVER_MS 600000

static volatile int *nowhere;
static volatile int zero, result;

static void nothing(void *ctx)
{
	(*(int *)ctx)++;
}

CRASHES static void segv(void *ctx)
{
	(void)ctx;
	*nowhere = 1;
}

CRASHES static void divide(void *ctx)
{
	(void)ctx;
	result = 1000 / zero;
}

static void trap(void *ctx)
{
	(void)ctx;
	raise(SIGILL);
}

static void give_up(void *ctx)
{
	(void)ctx;
	abort();
}

CRASHES static unsigned int deeper(unsigned int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	return depth ? deeper(depth - 1) + (unsigned int)room[0] : 0;
}

static void overflow(void *ctx)
{
	(void)ctx;
	result = (int)deeper(1U << 20);
}

/* As a thread that has all signals blocked, and more than once: no crash makes the next one another. */
static void *crash_all(void *ctx)
{
	static const struct {
		void (*fn)(void *ctx);
		int signal;
	} calls[] = {
		{segv, SIGSEGV}, {divide, SIGFPE}, {trap, SIGILL}, {give_up, SIGABRT}, {overflow, SIGSEGV}};
	int returned = 0;
	sigset_t all;

	(void)ctx;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	es_guard_thread();
	for (int round = 1; round <= 3; round++) {
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			assert_int_equal(es_guard_call(FOREVER_MS, calls[i].fn, NULL), calls[i].signal);
		assert_int_equal(es_guard_call(FOREVER_MS, nothing, &returned), 0);
		assert_int_equal(returned, round);
	}
	return NULL;
}

static void nap(void *ctx)
{
	usleep(60000);
	nothing(ctx);
}

/*
 * A program that has installed no handlers, as a unit test or a tool, gets no signal that ends it for a call
 * that is slow.
 */
static void test_slow_call_without_handlers(void **state)
{
	int returned = 0;

	(void)state;
	assert_int_equal(es_guard_call(100, nap, &returned), 0);
	assert_int_equal(returned, 1);
}

static void test_crashes(void **state)
{
	pthread_t thread[2];

	(void)state;
	es_guard_install(); /* cmocka has handlers of its own */
	crash_all(NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, crash_all, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

/* --- calls that do not return */

static struct {
	__u32 busy;
	_Atomic int is_in, tid;
	pthread_t thread;
} worker;

static void forever(void *ctx)
{
	(void)ctx;
	worker.is_in = 1;
	for (volatile unsigned int i = 0;; i++)
		;
}

static void *hang(void *ctx)
{
	(void)ctx;
	es_guard_thread();
	es_guard_number(&worker.busy);
	worker.tid = (int)syscall(SYS_gettid);
	assert_int_equal(es_guard_call(FOREVER_MS, forever, NULL), ES_GUARD_SIGNAL);
	worker.is_in = 0;
	return NULL;
}

static void leave(__u32 number)
{
	siginfo_t info = {.si_signo = ES_GUARD_SIGNAL, .si_code = SI_QUEUE};

	info.si_pid = getpid();
	info.si_value.sival_int = (int)number;
	assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), worker.tid, ES_GUARD_SIGNAL, &info), 0);
}

static void test_call_that_does_not_return(void **state)
{
	(void)state;
	es_guard_install();
	worker.busy = 7;
	assert_int_equal(pthread_create(&worker.thread, NULL, hang, NULL), 0);
	while (!worker.is_in)
		usleep(1000);
	leave(6); /* for a call that was long ago */
	assert_int_equal(worker.is_in, 1);
	leave(7);
	pthread_join(worker.thread, NULL);
	assert_int_equal(worker.is_in, 0);
}

/* --- calls that nobody else watches */

static void sleep_forever(void *ctx)
{
	(void)ctx;
	for (;;)
		pause();
}

static void short_nap(void *ctx)
{
	usleep(1000);
	nothing(ctx);
}

/* As the thread that configures plugins, and as a worker that has no request in hand. */
static void *leave_by_timer(void *ctx)
{
	static __u32 idle;
	int returned = 0;

	es_guard_thread();
	if (ctx)
		es_guard_number(&idle);
	for (int round = 1; round <= 3; round++) {
		assert_int_equal(es_guard_call(40, forever, NULL), ES_GUARD_SIGNAL);
		assert_int_equal(es_guard_call(40, sleep_forever, NULL), ES_GUARD_SIGNAL);
		/* A timer that is left over does nothing to the next call. */
		for (int i = 0; i < 20; i++)
			assert_int_equal(es_guard_call(FOREVER_MS, short_nap, &returned), 0);
		assert_int_equal(returned, 20 * round);
	}
	return NULL;
}

static void test_unwatched_call_that_does_not_return(void **state)
{
	static int is_worker = 1;
	pthread_t thread[2];

	(void)state;
	es_guard_install();
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, leave_by_timer, i ? &is_worker : NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

/* --- what ends the process all the same */

static void plain_crash(void)
{
	segv(NULL);
}

static void plain_abort(void)
{
	abort();
}

static void sent_by_others(void *ctx)
{
	(void)ctx;
	if (!fork()) {
		kill(getppid(), SIGABRT);
		_exit(0);
	}
	pause();
}

static void abort_from_outside(void)
{
	es_guard_call(FOREVER_MS, sent_by_others, NULL);
}

static void test_other_signals_end_the_process(void **state)
{
	static const struct {
		void (*fn)(void);
		int signal;
	} deaths[] = {{plain_crash, SIGSEGV}, {plain_abort, SIGABRT}, {abort_from_outside, SIGABRT}};

	(void)state;
	es_guard_install();
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		int status = 0;
		pid_t pid = fork();

		if (!pid) {
			alarm(30);
			deaths[i].fn();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), deaths[i].signal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_call_without_handlers), /* before any installs them */
		cmocka_unit_test(test_crashes),
		cmocka_unit_test(test_call_that_does_not_return),
		cmocka_unit_test(test_unwatched_call_that_does_not_return),
		cmocka_unit_test(test_other_signals_end_the_process),
	};

	es_guard_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
