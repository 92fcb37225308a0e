// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/serve/streams.h: whatever a client sends as HTTP/2, and whatever the server behind answers, the server
 * gets requests that are beyond doubt and nothing between them, little is in memory, and all of it is given
 * back.
 *
 * An input is the server's answer behind its length (two bytes), then frames; with an odd length the preface
 * and an empty SETTINGS stand in front of these.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/http/chunked.h"
#include "inspector/http/head.h"

#define MUST(what) FUZZ_CHECK(what)
#include "tests/unit/streams_world.h"

#define SERVERS 128

static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

/* struct behind - the server's connections, and what has come on them */
struct behind {
	int fd[SERVERS];
	struct es_buffer text[SERVERS];
	unsigned int count;
};

/* Each connection has whole requests, of which the last one may be cut. */
static void check_requests(const struct es_buffer *text)
{
	const char *at = (const char *)es_buffer_front(text);
	size_t len = es_buffer_len(text);

	while (len) {
		struct es_http_chunked chunked;
		struct es_http_head head;
		size_t used = 0;

		es_http_head_init(&head);
		if (es_http_head_scan(&head, at, len) == ES_HTTP_MORE)
			return;
		FUZZ_CHECK(head.result == ES_HTTP_DONE && head.has_host);
		at += head.head_len_bytes;
		len -= head.head_len_bytes;
		if (head.body == ES_HTTP_BODY_LENGTH) {
			used = head.content_length_bytes < len ? (size_t)head.content_length_bytes : len;
		} else if (head.body == ES_HTTP_BODY_CHUNKED) {
			es_http_chunked_init(&chunked);
			FUZZ_CHECK(es_http_chunked_scan(&chunked, at, len, &used) != ES_HTTP_CHUNKED_ERROR);
		}
		at += used;
		len -= used;
	}
}

static void serve(struct streams_world *w, struct behind *b, const uint8_t *answer, size_t len)
{
	static char text[1 << 16];
	ssize_t got;
	int fd;

	while (b->count < SERVERS && (fd = accept4(w->server, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		b->fd[b->count++] = fd;
	for (unsigned int i = 0; i < b->count; i++) {
		got = recv(b->fd[i], text, sizeof(text), 0);
		if (got <= 0)
			continue;
		FUZZ_CHECK(!es_buffer_add(&b->text[i], text, (size_t)got));
		if (len)
			FUZZ_CHECK(send(b->fd[i], answer, len, MSG_NOSIGNAL) >= -1);
		if (len & 2)
			shutdown(b->fd[i], SHUT_WR);
	}
}

static void drain(const struct streams_world *w)
{
	static char text[1 << 16];

	while (recv(w->far, text, sizeof(text), 0) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct streams_world w;
	uint64_t seed = fuzz_seed(data, size);
	struct behind behind = {};
	size_t answer_len, at = 0;
	const uint8_t *answer;

	if (size < 2)
		return 0;
	answer_len = (size_t)data[0] << 8 | data[1];
	answer = data + 2;
	size -= 2;
	answer_len = answer_len < size ? answer_len : size;
	data = answer + answer_len;
	size -= answer_len;
	if (!w.serve.loop)
		streams_set_up(&w, ES_INSPECT_NEVER);
	streams_connect(&w, 0);
	if (answer_len & 1)
		streams_write(&w, preface, sizeof(preface)); /* with the NUL behind the string */
	for (int i = 0; i < 40 && !w.has_ended; i++) {
		size_t part = size - at < 1000 ? size - at : 1 + fuzz_random(&seed) % 1000;

		streams_write(&w, data + at, part);
		at += part;
		ev_run(w.serve.loop, EVRUN_NOWAIT);
		serve(&w, &behind, answer, answer_len);
		ev_run(w.serve.loop, EVRUN_NOWAIT);
		drain(&w);
		FUZZ_CHECK(es_buffer_len(&w.client.out) <= (1 << 18));
		if (at == size && i > 4)
			break;
	}
	streams_disconnect(&w);
	es_upstream_free_idle(&w.service);
	for (unsigned int i = 0; i < behind.count; i++) {
		check_requests(&behind.text[i]);
		es_buffer_fini(&behind.text[i]);
		close(behind.fd[i]);
	}
	return 0;
}
