/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_URL_TREE_H
#define ES_URL_TREE_H

/*
 * A tree of content, one level for each component of a path (Yang and Luo section 4.1: "a multi-level hash
 * table, in which each level corresponds to a level in the content tree"). The levels' hash tables share one
 * array, keyed by directory and name, so that a tree is three flat arrays and a copy of it costs three
 * memcpy().
 *
 * A tree has one writer. It is not safe for readers while it is written: what readers see is a copy that
 * nobody writes (url_table.h).
 */
#include <stddef.h>
#include "inspector/policy/url_info.h"

#define ES_URL_ROOT 0u
#define ES_URL_NONE 0xffffffffu

struct es_url_tree;

/**
 * es_url_tree_new() - a tree that has its root, for at most @max_entries directories and files besides
 * Returns 0 or -ENOMEM. Memory is taken as entries come.
 */
int es_url_tree_new(size_t max_entries, struct es_url_tree **ret_tree);
void es_url_tree_free(struct es_url_tree **tree);

/* es_url_tree_copy() - entries keep their numbers. Returns 0 or -ENOMEM. */
int es_url_tree_copy(const struct es_url_tree *tree, struct es_url_tree **ret_tree);

/* es_url_tree_count() - entries, without the root */
size_t es_url_tree_count(const struct es_url_tree *tree);
size_t es_url_tree_files(const struct es_url_tree *tree);

/* es_url_tree_find() - the entry of that name and kind in directory @parent, or ES_URL_NONE */
__u32 es_url_tree_find(const struct es_url_tree *tree, __u32 parent, const char *name, size_t len,
		       int is_directory);

/**
 * es_url_tree_add() - the same, put in if it is not there
 * A file and a directory may have the same name. Returns 0, -EINVAL for a name that no component can be,
 * -ENOSPC when the tree has its @max_entries, or -ENOMEM.
 */
int es_url_tree_add(struct es_url_tree *tree, __u32 parent, const char *name, size_t len, int is_directory,
		    __u32 *ret_entry);

/* es_url_tree_insert() - add all that a normalised path names; a last '/' says that it is a directory */
int es_url_tree_insert(struct es_url_tree *tree, const char *path, size_t len, __u32 *ret_entry);

/* es_url_tree_info() - an entry's settings, to be read or written; good until the next addition */
struct es_url_info *es_url_tree_info(struct es_url_tree *tree, __u32 entry);

/* A number that belongs to an entry, -1 at first; the document root keeps the watch there. */
int es_url_tree_tag(const struct es_url_tree *tree, __u32 entry);
void es_url_tree_set_tag(struct es_url_tree *tree, __u32 entry, int tag);

/**
 * es_url_tree_remove() - an entry and all below it; of the root, all below it
 * @gone: told of each entry that has a tag before it is removed; may be NULL
 */
void es_url_tree_remove(struct es_url_tree *tree, __u32 entry, void (*gone)(void *ctx, __u32 entry, int tag),
			void *ctx);

/* es_url_tree_path() - of an entry, as text that ends in NUL; -ENAMETOOLONG if it does not fit */
int es_url_tree_path(const struct es_url_tree *tree, __u32 entry, char *text, size_t size);

/**
 * es_url_tree_lookup() - what holds for a normalised path
 * Each directory on the way hands its settings down, and what is deeper wins, field by field. A path that
 * ends in '/' is that of the directory's index.html, or else index.htm, if there is one.
 * Returns 1 if there is an entry for the path itself, 0 if only what is inherited holds.
 */
int es_url_tree_lookup(const struct es_url_tree *tree, const char *path, size_t len,
		       struct es_url_info *ret_info);

#endif
