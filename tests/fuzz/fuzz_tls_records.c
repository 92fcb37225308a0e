// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/record.h with whatever a client sends. The first byte of an input says which suite, and whether
 * the rest is a client's bytes as they are, or pieces that the client protects: a type, a length of two bytes
 * and a text each. The same bytes come whole, cut, and to a connection that goes on from its state in
 * between: all that can be seen of it is the same.
 */
#include "tests/fuzz/fuzz.h"
#include "tls/record/bytes.h"
#include "tls/record/protect.h"
#include "tls/record/record.h"

#define SENT_MAX 131072

static const struct {
	uint16_t version;
	uint16_t suite;
} kinds[] = {{ES_TLS_1_3, 0x1301}, {ES_TLS_1_3, 0x1302}, {ES_TLS_1_3, 0x1303},
	     {ES_TLS_1_2, 0xc02f}, {ES_TLS_1_2, 0xc030}, {ES_TLS_1_2, 0xcca8}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* All that was seen of a connection. */
struct seen {
	uint64_t text_hash;
	size_t text_len;
	uint64_t reply_hash;
	size_t reply_len;
	size_t used;
	enum es_tls_event last;
	const char *why;
};

static struct es_tls_state state_of(uint8_t choice)
{
	struct es_tls_state state;

	memset(&state, 0, sizeof(state));
	state.version = kinds[choice % KINDS].version;
	state.suite = kinds[choice % KINDS].suite;
	memset(state.client.secret, 0x33, ES_TLS_SECRET_MAX);
	memset(state.server.secret, 0x44, ES_TLS_SECRET_MAX);
	/* Near the limit of a key, too. */
	state.client.number = choice & 0x40 ? ES_TLS_GCM_RECORDS - 2 : 3;
	state.server.number = choice & 0x40 ? ES_TLS_GCM_RECORDS - 2 : 3;
	return state;
}

/* The client sends its pieces, protected. */
static size_t protect_pieces(const struct es_tls_state *state, const uint8_t *data, size_t size, uint8_t *out)
{
	struct es_tls_protect client;
	size_t at = 0, sent = 0;

	FUZZ_CHECK(!es_tls_protect_init(&client, es_tls_suite_find(state->version, state->suite),
					&state->client, 1));
	while (size - at >= 3 && sent < SENT_MAX / 2) {
		uint8_t type = data[at];
		size_t len = (size_t)es_tls_get(data + at + 1, 2) % 20000;
		const uint8_t *text = data + at + 3;
		long rc;

		at += 3;
		len = len < size - at ? len : size - at;
		rc = es_tls_protect_seal(&client, type, text, len, out + sent);
		FUZZ_CHECK(rc > 0);
		sent += (size_t)rc;
		at += len;
		/* As a client does after KeyUpdate. */
		if (state->version == ES_TLS_1_3 && type == ES_TLS_HANDSHAKE && len == 5 && text[0] == 24)
			FUZZ_CHECK(!es_tls_protect_next(&client));
	}
	es_tls_protect_fini(&client);
	return sent;
}

static void see(struct seen *seen, const struct es_tls_got *got, const uint8_t *text)
{
	for (size_t i = 0; i < got->text_len; i++)
		seen->text_hash = (seen->text_hash ^ text[i]) * 0x100000001b3u;
	for (size_t i = 0; i < got->reply_len; i++)
		seen->reply_hash = (seen->reply_hash ^ got->reply[i]) * 0x100000001b3u;
	seen->text_len += got->text_len;
	seen->reply_len += got->reply_len;
	seen->used += got->used;
	seen->last = got->event;
	seen->why = got->why;
}

static void check_got(const struct es_tls_got *got, size_t len)
{
	FUZZ_CHECK(got->used <= len && got->text_len <= ES_TLS_TEXT_MAX &&
		   got->reply_len <= sizeof(got->reply));
	FUZZ_CHECK(!got->text_len || got->event == ES_TLS_EVENT_TEXT);
	FUZZ_CHECK(got->used || (got->event != ES_TLS_EVENT_TEXT && got->event != ES_TLS_EVENT_NONE));
	FUZZ_CHECK((got->why != NULL) ==
		   (got->event == ES_TLS_EVENT_END || got->event == ES_TLS_EVENT_ERROR));
}

/* The connection goes on from its own state, as if it had been moved. */
static void move(struct es_tls_records **records)
{
	uint8_t bytes[ES_TLS_STATE_BYTES];
	struct es_tls_state state;

	es_tls_records_state(*records, &state);
	es_tls_state_put(&state, bytes);
	es_tls_records_free(records);
	FUZZ_CHECK(!es_tls_state_get(bytes, &state));
	FUZZ_CHECK(!es_tls_records_new(&state, records));
}

/* @seed: NULL: whole; otherwise it is cut. Idle records cost nothing here, so that a move changes nothing. */
static struct seen run(const struct es_tls_state *state, const uint8_t *sent, size_t len, uint64_t *seed,
		       int moves)
{
	struct es_tls_records *records;
	struct es_tls_got got;
	struct seen seen;
	uint8_t *text = malloc(ES_TLS_TEXT_MAX);
	size_t at = 0, end = seed ? 0 : len;
	uint64_t now_ns = 0;

	memset(&seen, 0, sizeof(seen));
	FUZZ_CHECK(text && !es_tls_records_new(state, &records));
	do {
		char *part;

		if (seed)
			end += fuzz_random(seed) % (len - end + 1);
		part = fuzz_copy(sent + at, end - at);
		now_ns += 1000000000;
		es_tls_records_read(records, (uint8_t *)part, end - at, now_ns, text, &got);
		free(part);
		check_got(&got, end - at);
		see(&seen, &got, text);
		at += got.used;
		if (moves && (got.event == ES_TLS_EVENT_TEXT || got.event == ES_TLS_EVENT_NONE))
			move(&records);
	} while (got.event == ES_TLS_EVENT_TEXT || got.event == ES_TLS_EVENT_NONE ||
		 (got.event == ES_TLS_EVENT_MORE && end < len));
	es_tls_records_free(&records);
	free(text);
	return seen;
}

static void check_same(const struct seen *a, const struct seen *b, int is_moved)
{
	FUZZ_CHECK(a->text_hash == b->text_hash && a->text_len == b->text_len);
	FUZZ_CHECK(a->last == b->last && a->why == b->why);
	/* After a move a client may be asked again for another key. */
	if (!is_moved)
		FUZZ_CHECK(a->reply_hash == b->reply_hash && a->reply_len == b->reply_len);
	/* Nothing counts after close_notify. */
	if (a->last != ES_TLS_EVENT_CLOSE)
		FUZZ_CHECK(a->used == b->used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t sent[SENT_MAX];
	uint64_t seed = fuzz_seed(data, size);
	struct es_tls_state state;
	struct seen whole, other;
	size_t len;

	if (!size)
		return 0;
	state = state_of(data[0] & 0x7f);
	if (data[0] & 0x80) {
		len = protect_pieces(&state, data + 1, size - 1, sent);
	} else {
		len = size - 1 < sizeof(sent) ? size - 1 : sizeof(sent);
		memcpy(sent, data + 1, len);
	}
	whole = run(&state, sent, len, NULL, 0);
	other = run(&state, sent, len, &seed, 0);
	check_same(&whole, &other, 0);
	other = run(&state, sent, len, NULL, 1);
	check_same(&whole, &other, 1);
	return 0;
}
