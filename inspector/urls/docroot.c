// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scans a document root and follows its changes. Directories are watched before they are read, so nothing
 * that happens meanwhile is missed; what is seen twice is the same entry. When inotify has lost events, all
 * is scanned anew, and what was found before holds until that is complete.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/urls/docroot_internal.h"

#define ES_RESCAN_MS	      300000ULL /* of what has no watch */
#define ES_RESCAN_OVERFLOW_MS 1000ULL	/* between two scans, however fast events are lost */

#define ES_WATCH_EVENTS                                                                                      \
	(IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR |     \
	 IN_EXCL_UNLINK)

struct es_watch {
	int wd;
	__u32 entry; /* ES_URL_NONE: removed */
};

struct es_docroot {
	char root[PATH_MAX];
	struct es_docroot_options options;
	struct es_docroot_stats stats;
	struct es_url_tree *tree;
	int fd;
	int has_root;
	int has_scanned;
	int is_changed;
	int is_lost;	/* a scan is due, as soon as the last one is old enough */
	int is_limited; /* a directory has no watch */
	dev_t device;
	ino_t inode;
	unsigned long long now_ms;
	unsigned long long scanned_ms;
	__u32 *queue; /* directories that wait to be read */
	size_t queued;
	size_t queue_size;
	DIR *reading;
	__u32 reading_entry;
	struct es_watch *watch; /* in order of wd */
	size_t watches;
	size_t watches_removed;
	size_t watches_size;
};

const char *const es_docroot_watch_name[ES_DOCROOT_WATCH_COUNT] = {
	[ES_DOCROOT_SCANNING] = "scanning",
	[ES_DOCROOT_MISSING] = "missing",
	[ES_DOCROOT_WATCHED] = "watched",
	[ES_DOCROOT_PARTLY] = "partly watched",
};

