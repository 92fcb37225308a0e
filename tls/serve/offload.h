/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_OFFLOAD_H
#define ES_SERVE_OFFLOAD_H

/*
 * A client's connection whose records the kernel writes: plain text goes in, from memory or, unread, from the
 * server's socket; and what TCP has been given is counted, so that it is known when nothing is missing.
 */
#include "tls/serve/buffer.h"
#include "tls/serve/ktls.h"

/* Where the key's last records are, of those that have a limit; it is looked at now and then. */
#define ES_OFFLOAD_ROOM (1ULL << 21)

struct es_offload;

/**
 * es_offload_new() - from now on the kernel writes the records of @fd
 * All that @records has written must have been given to TCP. Returns 0, or -errno and nothing has changed.
 */
int es_offload_new(const struct es_ktls *ktls, int fd, struct es_tls_records *records,
		   struct es_offload **ret_offload);
void es_offload_free(struct es_offload **offload);

/*
 * es_offload_take() - up to @most bytes that can be read from @from are to be sent, after all that was
 * before; only while es_offload_waiting() is 0. Returns them; 0: it has ended; -EAGAIN: nothing now;
 * -EOPNOTSUPP: that one must be read; or -errno.
 */
ssize_t es_offload_take(struct es_offload *offload, int from, size_t most);

/* es_offload_alert() - an alert is to be sent after all text; the last of two is */
void es_offload_alert(struct es_offload *offload, const uint8_t *text, size_t len);

/* es_offload_waiting() - bytes that were taken, and an alert, which TCP has not been given yet */
size_t es_offload_waiting(const struct es_offload *offload);

/*
 * es_offload_push() - give TCP some of that, or of @out, which is text. Returns 0; -EAGAIN: it takes no
 * more; -EKEYEXPIRED: nor ever, the key is used up; or -errno.
 */
int es_offload_push(struct es_offload *offload, struct es_buffer *out);

/* es_offload_is_late() - has the key protected half of what it may? Then no response should begin. */
int es_offload_is_late(const struct es_offload *offload);

/*
 * es_offload_is_out() - has TCP all that was to be sent, byte for byte? The kernel may hold a part of a
 * record for which TCP had no room, and a FIN would overtake it.
 */
int es_offload_is_out(struct es_offload *offload, unsigned int *ret_unacknowledged);

/*
 * es_offload_settle() - has the client acknowledged all of that? Then @records knows the number of the next
 * record, and this returns 1.
 */
int es_offload_settle(struct es_offload *offload, struct es_tls_records *records);

#endif
