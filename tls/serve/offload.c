// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text that the kernel protects. Its records are counted by their numbers and by TCP's bytes: each of them
 * adds as much to its text as the cipher does, so the two must agree. The kernel may hold a part of a record
 * that TCP had no room for; TCP's own counters do not know of that.
 */
#include "tls/serve/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKE_MAX   (1 << 17)
#define PUSH_MAX   (1 << 17)
#define LOOK_AFTER (1 << 14) /* pushes: each makes a few records at most, so these are far below the room */

/**
 * struct es_offload
 * @pipe: for bytes that are not read, @piped of them; -1: there is none; @rest: those that may still go its
 * way
 * @alert: waits, @alert_len bytes of it
 * @began, @base: the number of the first record, and TCP's bytes before it; @text: bytes that it has been
 * given
 * @number: of the next record, when it was looked at last; @pushes: since then
 */
struct es_offload {
	const struct es_ktls *ktls;
	const struct es_tls_suite *suite;
	int fd;
	int pipe[2];
	size_t piped;
	size_t rest;
	uint8_t alert[2];
	size_t alert_len;
	uint64_t began;
	uint64_t base;
	uint64_t text;
	uint64_t number;
	unsigned int pushes;
};

int es_offload_new(const struct es_ktls *ktls, int fd, struct es_tls_records *records,
		   struct es_offload **ret_offload)
{
	struct es_offload *o = calloc(1, sizeof(*o));
	unsigned int unacknowledged;
	struct es_tls_write_key key;
	int rc;

	if (!o)
		return -ENOMEM;
	rc = es_tls_records_key(records, &key);
	o->ktls = ktls;
	o->fd = fd;
	o->pipe[0] = o->pipe[1] = -1;
	if (!rc) {
		o->suite = key.suite;
		o->began = o->number = key.number;
		rc = ktls->sent(fd, &o->base, &unacknowledged);
	}
	if (!rc)
		rc = ktls->begin(fd, &key);
	explicit_bzero(&key, sizeof(key));
	if (rc) {
		es_offload_free(&o);
		return rc;
	}
	es_tls_records_lend(records);
	*ret_offload = o;
	return 0;
}

static void close_pipe(struct es_offload *o)
{
	for (int i = 0; i < 2; i++) {
		if (o->pipe[i] >= 0)
			close(o->pipe[i]);
		o->pipe[i] = -1;
	}
}

void es_offload_free(struct es_offload **offload)
{
	if (!*offload)
		return;
	close_pipe(*offload);
	free(*offload);
	*offload = NULL;
}

ssize_t es_offload_take(struct es_offload *o, int from, size_t most)
{
	ssize_t got;

	if (o->piped)
		return -EAGAIN;
	if (o->pipe[0] < 0 && pipe2(o->pipe, O_NONBLOCK | O_CLOEXEC))
		return -EOPNOTSUPP;
	do
		got = splice(from, NULL, o->pipe[1], NULL, most < TAKE_MAX ? most : TAKE_MAX,
			     SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	o->piped = (size_t)got;
	o->rest = most - o->piped;
	return got;
}

void es_offload_alert(struct es_offload *o, const uint8_t *text, size_t len)
{
	o->alert_len = len < sizeof(o->alert) ? len : sizeof(o->alert);
	memcpy(o->alert, text, o->alert_len);
}

size_t es_offload_waiting(const struct es_offload *o)
{
	return o->piped + o->alert_len;
}

/* The kernel counts records, and has no limit. */
static int look(struct es_offload *o)
{
	int rc = o->ktls->number(o->fd, o->suite, &o->number);

	o->pushes = 0;
	if (rc)
		return rc;
	return o->suite->record_limit && o->number >= o->suite->record_limit - ES_OFFLOAD_ROOM ? -EKEYEXPIRED
											       : 0;
}

int es_offload_push(struct es_offload *o, struct es_buffer *out)
{
	size_t len = es_buffer_len(out);
	ssize_t sent;

	if (++o->pushes >= LOOK_AFTER) {
		int rc = look(o);

		if (rc)
			return rc;
	}
	if (o->piped) {
		sent = o->ktls->splice(o->pipe[0], o->fd, o->piped);
		if (sent > 0)
			o->piped -= (size_t)sent;
		/* Most connections wait for a request: they need no descriptors for that. */
		if (!o->piped && o->rest < ES_TLS_TEXT_MAX)
			close_pipe(o);
	} else if (len) {
		sent = o->ktls->send(o->fd, es_buffer_front(out), len < PUSH_MAX ? len : PUSH_MAX);
		if (sent > 0)
			es_buffer_take(out, (size_t)sent);
	} else if (o->alert_len) {
		sent = o->ktls->alert(o->fd, o->alert, o->alert_len);
		if (sent > 0)
			o->alert_len = 0;
	} else {
		return 0;
	}
	if (!sent)
		return -EIO; /* what has been taken would be missing */
	if (sent > 0)
		o->text += (uint64_t)sent;
	return sent < 0 ? (int)sent : 0;
}

int es_offload_is_late(const struct es_offload *o)
{
	return o->suite->record_limit && o->number >= o->suite->record_limit / 2;
}

int es_offload_is_out(struct es_offload *o, unsigned int *ret_unacknowledged)
{
	uint64_t bytes, adds;

	/* Nothing writes meanwhile, so a number that is read after the bytes is theirs. */
	if (es_offload_waiting(o) || o->ktls->sent(o->fd, &bytes, ret_unacknowledged) ||
	    o->ktls->number(o->fd, o->suite, &o->number))
		return 0;
	adds = ES_TLS_RECORD_HEADER + o->suite->explicit_size + (o->suite->version == ES_TLS_1_3) +
	       ES_TLS_TAG_SIZE;
	return bytes - o->base == o->text + (o->number - o->began) * adds;
}

int es_offload_settle(struct es_offload *o, struct es_tls_records *records)
{
	unsigned int unacknowledged;

	if (!es_offload_is_out(o, &unacknowledged) || unacknowledged)
		return 0;
	es_tls_records_lent(records, o->number);
	return 1;
}
