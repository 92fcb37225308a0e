// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The meaning of records after a handshake: text, alerts, KeyUpdate, and all that must not come any more.
 * Their protection is protect.c's.
 */
#include "tls/record/record.h"

#include <errno.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/protect.h"
#include "tls/record/secret.h"

/*
 * Records that cost this side work and give it nothing: so many at once, and one more each quarter of a
 * second. KeyUpdates may be more at once: Java's client, after 137 GB, says one for each record that it reads
 * until this side's own arrives, and that waits behind all that fills the buffers of both. They cost no more
 * than requests of as many bytes.
 */
#define IDLE_NS	     250000000ULL
#define IDLE_BURST   8
#define UPDATE_BURST 1024

#define LEVEL_WARNING 1
#define LEVEL_FATAL   2

enum alert {
	CLOSE_NOTIFY = 0,
	UNEXPECTED_MESSAGE = 10,
	BAD_RECORD_MAC = 20,
	RECORD_OVERFLOW = 22,
	ILLEGAL_PARAMETER = 47,
	PROTOCOL_VERSION = 70,
	INTERNAL_ERROR = 80,
	USER_CANCELED = 90,
	NO_RENEGOTIATION = 100,
};

#define CLIENT_HELLO	 1
#define KEY_UPDATE	 24
#define KEY_UPDATE_BYTES 5 /* of the whole message */

/**
 * struct es_tls_records
 * @about: version, suite, ALPN, the client and the name; its halves are empty, see @client and @server
 * @idle_until_ns, @updates_until_ns: when the records of IDLE_BURST, and of UPDATE_BURST, are paid for
 * @over: why it is over, NULL: it is not
 * @has_asked: for KeyUpdate, of a client whose key is used up
 * @is_lent: another record layer writes; @is_stuck: it would need a new key
 */
struct es_tls_records {
	struct es_tls_state about;
	struct es_tls_protect client;
	struct es_tls_protect server;
	uint64_t idle_until_ns;
	uint64_t updates_until_ns;
	const char *over;
	int is_closed_by_client;
	int is_closed;
	int has_asked;
	int is_lent;
	int is_stuck;
};

int es_tls_records_new(const struct es_tls_state *state, struct es_tls_records **ret_records)
{
	const struct es_tls_suite *suite = es_tls_suite_find(state->version, state->suite);
	struct es_tls_records *records;

	if (!suite)
		return -EPROTO;
	records = es_secret_new(sizeof(*records));
	if (!records)
		return -ENOMEM;
	records->about = *state;
	records->about.consumed = 0;
	/* No secret outlives its KeyUpdate. */
	memset(&records->about.client, 0, sizeof(records->about.client));
	memset(&records->about.server, 0, sizeof(records->about.server));
	if (es_tls_protect_init(&records->client, suite, &state->client, 0) ||
	    es_tls_protect_init(&records->server, suite, &state->server, 1)) {
		es_tls_records_free(&records);
		return -ENOMEM;
	}
	*ret_records = records;
	return 0;
}

void es_tls_records_free(struct es_tls_records **records)
{
	if (!*records)
		return;
	es_tls_protect_fini(&(*records)->client);
	es_tls_protect_fini(&(*records)->server);
	es_secret_free(*records, sizeof(**records));
	*records = NULL;
}

void es_tls_records_state(const struct es_tls_records *records, struct es_tls_state *ret_state)
{
	*ret_state = records->about;
	ret_state->client = records->client.half;
	ret_state->server = records->server.half;
}

void es_tls_records_pass(struct es_tls_records *records, int count)
{
	if (count < 0)
		records->over = "records that nobody has counted";
	else
		records->server.half.number += (unsigned int)count;
}

static int is_1_3(const struct es_tls_records *records)
{
	return records->about.version == ES_TLS_1_3;
}

int es_tls_records_key(const struct es_tls_records *records, struct es_tls_write_key *ret_key)
{
	if (records->over || records->is_closed || records->is_lent)
		return -EPIPE;
	ret_key->suite = records->server.suite;
	memcpy(ret_key->iv, records->server.iv, sizeof(ret_key->iv));
	ret_key->number = records->server.half.number;
	return es_tls_protect_key(&records->server, ret_key->key);
}

