// SPDX-License-Identifier: GPL-2.0-or-later
/* The file that says that this node is drained. What it means is membership.c's. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/daemon/drained.h"

int es_drained_is(const char *path)
{
	return !access(path, F_OK);
}

int es_drained_set(const char *path, int is_drained)
{
	char directory[256];
	int fd;

	if (!is_drained)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	snprintf(directory, sizeof(directory), "%s", path);
	if (mkdir(dirname(directory), 0755) && errno != EEXIST)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	/* A machine that is switched off now comes back drained, too. */
	fsync(fd);
	close(fd);
	return 0;
}