__attribute__((format(printf, 3, 4))) static void
es_state_set(struct es_docroot *d, enum es_docroot_watch watch, const char *format, ...)
{
	enum es_docroot_watch before = d->stats.watch;
	char text[sizeof(d->stats.message)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	d->stats.watch = watch;
	memcpy(d->stats.message, text, sizeof(text));
	if (before == watch || !d->options.say)
		return;
	if (text[0])
		d->options.say(text);
	else if (before == ES_DOCROOT_MISSING || before == ES_DOCROOT_PARTLY) {
		snprintf(text, sizeof(text), "document root %.200s: scanned and watched", d->root);
		d->options.say(text);
	}
}

/* @entry's path on disk, with @name behind it if there is one. */
static int es_disk_path(const struct es_docroot *d, __u32 entry, const char *name, char *path, size_t size)
{
	size_t len = strlen(d->root), more;
	int rc;

	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(path, d->root, len + 1);
	rc = es_url_tree_path(d->tree, entry, path + len, size - len);
	if (rc || !name)
		return rc;
	len += strlen(path + len);
	more = strlen(name);
	if (len + more >= size)
		return -ENAMETOOLONG;
	memcpy(path + len, name, more + 1);
	return 0;
}

/* The first watch with at least @wd. */
static size_t es_watch_place(const struct es_docroot *d, int wd)
{
	size_t low = 0, high = d->watches;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (d->watch[middle].wd < wd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct es_watch *es_watch_find(const struct es_docroot *d, int wd)
{
	size_t at = es_watch_place(d, wd);

	return at < d->watches && d->watch[at].wd == wd ? &d->watch[at] : NULL;
}

static void es_watch_pack(struct es_docroot *d)
{
	size_t used = 0;

	for (size_t i = 0; i < d->watches; i++)
		if (d->watch[i].entry != ES_URL_NONE)
			d->watch[used++] = d->watch[i];
	d->watches = used;
	d->watches_removed = 0;
}

static int es_watch_put(struct es_docroot *d, int wd, __u32 entry)
{
	struct es_watch *watch = es_watch_find(d, wd);
	size_t at;

	if (watch && watch->entry != ES_URL_NONE)
		return 0; /* the same directory under two names (a bind mount): the first one has it */
	if (watch) {
		d->watches_removed--;
	} else {
		if (d->watches == d->watches_size) {
			size_t size = d->watches_size ? 2 * d->watches_size : 64;

			watch = realloc(d->watch, size * sizeof(*watch));
			if (!watch)
				return -ENOMEM;
			d->watch = watch;
			d->watches_size = size;
		}
		at = es_watch_place(d, wd);
		memmove(&d->watch[at + 1], &d->watch[at], (d->watches - at) * sizeof(*d->watch));
		d->watches++;
		watch = &d->watch[at];
	}
	*watch = (struct es_watch){.wd = wd, .entry = entry};
	es_url_tree_set_tag(d->tree, entry, wd);
	d->stats.watches++;
	return 0;
}

static void es_watch_forget(struct es_docroot *d, int wd)
{
	struct es_watch *watch = es_watch_find(d, wd);

	if (!watch || watch->entry == ES_URL_NONE)
		return;
	watch->entry = ES_URL_NONE;
	d->stats.watches--;
	if (++d->watches_removed > 64 && d->watches_removed > d->watches / 2)
		es_watch_pack(d);
}

/* es_url_tree_remove(): its directory is gone, or is somewhere else. */
static void es_on_gone(void *ctx, __u32 entry, int wd)
{
	struct es_docroot *d = ctx;

	(void)entry;
	inotify_rm_watch(d->fd, wd); /* fails if the kernel was first */
	es_watch_forget(d, wd);
}

static void es_watch_add(struct es_docroot *d, __u32 entry, const char *path)
{
	int wd = -1, error = ENOSPC;

	if (!d->options.max_watches || d->stats.watches < d->options.max_watches) {
		wd = inotify_add_watch(d->fd, path, ES_WATCH_EVENTS);
		error = errno;
	}
	if (wd >= 0 && !es_watch_put(d, wd, entry))
		return;
	/* A directory that is gone, or not for us, needs no watch. */
	if (wd >= 0 || error == ENOSPC || error == ENOMEM)
		d->is_limited = 1;
}

static int es_queue_put(struct es_docroot *d, __u32 entry)
{
	if (d->queued == d->queue_size) {
		size_t size = d->queue_size ? 2 * d->queue_size : 64;
		__u32 *queue = realloc(d->queue, size * sizeof(*queue));

		if (!queue)
			return -ENOMEM;
		d->queue = queue;
		d->queue_size = size;
	}
	d->queue[d->queued++] = entry;
	return 0;
}

static void es_name_removed(struct es_docroot *d, __u32 parent, const char *name, int is_directory)
{
	__u32 entry = es_url_tree_find(d->tree, parent, name, strlen(name), is_directory);

	if (entry == ES_URL_NONE)
		return;
	es_url_tree_remove(d->tree, entry, es_on_gone, d);
	d->is_changed = 1;
}

/* A name in the directory @parent, new or changed. */
static void es_name_seen(struct es_docroot *d, __u32 parent, const char *name)
{
	char path[PATH_MAX];
	struct stat status;
	int is_link, rc;
	__u32 entry;

	if (name[0] == '.') {
		d->stats.hidden++;
		return;
	}
	if (es_disk_path(d, parent, name, path, sizeof(path))) {
		d->stats.beyond++;
		return;
	}
	rc = lstat(path, &status);
	is_link = !rc && S_ISLNK(status.st_mode);
	if (is_link)
		rc = stat(path, &status);
	if (is_link && !rc && S_ISDIR(status.st_mode)) {
		d->stats.links++;
		return;
	}
	if (rc || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
		/* Gone again, a link to nothing, a socket: what had the name before is not there any more. */
		es_name_removed(d, parent, name, 0);
		if (rc && errno != ENOENT)
			d->stats.unreadable++;
		return;
	}
	if (es_url_tree_add(d->tree, parent, name, strlen(name), S_ISDIR(status.st_mode), &entry)) {
		d->stats.beyond++;
		return;
	}
	d->is_changed = 1;
	if (S_ISDIR(status.st_mode)) {
		/* A new one; or one that could not be watched, and perhaps not read. */
		if (es_url_tree_tag(d->tree, entry) < 0 && es_queue_put(d, entry))
			d->is_lost = 1;
		return;
	}
	*es_url_tree_info(d->tree, entry) = (struct es_url_info){
		.has = ES_URL_SIZE | ES_URL_KIND,
		.size_bytes = (__u64)status.st_size,
	};
}

static void es_directory_open(struct es_docroot *d, __u32 entry)
{
	char path[PATH_MAX];
	int fd = -1;

	if (es_disk_path(d, entry, NULL, path, sizeof(path))) {
		d->stats.beyond++;
		return;
	}
	es_watch_add(d, entry, path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (entry == ES_URL_ROOT ? 0 : O_NOFOLLOW));
	d->reading = fd >= 0 ? fdopendir(fd) : NULL;
	d->reading_entry = entry;
	if (d->reading)
		return;
	if (errno != ENOENT)
		d->stats.unreadable++;
	if (fd >= 0)
		close(fd);
}

static void es_scan_ended(struct es_docroot *d)
{
	size_t directories = es_url_tree_count(d->tree) - es_url_tree_files(d->tree);

	d->stats.files = es_url_tree_files(d->tree);
	d->stats.directories = directories;
	if (d->is_limited)
		es_state_set(d, ES_DOCROOT_PARTLY,
			     "document root %.160s: %zu directories can be watched for changes, "
			     "and there are %zu: the rest is only scanned every %llu minutes; "
			     "raise fs.inotify.max_user_watches",
			     d->root, d->stats.watches, directories + 1, ES_RESCAN_MS / 60000);
	else
		es_state_set(d, ES_DOCROOT_WATCHED, "%s", "");
	if (!d->has_scanned) {
		d->has_scanned = 1;
		d->stats.scans++;
		d->is_changed = 1;
	}
}

int es_docroot_step(struct es_docroot *d, size_t entries)
{
	if (!d->has_root)
		return 0;
	while (entries--) {
		const struct dirent *found;

		if (!d->reading) {
			if (!d->queued) {
				es_scan_ended(d);
				return 0;
			}
			es_directory_open(d, d->queue[--d->queued]);
			continue;
		}
		found = readdir(d->reading);
		if (!found) {
			closedir(d->reading);
			d->reading = NULL;
		} else if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0) {
			es_name_seen(d, d->reading_entry, found->d_name);
		}
	}
	return 1;
}

/* Forget all; watches of the old tree are given back. */
static void es_tree_clear(struct es_docroot *d)
{
	int wd = es_url_tree_tag(d->tree, ES_URL_ROOT);

	if (d->reading)
		closedir(d->reading);
	d->reading = NULL;
	d->queued = 0;
	es_url_tree_remove(d->tree, ES_URL_ROOT, es_on_gone, d);
	if (wd >= 0)
		es_on_gone(d, ES_URL_ROOT, wd);
	es_url_tree_set_tag(d->tree, ES_URL_ROOT, -1);
	d->stats.files = d->stats.directories = d->stats.hidden = 0;
	d->stats.unreadable = d->stats.links = d->stats.beyond = 0;
	d->is_lost = d->is_limited = d->has_scanned = 0;
}

static void es_scan_start(struct es_docroot *d)
{
	es_tree_clear(d);
	d->scanned_ms = d->now_ms;
	if (es_queue_put(d, ES_URL_ROOT))
		d->is_lost = 1;
}

/* Is the root a directory, and the one that it was? */
static void es_root_check(struct es_docroot *d)
{
	struct stat status;
	int rc = stat(d->root, &status) ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;

	if (!rc && access(d->root, R_OK | X_OK))
		rc = errno;
	if (rc) {
		if (d->has_root || d->stats.watch != ES_DOCROOT_MISSING) {
			es_tree_clear(d);
			d->has_root = 0;
			d->is_changed = 1;
		}
		es_state_set(d, ES_DOCROOT_MISSING, "document root %.200s: %s", d->root, strerror(rc));
		return;
	}
	if (d->has_root && d->device == status.st_dev && d->inode == status.st_ino)
		return;
	d->has_root = 1;
	d->device = status.st_dev;
	d->inode = status.st_ino;
	es_scan_start(d);
}

void es_docroot_tick(struct es_docroot *d, unsigned long long now_ms)
{
	unsigned long long age_ms = now_ms - d->scanned_ms;

	d->now_ms = now_ms;
	es_root_check(d);
	if (!d->has_root || d->reading || d->queued)
		return;
	if ((d->is_lost && age_ms >= ES_RESCAN_OVERFLOW_MS) || (d->is_limited && age_ms >= ES_RESCAN_MS))
		es_scan_start(d);
}

void es_docroot_event(struct es_docroot *d, const struct inotify_event *event)
{
	struct es_watch *watch;
	__u32 entry;

	d->stats.events++;
	if (event->mask & IN_Q_OVERFLOW) {
		d->stats.overflows++;
		d->is_lost = 1;
		return;
	}
	watch = es_watch_find(d, event->wd);
	if (!watch || watch->entry == ES_URL_NONE)
		return;
	entry = watch->entry;
	if (event->mask & IN_IGNORED) {
		/* The directory is gone; that its parent says so, too, is what removes it. */
		es_watch_forget(d, event->wd);
		es_url_tree_set_tag(d->tree, entry, -1);
		return;
	}
	if (!event->len || event->name[0] == '.')
		return;
	if (event->mask & (IN_DELETE | IN_MOVED_FROM))
		es_name_removed(d, entry, event->name, !!(event->mask & IN_ISDIR));
	else
		es_name_seen(d, entry, event->name);
	/* A new directory at once: the next event may be about what is in it. */
	while (es_docroot_step(d, 1024))
		;
}

void es_docroot_handle(struct es_docroot *d)
{
	char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;

	if (d->reading || d->queued)
		return;
	while ((len = read(d->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			es_docroot_event(d, event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

int es_docroot_take(struct es_docroot *d, struct es_url_tree **ret_tree)
{
	int rc;

	if (!d->is_changed || d->reading || d->queued)
		return 0;
	*ret_tree = NULL;
	rc = d->has_root ? es_url_tree_copy(d->tree, ret_tree) : 0;
	if (rc)
		return rc;
	d->is_changed = 0;
	return 1;
}

const struct es_docroot_stats *es_docroot_stats(const struct es_docroot *d)
{
	return &d->stats;
}

int es_docroot_fd(const struct es_docroot *d)
{
	return d->fd;
}

int es_docroot_new(const struct es_docroot_options *options, struct es_docroot **ret_docroot)
{
	size_t len = strlen(options->root);
	struct es_docroot *d;
	int rc;

	while (len && options->root[len - 1] == '/')
		len--;
	if (len >= sizeof(d->root) / 2)
		return -ENAMETOOLONG;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	memcpy(d->root, options->root, len);
	d->options = *options;
	d->options.root = d->root;
	rc = d->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (rc < 0)
		rc = -errno;
	else
		rc = es_url_tree_new(options->max_entries, &d->tree);
	if (rc) {
		es_docroot_free(&d);
		return rc;
	}
	*ret_docroot = d;
	return 0;
}

void es_docroot_free(struct es_docroot **docroot)
{
	struct es_docroot *d = *docroot;

	if (!d)
		return;
	if (d->reading)
		closedir(d->reading);
	if (d->fd >= 0)
		close(d->fd);
	es_url_tree_free(&d->tree);
	free(d->queue);
	free(d->watch);
	free(d);
	*docroot = NULL;
}