void es_tls_records_lend(struct es_tls_records *records)
{
	records->is_lent = 1;
}

void es_tls_records_lent(struct es_tls_records *records, uint64_t number)
{
	records->server.half.number = number;
}

int es_tls_records_is_used_up(const struct es_tls_records *records)
{
	return records->is_lent && (records->is_stuck || es_tls_protect_is_used_up(&records->server));
}

/* Protect @text, or leave that to the other record layer. Returns the bytes or -ENOMEM. */
static long put(struct es_tls_records *records, uint8_t type, const uint8_t *text, size_t len, uint8_t *out)
{
	if (!records->is_lent)
		return es_tls_protect_seal(&records->server, type, text, len, out);
	memcpy(out, text, len);
	return (long)len;
}

static void reply(struct es_tls_records *records, uint8_t type, const uint8_t *text, size_t len,
		  struct es_tls_got *got)
{
	long rc = put(records, type, text, len, got->reply + got->reply_len);

	if (rc > 0)
		got->reply_len += (size_t)rc;
	else
		records->over = "OpenSSL refuses to encrypt";
}

static void reply_alert(struct es_tls_records *records, uint8_t level, enum alert alert,
			struct es_tls_got *got)
{
	const uint8_t text[2] = {level, (uint8_t)alert};

	if (!records->is_closed)
		reply(records, ES_TLS_ALERT, text, sizeof(text), got);
}

static void fail(struct es_tls_records *records, enum alert alert, const char *why, struct es_tls_got *got)
{
	got->event = ES_TLS_EVENT_ERROR;
	got->used = 0;
	got->text_len = 0;
	got->why = why;
	reply_alert(records, LEVEL_FATAL, alert, got);
	records->over = why;
}

static void end(struct es_tls_records *records, const char *why, struct es_tls_got *got)
{
	got->event = ES_TLS_EVENT_END;
	got->why = why;
	records->over = why;
}

/* May there be another one now, of @burst at once? */
static int pays(uint64_t *until_ns, uint64_t burst, uint64_t now_ns)
{
	if (*until_ns < now_ns)
		*until_ns = now_ns;
	*until_ns += IDLE_NS;
	return *until_ns <= now_ns + burst * IDLE_NS;
}

/* May there be another record of @type that says nothing? TLS 1.3's only handshake message is KeyUpdate. */
static int is_paid(struct es_tls_records *records, uint8_t type, uint64_t now_ns)
{
	return is_1_3(records) && type == ES_TLS_HANDSHAKE
		       ? pays(&records->updates_until_ns, UPDATE_BURST, now_ns)
		       : pays(&records->idle_until_ns, IDLE_BURST, now_ns);
}

/* Write KeyUpdate, then change the key (RFC 8446 section 4.6.3). Returns its bytes or -ENOMEM. */
static long update_server(struct es_tls_records *records, int is_request, uint8_t *out)
{
	const uint8_t text[KEY_UPDATE_BYTES] = {KEY_UPDATE, 0, 0, 1, (uint8_t)is_request};
	long rc = es_tls_protect_seal(&records->server, ES_TLS_HANDSHAKE, text, sizeof(text), out);
	int next = rc < 0 ? (int)rc : es_tls_protect_next(&records->server);

	if (next)
		records->over = "OpenSSL refuses a key";
	return next ? next : rc;
}

static void reply_update(struct es_tls_records *records, int is_request, struct es_tls_got *got)
{
	long rc;

	if (records->is_closed)
		return;
	if (records->is_lent) {
		records->is_stuck = 1;
		return;
	}
	rc = update_server(records, is_request, got->reply + got->reply_len);
	if (rc > 0)
		got->reply_len += (size_t)rc;
	else
		end(records, records->over, got);
}

