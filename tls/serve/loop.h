/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_LOOP_H
#define ES_SERVE_LOOP_H

#include <ev.h>

/*
 * es_loop_new() - a worker's loop. It waits where the kernel is short of files or memory, and says so once in
 * a while: libev by itself would end the process, and with it all its clients. NULL: it cannot be made.
 */
struct ev_loop *es_loop_new(void);

#endif
