// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the key file, refuses one that others can read, and derives from its secrets the short keys of each
 * use, so that no two uses share a key. Secrets are overwritten as soon as the keys are derived, and no
 * message quotes them.
 */
#include "inspector/base/datagram_mac.h"
#include "inspector/base/hex.h"
#include "inspector/config/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/config/keyfile_internal.h"

#define FILE_MAX_BYTES 16384
#define SECRET_DIGITS  (2 * ES_SECRET_BYTES)

/* struct es_keyfile_parse - a key file being read */
struct es_keyfile_parse {
	const char *path;
	int line;
	int has_ring;
	struct es_keyfile *file;
	struct es_conf_error *err;
};

static int parse_fail(struct es_keyfile_parse *p, const char *what)
{
	es_conf_error_set(p->err, "%s:%d: %s", p->path, p->line, what);
	return -EINVAL;
}

static int parse_secret(struct es_keyfile_parse *p, const char *text, unsigned char *secret)
{
	size_t i;

	for (i = 0; text && i < SECRET_DIGITS; i++)
		if (es_hex_digit(text[i]) < 0)
			break;
	if (!text || i < SECRET_DIGITS || text[i])
		return parse_fail(p, "bad secret: expected 64 hexadecimal digits");
	for (i = 0; i < ES_SECRET_BYTES; i++)
		secret[i] = (unsigned char)(es_hex_digit(text[2 * i]) << 4 | es_hex_digit(text[2 * i + 1]));
	return 0;
}

static int parse_ring(struct es_keyfile_parse *p, char **rest)
{
	if (p->has_ring)
		return parse_fail(p, "second ring line: expected one");
	p->has_ring = 1;
	return parse_secret(p, strtok_r(NULL, " \t", rest), p->file->ring);
}

static int parse_key(struct es_keyfile_parse *p, char **rest)
{
	const char *id_text = strtok_r(NULL, " \t", rest);
	struct es_keyfile_key *key;
	unsigned long id;
	char *end;

	if (p->file->count == ES_KEYS_MAX)
		return parse_fail(p, "third key line: expected one or two");
	key = &p->file->key[p->file->count];
	if (!id_text || *id_text < '1' || *id_text > '9')
		return parse_fail(p, "bad key id: expected 1..4294967295");
	errno = 0;
	id = strtoul(id_text, &end, 10);
	if (*end || errno || id > 0xffffffffUL)
		return parse_fail(p, "bad key id: expected 1..4294967295");
	if (p->file->count && p->file->key[0].id == id)
		return parse_fail(p, "key id used twice: expected two different ones");
	key->id = (unsigned int)id;
	p->file->count++;
	return parse_secret(p, strtok_r(NULL, " \t", rest), key->secret);
}

static int parse_line(struct es_keyfile_parse *p, char *line)
{
	char *rest, *word;
	int r;

	line[strcspn(line, "#\r")] = 0;
	word = strtok_r(line, " \t", &rest);
	if (!word)
		return 0;
	if (!strcmp(word, "ring"))
		r = parse_ring(p, &rest);
	else if (!strcmp(word, "key"))
		r = parse_key(p, &rest);
	else
		return parse_fail(p, "unknown line: expected ring SECRET or key ID SECRET");
	if (!r && strtok_r(NULL, " \t", &rest))
		return parse_fail(p, "text after the secret: expected the end of the line");
	return r;
}

static int parse_text(struct es_keyfile_parse *p, char *text)
{
	char *line;
	int r;

	while (text) {
		line = strsep(&text, "\n");
		p->line++;
		r = parse_line(p, line);
		if (r)
			return r;
	}
	if (!p->has_ring) {
		es_conf_error_set(p->err, "%s: no ring line: expected ring SECRET", p->path);
		return -EINVAL;
	}
	if (!p->file->count) {
		es_conf_error_set(p->err, "%s: no key line: expected key ID SECRET", p->path);
		return -EINVAL;
	}
	return 0;
}

static int check_permissions(int fd, const char *path, struct es_conf_error *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st)) {
		r = -errno;
		es_conf_error_set(err, "%s: cannot be examined: %s", path, strerror(-r));
		return r;
	}
	if (!S_ISREG(st.st_mode)) {
		es_conf_error_set(err, "%s: is not a regular file: expected a key file (earshot keygen)",
				  path);
		return -EINVAL;
	}
	if (st.st_mode & 077) {
		es_conf_error_set(
			err, "%s: mode %04o lets others use the cluster's keys: expected 0600 (chmod 600)",
			path, (unsigned int)(st.st_mode & 07777));
		return -EPERM;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		es_conf_error_set(err, "%s: belongs to user %u: expected root or user %u", path,
				  (unsigned int)st.st_uid, (unsigned int)geteuid());
		return -EPERM;
	}
	return 0;
}

static int read_text(int fd, char *text, size_t *ret_size, const char *path, struct es_conf_error *err)
{
	size_t size = 0;
	ssize_t n;
	int r;

	do {
		n = read(fd, text + size, FILE_MAX_BYTES + 1 - size);
		if (n > 0)
			size += (size_t)n;
	} while ((n > 0 && size <= FILE_MAX_BYTES) || (n < 0 && errno == EINTR));
	if (n < 0) {
		r = -errno;
		es_conf_error_set(err, "%s: cannot be read: %s", path, strerror(-r));
		return r;
	}
	if (size > FILE_MAX_BYTES || memchr(text, 0, size)) {
		es_conf_error_set(
			err, "%s: is not a text of at most %d bytes: expected a key file (earshot keygen)",
			path, FILE_MAX_BYTES);
		return -EINVAL;
	}
	*ret_size = size;
	return 0;
}

