// SPDX-License-Identifier: GPL-2.0-or-later
/* Small files that outlive the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/file.h"

static int text_write(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), rc = 0;

	if (fd < 0)
		return -errno;
	/* A machine that is switched off now comes back as it was set, too. */
	if (write(fd, text, len) != (ssize_t)len || fsync(fd))
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

int es_file_replace(const char *path, const char *text)
{
	char directory[PATH_MAX], new_path[PATH_MAX + 8];
	int rc;

	snprintf(directory, sizeof(directory), "%s", path);
	snprintf(new_path, sizeof(new_path), "%s.new", path);
	if (mkdir(dirname(directory), 0755) && errno != EEXIST)
		return -errno;
	rc = text_write(new_path, text);
	if (!rc && rename(new_path, path))
		rc = -errno;
	if (rc)
		unlink(new_path);
	return rc;
}
