/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_RESPONSE_H
#define ES_LOAD_RESPONSE_H

/*
 * One HTTP response, compared with the object that it should be, piece by piece as it comes in.
 */
#include <stddef.h>
#include <stdint.h>
#include <openssl/evp.h>
#include "tests/lab/load/manifest.h"

#define ES_LOAD_HEAD_MAX 4096

enum es_response_state {
	ES_RESPONSE_MORE, /* not complete yet */
	ES_RESPONSE_DONE, /* complete, and as it should be */
	ES_RESPONSE_BAD,  /* @problem says why */
};

struct es_response {
	const struct es_load_object *object;
	EVP_MD_CTX *digest;
	uint64_t left; /* bytes of the body */
	size_t head_len;
	int in_body;
	char head[ES_LOAD_HEAD_MAX + 1];
	char node[16]; /* X-Node */
	char problem[128];
};

/* A response is begun as often as one likes, once it is made. Returns 0 or -ENOMEM. */
int es_response_init(struct es_response *response);
void es_response_fini(struct es_response *response);
void es_response_begin(struct es_response *response, const struct es_load_object *object);

/**
 * es_response_feed() - take the next bytes
 * Bytes that go beyond the response make it bad.
 */
enum es_response_state es_response_feed(struct es_response *response, const void *bytes, size_t len);

/* The bytes that have come so far, in words for an error message. */
void es_response_progress(const struct es_response *response, char *text, size_t room);

#endif