int es_keyfile_read(const char *path, struct es_keyfile *ret_file, struct es_conf_error *err)
{
	struct es_keyfile file = {.count = 0};
	struct es_keyfile_parse p = {.path = path, .file = &file, .err = err};
	char text[FILE_MAX_BYTES + 2];
	size_t size = 0;
	int fd, r;

	/* O_NONBLOCK: a FIFO in the place of the file must not hold up the start */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		r = -errno;
		es_conf_error_set(err, "%s: cannot be opened: %s%s", path, strerror(-r),
				  r == -ENOENT ? " (earshot keygen makes one)" : "");
		return r;
	}
	r = check_permissions(fd, path, err);
	if (!r)
		r = read_text(fd, text, &size, path, err);
	close(fd);
	if (!r) {
		text[size] = 0;
		r = parse_text(&p, text);
	}
	if (!r)
		*ret_file = file;
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(&file, sizeof(file));
	return r;
}

static __u64 load_le64(const unsigned char *b)
{
	__u64 v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | b[i];
	return v;
}

EVP_KDF_CTX *es_keyfile_kdf_new(void)
{
	EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *kdf = hkdf ? EVP_KDF_CTX_new(hkdf) : NULL;

	EVP_KDF_free(hkdf);
	return kdf;
}

int es_keyfile_use(const char *path, es_keyfile_derive_fn *derive_keys, void *keys, struct es_conf_error *err)
{
	struct es_keyfile file = {.count = 0};
	EVP_KDF_CTX *kdf;
	int r;

	r = es_keyfile_read(path, &file, err);
	if (r)
		return r;
	kdf = es_keyfile_kdf_new();
	r = kdf ? derive_keys(kdf, &file, keys) : -EIO;
	if (r)
		es_conf_error_set(err, "%s: OpenSSL has no HKDF-SHA256: expected its default provider", path);
	EVP_KDF_CTX_free(kdf);
	OPENSSL_cleanse(&file, sizeof(file));
	return r;
}

int es_keyfile_derive(EVP_KDF_CTX *kdf, const unsigned char secret[ES_SECRET_BYTES], const void *info,
		      size_t info_len, unsigned char *ret_key, size_t len)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, ES_SECRET_BYTES),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_len),
		OSSL_PARAM_construct_end(),
	};

	EVP_KDF_CTX_reset(kdf);
	return EVP_KDF_derive(kdf, ret_key, len, params) > 0 ? 0 : -EIO;
}

int es_keyfile_derive_sipkey(EVP_KDF_CTX *kdf, const unsigned char secret[ES_SECRET_BYTES], const char *info,
			     struct es_sipkey *ret_key)
{
	unsigned char out[16];
	int r = es_keyfile_derive(kdf, secret, info, strlen(info), out, sizeof(out));

	if (r)
		return r;
	ret_key->k0 = load_le64(out);
	ret_key->k1 = load_le64(out + 8);
	OPENSSL_cleanse(out, sizeof(out));
	return 0;
}

/*
 * The seed has 16 bits: a longer one would be found as easily (jhash.h), and the datapath's configuration has
 * room for no more.
 */
static int derive_seed(EVP_KDF_CTX *kdf, const unsigned char *secret, __u16 *ret_seed)
{
	struct es_sipkey key = {};
	int r = es_keyfile_derive_sipkey(kdf, secret, "earshot ring jhash", &key);
	__u16 seed = (__u16)key.k0;

	for (unsigned int shift = 16; !seed && shift < 64; shift += 16)
		seed = (__u16)(key.k0 >> shift);
	*ret_seed = seed ? seed : 1;
	OPENSSL_cleanse(&key, sizeof(key));
	return r;
}

static int derive_all(EVP_KDF_CTX *kdf, const struct es_keyfile *file, void *argument)
{
	struct es_keys *keys = argument;
	int r = es_keyfile_derive_sipkey(kdf, file->ring, "earshot ring", &keys->ring);
	unsigned int i;

	if (!r)
		r = derive_seed(kdf, file->ring, &keys->ring_seed);
	for (i = 0; !r && i < file->count; i++) {
		const unsigned char *secret = file->key[i].secret;
		struct es_key *key = &keys->key[i];

		key->id = file->key[i].id;
		r = es_keyfile_derive_sipkey(kdf, secret, "earshot cookie", &key->cookie);
		if (!r)
			r = es_keyfile_derive_sipkey(kdf, secret, "earshot handover", &key->handover);
		if (!r)
			r = es_keyfile_derive_sipkey(kdf, secret, ES_KEYFILE_HOMES, &key->home);
	}
	keys->count = file->count;
	return r;
}

int es_keys_read(const char *path, struct es_keys *ret_keys, struct es_conf_error *err)
{
	struct es_keys keys = {.count = 0};
	int r = es_keyfile_use(path, derive_all, &keys, err);

	if (!r)
		*ret_keys = keys;
	OPENSSL_cleanse(&keys, sizeof(keys));
	return r;
}

int es_keys_have_signed(const struct es_keys *keys, const void *data, size_t len, size_t mac_at)
{
	__be64 mac;

	memcpy(&mac, (const __u8 *)data + mac_at, sizeof(mac));
	for (unsigned int i = 0; i < keys->count; i++)
		if (es_datagram_mac(&keys->key[i].handover, data, len, mac_at) == mac)
			return 1;
	return 0;
}

void es_keys_wipe(struct es_keys *keys)
{
	OPENSSL_cleanse(keys, sizeof(*keys));
}