/* A key that is used up: another is asked for in time; a client that goes on with the old one is left. */
static void ask_update(struct es_tls_records *records, struct es_tls_got *got)
{
	if (!is_1_3(records) || records->has_asked || !es_tls_protect_is_used_up(&records->client))
		return;
	records->has_asked = 1;
	reply_update(records, 1, got);
}

static void read_key_update(struct es_tls_records *records, uint8_t request, struct es_tls_got *got)
{
	if (request > 1) {
		fail(records, ILLEGAL_PARAMETER, "a KeyUpdate that asks for something unknown", got);
		return;
	}
	records->has_asked = 0;
	if (es_tls_protect_next(&records->client))
		end(records, "OpenSSL refuses a key", got);
	else if (request)
		reply_update(records, 0, got);
}

static void read_handshake(struct es_tls_records *records, const uint8_t *text, size_t len,
			   struct es_tls_got *got)
{
	static const uint8_t key_update[4] = {KEY_UPDATE, 0, 0, 1};

	/* Nobody cuts five bytes into two records, and after them the key is another one. */
	if (is_1_3(records) && len == KEY_UPDATE_BYTES && !memcmp(text, key_update, sizeof(key_update)))
		read_key_update(records, text[KEY_UPDATE_BYTES - 1], got);
	else if (!is_1_3(records) && len && text[0] == CLIENT_HELLO)
		reply_alert(records, LEVEL_WARNING, NO_RENEGOTIATION, got);
	else
		fail(records, UNEXPECTED_MESSAGE, "a handshake message after the handshake", got);
}

static const char *fatal_words(uint8_t alert)
{
	switch (alert) {
	case UNEXPECTED_MESSAGE:
		return "the client's alert: unexpected message";
	case BAD_RECORD_MAC:
		return "the client's alert: bad record MAC";
	case RECORD_OVERFLOW:
		return "the client's alert: record overflow";
	case 50:
		return "the client's alert: decode error";
	case 51:
		return "the client's alert: decrypt error";
	case INTERNAL_ERROR:
		return "the client's alert: internal error";
	default:
		return alert >= 42 && alert <= 49 ? "the client's alert: it does not take the certificate"
						  : "the client's alert: another one";
	}
}

static void read_alert(struct es_tls_records *records, const uint8_t *text, size_t len,
		       struct es_tls_got *got)
{
	uint8_t level, alert;

	if (len != 2) {
		fail(records, UNEXPECTED_MESSAGE, "an alert of a wrong length", got);
		return;
	}
	level = text[0];
	alert = text[1];
	if (alert == CLOSE_NOTIFY) {
		records->is_closed_by_client = 1;
		got->event = ES_TLS_EVENT_CLOSE;
	} else if (is_1_3(records) ? alert != USER_CANCELED : level == LEVEL_FATAL) {
		/* RFC 8446 section 6: the level says nothing any more. */
		end(records, fatal_words(alert), got);
	} else if (!is_1_3(records) && level != LEVEL_WARNING) {
		fail(records, ILLEGAL_PARAMETER, "an alert of an unknown level", got);
	}
}

static void read_content(struct es_tls_records *records, uint8_t type, const uint8_t *text, size_t len,
			 struct es_tls_got *got)
{
	switch (type) {
	case ES_TLS_APPLICATION_DATA:
		got->event = ES_TLS_EVENT_TEXT;
		got->text_len = len;
		break;
	case ES_TLS_ALERT:
		read_alert(records, text, len, got);
		break;
	case ES_TLS_HANDSHAKE:
		read_handshake(records, text, len, got);
		break;
	default:
		fail(records, UNEXPECTED_MESSAGE, "a record of a type that must not come", got);
	}
}

