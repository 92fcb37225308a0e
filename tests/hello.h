/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_HELLO_H
#define ES_TESTS_HELLO_H

/* Makes ClientHellos: a message from its extensions, and records from a message. */
#include <stdint.h>
#include <string.h>

#define HELLO_ROOM 8192

struct hello {
	uint8_t bytes[HELLO_ROOM];
	size_t len;
};

static inline void hello_put(struct hello *h, const void *bytes, size_t len)
{
	memcpy(h->bytes + h->len, bytes, len);
	h->len += len;
}

static inline void hello_number(struct hello *h, size_t number, unsigned int size)
{
	while (size--)
		h->bytes[h->len++] = (uint8_t)(number >> 8 * size);
}

static inline void hello_extension(struct hello *h, unsigned int type, const void *bytes, size_t len)
{
	hello_number(h, type, 2);
	hello_number(h, len, 2);
	hello_put(h, bytes, len);
}

static inline void hello_sni(struct hello *h, const char *name)
{
	size_t len = strlen(name);

	hello_number(h, 0, 2);
	hello_number(h, len + 5, 2);
	hello_number(h, len + 3, 2);
	hello_number(h, 0, 1);
	hello_number(h, len, 2);
	hello_put(h, name, len);
}

/* @list: as on the wire, "\2h2\10http/1.1" */
static inline void hello_alpn(struct hello *h, const char *list)
{
	size_t len = strlen(list);

	hello_number(h, 16, 2);
	hello_number(h, len + 2, 2);
	hello_number(h, len, 2);
	hello_put(h, list, len);
}

/* A session that is to be resumed in TLS 1.3: an identity with its age, and a binder. */
static inline void hello_psk(struct hello *h, const void *ticket, size_t len)
{
	static const uint8_t binder[32] = {9};

	hello_number(h, 41, 2);
	hello_number(h, 2 + 2 + len + 4 + 2 + 1 + sizeof(binder), 2);
	hello_number(h, 2 + len + 4, 2);
	hello_number(h, len, 2);
	hello_put(h, ticket, len);
	hello_number(h, 12345, 4);
	hello_number(h, 1 + sizeof(binder), 2);
	hello_number(h, sizeof(binder), 1);
	hello_put(h, binder, sizeof(binder));
}

/* The message around @extensions, in records of at most @record bytes. */
static inline void hello_finish(const struct hello *extensions, size_t record, struct hello *ret)
{
	static const uint8_t random[32] = {7};
	struct hello m = {.len = 0};

	hello_number(&m, 1, 1);
	hello_number(&m, 2 + 32 + 1 + 32 + 2 + 4 + 2 + 2 + extensions->len, 3);
	hello_number(&m, 0x0303, 2);
	hello_put(&m, random, 32);
	hello_number(&m, 32, 1);
	hello_put(&m, random, 32);
	hello_number(&m, 4, 2);
	hello_number(&m, 0x13011302, 4);
	hello_number(&m, 0x0100, 2);
	hello_number(&m, extensions->len, 2);
	hello_put(&m, extensions->bytes, extensions->len);
	ret->len = 0;
	for (size_t at = 0; at < m.len; at += record) {
		size_t len = m.len - at < record ? m.len - at : record;

		hello_number(ret, 22, 1);
		hello_number(ret, 0x0301, 2);
		hello_number(ret, len, 2);
		hello_put(ret, m.bytes + at, len);
	}
}

#endif
