/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PLUGIN_GUARD_H
#define ES_PLUGIN_GUARD_H

/*
 * Calls into plugins that may crash. SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT of the calling thread end
 * the call and not the process; so does ES_GUARD_SIGNAL, which ends a call that does not return. Whatever the
 * call held (memory, a lock) stays held. A crash outside of a guarded call ends the process as usual.
 *
 * The keeper watches the calls for a marked request; a timer watches each other call.
 */
#include <signal.h>
#include "kmod/core/types.h"

#define ES_GUARD_SIGNAL (SIGRTMIN + 3)

/* es_guard_install() - install the handlers, for the whole process; may be called again */
void es_guard_install(void);

/**
 * es_guard_thread() - the calling thread will make guarded calls
 * It takes the signals, and gets a stack for their handlers.
 */
void es_guard_thread(void);

/* es_guard_number() - say where the calling thread's es_mark.busy is; ES_GUARD_SIGNAL ends a call only if it
 * carries that number */
void es_guard_number(const __u32 *busy);

/**
 * es_guard_call() - call @fn(@ctx)
 * @limit_ms: the call is abandoned after this time, unless the keeper watches it. Time in which the machine
 * or a debugger did not let it run counts for a quarter of that at most. A call that sleeps is woken three
 * times before.
 * Returns 0, or the signal that ended the call; also 0 if @fn itself guards a call.
 */
int es_guard_call(unsigned int limit_ms, void (*fn)(void *ctx), void *ctx);

/* es_guard_signal_name() - "SIGSEGV"; "it did not return" of ES_GUARD_SIGNAL */
const char *es_guard_signal_name(int signal);

#endif
