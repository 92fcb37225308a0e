/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DOCROOT_H
#define ES_DOCROOT_H

/*
 * The files that a server serves, as a tree of content: a scan of its document root, kept true with inotify.
 *
 * The tree has regular files with their size, and directories. A link to a file counts as the file; a link to
 * a directory is not followed, so there are no loops (the root itself may be a link, and may become another
 * one: it is looked at every few seconds). Hidden files (".name") and what cannot be read are counted, and no
 * error.
 *
 * One thread uses it. es_docroot_thread_new() is that thread for the daemon: reading a large tree from a slow
 * disk, or one that hangs, must not keep the control thread from the bus. The functions below it do the same
 * in slices, for a program with an event loop, and for tests.
 */
#include "inspector/urls/url_table.h"

struct es_docroot;
struct es_docroot_thread;

enum es_docroot_watch {
	ES_DOCROOT_SCANNING, /* the first scan is under way */
	ES_DOCROOT_MISSING,  /* there is no such directory, or it cannot be read */
	ES_DOCROOT_WATCHED,  /* changes are seen as they happen */
	ES_DOCROOT_PARTLY,   /* some directories have no watch: they are scanned again every some minutes */
	ES_DOCROOT_WATCH_COUNT,
};

extern const char *const es_docroot_watch_name[ES_DOCROOT_WATCH_COUNT];

/**
 * struct es_docroot_options - @root: absolute path
 * @max_entries: files and directories in the tree; @max_watches: 0: as many as the kernel gives
 * @say: told in one line when the state changes to something that an administrator should know, or back;
 * from the thread that scans; may be NULL
 */
struct es_docroot_options {
	const char *root;
	size_t max_entries;
	size_t max_watches;
	void (*say)(const char *text);
};

/**
 * struct es_docroot_stats
 * @hidden, @unreadable, @links, @beyond: left out of the tree: names with a dot, what could not be read,
 * links to directories, what exceeded @max_entries. From the last full scan, and since.
 * @message: why the state is not ES_DOCROOT_WATCHED, for people, or ""
 */
struct es_docroot_stats {
	enum es_docroot_watch watch;
	size_t files;
	size_t directories;
	size_t hidden;
	size_t unreadable;
	size_t links;
	size_t beyond;
	size_t watches;
	unsigned long long scans;
	unsigned long long events;
	unsigned long long overflows;
	char message[320];
};

/* es_docroot_new() - nothing is read before the first es_docroot_tick(). Returns 0, -ENOMEM, -ENAMETOOLONG,
 * or the error of inotify. */
int es_docroot_new(const struct es_docroot_options *options, struct es_docroot **ret_docroot);
void es_docroot_free(struct es_docroot **docroot);

/* es_docroot_fd() - when it can be read, call es_docroot_handle() */
int es_docroot_fd(const struct es_docroot *docroot);

/* es_docroot_step() - go on with a scan, for about @entries. Returns 1 while there is more to do. */
int es_docroot_step(struct es_docroot *docroot, size_t entries);

/* es_docroot_handle() - take in what inotify says; nothing while a scan is under way */
void es_docroot_handle(struct es_docroot *docroot);

/* es_docroot_tick() - at least every ES_DOCROOT_TICK_MS: is the root still what it was, is a scan due? */
#define ES_DOCROOT_TICK_MS 2000
void es_docroot_tick(struct es_docroot *docroot, unsigned long long now_ms);

/**
 * es_docroot_take() - a copy of the tree, if it has changed since the last one and no scan is under way
 * Returns 1 and the tree, which the caller owns, or NULL if there is no root; 0 if there is nothing new;
 * -ENOMEM.
 */
int es_docroot_take(struct es_docroot *docroot, struct es_url_tree **ret_tree);

const struct es_docroot_stats *es_docroot_stats(const struct es_docroot *docroot);

/**
 * es_docroot_thread_new() - a thread that keeps @table's scan true; at most one new tree a second
 * @table is there until es_docroot_thread_free(). Returns 0 or -errno.
 */
int es_docroot_thread_new(const struct es_docroot_options *options, struct es_url_table *table,
			  struct es_docroot_thread **ret_thread);

/* es_docroot_thread_free() - it ends by itself, soon if the disk answers, and does not touch the table any
 * more
 */
void es_docroot_thread_free(struct es_docroot_thread **thread);
void es_docroot_thread_stats(struct es_docroot_thread *thread, struct es_docroot_stats *ret_stats);

#endif
