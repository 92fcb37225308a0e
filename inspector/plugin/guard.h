/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PLUGIN_GUARD_H
#define ES_PLUGIN_GUARD_H

/*
 * Calls into plugins that may crash: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT of the calling thread end
 * the call and not the process; so does ES_GUARD_SIGNAL, by which a call is left that does not return. What
 * the call held (memory, a lock) it still holds. A crash outside of a guarded call ends the process as ever.
 *
 * The keeper watches what is called for a marked request; of any other call, a timer of its own does.
 */
#include <signal.h>
#include "kmod/core/types.h"

#define ES_GUARD_SIGNAL (SIGRTMIN + 3)

/* es_guard_install() - the handlers, for the whole process; once, or again */
void es_guard_install(void);

/**
 * es_guard_thread() - the calling thread will make guarded calls
 * It takes the signals, and gets a stack for their handlers.
 */
void es_guard_thread(void);

/* es_guard_number() - where the calling thread's es_mark.busy is; ES_GUARD_SIGNAL names the one that it is
 * for */
void es_guard_number(const __u32 *busy);

/**
 * es_guard_call() - call @fn(@ctx)
 * @limit_ms: when it is left, where the keeper does not watch it. Time in which the machine did not let it
 * run, or a debugger, counts for a quarter of that at most. A call that sleeps is woken three times before.
 * Returns 0, or the signal that ended it; 0 too if @fn itself guards a call.
 */
int es_guard_call(unsigned int limit_ms, void (*fn)(void *ctx), void *ctx);

/* es_guard_signal_name() - "SIGSEGV"; "it did not return" of ES_GUARD_SIGNAL */
const char *es_guard_signal_name(int signal);

#endif
