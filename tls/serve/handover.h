/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_HANDOVER_H
#define ES_SERVE_HANDOVER_H

/*
 * request_handover() (libearshot/include/earshot/handover.h) for a process that must not wait: the same
 * message to the same socket, and the answer arrives by an event.
 */
#include <ev.h>
#include <stddef.h>
#include <stdint.h>

struct es_handing;

/**
 * es_handing_new() - give the connection @fd to @node
 * @path: of the daemon's socket
 * @first, @then: what its program shall read, both at most ES_PROGRAM_BYTES_MAX
 * @done: called once, later, with request_handover()'s result, unless this fails
 * Nobody may touch @fd until then. Returns 0, or -errno: nothing was done, and the connection is the
 * caller's.
 */
int es_handing_new(struct ev_loop *loop, const char *path, int fd, const char *node, const uint8_t *first,
		   size_t first_len, const uint8_t *then, size_t then_len,
		   void (*done)(void *ctx, int result), void *ctx, struct es_handing **ret_handing);

/* es_handing_free() - do not wait for the result: the connection may be anywhere, close it */
void es_handing_free(struct es_handing **handing);

/* es_handing_is_lost() - is the connection not the caller's any more, after a @result that is no success? */
int es_handing_is_lost(int result);

#endif
