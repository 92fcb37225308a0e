// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tree of content in flat arrays: entries, the hash table over (directory, name), and the names' bytes.
 * Where settings come from and which source wins is url_table.c's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/url_path.h"
#include "inspector/urls/url_tree.h"

#define ES_NAMES_SLACK (64u << 10) /* bytes of removed names that are not worth the work */

/**
 * struct es_url_node - an entry
 * @next: in the hash chain; of a free one: the next free one
 * @child, @newer, @older: a directory's entries, so that it can be removed with all that is in it
 */
struct es_url_node {
	__u32 parent;
	__u32 next;
	__u32 child;
	__u32 newer;
	__u32 older;
	__u32 name;
	__u8 name_len;
	__u8 is_directory;
	__u8 is_used;
	int tag;
	struct es_url_info info;
};

struct es_url_tree {
	struct es_url_node *node;
	__u32 *bucket;
	char *names;
	size_t max;   /* entries, root included */
	size_t count; /* in use, root included */
	size_t files;
	size_t high;	  /* that were ever in use */
	size_t allocated; /* entries that there is room for */
	__u32 free;
	size_t buckets; /* a power of two */
	size_t names_used;
	size_t names_lost; /* of these, of removed entries */
	size_t names_allocated;
};

static size_t es_bucket_of(const struct es_url_tree *tree, __u32 parent, const char *name, size_t len,
			   int is_directory)
{
	/* FNV-1a. Names are the operator's: nobody else can fill one chain. */
	__u64 hash = 0xcbf29ce484222325ULL ^ ((__u64)parent << 1 | !!is_directory);

	hash *= 0x100000001b3ULL;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ULL;
	return (size_t)(hash ^ hash >> 29) & (tree->buckets - 1);
}

static size_t es_bucket_of_node(const struct es_url_tree *tree, const struct es_url_node *node)
{
	return es_bucket_of(tree, node->parent, tree->names + node->name, node->name_len, node->is_directory);
}

static void es_rehash(struct es_url_tree *tree)
{
	for (size_t i = 0; i < tree->buckets; i++)
		tree->bucket[i] = ES_URL_NONE;
	for (__u32 i = 1; i < tree->high; i++) {
		size_t at;

		if (!tree->node[i].is_used)
			continue;
		at = es_bucket_of_node(tree, &tree->node[i]);
		tree->node[i].next = tree->bucket[at];
		tree->bucket[at] = i;
	}
}

int es_url_tree_new(size_t max_entries, struct es_url_tree **ret_tree)
{
	struct es_url_tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return -ENOMEM;
	tree->max = max_entries + 1 < ES_URL_NONE ? max_entries + 1 : ES_URL_NONE;
	tree->allocated = 64;
	tree->buckets = 64;
	tree->names_allocated = 1024;
	tree->node = calloc(tree->allocated, sizeof(*tree->node));
	tree->bucket = malloc(tree->buckets * sizeof(*tree->bucket));
	tree->names = malloc(tree->names_allocated);
	if (!tree->node || !tree->bucket || !tree->names) {
		es_url_tree_free(&tree);
		return -ENOMEM;
	}
	tree->node[ES_URL_ROOT] = (struct es_url_node){
		.parent = ES_URL_NONE,
		.next = ES_URL_NONE,
		.child = ES_URL_NONE,
		.newer = ES_URL_NONE,
		.older = ES_URL_NONE,
		.is_directory = 1,
		.is_used = 1,
		.tag = -1,
	};
	tree->count = tree->high = 1;
	tree->free = ES_URL_NONE;
	es_rehash(tree);
	*ret_tree = tree;
	return 0;
}

void es_url_tree_free(struct es_url_tree **tree)
{
	if (!*tree)
		return;
	free((*tree)->node);
	free((*tree)->bucket);
	free((*tree)->names);
	free(*tree);
	*tree = NULL;
}

/* The names that are in use, one behind the other, into @names; @node gets their new places. */
static size_t es_names_pack(const struct es_url_tree *tree, struct es_url_node *node, char *names)
{
	size_t used = 0;

	for (size_t i = 1; i < tree->high; i++) {
		if (!tree->node[i].is_used)
			continue;
		memcpy(names + used, tree->names + tree->node[i].name, tree->node[i].name_len);
		node[i].name = (__u32)used;
		used += tree->node[i].name_len;
	}
	return used;
}

