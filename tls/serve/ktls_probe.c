// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does the kernel's record layer do all that is asked of it? A connection to ourselves: text from memory and
 * from a pipe, an alert; its records are read again by tls/record/, its numbers and TCP's bytes by offload.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tls/serve/ktls.h"
#include "tls/serve/offload.h"

#define SENT	  "text from memory"
#define SPLICED	  "and from a pipe"
#define WAIT_S	  2
#define SETTLE_MS 500

static const uint16_t suites[][2] = {
	{ES_TLS_1_2, 0xc02f}, {ES_TLS_1_2, 0xc030}, {ES_TLS_1_2, 0xcca8},
	{ES_TLS_1_3, 0x1301}, {ES_TLS_1_3, 0x1302}, {ES_TLS_1_3, 0x1303},
};

static int connect_to_self(int ret_fd[2])
{
	struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval wait = {.tv_sec = WAIT_S};
	socklen_t len = sizeof(self);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	ret_fd[0] = -1;
	ret_fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || ret_fd[1] < 0 || bind(listener, (struct sockaddr *)&self, len) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&self, &len) ||
	    connect(ret_fd[1], (struct sockaddr *)&self, len))
		rc = -errno;
	if (!rc) {
		ret_fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (ret_fd[0] < 0 || setsockopt(ret_fd[1], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
			rc = -errno;
	}
	if (listener >= 0)
		close(listener);
	return rc;
}

/* Reads one record of @fd. Returns its event, ES_TLS_EVENT_ERROR if there is none. */
static enum es_tls_event next(int fd, struct es_tls_records *reader, uint8_t *text, size_t *ret_len)
{
	uint8_t bytes[256];
	struct es_tls_got got;
	size_t len = 0;

	do {
		ssize_t more = recv(fd, bytes + len, 1, 0);

		if (more <= 0 || ++len == sizeof(bytes))
			return ES_TLS_EVENT_ERROR;
		es_tls_records_read(reader, bytes, len, 0, text, &got);
	} while (got.event == ES_TLS_EVENT_MORE);
	*ret_len = got.text_len;
	return got.event;
}

static int arrives(int fd, struct es_tls_records *reader, const char *expected)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	size_t len = 0;

	return next(fd, reader, text, &len) == ES_TLS_EVENT_TEXT && len == strlen(expected) &&
	       !memcmp(text, expected, len);
}

static int push_all(struct es_offload *o, struct es_buffer *out)
{
	int rc = 0;

	while (!rc && (es_buffer_len(out) || es_offload_waiting(o)))
		rc = es_offload_push(o, out);
	return rc;
}

/* The bytes that @from has, and then an alert, arrive as @fd's records. */
static int does_all(struct es_offload *o, struct es_tls_records *writer, struct es_tls_records *reader,
		    const int fd[2], const int from[2])
{
	static const uint8_t close_notify[2] = {1, 0};
	struct es_buffer out = {};
	uint8_t text[ES_TLS_TEXT_MAX];
	size_t len;
	int is_good = !es_buffer_add(&out, SENT, strlen(SENT)) && !push_all(o, &out) &&
		      arrives(fd[1], reader, SENT);

	is_good = is_good && write(from[1], SPLICED, strlen(SPLICED)) == (ssize_t)strlen(SPLICED) &&
		  es_offload_take(o, from[0], SIZE_MAX) == (ssize_t)strlen(SPLICED) && !push_all(o, &out) &&
		  arrives(fd[1], reader, SPLICED);
	if (is_good) {
		es_offload_alert(o, close_notify, sizeof(close_notify));
		is_good = !push_all(o, &out) && next(fd[1], reader, text, &len) == ES_TLS_EVENT_CLOSE;
	}
	for (int ms = 0; is_good && !es_offload_settle(o, writer); ms++) {
		usleep(1000);
		is_good = ms < SETTLE_MS;
	}
	es_buffer_fini(&out);
	return is_good;
}

static int has(const struct es_ktls *ktls, const uint16_t suite[2])
{
	struct es_tls_state state = {.version = suite[0], .suite = suite[1]}, other;
	struct es_tls_records *writer = NULL, *reader = NULL;
	struct es_offload *offload = NULL;
	int fd[2] = {-1, -1}, from[2] = {-1, -1}, is_good;

	state.server.number = 1;
	is_good = RAND_bytes(state.server.secret, sizeof(state.server.secret)) == 1 &&
		  RAND_bytes(state.client.secret, sizeof(state.client.secret)) == 1;
	/* The one reads what the other writes. */
	other = state;
	other.client = state.server;
	other.server = state.client;
	is_good = is_good && !es_tls_records_new(&state, &writer) && !es_tls_records_new(&other, &reader) &&
		  !connect_to_self(fd) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, from) &&
		  !es_offload_new(ktls, fd[0], writer, &offload) &&
		  does_all(offload, writer, reader, fd, from);
	es_offload_free(&offload);
	es_tls_records_free(&writer);
	es_tls_records_free(&reader);
	es_tls_state_wipe(&state);
	es_tls_state_wipe(&other);
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		if (from[i] >= 0)
			close(from[i]);
	}
	return is_good;
}

unsigned int es_ktls_probe(const struct es_ktls *ktls)
{
	unsigned int mask = 0;

	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		if (has(ktls, suites[i]))
			mask |= es_ktls_bit(es_tls_suite_find(suites[i][0], suites[i][1]));
	return mask;
}
