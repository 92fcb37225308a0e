// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes key files: a new one, or the next version of one in rotation. A file is first complete on disk under
 * a temporary name and then takes its place at once, so that a daemon or a crash never sees half of one.
 * Fresh secrets come from getrandom().
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "inspector/config/keyfile_internal.h"

/* Longest possible file: the heading and three lines of at most 80 bytes. */
#define TEXT_SIZE 1024

static int fresh_secret(unsigned char *secret, struct es_conf_error *err)
{
	size_t done = 0;
	ssize_t n;
	int r;

	while (done < ES_SECRET_BYTES) {
		n = getrandom(secret + done, ES_SECRET_BYTES - done, 0);
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		r = -errno;
		es_conf_error_set(err, "no random numbers from the kernel: %s", strerror(-r));
		return r;
	}
	return 0;
}

static size_t put_secret(char *text, size_t used, const unsigned char *secret)
{
	size_t i;

	for (i = 0; i < ES_SECRET_BYTES; i++)
		used += (size_t)snprintf(text + used, TEXT_SIZE - used, "%02x", secret[i]);
	used += (size_t)snprintf(text + used, TEXT_SIZE - used, "\n");
	return used;
}

static size_t put_file(char *text, const struct es_keyfile *file)
{
	unsigned int i;
	size_t used;

	used = (size_t)snprintf(
		text, TEXT_SIZE,
		"# Earshot cluster keys (earshot keygen). Secret; the same file on every node.\n"
		"# The first key signs, both verify.\n"
		"ring ");
	used = put_secret(text, used, file->ring);
	for (i = 0; i < file->count; i++) {
		used += (size_t)snprintf(text + used, TEXT_SIZE - used, "key %u ", file->key[i].id);
		used = put_secret(text, used, file->key[i].secret);
	}
	return used;
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t n;

	while (size) {
		n = write(fd, text, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

/* Makes a rename or a new name in @path's directory outlast a crash; what cannot be synced is still there
 * now. */
static void sync_directory(const char *path)
{
	char copy[PATH_MAX];
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Writes @file under the new name @path; leaves nothing there on failure. */
static int write_new(const char *path, const struct es_keyfile *file, struct es_conf_error *err)
{
	char text[TEXT_SIZE];
	int fd, r;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = -errno;
		es_conf_error_set(err, "%s: cannot be created: %s", path, strerror(-r));
		return r;
	}
	r = write_all(fd, text, put_file(text, file));
	OPENSSL_cleanse(text, sizeof(text));
	if (close(fd) && !r)
		r = -errno;
	if (r) {
		unlink(path);
		es_conf_error_set(err, "%s: cannot be written: %s", path, strerror(-r));
	}
	return r;
}

/* Replaces the existing file @path. */
static int replace(const char *path, const struct es_keyfile *file, struct es_conf_error *err)
{
	char temporary[PATH_MAX];
	int r;

	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary)) {
		es_conf_error_set(err, "%.80s...: path too long", path);
		return -ENAMETOOLONG;
	}
	r = write_new(temporary, file, err);
	if (r)
		return r;
	if (rename(temporary, path)) {
		r = -errno;
		unlink(temporary);
		es_conf_error_set(err, "%s: cannot be replaced: %s", path, strerror(-r));
		return r;
	}
	sync_directory(path);
	return 0;
}

int es_keyfile_create(const char *path, struct es_conf_error *err)
{
	struct es_keyfile file = {.count = 1};
	int r;

	file.key[0].id = 1;
	r = fresh_secret(file.ring, err);
	if (!r)
		r = fresh_secret(file.key[0].secret, err);
	if (!r)
		r = write_new(path, &file, err);
	if (!r)
		sync_directory(path);
	OPENSSL_cleanse(&file, sizeof(file));
	return r;
}

/* A key with the id after the highest one. */
static int fresh_key(const char *path, const struct es_keyfile *file, struct es_keyfile_key *key,
		     struct es_conf_error *err)
{
	unsigned int i, highest = 0;

	for (i = 0; i < file->count; i++)
		if (file->key[i].id > highest)
			highest = file->key[i].id;
	if (highest == UINT_MAX) {
		es_conf_error_set(err, "%s: no key id is left: expected ids below %u", path, UINT_MAX);
		return -EOVERFLOW;
	}
	key->id = highest + 1;
	return fresh_secret(key->secret, err);
}

/* A second key with a higher id than the first has been staged, one with a lower id is the previous one. */
static int has_staged(const struct es_keyfile *file)
{
	return file->count == 2 && file->key[1].id > file->key[0].id;
}

int es_keyfile_stage(const char *path, struct es_conf_error *err)
{
	struct es_keyfile file;
	int r;

	r = es_keyfile_read(path, &file, err);
	if (r)
		return r;
	if (has_staged(&file)) {
		es_conf_error_set(err, "%s: key %u is staged already: expected --rotate", path,
				  file.key[1].id);
		r = -EEXIST;
	} else {
		r = fresh_key(path, &file, &file.key[1], err);
	}
	file.count = 2;
	if (!r)
		r = replace(path, &file, err);
	OPENSSL_cleanse(&file, sizeof(file));
	return r;
}

int es_keyfile_rotate(const char *path, struct es_conf_error *err)
{
	struct es_keyfile_key next;
	struct es_keyfile file;
	int r;

	r = es_keyfile_read(path, &file, err);
	if (r)
		return r;
	if (has_staged(&file))
		next = file.key[1];
	else
		r = fresh_key(path, &file, &next, err);
	if (!r) {
		file.key[1] = file.key[0];
		file.key[0] = next;
		file.count = 2;
		r = replace(path, &file, err);
	}
	OPENSSL_cleanse(&file, sizeof(file));
	OPENSSL_cleanse(&next, sizeof(next));
	return r;
}
