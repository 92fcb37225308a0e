// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The URL table: normal forms of paths, levels and inheritance, which source wins, the bound, and readers
 * beside a writer.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/urls/url_table.h"

static void check_normal(const char *path, const char *expected)
{
	struct es_url_path normal;
	int rc = es_url_path_normalize(path, strlen(path), &normal);

	if (rc || normal.len != strlen(expected) || memcmp(normal.text, expected, normal.len) != 0)
		fail_msg("%s: expected %s, got %d %.*s", path, expected, rc, rc ? 0 : (int)normal.len,
			 normal.text);
}

static void test_normalize(void **state)
{
	static const struct {
		const char *path;
		const char *normal;
	} cases[] = {
		{"/", "/"},
		{"/a", "/a"},
		{"/a/", "/a/"},
		{"/a/b.html", "/a/b.html"},
		{"//a///b//", "/a/b/"},
		{"/a?b/../c", "/a"},
		{"/a#b", "/a"},
		{"/?", "/"},
		/* RFC 3986 section 5.2.4, its own example, and at the ends */
		{"/a/b/c/./../../g", "/a/g"},
		{"/.", "/"},
		{"/./", "/"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"},
		{"/a/b/../", "/a/"},
		{"/..", "/"},
		{"/../../etc/passwd", "/etc/passwd"},
		{"/a/../../../b", "/b"},
		{"/a//../b", "/b"},
		{"/...", "/..."},
		{"/.a/..b", "/.a/..b"},
		/* section 2.1: decoded once */
		{"/%61%2Dz", "/a-z"},
		{"/%2e%2e/a", "/a"},
		{"/a/%2E./b", "/b"},
		{"/a/.%2e", "/"},
		{"/a/%2e", "/a/"},
		{"/%252e%252e/a", "/%2e%2e/a"},
		{"/a%3fb", "/a?b"},
		{"/a%23b", "/a#b"},
		{"/a%5c..%5cb", "/a\\..\\b"},
		/* no UTF-8 is read, so no overlong dot either */
		{"/%c0%ae%c0%ae/a", "/\xc0\xae\xc0\xae/a"},
		{"/a;x=1/b", "/a;x=1/b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_normal(cases[i].path, cases[i].normal);
}

static void test_not_normalized(void **state)
{
	static const char *const paths[] = {"",	    "a",	   "?",	      "*",     "http://h/",
					    "/%2F", "/a%2f..%2fb", "/%00",    "/a%00", "/a%",
					    "/%4",  "/%zz/a",	   "/%4%31/", "/%/a",  "/%g0"};
	struct es_url_path path;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(es_url_path_normalize(paths[i], strlen(paths[i]), &path), -EINVAL);
	assert_int_equal(es_url_path_normalize("/a\0b", 4, &path), -EINVAL);
	/* The digits after the end are not looked at. */
	assert_int_equal(es_url_path_normalize("/%61", 3, &path), -EINVAL);
}

static void test_too_long(void **state)
{
	char text[4 * ES_URL_PATH_MAX];
	struct es_url_path path;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(es_url_path_normalize(text, 1 + ES_URL_COMPONENT_MAX, &path), 0);
	assert_int_equal(es_url_path_normalize(text, 2 + ES_URL_COMPONENT_MAX, &path), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(text); i += 2)
		text[i] = '/';
	assert_int_equal(es_url_path_normalize(text, ES_URL_PATH_MAX - 1, &path), 0);
	assert_int_equal(path.len, ES_URL_PATH_MAX - 1);
	assert_int_equal(es_url_path_normalize(text, ES_URL_PATH_MAX, &path), -ENAMETOOLONG);
	/* Characters that normalizing removes do not count. */
	memset(text, '/', sizeof(text));
	assert_int_equal(es_url_path_normalize(text, sizeof(text), &path), 0);
	assert_int_equal(path.len, 1);
}

static void put(struct es_url_tree *tree, const char *path, struct es_url_info info)
{
	__u32 entry;

	assert_int_equal(es_url_tree_insert(tree, path, strlen(path), &entry), 0);
	*es_url_tree_info(tree, entry) = info;
}

static struct es_url_entry get(struct es_url_table *table, const struct es_url_tree *config, const char *path)
{
	struct es_url_entry entry;
	struct es_url_path normal;

	assert_int_equal(es_url_path_normalize(path, strlen(path), &normal), 0);
	es_url_lookup(table, config, &normal, &entry);
	return entry;
}

static struct es_url_tree *tree_new(size_t max)
{
	struct es_url_tree *tree = NULL;

	assert_int_equal(es_url_tree_new(max, &tree), 0);
	return tree;
}

#define SIZE(bytes) ((struct es_url_info){.has = ES_URL_SIZE, .size_bytes = (bytes)})

static void test_inheritance(void **state)
{
	struct es_url_tree *tree = tree_new(100);
	struct es_url_info info;

	(void)state;
	put(tree, "/", (struct es_url_info){.has = ES_URL_PRIORITY, .priority = ES_PRIORITY_LOW});
	put(tree, "/cgi-bin/",
	    (struct es_url_info){.has = ES_URL_KIND | ES_URL_COST, .is_dynamic = 1, .cost = 40});
	put(tree, "/cgi-bin/shop/",
	    (struct es_url_info){.has = ES_URL_PRIORITY, .priority = ES_PRIORITY_HIGH});
	put(tree, "/cgi-bin/shop/pay", (struct es_url_info){.has = ES_URL_COST, .cost = 7});
	put(tree, "/cgi-bin/shop/sub/", (struct es_url_info){.has = ES_URL_COST, .cost = 9});

	info = get(NULL, tree, "/x").info;
	assert_int_equal(info.has, ES_URL_PRIORITY);
	assert_int_equal(info.priority, ES_PRIORITY_LOW);
	info = get(NULL, tree, "/cgi-bin/any/where").info;
	assert_int_equal(info.has, ES_URL_PRIORITY | ES_URL_KIND | ES_URL_COST);
	assert_int_equal(info.cost, 40);
	assert_int_equal(info.priority, ES_PRIORITY_LOW);
	/* The file wins in what it says, and inherits the rest from both directories. */
	info = get(NULL, tree, "/cgi-bin//shop/./pay?basket=1").info;
	assert_int_equal(info.cost, 7);
	assert_int_equal(info.priority, ES_PRIORITY_HIGH);
	assert_int_equal(info.is_dynamic, 1);
	assert_int_equal(get(NULL, tree, "/cgi-bin/shop/sub/pay").info.cost, 9);
	/* A file hands nothing down; a name that only begins alike is another one; no slash, no directory. */
	assert_int_equal(get(NULL, tree, "/cgi-bin/shop/pay/x").info.cost, 40);
	assert_int_equal(get(NULL, tree, "/cgi-bin/shop/pay2").info.cost, 40);
	assert_int_equal(get(NULL, tree, "/cgi-binary").info.has, ES_URL_PRIORITY);
	assert_int_equal(get(NULL, tree, "/cgi-bin").info.has, ES_URL_PRIORITY);
	assert_int_equal(get(NULL, tree, "/x/../cgi-bin/").info.cost, 40);
	es_url_tree_free(&tree);
}

static void test_index(void **state)
{
	struct es_url_tree *tree = tree_new(100);

	(void)state;
	put(tree, "/index.html", SIZE(10));
	put(tree, "/a/index.htm", SIZE(20));
	put(tree, "/b/index.htm", SIZE(30));
	put(tree, "/b/index.html", SIZE(40));
	put(tree, "/c/x", SIZE(50));
	assert_int_equal(get(NULL, tree, "/").info.size_bytes, 10);
	assert_int_equal(get(NULL, tree, "/a/").info.size_bytes, 20);
	assert_int_equal(get(NULL, tree, "/b/").info.size_bytes, 40);
	assert_false(get(NULL, tree, "/c/").info.has & ES_URL_SIZE);
	assert_false(get(NULL, tree, "/a").info.has & ES_URL_SIZE);
	es_url_tree_free(&tree);
}

static void test_tree_bound(void **state)
{
	struct es_url_tree *tree = tree_new(3);
	__u32 entry;

	(void)state;
	put(tree, "/a/b", SIZE(1));
	assert_int_equal(es_url_tree_insert(tree, "/c/d", 4, &entry), -ENOSPC);
	assert_int_equal(es_url_tree_count(tree), 3); /* /c/ is in, its file is not */
	assert_int_equal(es_url_tree_insert(tree, "/a/b", 4, &entry), 0);
	es_url_tree_remove(tree, entry, NULL, NULL);
	assert_int_equal(es_url_tree_insert(tree, "/c/d", 4, &entry), 0);
	assert_int_equal(es_url_tree_insert(tree, "c", 1, &entry), -EINVAL);
	assert_int_equal(es_url_tree_insert(tree, "//", 2, &entry), -EINVAL);
	es_url_tree_free(&tree);
}

/* Put in and remove at random; a plain list is what must come out. */
static void test_tree_model(void **state)
{
	struct es_url_tree *tree = tree_new(10000), *copy = NULL;
	static __u64 model[20][20][20]; /* size + 1; 0: not there */
	unsigned int seed = 1, files = 0;
	char path[64];

	(void)state;
	for (unsigned int i = 0; i < 40000; i++) {
		unsigned int a = (unsigned int)rand_r(&seed) % 20, b = (unsigned int)rand_r(&seed) % 20;
		unsigned int c = (unsigned int)rand_r(&seed) % 20, what = (unsigned int)rand_r(&seed) % 100;
		__u32 entry;

		if (what < 95) {
			snprintf(path, sizeof(path), "/dir-%u/long-name-of-a-directory-%u/%u.html", a, b, c);
			put(tree, path, SIZE(i));
			model[a][b][c] = i + 1;
			continue;
		}
		snprintf(path, sizeof(path), "/dir-%u/long-name-of-a-directory-%u/", a, b);
		assert_int_equal(es_url_tree_insert(tree, path, strlen(path), &entry), 0);
		es_url_tree_remove(tree, entry, NULL, NULL);
		memset(model[a][b], 0, sizeof(model[a][b]));
	}
	assert_int_equal(es_url_tree_copy(tree, &copy), 0);
	for (unsigned int a = 0; a < 20; a++)
		for (unsigned int b = 0; b < 20; b++)
			for (unsigned int c = 0; c < 20; c++) {
				struct es_url_info info;

				snprintf(path, sizeof(path), "/dir-%u/long-name-of-a-directory-%u/%u.html", a,
					 b, c);
				info = get(NULL, a % 2 ? tree : copy, path).info;
				assert_int_equal(!!(info.has & ES_URL_SIZE), !!model[a][b][c]);
				if (model[a][b][c])
					assert_int_equal(info.size_bytes, model[a][b][c] - 1);
				files += !!model[a][b][c];
			}
	assert_int_equal(es_url_tree_files(tree), files);
	es_url_tree_remove(tree, ES_URL_ROOT, NULL, NULL);
	assert_int_equal(es_url_tree_count(tree), 0);
	assert_int_equal(es_url_tree_files(copy), files);
	es_url_tree_free(&tree);
	es_url_tree_free(&copy);
}

/* The response for @path had so many bytes. */
static int observe(struct es_url_table *table, const char *path, size_t len, __u64 bytes)
{
	struct es_url_path normal;
	int rc = es_url_path_normalize(path, len, &normal);

	return rc ? rc : es_url_observe_key(table, es_url_key(table, &normal), bytes);
}

static void test_sources(void **state)
{
	struct es_url_tree *config = tree_new(100), *scan = tree_new(100);
	struct es_url_table *table = NULL;
	struct es_url_entry entry;

	(void)state;
	assert_int_equal(es_url_table_new(1024, &table), 0);
	put(config, "/big/",
	    (struct es_url_info){.has = ES_URL_SIZE | ES_URL_COST, .size_bytes = 5, .cost = 3});
	put(scan, "/big/file", (struct es_url_info){.has = ES_URL_SIZE | ES_URL_KIND, .size_bytes = 6});
	put(scan, "/file", (struct es_url_info){.has = ES_URL_SIZE | ES_URL_KIND, .size_bytes = 7});
	assert_int_equal(observe(table, "/file", 5, 8), 0);
	/* Without a scan nobody knows what is a file. */
	entry = get(table, config, "/file");
	assert_int_equal(entry.info.has, ES_URL_SIZE);
	assert_int_equal(entry.size_from, ES_URL_FROM_RESPONSES);
	assert_int_equal(entry.info.size_bytes, 8);

	es_url_table_set_scan(table, scan);
	entry = get(table, config, "/big/file");
	assert_int_equal(entry.size_from, ES_URL_FROM_CONFIG);
	assert_int_equal(entry.info.size_bytes, 5);
	assert_int_equal(entry.info.cost, 3);
	assert_true(entry.info.has & ES_URL_KIND);
	entry = get(table, config, "/file?x");
	assert_int_equal(entry.size_from, ES_URL_FROM_SCAN);
	assert_int_equal(entry.info.size_bytes, 7);
	assert_int_equal(entry.info.is_dynamic, 0);
	assert_int_equal(get(table, NULL, "/big/file").info.size_bytes, 6);
	assert_int_equal(get(table, NULL, "/none").info.has, 0);
	assert_int_equal(get(table, NULL, "/none").size_from, ES_URL_FROM_NOWHERE);

	/* A program's response: dynamic, whatever the query, smoothed. */
	assert_int_equal(observe(table, "/app?q=1", 8, 800), 0);
	assert_int_equal(observe(table, "/x/../app?q=2", 13, 1600), 0);
	entry = get(table, config, "/app");
	assert_int_equal(entry.info.size_bytes, 900);
	assert_int_equal(entry.info.is_dynamic, 1);
	assert_int_equal(entry.size_from, ES_URL_FROM_RESPONSES);
	assert_int_equal(observe(table, "/%2f", 4, 1), -EINVAL);
	/* The scan knows better. */
	assert_int_equal(observe(table, "/file", 5, 8), 0);
	assert_int_equal(get(table, NULL, "/file").info.size_bytes, 7);
	es_url_table_set_scan(table, NULL);
	assert_int_equal(get(table, NULL, "/file").info.size_bytes, 8);
	es_url_table_free(&table);
	es_url_tree_free(&config);
}

static int is_known(struct es_url_table *table, const char *path)
{
	return !!(get(table, NULL, path).info.has & ES_URL_SIZE);
}

static void test_eviction(void **state)
{
	struct es_url_table *table = NULL;
	struct es_url_tree *scan;
	struct es_url_stats stats;
	struct es_url_entry entry;
	struct es_url_path peeked;
	char path[32];

	(void)state;
	assert_int_equal(es_url_table_new(1024, &table), 0);
	assert_int_equal(es_url_path_normalize("/peeked", 7, &peeked), 0);
	assert_int_equal(observe(table, "/peeked", 7, 1), 0);
	es_url_peek(table, NULL, &peeked, &entry);
	assert_int_equal(entry.size_from, ES_URL_FROM_RESPONSES);
	assert_int_equal(observe(table, "/kept", 5, 1), 0);
	assert_int_equal(observe(table, "/left", 5, 1), 0);
	for (int i = 0; i < 100000; i++) {
		snprintf(path, sizeof(path), "/%d", i);
		assert_int_equal(observe(table, path, strlen(path), 1), 0);
		es_url_peek(table, NULL, &peeked, &entry);
		if (i % 8 == 0)
			assert_true(is_known(table, "/kept"));
	}
	assert_int_equal(entry.size_from, ES_URL_FROM_NOWHERE);
	/* An entry that is used stays, one that is not goes. */
	assert_false(is_known(table, "/left"));
	es_url_table_stats(table, &stats);
	assert_int_equal(stats.observed, 1024);
	assert_int_equal(stats.evicted, 100003 - 1024);
	assert_true(is_known(table, "/99999"));

	/* Files take the room. */
	scan = tree_new(1024);
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/file%d", i);
		put(scan, path, SIZE(1));
	}
	es_url_table_set_scan(table, scan);
	es_url_table_stats(table, &stats);
	assert_int_equal(stats.scanned, 1000);
	assert_true(stats.has_scan);
	assert_true(stats.observed <= 24 && stats.observed > 0);
	scan = tree_new(1024);
	for (int i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path), "/file%d", i);
		put(scan, path, SIZE(1));
	}
	es_url_table_set_scan(table, scan);
	es_url_table_stats(table, &stats);
	assert_int_equal(stats.observed, 0);
	assert_int_equal(observe(table, "/late", 5, 1), -ENOSPC);
	es_url_table_set_scan(table, NULL);
	assert_int_equal(observe(table, "/late", 5, 1), 0);
	assert_true(is_known(table, "/late"));
	es_url_table_free(&table);
}