/* Judge a record by its header. Returns the bytes after it, 0 if it must not be. */
static size_t read_header(struct es_tls_records *records, const uint8_t *bytes, struct es_tls_got *got)
{
	size_t len = es_tls_get(bytes + 3, 2);
	size_t most = is_1_3(records) ? ES_TLS_RECORD_MAX : ES_TLS12_RECORD_MAX;

	if (es_tls_get(bytes + 1, 2) != ES_TLS_1_2)
		fail(records, PROTOCOL_VERSION, "a record of another version", got);
	else if (is_1_3(records) && bytes[0] != ES_TLS_APPLICATION_DATA)
		fail(records, UNEXPECTED_MESSAGE, "a record without protection", got);
	else if (len > most - ES_TLS_RECORD_HEADER)
		fail(records, RECORD_OVERFLOW, "a record that is too long", got);
	else if (len < es_tls_protect_adds(records->client.suite))
		fail(records, BAD_RECORD_MAC, "a record that is too short", got);
	else if (es_tls_protect_is_used_up(&records->client) &&
		 (!is_1_3(records) || records->client.half.number >= 2 * records->client.suite->record_limit))
		fail(records, INTERNAL_ERROR, "too many records under one key", got);
	else
		return len;
	return 0;
}

static void read_record(struct es_tls_records *records, const uint8_t *bytes, size_t len, uint64_t now_ns,
			uint8_t *text, struct es_tls_got *got)
{
	uint8_t type;
	long rc = es_tls_protect_open(&records->client, bytes, len, text, &type);

	if (rc == -EBADMSG) {
		fail(records, BAD_RECORD_MAC, "a record that is not authentic", got);
	} else if (rc == -EMSGSIZE) {
		fail(records, RECORD_OVERFLOW, "a record that is too long", got);
	} else if (rc < 0) {
		fail(records, UNEXPECTED_MESSAGE, "a record of padding alone", got);
	} else {
		got->used = ES_TLS_RECORD_HEADER + len;
		read_content(records, type, text, (size_t)rc, got);
	}
	if (!records->over && (got->event == ES_TLS_EVENT_NONE || (got->event == ES_TLS_EVENT_TEXT && !rc)) &&
	    !is_paid(records, type, now_ns))
		fail(records, UNEXPECTED_MESSAGE, "too many records that say nothing", got);
}

void es_tls_records_read(struct es_tls_records *records, const uint8_t *bytes, size_t len, uint64_t now_ns,
			 uint8_t *text, struct es_tls_got *ret_got)
{
	struct es_tls_got *got = ret_got;
	size_t body;

	got->event = ES_TLS_EVENT_MORE;
	got->used = got->text_len = got->reply_len = 0;
	got->why = NULL;
	if (records->over) {
		end(records, records->over, got);
		return;
	}
	if (records->is_closed_by_client) {
		got->event = ES_TLS_EVENT_CLOSE;
		got->used = len;
		return;
	}
	if (len < ES_TLS_RECORD_HEADER)
		return;
	body = read_header(records, bytes, got);
	if (!body || len - ES_TLS_RECORD_HEADER < body)
		return;
	got->event = ES_TLS_EVENT_NONE;
	read_record(records, bytes, body, now_ns, text, got);
	if (!records->over && !records->is_closed_by_client)
		ask_update(records, got);
}

long es_tls_records_write(struct es_tls_records *records, const uint8_t *text, size_t len, uint8_t *out)
{
	long update = 0, rc;

	if (records->over || records->is_closed || records->is_lent)
		return -EPIPE;
	if (len > ES_TLS_TEXT_MAX)
		return -EMSGSIZE;
	if (es_tls_protect_is_used_up(&records->server)) {
		if (!is_1_3(records))
			return -EKEYEXPIRED;
		update = update_server(records, 0, out);
		if (update < 0)
			return update;
	}
	rc = es_tls_protect_seal(&records->server, ES_TLS_APPLICATION_DATA, text, len, out + update);
	if (rc < 0)
		records->over = "OpenSSL refuses to encrypt";
	return rc < 0 ? rc : update + rc;
}

size_t es_tls_records_close(struct es_tls_records *records, uint8_t *out)
{
	static const uint8_t text[2] = {LEVEL_WARNING, CLOSE_NOTIFY};
	long rc;

	if (records->over || records->is_closed)
		return 0;
	records->is_closed = 1;
	rc = put(records, ES_TLS_ALERT, text, sizeof(text), out);
	return rc > 0 ? (size_t)rc : 0;
}
