// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's record layer, as <linux/tls.h> has it. */
#include "tls/serve/ktls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "tls/record/bytes.h"

#define SOL_TLS_LEVEL 282 /* libc's headers have it later than the kernel */

union info {
	struct tls_crypto_info about;
	struct tls12_crypto_info_aes_gcm_128 gcm_128;
	struct tls12_crypto_info_aes_gcm_256 gcm_256;
	struct tls12_crypto_info_chacha20_poly1305 chacha;
};

/* Where the kernel has what, for a cipher. */
struct places {
	uint8_t *key, *salt, *iv, *number;
	size_t salt_size, iv_size;
	socklen_t size;
	uint16_t type;
};

static struct places places_of(union info *info, enum es_tls_aead aead)
{
	switch (aead) {
	case ES_TLS_AES_128_GCM:
		return (struct places){info->gcm_128.key,	   info->gcm_128.salt,
				       info->gcm_128.iv,	   info->gcm_128.rec_seq,
				       sizeof(info->gcm_128.salt), sizeof(info->gcm_128.iv),
				       sizeof(info->gcm_128),	   TLS_CIPHER_AES_GCM_128};
	case ES_TLS_AES_256_GCM:
		return (struct places){info->gcm_256.key,	   info->gcm_256.salt,
				       info->gcm_256.iv,	   info->gcm_256.rec_seq,
				       sizeof(info->gcm_256.salt), sizeof(info->gcm_256.iv),
				       sizeof(info->gcm_256),	   TLS_CIPHER_AES_GCM_256};
	default:
		return (struct places){info->chacha.key,
				       info->chacha.iv,
				       info->chacha.iv,
				       info->chacha.rec_seq,
				       0,
				       sizeof(info->chacha.iv),
				       sizeof(info->chacha),
				       TLS_CIPHER_CHACHA20_POLY1305};
	}
}

static int begin(int fd, const struct es_tls_write_key *key)
{
	union info info = {};
	struct places at = places_of(&info, key->suite->aead);
	int rc = 0;

	info.about.version = key->suite->version;
	info.about.cipher_type = at.type;
	memcpy(at.key, key->key, key->suite->key_size);
	memcpy(at.salt, key->iv, at.salt_size);
	memcpy(at.iv, key->iv + at.salt_size, at.iv_size);
	es_tls_put(at.number, 8, key->number);
	/* The part of the nonce that stands in each record is its number, as it is in ours. */
	if (key->suite->explicit_size)
		es_tls_put(at.iv, 8, key->number);
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) && errno != EEXIST)
		rc = -errno;
	if (!rc && setsockopt(fd, SOL_TLS_LEVEL, TLS_TX, &info, at.size))
		rc = -errno;
	explicit_bzero(&info, sizeof(info));
	return rc;
}

static int number(int fd, const struct es_tls_suite *suite, uint64_t *ret_number)
{
	union info info = {};
	struct places at = places_of(&info, suite->aead);
	int rc = getsockopt(fd, SOL_TLS_LEVEL, TLS_TX, &info, &at.size) ? -errno : 0;

	if (!rc)
		*ret_number = es_tls_get(at.number, 8);
	explicit_bzero(&info, sizeof(info));
	return rc;
}

static ssize_t send_text(int fd, const uint8_t *text, size_t len)
{
	ssize_t sent = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent < 0 ? -errno : sent;
}

static ssize_t alert(int fd, const uint8_t *text, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = len};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(1)];
	} control = {};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t sent;

	cmsg->cmsg_level = SOL_TLS_LEVEL;
	cmsg->cmsg_type = TLS_SET_RECORD_TYPE;
	cmsg->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(cmsg) = ES_TLS_ALERT;
	sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

static ssize_t splice_text(int pipe, int fd, size_t len)
{
	ssize_t sent = splice(pipe, NULL, fd, NULL, len, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	return sent < 0 ? -errno : sent;
}

static int acknowledged(int fd, uint64_t *ret_bytes)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*ret_bytes = info.tcpi_bytes_acked;
	return 0;
}

static int sent(int fd, uint64_t *ret_bytes, unsigned int *ret_unacknowledged)
{
	uint64_t before = 0, after = 0;
	int queued = 0, rc;

	do {
		rc = acknowledged(fd, &before);
		if (!rc && ioctl(fd, SIOCOUTQ, &queued))
			rc = -errno;
		if (!rc)
			rc = acknowledged(fd, &after);
	} while (!rc && before != after);
	if (rc)
		return rc;
	*ret_bytes = after + (unsigned int)queued;
	*ret_unacknowledged = (unsigned int)queued;
	return 0;
}

const struct es_ktls es_ktls_kernel = {.begin = begin,
				       .number = number,
				       .send = send_text,
				       .alert = alert,
				       .splice = splice_text,
				       .sent = sent};
