// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/urls: a normalised path has nothing in it that could leave the tree, is its own normal form,
 * and means what a naive second reading finds; looking it up never reads beside it.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/urls/url_table.h"

static struct es_url_table *table;
static struct es_url_tree *config;

static void tables_make(void)
{
	static const char *const paths[] = {"/", "/a/", "/a/b", "/a/b/index.html", "/a/b/c/d/", "/.."};
	struct es_url_tree *scan;
	__u32 entry;

	FUZZ_CHECK(!es_url_table_new(1024, &table) && !es_url_tree_new(64, &config) &&
		   !es_url_tree_new(64, &scan));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		FUZZ_CHECK(!es_url_tree_insert(i % 2 ? scan : config, paths[i], strlen(paths[i]), &entry));
		*es_url_tree_info(i % 2 ? scan : config, entry) =
			(struct es_url_info){.has = ES_URL_SIZE, .size_bytes = i + 1};
	}
	es_url_table_set_scan(table, scan);
}

static void check_normal(const struct es_url_path *path)
{
	size_t start = 1;

	FUZZ_CHECK(path->len >= 1 && path->len <= ES_URL_PATH_MAX && path->text[0] == '/');
	for (size_t i = 1; i <= path->len; i++) {
		FUZZ_CHECK(i == path->len || path->text[i]);
		if (i < path->len && path->text[i] != '/')
			continue;
		FUZZ_CHECK(i > start || i == path->len); /* no empty component but after the last slash */
		FUZZ_CHECK(i - start <= ES_URL_COMPONENT_MAX);
		FUZZ_CHECK(!(i - start == 1 && path->text[start] == '.'));
		FUZZ_CHECK(!(i - start == 2 && path->text[start] == '.' && path->text[start + 1] == '.'));
		start = i + 1;
	}
}

/* Decoded bytes may be '%', '?' or '#' again: encode them, and it must come out the same. */
static void check_again(const struct es_url_path *path)
{
	char text[3 * ES_URL_PATH_MAX];
	struct es_url_path again;
	size_t len = 0;

	for (size_t i = 0; i < path->len; i++) {
		char c = path->text[i];

		if (c == '%' || c == '?' || c == '#')
			len += (size_t)sprintf(text + len, "%%%02X", (unsigned char)c);
		else
			text[len++] = c;
	}
	FUZZ_CHECK(!es_url_path_normalize(text, len, &again));
	FUZZ_CHECK(again.len == path->len && !memcmp(again.text, path->text, path->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct es_url_entry entry;
	struct es_url_path path;

	if (!table)
		tables_make();
	if (!es_url_path_normalize(text, size, &path)) {
		check_normal(&path);
		check_again(&path);
		es_url_lookup(table, config, &path, &entry);
		FUZZ_CHECK(entry.info.has & ES_URL_SIZE); /* the root's, if nothing else */
		es_url_observe_key(table, es_url_key(table, &path), size);
	}
	free(text);
	return 0;
}