int es_url_tree_copy(const struct es_url_tree *tree, struct es_url_tree **ret_tree)
{
	struct es_url_tree *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *tree;
	copy->allocated = tree->high;
	copy->names_allocated = tree->names_used - tree->names_lost + 1;
	copy->names_lost = 0;
	copy->node = malloc(copy->allocated * sizeof(*copy->node));
	copy->bucket = malloc(copy->buckets * sizeof(*copy->bucket));
	copy->names = malloc(copy->names_allocated);
	if (!copy->node || !copy->bucket || !copy->names) {
		es_url_tree_free(&copy);
		return -ENOMEM;
	}
	memcpy(copy->node, tree->node, tree->high * sizeof(*copy->node));
	memcpy(copy->bucket, tree->bucket, copy->buckets * sizeof(*copy->bucket));
	copy->names_used = es_names_pack(tree, copy->node, copy->names);
	*ret_tree = copy;
	return 0;
}

size_t es_url_tree_count(const struct es_url_tree *tree)
{
	return tree->count - 1;
}

size_t es_url_tree_files(const struct es_url_tree *tree)
{
	return tree->files;
}

__u32 es_url_tree_find(const struct es_url_tree *tree, __u32 parent, const char *name, size_t len,
		       int is_directory)
{
	__u32 i = tree->bucket[es_bucket_of(tree, parent, name, len, is_directory)];

	for (; i != ES_URL_NONE; i = tree->node[i].next) {
		const struct es_url_node *node = &tree->node[i];

		if (node->parent == parent && node->name_len == len && node->is_directory == !!is_directory &&
		    !memcmp(tree->names + node->name, name, len))
			return i;
	}
	return ES_URL_NONE;
}

static int es_names_reserve(struct es_url_tree *tree, size_t len)
{
	size_t size = tree->names_allocated;
	char *names;

	if (tree->names_lost > ES_NAMES_SLACK && tree->names_lost > tree->names_used / 2) {
		/* Not in place: the names' order is not that of the entries. */
		names = malloc(size);
		if (!names)
			return -ENOMEM;
		tree->names_used = es_names_pack(tree, tree->node, names);
		tree->names_lost = 0;
		free(tree->names);
		tree->names = names;
	}
	while (size - tree->names_used < len)
		size *= 2;
	if (size == tree->names_allocated)
		return 0;
	if (size > ES_URL_NONE)
		return -ENOMEM;
	names = realloc(tree->names, size);
	if (!names)
		return -ENOMEM;
	tree->names = names;
	tree->names_allocated = size;
	return 0;
}

static int es_nodes_reserve(struct es_url_tree *tree)
{
	struct es_url_node *node;
	__u32 *bucket;

	if (tree->free != ES_URL_NONE || tree->high < tree->allocated)
		return 0;
	node = realloc(tree->node, 2 * tree->allocated * sizeof(*node));
	if (!node)
		return -ENOMEM;
	tree->node = node;
	tree->allocated *= 2;
	if (tree->buckets >= tree->allocated)
		return 0;
	bucket = realloc(tree->bucket, 2 * tree->buckets * sizeof(*bucket));
	if (!bucket)
		return 0; /* longer chains, nothing worse */
	tree->bucket = bucket;
	tree->buckets *= 2;
	es_rehash(tree);
	return 0;
}

static __u32 es_node_take(struct es_url_tree *tree)
{
	__u32 entry = tree->free;

	if (entry == ES_URL_NONE)
		return (__u32)tree->high++;
	tree->free = tree->node[entry].next;
	return entry;
}

int es_url_tree_add(struct es_url_tree *tree, __u32 parent, const char *name, size_t len, int is_directory,
		    __u32 *ret_entry)
{
	struct es_url_node *node;
	__u32 entry;
	size_t at;

	if (!len || len > ES_URL_COMPONENT_MAX || memchr(name, '/', len))
		return -EINVAL;
	entry = es_url_tree_find(tree, parent, name, len, is_directory);
	if (entry != ES_URL_NONE) {
		*ret_entry = entry;
		return 0;
	}
	if (tree->count == tree->max)
		return -ENOSPC;
	if (es_names_reserve(tree, len) || es_nodes_reserve(tree))
		return -ENOMEM;
	entry = es_node_take(tree);
	node = &tree->node[entry];
	*node = (struct es_url_node){
		.parent = parent,
		.child = ES_URL_NONE,
		.newer = ES_URL_NONE,
		.older = tree->node[parent].child,
		.name = (__u32)tree->names_used,
		.name_len = (__u8)len,
		.is_directory = !!is_directory,
		.is_used = 1,
		.tag = -1,
	};
	memcpy(tree->names + tree->names_used, name, len);
	tree->names_used += len;
	if (node->older != ES_URL_NONE)
		tree->node[node->older].newer = entry;
	tree->node[parent].child = entry;
	at = es_bucket_of_node(tree, node);
	node->next = tree->bucket[at];
	tree->bucket[at] = entry;
	tree->count++;
	tree->files += !is_directory;
	*ret_entry = entry;
	return 0;
}

