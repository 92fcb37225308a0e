// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MD5 as the papers use it: a well-mixed hash, no security. Through EVP with everything fetched once, because
 * looking the algorithm up costs more than hashing a URI.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <earshot/ring.h>

struct es_content_hasher {
	EVP_MD *md;
	EVP_MD_CTX *ctx;
};

int es_content_hasher_new(struct es_content_hasher **ret_hasher)
{
	struct es_content_hasher *hasher = calloc(1, sizeof(*hasher));

	if (!hasher)
		return -ENOMEM;
	/* In FIPS mode MD5 is there only for who says that it is no security. */
	hasher->md = EVP_MD_fetch(NULL, "MD5", "-fips");
	hasher->ctx = EVP_MD_CTX_new();
	if (!hasher->md || !hasher->ctx) {
		es_content_hasher_free(&hasher);
		return -EIO;
	}
	*ret_hasher = hasher;
	return 0;
}

void es_content_hasher_free(struct es_content_hasher **hasher)
{
	if (!*hasher)
		return;
	EVP_MD_CTX_free((*hasher)->ctx);
	EVP_MD_free((*hasher)->md);
	free(*hasher);
	*hasher = NULL;
}

int es_content_ring_hash(struct es_content_hasher *hasher, const void *key, size_t len, __u64 *ret_position)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	__u64 position = 0;

	if (!EVP_DigestInit_ex2(hasher->ctx, hasher->md, NULL) || !EVP_DigestUpdate(hasher->ctx, key, len) ||
	    !EVP_DigestFinal_ex(hasher->ctx, digest, NULL))
		return -EIO;
	for (int i = 0; i < 8; i++)
		position = position << 8 | digest[i];
	*ret_position = position;
	return 0;
}
