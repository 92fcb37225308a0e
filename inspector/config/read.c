// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads a configuration file whole and has it parsed. It knows files only; what they say is config.c's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/config/config.h"

#define FILE_MAX_BYTES (16 * 1024 * 1024)

/* Reads all of @fd, at most FILE_MAX_BYTES. */
static int read_all(int fd, char *text, size_t *ret_size)
{
	size_t size = 0;
	ssize_t n;

	do {
		n = read(fd, text + size, FILE_MAX_BYTES + 1 - size);
		if (n > 0)
			size += (size_t)n;
	} while ((n > 0 && size <= FILE_MAX_BYTES) || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	if (size > FILE_MAX_BYTES)
		return -EFBIG;
	*ret_size = size;
	return 0;
}

/* The file, which the caller frees; NULL, and why in @ret_rc and @err. */
static char *read_file(const char *path, size_t *ret_size, int *ret_rc, struct es_conf_error *err)
{
	char *text;
	int fd, r;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		*ret_rc = -errno;
		es_conf_error_set(err, "%s: cannot be opened: %s", path, strerror(-*ret_rc));
		return NULL;
	}
	text = malloc(FILE_MAX_BYTES + 1);
	r = text ? read_all(fd, text, ret_size) : -ENOMEM;
	close(fd);
	if (!r)
		return text;
	if (r == -EFBIG)
		es_conf_error_set(err, "%s: too long: expected at most %d bytes", path, FILE_MAX_BYTES);
	else
		es_conf_error_set(err, "%s: cannot be read: %s", path, strerror(-r));
	free(text);
	*ret_rc = r;
	return NULL;
}

int es_conf_read(const char *path, struct es_conf **ret_conf, struct es_conf_error *err)
{
	size_t size = 0;
	int r = 0;
	char *text = read_file(path, &size, &r, err);

	if (text)
		r = es_conf_parse(text, size, path, ret_conf, err);
	free(text);
	return r;
}

int es_conf_read_all(const char *path, struct es_conf **ret_conf, struct es_conf_errors *errors)
{
	size_t size = 0;
	int r = 0;
	char *text = read_file(path, &size, &r, &errors->error[0]);

	if (text)
		r = es_conf_parse_all(text, size, path, ret_conf, errors);
	else
		errors->count = 1;
	free(text);
	return r;
}