/* The component of @path at @at; moves @at behind it and its slash. 0 at the end of the path. */
static int es_component_next(const char *path, size_t len, size_t *at, const char **ret_name, size_t *ret_len,
			     int *ret_is_directory)
{
	const char *slash;

	if (*at >= len)
		return 0;
	*ret_name = path + *at;
	slash = memchr(*ret_name, '/', len - *at);
	*ret_len = slash ? (size_t)(slash - *ret_name) : len - *at;
	*ret_is_directory = !!slash;
	*at += *ret_len + 1;
	return 1;
}

int es_url_tree_insert(struct es_url_tree *tree, const char *path, size_t len, __u32 *ret_entry)
{
	__u32 entry = ES_URL_ROOT;
	size_t at = 1, name_len;
	int is_directory, rc;
	const char *name;

	if (!len || path[0] != '/')
		return -EINVAL;
	while (es_component_next(path, len, &at, &name, &name_len, &is_directory)) {
		rc = es_url_tree_add(tree, entry, name, name_len, is_directory, &entry);
		if (rc)
			return rc;
	}
	*ret_entry = entry;
	return 0;
}

struct es_url_info *es_url_tree_info(struct es_url_tree *tree, __u32 entry)
{
	return &tree->node[entry].info;
}

int es_url_tree_tag(const struct es_url_tree *tree, __u32 entry)
{
	return tree->node[entry].tag;
}

void es_url_tree_set_tag(struct es_url_tree *tree, __u32 entry, int tag)
{
	tree->node[entry].tag = tag;
}

/* One that has nothing below it. */
static void es_node_drop(struct es_url_tree *tree, __u32 entry)
{
	struct es_url_node *node = &tree->node[entry];
	__u32 *link = &tree->bucket[es_bucket_of_node(tree, node)];

	while (*link != entry)
		link = &tree->node[*link].next;
	*link = node->next;
	if (node->older != ES_URL_NONE)
		tree->node[node->older].newer = node->newer;
	if (node->newer != ES_URL_NONE)
		tree->node[node->newer].older = node->older;
	else
		tree->node[node->parent].child = node->older;
	tree->names_lost += node->name_len;
	node->is_used = 0;
	node->next = tree->free;
	tree->free = entry;
	tree->count--;
	tree->files -= !node->is_directory;
}

void es_url_tree_remove(struct es_url_tree *tree, __u32 entry, void (*gone)(void *ctx, __u32 entry, int tag),
			void *ctx)
{
	__u32 at = entry;

	/* Always the deepest first, so that a deep tree needs no deep stack. */
	for (;;) {
		struct es_url_node *node = &tree->node[at];
		__u32 parent = node->parent;

		if (node->child != ES_URL_NONE) {
			at = node->child;
			continue;
		}
		if (at == ES_URL_ROOT)
			return;
		if (gone && node->tag >= 0)
			gone(ctx, at, node->tag);
		es_node_drop(tree, at);
		if (at == entry)
			return;
		at = parent;
	}
}

int es_url_tree_path(const struct es_url_tree *tree, __u32 entry, char *text, size_t size)
{
	size_t len = 0, at;
	__u32 i;

	for (i = entry; i != ES_URL_ROOT; i = tree->node[i].parent)
		len += tree->node[i].name_len + (tree->node[i].is_directory ? 1u : 0u);
	if (len + 2 > size)
		return -ENAMETOOLONG;
	text[0] = '/';
	text[at = len + 1] = 0;
	for (i = entry; i != ES_URL_ROOT; i = tree->node[i].parent) {
		if (tree->node[i].is_directory)
			text[--at] = '/';
		at -= tree->node[i].name_len;
		memcpy(text + at, tree->names + tree->node[i].name, tree->node[i].name_len);
	}
	return 0;
}

static __u32 es_index_of(const struct es_url_tree *tree, __u32 directory)
{
	__u32 entry = es_url_tree_find(tree, directory, "index.html", 10, 0);

	return entry != ES_URL_NONE ? entry : es_url_tree_find(tree, directory, "index.htm", 9, 0);
}

int es_url_tree_lookup(const struct es_url_tree *tree, const char *path, size_t len,
		       struct es_url_info *ret_info)
{
	__u32 entry = ES_URL_ROOT, index;
	size_t at = 1, name_len;
	const char *name;
	int is_directory;

	*ret_info = tree->node[ES_URL_ROOT].info;
	while (es_component_next(path, len, &at, &name, &name_len, &is_directory)) {
		entry = es_url_tree_find(tree, entry, name, name_len, is_directory);
		if (entry == ES_URL_NONE)
			return 0;
		es_url_info_put(ret_info, &tree->node[entry].info, ~0u);
	}
	if (!tree->node[entry].is_directory)
		return 1;
	index = es_index_of(tree, entry);
	if (index != ES_URL_NONE)
		es_url_info_put(ret_info, &tree->node[index].info, ~0u);
	return 1;
}
