// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * OpenSSL's way to the client: it reads one record, which lies in memory, and never a byte after it; what it
 * writes is kept, and its records are counted.
 */
#include <openssl/bio.h>
#include <stdlib.h>
#include <string.h>

#include "tls/handshake/internal.h"

#define OUT_MAX 1048576 /* far above any chain of certificates */

static int read_in(BIO *bio, char *bytes, int len)
{
	struct es_tls_handshake *handshake = BIO_get_data(bio);
	size_t take = handshake->in_len < (size_t)len ? handshake->in_len : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (!take) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(bytes, handshake->in, take);
	handshake->in += take;
	handshake->in_len -= take;
	return (int)take;
}

static void see_records(struct es_tls_handshake *handshake, const uint8_t *bytes, size_t len)
{
	const uint8_t *end = bytes + len;

	while (bytes < end) {
		size_t left = handshake->sent_body_left;

		if (left) {
			size_t skip = left < (size_t)(end - bytes) ? left : (size_t)(end - bytes);

			handshake->sent_body_left -= skip;
			bytes += skip;
			continue;
		}
		handshake->sent_header[handshake->sent_header_len++] = *bytes++;
		if (handshake->sent_header_len == SSL3_RT_HEADER_LENGTH) {
			handshake->sent_body_left =
				(size_t)handshake->sent_header[3] << 8 | handshake->sent_header[4];
			handshake->sent_header_len = 0;
			handshake->sent_seen++;
		}
	}
}

static int grow(struct es_tls_handshake *handshake, size_t len)
{
	size_t size = handshake->out_size ? handshake->out_size : 4096;
	uint8_t *out;

	while (size < handshake->out_len + len)
		size *= 2;
	if (size > OUT_MAX)
		return -1;
	out = realloc(handshake->out, size);
	if (!out)
		return -1;
	handshake->out = out;
	handshake->out_size = size;
	return 0;
}

static int write_out(BIO *bio, const char *bytes, int len)
{
	struct es_tls_handshake *handshake = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (len <= 0)
		return 0;
	if (handshake->out_len + (size_t)len > handshake->out_size && grow(handshake, (size_t)len))
		return -1;
	memcpy(handshake->out + handshake->out_len, bytes, (size_t)len);
	handshake->out_len += (size_t)len;
	see_records(handshake, (const uint8_t *)bytes, (size_t)len);
	return len;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static __attribute__((destructor)) void forget_method(void)
{
	BIO_meth_free(method);
}

static int make_method(void)
{
	int index;

	if (method)
		return 0;
	index = BIO_get_new_index();
	method = index < 0 ? NULL : BIO_meth_new(index | BIO_TYPE_SOURCE_SINK, "earshot-tls");
	if (!method)
		return -1;
	BIO_meth_set_read(method, read_in);
	BIO_meth_set_write(method, write_out);
	BIO_meth_set_ctrl(method, control);
	return 0;
}

BIO *es_tls_buffers_new(struct es_tls_handshake *handshake)
{
	BIO *bio = make_method() ? NULL : BIO_new(method);

	if (!bio)
		return NULL;
	BIO_set_data(bio, handshake);
	BIO_set_init(bio, 1);
	return bio;
}
