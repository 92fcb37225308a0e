// SPDX-License-Identifier: GPL-2.0-or-later
/* Another configuration file in the place of the one that is there, and back, each in one step. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/rollout/file.h"

static int fail(struct es_conf_error *err, const char *path, const char *what)
{
	int rc = -errno;

	es_conf_error_set(err, "%s: %s: %s", path, what, strerror(-rc));
	return rc;
}

static int paths_make(struct es_rollout_file *file, const char *path, struct es_conf_error *err)
{
	if (!realpath(path, file->path))
		return fail(err, path, "cannot be found");
	/* Names of its own: an operator may have a FILE.next, which is what he rolls out perhaps. */
	if ((size_t)snprintf(file->next, sizeof(file->next), "%s.rollout-next", file->path) >=
		    sizeof(file->next) ||
	    (size_t)snprintf(file->before, sizeof(file->before), "%s.rollout-before", file->path) >=
		    sizeof(file->before) ||
	    (size_t)snprintf(file->previous, sizeof(file->previous), "%s.previous", file->path) >=
		    sizeof(file->previous)) {
		errno = ENAMETOOLONG;
		return fail(err, path, "has no room beside it");
	}
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

static int is_same(const char *path, const struct stat *st, const char *text, size_t len)
{
	char *there = (size_t)st->st_size == len ? malloc(len + 1) : NULL;
	FILE *file = there ? fopen(path, "re") : NULL;
	int same = file && fread(there, 1, len + 1, file) == len && !memcmp(there, text, len);

	if (file)
		fclose(file);
	free(there);
	return same;
}

static int next_write(const struct es_rollout_file *file, const struct stat *st, const char *text, size_t len,
		      struct es_conf_error *err)
{
	int fd, rc = 0;

	unlink(file->next); /* of one that was cut off */
	fd = open(file->next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(err, file->next, "cannot be made");
	if ((st->st_uid != geteuid() || st->st_gid != getegid()) && fchown(fd, st->st_uid, st->st_gid))
		rc = fail(err, file->next, "cannot be given the owner of the file in force");
	else if (fchmod(fd, st->st_mode & 07777) || write_all(fd, text, len))
		rc = fail(err, file->next, "cannot be written");
	close(fd);
	if (rc)
		unlink(file->next);
	return rc;
}

int es_rollout_file_stage(struct es_rollout_file *file, const char *path, const char *text, size_t len,
			  struct es_conf_error *err)
{
	struct stat st;
	int rc = paths_make(file, path, err);

	if (!rc && stat(file->path, &st))
		rc = fail(err, path, "cannot be looked at");
	if (rc)
		return rc;
	file->is_same = is_same(file->path, &st, text, len);
	if (!file->is_same)
		rc = next_write(file, &st, text, len, err);
	file->step = rc ? ES_ROLLOUT_FILE_NONE : ES_ROLLOUT_FILE_STAGED;
	return rc;
}

/* A rename lasts over a power cut when its directory is written; if that fails, it is as good as before. */
static void directory_sync(const char *path)
{
	char directory[PATH_MAX];
	char *slash;
	int fd;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash)
		return;
	slash[slash == directory] = 0;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!fsync(fd);
	close(fd);
}

/* The one before the last rollout is that again. */
static void before_back(struct es_rollout_file *file)
{
	if (file->has_before)
		(void)!rename(file->before, file->previous);
	file->has_before = 0;
}

static int place(struct es_rollout_file *file, struct es_conf_error *err)
{
	int rc;

	file->has_before = !rename(file->previous, file->before);
	if (!file->has_before && errno != ENOENT)
		return fail(err, file->previous, "cannot be put aside");
	/* By a link, so that at no time there is no file. */
	if (link(file->path, file->previous)) {
		rc = fail(err, file->previous, "cannot be made");
		before_back(file);
		return rc;
	}
	if (rename(file->next, file->path)) {
		rc = fail(err, file->path, "cannot be replaced");
		unlink(file->previous);
		before_back(file);
		return rc;
	}
	directory_sync(file->path);
	return 0;
}

int es_rollout_file_place(struct es_rollout_file *file, struct es_conf_error *err)
{
	int rc = file->is_same ? 0 : place(file, err);

	if (!rc)
		file->step = ES_ROLLOUT_FILE_PLACED;
	return rc;
}

int es_rollout_file_back(struct es_rollout_file *file, struct es_conf_error *err)
{
	if (file->step == ES_ROLLOUT_FILE_PLACED && !file->is_same) {
		if (rename(file->previous, file->path))
			return fail(err, file->path, "cannot be put back");
		before_back(file);
		directory_sync(file->path);
	}
	es_rollout_file_forget(file);
	return 0;
}

void es_rollout_file_forget(struct es_rollout_file *file)
{
	if (file->step == ES_ROLLOUT_FILE_STAGED && !file->is_same)
		unlink(file->next);
	if (file->has_before)
		unlink(file->before);
	file->has_before = 0;
	file->step = ES_ROLLOUT_FILE_NONE;
}
