// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads a file in one piece; a FIFO or a device in its place holds up nobody. */
#include "inspector/certificate/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, struct es_whole_file *file)
{
	ssize_t n = 1;

	file->bytes = OPENSSL_zalloc(ES_WHOLE_FILE_MAX + 1);
	if (!file->bytes)
		return -ENOMEM;
	while (n && file->len <= ES_WHOLE_FILE_MAX) {
		n = read(fd, file->bytes + file->len, ES_WHOLE_FILE_MAX + 1 - file->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			file->len += (size_t)n;
	}
	return file->len > ES_WHOLE_FILE_MAX ? -EFBIG : 0;
}

int es_whole_file_read(const char *path, struct es_whole_file *ret_file, struct es_conf_error *err)
{
	struct es_whole_file file = {};
	int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st = {};

	if (fd < 0 || fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else
		r = read_all(fd, &file);
	if (fd >= 0)
		close(fd);
	if (r) {
		es_whole_file_fini(&file);
		es_conf_error_set(err, "%s: cannot be read: %s", path,
				  r == -EINVAL ? "it is not a regular file" : strerror(-r));
		return r;
	}
	file.mode = st.st_mode & 07777;
	*ret_file = file;
	return 0;
}

void es_whole_file_fini(struct es_whole_file *file)
{
	OPENSSL_clear_free(file->bytes, ES_WHOLE_FILE_MAX + 1);
	*file = (struct es_whole_file){};
}
