// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guarded calls: the signal handlers that end a call into a plugin instead of the process, and the stacks
 * that they run on.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "inspector/plugin/guard.h"

/* A frame of the widest registers takes some kilobytes;
 * a call that has used up its own stack has no other. */
#define STACK_SIZE (64 * 1024)

/* A thread that was kept from running gets one tick for all that it has missed. */
#define TICKS 4

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct guard {
	sigjmp_buf jump;
	volatile sig_atomic_t is_armed;
	volatile sig_atomic_t ticks;
	const __u32 *busy;
	int has_stack;
};

static _Thread_local struct guard guard;
static pthread_once_t leave_installed = PTHREAD_ONCE_INIT;
static _Thread_local _Alignas(16) char stack[STACK_SIZE];

static void leave(int signal)
{
	guard.is_armed = 0;
	siglongjmp(guard.jump, signal);
}

/*
 * True for a signal of the thread itself, a fault or abort(), and not one that another process or thread
 * sent.
 */
static int is_own(const siginfo_t *info)
{
	return info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
	struct sigaction ours = {.sa_handler = SIG_DFL};

	(void)context;
	if (guard.is_armed && is_own(info))
		leave(signal);
	/* The instruction faults again, or abort() goes on; a signal that was sent is sent again. */
	sigaction(signal, &ours, NULL);
	if (info->si_code <= 0)
		kill(getpid(), signal);
}

static void on_leave(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (guard.is_armed && info->si_code == SI_TIMER && ++guard.ticks >= TICKS)
		leave(signal);
	if (guard.is_armed && info->si_code != SI_TIMER && guard.busy &&
	    *(const volatile __u32 *)guard.busy == (__u32)info->si_value.sival_int)
		leave(signal);
}

/* Not blocked in the handlers, which do not return: no mask to be saved with each call. */
#define FLAGS (SA_SIGINFO | SA_ONSTACK | SA_NODEFER)

static void install_leave(void)
{
	/* The call must not notice a tick. */
	struct sigaction action = {.sa_sigaction = on_leave, .sa_flags = FLAGS | SA_RESTART};

	sigaction(ES_GUARD_SIGNAL, &action, NULL);
}

void es_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = FLAGS};

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &action, NULL);
	install_leave();
}

void es_guard_thread(void)
{
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	sigset_t taken;

	if (!guard.has_stack)
		guard.has_stack = !sigaltstack(&alternate, NULL);
	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaddset(&taken, crashes[i]);
	sigaddset(&taken, ES_GUARD_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &taken, NULL);
}

void es_guard_number(const __u32 *busy)
{
	guard.busy = busy;
}

/* A timer for one call, deleted after it. Such calls are rare: the keeper watches all others. */
static int timer_begin(unsigned int limit_ms, timer_t *ret_timer)
{
	unsigned int tick_ms = limit_ms / TICKS;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = ES_GUARD_SIGNAL};
	struct itimerspec every = {.it_interval = {tick_ms / 1000, (long)(tick_ms % 1000) * 1000000}};

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, ret_timer))
		return -1;
	every.it_value = every.it_interval;
	return timer_settime(*ret_timer, 0, &every, NULL);
}

static int call(void (*fn)(void *ctx), void *ctx)
{
	int signal = sigsetjmp(guard.jump, 0);

	if (signal)
		return signal;
	guard.is_armed = 1;
	fn(ctx);
	guard.is_armed = 0;
	return 0;
}

int es_guard_call(unsigned int limit_ms, void (*fn)(void *ctx), void *ctx)
{
	timer_t timer;
	int signal;

	if (guard.is_armed) {
		fn(ctx);
		return 0;
	}
	if (guard.busy && *guard.busy)
		return call(fn, ctx);
	/* Without a handler, the first tick of a slow call would end a process that never installed one. */
	pthread_once(&leave_installed, install_leave);
	guard.ticks = 0;
	if (timer_begin(limit_ms, &timer))
		return call(fn, ctx); /* unwatched, but better than no call at all */
	signal = call(fn, ctx);
	timer_delete(timer);
	return signal;
}

const char *es_guard_signal_name(int signal)
{
	switch (signal) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGFPE:
		return "SIGFPE";
	case SIGILL:
		return "SIGILL";
	case SIGABRT:
		return "SIGABRT";
	default:
		return "it did not return";
	}
}
