// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes the ustar format (POSIX pax, "ustar Interchange Format") into gzip, which writes the file. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/wall.h"
#include "inspector/cli/archive.h"

#define BLOCK 512

/* struct ustar - the block before a file; numbers are octal text */
struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char chksum[8];
	char typeflag;
	char linkname[100];
	char magic[6];
	char version[2];
	char uname[32];
	char gname[32];
	char devmajor[8];
	char devminor[8];
	char prefix[155];
	char pad[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "a header is one block");

static int gzip_start(int out, pid_t *ret_pid, int *ret_fd)
{
	static char *const argv[] = {(char *)"gzip", (char *)"-c", NULL};
	posix_spawn_file_actions_t files;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC))
		return errno;
	rc = posix_spawn_file_actions_init(&files);
	if (!rc) {
		rc = posix_spawn_file_actions_adddup2(&files, fds[0], STDIN_FILENO);
		if (!rc)
			rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
		if (!rc)
			rc = posix_spawnp(ret_pid, argv[0], &files, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	close(fds[0]);
	if (rc)
		close(fds[1]);
	else
		*ret_fd = fds[1];
	return rc;
}

int es_archive_open(struct es_archive *archive, const char *path, const char *folder)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), to = -1, rc;

	if (fd < 0)
		return -errno;
	*archive = (struct es_archive){.folder = folder};
	rc = gzip_start(fd, &archive->gzip, &to);
	close(fd);
	if (!rc) {
		archive->pipe = fdopen(to, "w");
		rc = archive->pipe ? 0 : ENOMEM;
	}
	if (rc)
		unlink(path);
	return -rc;
}

static void put(struct es_archive *archive, const void *bytes, size_t len)
{
	if (len && fwrite(bytes, len, 1, archive->pipe) != 1 && !archive->error)
		archive->error = -(errno ? errno : EIO);
}

void es_archive_add(struct es_archive *archive, const char *name, const void *bytes, size_t len)
{
	static const char zeros[BLOCK];
	struct ustar header = {
		.mode = "0000600",
		.uid = "0000000",
		.gid = "0000000",
		.typeflag = '0',
		.magic = "ustar",
		.version = {'0', '0'},
	};
	unsigned int sum = 0;

	snprintf(header.name, sizeof(header.name), "%s/%s", archive->folder, name);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)len);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo",
		 (es_wall_ns() / 1000000000ULL) & 077777777777ULL);
	memset(header.chksum, ' ', sizeof(header.chksum)); /* it is summed up as blanks */
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.chksum, sizeof(header.chksum), "%06o", sum);
	put(archive, &header, sizeof(header));
	put(archive, bytes, len);
	put(archive, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

int es_archive_close(struct es_archive *archive)
{
	static const char end[2 * BLOCK];
	int status = 0;

	put(archive, end, sizeof(end));
	if (fclose(archive->pipe) && !archive->error)
		archive->error = -errno;
	while (waitpid(archive->gzip, &status, 0) < 0 && errno == EINTR)
		;
	if (status && !archive->error)
		archive->error = -EIO;
	return archive->error;
}
