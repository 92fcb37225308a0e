// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a ClientHello through its record layer. Each read names how many bytes it wants; one that is not
 * there yet ends the walk with ES_TLS_MORE, one that cannot be with ES_TLS_NONE, so no length is trusted
 * before the bytes were seen to be inside the message and the buffer.
 */
#include <string.h>
#include "inspector/http/tls_hello.h"

#define RECORD_HEADER	  5
#define RECORD_HANDSHAKE  22
#define RECORD_MAX	  16384
#define CLIENT_HELLO	  1
#define EXTENSION_SNI	  0
#define EXTENSION_ALPN	  16
#define EXTENSION_TICKET  35
#define EXTENSION_PSK	  41
#define SNI_TYPE_HOST	  0
#define SEEN_SNI	  1
#define SEEN_ALPN	  2
#define SEEN_TICKET	  4
#define SEEN_PSK	  8
#define TICKET_AGE	  4
#define LEGACY_RANDOM	  32
#define SESSION_ID_MAX	  32
#define HANDSHAKE_UNKNOWN ((size_t)-1)

/* struct es_walk - @record: bytes left of the record; @message: of the message; @failed:
 * the outcome is known */
struct es_walk {
	const uint8_t *bytes;
	size_t len;
	size_t at;
	size_t record;
	size_t message;
	struct es_tls_hello *hello;
	int failed;
};

static int es_walk_fail(struct es_walk *w, enum es_tls_result result, size_t more_bytes)
{
	if (!w->failed) {
		w->failed = 1;
		w->hello->result = result;
		w->hello->more_bytes = more_bytes;
	}
	return -1;
}

static int es_walk_none(struct es_walk *w)
{
	return es_walk_fail(w, ES_TLS_NONE, 0);
}

/* The next record. As much of its header as is there must be right already. */
static int es_walk_record(struct es_walk *w)
{
	const uint8_t *header = w->bytes + w->at;
	size_t left = w->len - w->at;

	if ((left > 0 && header[0] != RECORD_HANDSHAKE) || (left > 1 && header[1] != 3))
		return es_walk_none(w);
	if (left < RECORD_HEADER)
		return es_walk_fail(w, ES_TLS_MORE, w->at + RECORD_HEADER);
	w->record = (size_t)header[3] << 8 | header[4];
	w->at += RECORD_HEADER;
	if (!w->record || w->record > RECORD_MAX)
		return es_walk_none(w);
	return 0;
}

/* Nothing more is there: to the end of the record, or of the message if that comes first. */
static int es_walk_more(struct es_walk *w, size_t wanted)
{
	size_t rest = w->message == HANDSHAKE_UNKNOWN ? wanted : w->message;

	return es_walk_fail(w, ES_TLS_MORE, w->at + (rest <= w->record ? rest : w->record));
}

/* The next @count bytes of the message; @ret may be NULL. */
static int es_walk_read(struct es_walk *w, void *ret, size_t count)
{
	uint8_t *to = ret;

	if (w->failed)
		return -1;
	if (w->message != HANDSHAKE_UNKNOWN && count > w->message)
		return es_walk_none(w);
	while (count) {
		size_t piece;

		if (!w->record && es_walk_record(w))
			return -1;
		piece = count < w->record ? count : w->record;
		if (w->len - w->at < piece)
			return es_walk_more(w, count);
		if (to) {
			memcpy(to, w->bytes + w->at, piece);
			to += piece;
		}
		w->at += piece;
		w->record -= piece;
		if (w->message != HANDSHAKE_UNKNOWN)
			w->message -= piece;
		count -= piece;
	}
	return 0;
}

