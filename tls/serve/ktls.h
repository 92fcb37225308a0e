/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_KTLS_H
#define ES_SERVE_KTLS_H

/*
 * The kernel's record layer (kTLS), for what a client is sent. A socket that has it keeps it to its end:
 * bytes that are written to it become records.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tls/record/record.h"

/**
 * struct es_ktls - the calls, as a test may play them; each returns -errno where it fails
 * @begin: what is written to @fd is protected with @key from now on
 * @number: of the next record that will be written
 * @send: text of the client, as send() does it without waiting; @alert: an alert's text
 * @splice: the same from a pipe, without reading it
 * @sent: how many bytes of the stream TCP has been given, and how many of them are not acknowledged
 */
struct es_ktls {
	int (*begin)(int fd, const struct es_tls_write_key *key);
	int (*number)(int fd, const struct es_tls_suite *suite, uint64_t *ret_number);
	ssize_t (*send)(int fd, const uint8_t *text, size_t len);
	ssize_t (*alert)(int fd, const uint8_t *text, size_t len);
	ssize_t (*splice)(int pipe, int fd, size_t len);
	int (*sent)(int fd, uint64_t *ret_bytes, unsigned int *ret_unacknowledged);
};

extern const struct es_ktls es_ktls_kernel;

/* A bit for each version and cipher, in a mask. */
static inline unsigned int es_ktls_bit(const struct es_tls_suite *suite)
{
	return 1U << (suite->aead + (suite->version == ES_TLS_1_3 ? ES_TLS_AEAD_COUNT : 0));
}
#define ES_KTLS_ALL ((1U << (2 * ES_TLS_AEAD_COUNT)) - 1)

/*
 * es_ktls_probe() - which of them does the kernel have? It must be seen to do all that is asked of it, on a
 * loopback connection, before any client is served with it. 0: none.
 */
unsigned int es_ktls_probe(const struct es_ktls *ktls);

#endif