/* All files of one version have the same size: a reader that sees two sizes has seen a torn tree. */
#define FILES	 50
#define VERSIONS 400

static _Atomic int is_over;

static void *reader_main(void *arg)
{
	struct es_url_table *table = arg;
	unsigned long long looked = 0;
	__u64 last = 0;
	char path[32];

	while (!atomic_load(&is_over) || !looked) {
		for (int i = 0; i < FILES; i++) {
			struct es_url_entry entry;
			struct es_url_path normal;

			snprintf(path, sizeof(path), "/dir/%d/f", i);
			if (es_url_path_normalize(path, strlen(path), &normal))
				abort();
			es_url_lookup(table, NULL, &normal, &entry);
			/* A tree is there from the first on, and time does not go backwards. */
			if (!(entry.info.has & ES_URL_SIZE) || entry.info.size_bytes < last)
				abort();
			last = entry.info.size_bytes;
			snprintf(path, sizeof(path), "/app/%llu", looked++ % 3000);
			observe(table, path, strlen(path), looked);
		}
	}
	return NULL;
}

static struct es_url_tree *version_new(unsigned int version)
{
	struct es_url_tree *tree = tree_new(2000);
	char path[32];

	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "/dir/%d/f", i);
		put(tree, path, SIZE(version));
	}
	/* Versions differ in length, so that observed entries come and go. */
	for (unsigned int i = 0; i < version % 2 * 900; i++) {
		snprintf(path, sizeof(path), "/more/%u", i);
		put(tree, path, SIZE(version));
	}
	return tree;
}

static void test_readers(void **state)
{
	struct es_url_table *table = NULL;
	pthread_t reader[4];

	(void)state;
	assert_int_equal(es_url_table_new(2000, &table), 0);
	es_url_table_set_scan(table, version_new(1));
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, reader_main, table), 0);
	for (unsigned int i = 2; i < VERSIONS; i++)
		es_url_table_set_scan(table, version_new(i));
	atomic_store(&is_over, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(reader[i], NULL);
	es_url_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normalize),  cmocka_unit_test(test_not_normalized),
		cmocka_unit_test(test_too_long),   cmocka_unit_test(test_inheritance),
		cmocka_unit_test(test_index),	   cmocka_unit_test(test_tree_bound),
		cmocka_unit_test(test_tree_model), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_eviction),   cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