/* A number of @size bytes; 0 after a failure. */
static size_t es_walk_number(struct es_walk *w, unsigned int size)
{
	uint8_t bytes[3] = {};
	size_t number = 0;

	if (es_walk_read(w, bytes, size))
		return 0;
	for (unsigned int i = 0; i < size; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* A vector whose length has @size bytes and must be @min..@max, and a multiple of @unit. */
static int es_walk_vector(struct es_walk *w, unsigned int size, size_t min, size_t max, size_t unit)
{
	size_t len = es_walk_number(w, size);

	if (w->failed)
		return -1;
	if (len < min || len > max || len % unit)
		return es_walk_none(w);
	return es_walk_read(w, NULL, len);
}

static int es_name_is_valid(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return 0;
	return len > 0;
}

/* One entry of a list, if its length fits into what is left of the list. */
static size_t es_list_entry(struct es_walk *w, unsigned int size, size_t *left)
{
	size_t len = *left >= size ? es_walk_number(w, size) : 0;

	if (w->failed)
		return 0;
	if (!len || len > *left - size) {
		es_walk_none(w);
		return 0;
	}
	*left -= size + len;
	return len;
}

static int es_walk_sni(struct es_walk *w, size_t extension)
{
	size_t left = extension >= 2 ? es_walk_number(w, 2) : 0;
	struct es_tls_hello *hello = w->hello;

	if (w->failed)
		return -1;
	if (extension < 2 || left != extension - 2 || !left)
		return es_walk_none(w);
	while (left) {
		size_t type = es_walk_number(w, 1), len;
		char name[ES_TLS_NAME_MAX];

		left--;
		len = es_list_entry(w, 2, &left);
		if (w->failed)
			return -1;
		if (type != SNI_TYPE_HOST || hello->sni_len) {
			if (es_walk_read(w, NULL, len))
				return -1;
			continue;
		}
		if (len > ES_TLS_NAME_MAX)
			return es_walk_none(w);
		if (es_walk_read(w, name, len))
			return -1;
		if (!es_name_is_valid(name, len))
			return es_walk_none(w);
		memcpy(hello->sni, name, len);
		hello->sni_len = (unsigned int)len;
	}
	return 0;
}

static int es_walk_alpn(struct es_walk *w, size_t extension)
{
	size_t left = extension >= 2 ? es_walk_number(w, 2) : 0;
	struct es_tls_hello *hello = w->hello;
	int is_full = 0;

	if (w->failed)
		return -1;
	if (extension < 2 || left != extension - 2 || !left)
		return es_walk_none(w);
	while (left) {
		size_t len = es_list_entry(w, 1, &left);
		uint8_t name[255];

		if (w->failed || es_walk_read(w, name, len))
			return -1;
		/* All up to the first that does not fit: a list with a hole would say something else. */
		is_full |= hello->alpn_len + 1 + len > sizeof(hello->alpn);
		if (is_full)
			continue;
		hello->alpn[hello->alpn_len] = (uint8_t)len;
		memcpy(hello->alpn + hello->alpn_len + 1, name, len);
		hello->alpn_len += 1 + (unsigned int)len;
	}
	return 0;
}

/* A ticket of @len bytes; a short one is none of ours. */
static int es_walk_ticket(struct es_walk *w, size_t len)
{
	struct es_tls_hello *hello = w->hello;

	if (len < ES_TLS_TICKET_FRONT || hello->ticket_count == ES_TLS_TICKETS_MAX)
		return es_walk_read(w, NULL, len);
	if (es_walk_read(w, hello->ticket[hello->ticket_count], ES_TLS_TICKET_FRONT))
		return -1;
	hello->ticket_count++;
	return es_walk_read(w, NULL, len - ES_TLS_TICKET_FRONT);
}

/* TLS 1.3's: identities, each with an age, and then what proves them. */
static int es_walk_psk(struct es_walk *w, size_t extension)
{
	size_t left = extension >= 2 ? es_walk_number(w, 2) : 0, binders = extension - 2 - left;

	if (w->failed)
		return -1;
	if (extension < 2 || left > extension - 2 || !left)
		return es_walk_none(w);
	while (left) {
		size_t len = es_list_entry(w, 2, &left);

		if (w->failed || es_walk_ticket(w, len))
			return -1;
		if (left < TICKET_AGE)
			return es_walk_none(w);
		left -= TICKET_AGE;
		if (es_walk_read(w, NULL, TICKET_AGE))
			return -1;
	}
	return es_walk_read(w, NULL, binders);
}

static unsigned int es_extension_bit(size_t type)
{
	switch (type) {
	case EXTENSION_SNI:
		return SEEN_SNI;
	case EXTENSION_ALPN:
		return SEEN_ALPN;
	case EXTENSION_TICKET:
		return SEEN_TICKET;
	case EXTENSION_PSK:
		return SEEN_PSK;
	default:
		return 0;
	}
}

static int es_walk_extension(struct es_walk *w, unsigned int *seen)
{
	size_t type = es_walk_number(w, 2);
	size_t len = es_walk_number(w, 2);
	unsigned int bit = es_extension_bit(type);

	if (w->failed)
		return -1;
	if (len > w->message || (*seen & bit))
		return es_walk_none(w);
	*seen |= bit;
	if (type == EXTENSION_SNI)
		return es_walk_sni(w, len);
	if (type == EXTENSION_ALPN)
		return es_walk_alpn(w, len);
	if (type == EXTENSION_PSK)
		return es_walk_psk(w, len);
	return type == EXTENSION_TICKET ? es_walk_ticket(w, len) : es_walk_read(w, NULL, len);
}

static void es_walk_hello(struct es_walk *w)
{
	size_t type = es_walk_number(w, 1);
	unsigned int seen = 0;
	size_t len;

	if (!w->failed && type != CLIENT_HELLO)
		es_walk_none(w);
	len = es_walk_number(w, 3);
	if (w->failed)
		return;
	if (len > ES_TLS_HELLO_MAX) {
		es_walk_none(w);
		return;
	}
	w->message = len;
	if (es_walk_number(w, 1) != 3) {
		es_walk_none(w);
		return;
	}
	if (es_walk_read(w, NULL, 1 + LEGACY_RANDOM) || es_walk_vector(w, 1, 0, SESSION_ID_MAX, 1) ||
	    es_walk_vector(w, 2, 2, 65534, 2) || es_walk_vector(w, 1, 1, 255, 1))
		return;
	if (w->message) {
		len = es_walk_number(w, 2);
		if (!w->failed && len != w->message)
			es_walk_none(w);
	}
	while (!w->failed && w->message)
		es_walk_extension(w, &seen);
}

enum es_tls_result es_tls_hello_parse(const void *bytes, size_t len, struct es_tls_hello *ret_hello)
{
	struct es_walk w = {.bytes = bytes, .len = len, .message = HANDSHAKE_UNKNOWN, .hello = ret_hello};

	ret_hello->result = ES_TLS_DONE;
	ret_hello->more_bytes = 0;
	ret_hello->sni_len = 0;
	ret_hello->alpn_len = 0;
	ret_hello->ticket_count = 0;
	es_walk_hello(&w);
	if (ret_hello->result == ES_TLS_NONE)
		ret_hello->sni_len = ret_hello->alpn_len = ret_hello->ticket_count = 0;
	return ret_hello->result;
}

const char *es_tls_hello_alpn(const struct es_tls_hello *hello, unsigned int n, size_t *ret_len)
{
	unsigned int at = 0;

	while (at < hello->alpn_len) {
		if (!n--) {
			*ret_len = hello->alpn[at];
			return (const char *)hello->alpn + at + 1;
		}
		at += 1u + hello->alpn[at];
	}
	return NULL;
}
