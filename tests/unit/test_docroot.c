// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The document root, with real directories and a real inotify: what a scan finds and leaves out, each kind of
 * change, lost events, the bounds.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/urls/docroot_internal.h"

static char root[64];
static char said[512];
static unsigned int says;

static void on_say(const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
	says++;
}

static const char *path_of(const char *name)
{
	static char path[2][PATH_MAX];
	static int at;

	at = !at;
	snprintf(path[at], PATH_MAX, "%s/%s", root, name);
	return path[at];
}

static void file_make(const char *name, size_t bytes)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	for (size_t i = 0; i < bytes; i++)
		fputc('x', file);
	fclose(file);
}

static void dir_make(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0755), 0);
}

static int on_remove(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/earshot-docroot-XXXXXX");
	says = 0;
	said[0] = 0;
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	if (!getuid() && seteuid(0))
		return -1;
	nftw(root, on_remove, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void scan_all(struct es_docroot *docroot)
{
	while (es_docroot_step(docroot, 3))
		;
}

static struct es_docroot *docroot_new(size_t max_entries, size_t max_watches)
{
	struct es_docroot_options options = {
		.root = root,
		.max_entries = max_entries,
		.max_watches = max_watches,
		.say = on_say,
	};
	struct es_docroot *docroot = NULL;

	assert_int_equal(es_docroot_new(&options, &docroot), 0);
	assert_int_equal(es_docroot_step(docroot, 1000), 0);
	es_docroot_tick(docroot, 1000);
	scan_all(docroot);
	return docroot;
}

/* The size of a path in @tree, -1 if it is not there. */
static long long size_in(const struct es_url_tree *tree, const char *path)
{
	struct es_url_info info;

	if (!es_url_tree_lookup(tree, path, strlen(path), &info) || !(info.has & ES_URL_SIZE))
		return -1;
	return (long long)info.size_bytes;
}

static struct es_url_tree *known; /* what the docroot gave last */

/* All that happened before is in inotify's queue, so there is nothing to wait for. -2: there is no tree. */
static long long size_now(struct es_docroot *docroot, const char *path)
{
	struct es_url_tree *next = NULL;

	es_docroot_handle(docroot);
	if (es_docroot_take(docroot, &next) == 1) {
		es_url_tree_free(&known);
		known = next;
	}
	return known ? size_in(known, path) : -2;
}

static void docroot_free(struct es_docroot **docroot)
{
	es_docroot_free(docroot);
	es_url_tree_free(&known);
}

static void test_scan(void **state)
{
	const struct es_docroot_stats *stats;
	struct es_docroot *docroot;
	struct es_url_info info;
	struct es_url_tree *tree;

	(void)state;
	file_make("index.html", 10);
	file_make("empty", 0);
	file_make(".htaccess", 5);
	dir_make("a");
	dir_make("a/b");
	dir_make(".git");
	file_make(".git/config", 5);
	file_make("a/b/c d%.txt", 20);
	assert_int_equal(symlink(path_of("index.html"), path_of("link.html")), 0);
	assert_int_equal(symlink(root, path_of("a/loop")), 0);
	assert_int_equal(symlink("/nonexistent", path_of("dangling")), 0);
	assert_int_equal(mkfifo(path_of("pipe"), 0644), 0);
	docroot = docroot_new(1000, 0);
	stats = es_docroot_stats(docroot);
	assert_int_equal(stats->watch, ES_DOCROOT_WATCHED);
	assert_int_equal(stats->files, 4);
	assert_int_equal(stats->directories, 2);
	assert_int_equal(stats->hidden, 2);
	assert_int_equal(stats->links, 1);
	assert_int_equal(stats->unreadable, 0);
	assert_int_equal(stats->watches, 3);
	assert_int_equal(stats->scans, 1);
	assert_int_equal(es_docroot_take(docroot, &tree), 1);
	assert_int_equal(size_in(tree, "/index.html"), 10);
	assert_int_equal(size_in(tree, "/"), 10);
	assert_int_equal(size_in(tree, "/empty"), 0);
	assert_int_equal(size_in(tree, "/link.html"), 10);
	assert_int_equal(size_in(tree, "/a/b/c d%.txt"), 20);
	assert_int_equal(size_in(tree, "/.htaccess"), -1);
	assert_int_equal(size_in(tree, "/a/loop/index.html"), -1);
	assert_int_equal(es_url_tree_lookup(tree, "/empty", 6, &info), 1);
	assert_true(info.has & ES_URL_KIND);
	assert_false(info.is_dynamic);
	es_url_tree_free(&tree);
	assert_int_equal(es_docroot_take(docroot, &tree), 0);
	assert_int_equal(says, 0);
	docroot_free(&docroot);
}

static void test_changes(void **state)
{
	struct es_docroot *docroot;
	struct pollfd fd;
	char outside[80];

	(void)state;
	file_make("old", 1);
	dir_make("dir");
	docroot = docroot_new(1000, 0);
	fd = (struct pollfd){.fd = es_docroot_fd(docroot), .events = POLLIN};
	assert_int_equal(size_now(docroot, "/old"), 1);
	assert_int_equal(poll(&fd, 1, 0), 0);

	file_make("new", 2);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(size_now(docroot, "/new"), 2);
	assert_int_equal(poll(&fd, 1, 0), 0);
	file_make("new", 30);
	assert_int_equal(size_now(docroot, "/new"), 30);
	assert_int_equal(rename(path_of("new"), path_of("dir/newer")), 0);
	assert_int_equal(size_now(docroot, "/new"), -1);
	assert_int_equal(size_now(docroot, "/dir/newer"), 30);
	assert_int_equal(unlink(path_of("old")), 0);
	assert_int_equal(size_now(docroot, "/old"), -1);
	assert_int_equal(es_docroot_stats(docroot)->files, 1);

	/* A tree that is made before anybody looks. */
	dir_make("deep");
	dir_make("deep/er");
	file_make("deep/er/file", 4);
	assert_int_equal(size_now(docroot, "/deep/er/file"), 4);
	file_make("deep/er/file2", 5);
	assert_int_equal(size_now(docroot, "/deep/er/file2"), 5);
	assert_int_equal(es_docroot_stats(docroot)->watches, 4);

	/* A directory under another name: what happens there later belongs to that name. */
	assert_int_equal(rename(path_of("deep"), path_of("moved")), 0);
	assert_int_equal(size_now(docroot, "/deep/er/file"), -1);
	assert_int_equal(size_now(docroot, "/moved/er/file"), 4);
	file_make("moved/er/file3", 6);
	assert_int_equal(size_now(docroot, "/moved/er/file3"), 6);
	assert_int_equal(es_docroot_stats(docroot)->watches, 4);
	assert_int_equal(es_docroot_stats(docroot)->files, 4);

	/* Moved out of the root: gone, and no watch is left there. */
	snprintf(outside, sizeof(outside), "%s-out", root);
	assert_int_equal(rename(path_of("moved/er"), outside), 0);
	assert_int_equal(size_now(docroot, "/moved/er/file"), -1);
	assert_int_equal(es_docroot_stats(docroot)->watches, 3);
	assert_int_equal(rename(outside, path_of("back")), 0);
	assert_int_equal(size_now(docroot, "/back/file3"), 6);

	/* Removed and made again in one go. */
	assert_int_equal(nftw(path_of("back"), on_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
	dir_make("back");
	file_make("back/file3", 7);
	assert_int_equal(size_now(docroot, "/back/file3"), 7);
	assert_int_equal(size_now(docroot, "/back/file2"), -1);
	file_make("back/file4", 8);
	assert_int_equal(size_now(docroot, "/back/file4"), 8);
	/* A file in a directory's place. */
	assert_int_equal(rmdir(path_of("moved")), 0);
	file_make("moved", 9);
	assert_int_equal(size_now(docroot, "/moved"), 9);
	assert_int_equal(es_docroot_stats(docroot)->scans, 1);
	docroot_free(&docroot);
}

static void test_overflow(void **state)
{
	const struct inotify_event overflow = {.wd = -1, .mask = IN_Q_OVERFLOW};
	struct es_docroot *docroot;

	(void)state;
	file_make("one", 1);
	docroot = docroot_new(1000, 0);
	assert_int_equal(size_now(docroot, "/one"), 1);
	/* Lost: the events of these two. */
	file_make("two", 2);
	assert_int_equal(unlink(path_of("one")), 0);
	{
		char lost[4096];

		assert_true(read(es_docroot_fd(docroot), lost, sizeof(lost)) > 0);
	}
	es_docroot_event(docroot, &overflow);
	assert_int_equal(es_docroot_stats(docroot)->overflows, 1);
	/* Not at once: the last scan began at 1000. The known files hold until the new scan is complete. */
	es_docroot_tick(docroot, 1500);
	assert_int_equal(es_docroot_step(docroot, 100), 0);
	assert_int_equal(size_now(docroot, "/one"), 1);
	es_docroot_tick(docroot, 2000);
	assert_int_equal(es_docroot_step(docroot, 1), 1);
	assert_int_equal(size_now(docroot, "/one"), 1);
	scan_all(docroot);
	assert_int_equal(size_now(docroot, "/one"), -1);
	assert_int_equal(size_now(docroot, "/two"), 2);
	assert_int_equal(es_docroot_stats(docroot)->scans, 2);
	assert_int_equal(es_docroot_stats(docroot)->watches, 1);
	file_make("three", 3);
	assert_int_equal(size_now(docroot, "/three"), 3);
	docroot_free(&docroot);
}

static void test_watch_limit(void **state)
{
	struct es_docroot *docroot;
	char expected[512];
	char name[32];

	(void)state;
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		dir_make(name);
		snprintf(name, sizeof(name), "d%d/f", i);
		file_make(name, 1);
	}
	docroot = docroot_new(1000, 4);
	snprintf(expected, sizeof(expected),
		 "document root %s: 4 directories can be watched for changes, and there are 6: the rest is "
		 "only "
		 "scanned every 5 minutes; raise fs.inotify.max_user_watches",
		 root);
	assert_string_equal(said, expected);
	assert_string_equal(es_docroot_stats(docroot)->message, expected);
	assert_int_equal(es_docroot_stats(docroot)->watch, ES_DOCROOT_PARTLY);
	assert_int_equal(says, 1);
	assert_int_equal(es_docroot_stats(docroot)->files, 5);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "d%d/f", i);
		file_make(name, 2);
	}
	for (int i = 0, seen = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "/d%d/f", i);
		seen += size_now(docroot, name) == 2;
		if (i == 4)
			assert_int_equal(seen, 3); /* the root has the fourth watch */
	}
	es_docroot_tick(docroot, 1000 + 300000 - 1);
	assert_int_equal(es_docroot_step(docroot, 100), 0);
	es_docroot_tick(docroot, 1000 + 300000);
	scan_all(docroot);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "/d%d/f", i);
		assert_int_equal(size_now(docroot, name), 2);
	}
	/* Said once, and that it is over. */
	assert_int_equal(says, 1);
	assert_int_equal(nftw(path_of("d0"), on_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(nftw(path_of("d1"), on_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
	es_docroot_tick(docroot, 1000 + 600000);
	scan_all(docroot);
	assert_int_equal(es_docroot_stats(docroot)->watch, ES_DOCROOT_WATCHED);
	assert_int_equal(says, 2);
	assert_non_null(strstr(said, "scanned and watched"));
	docroot_free(&docroot);
}

static void test_entry_limit(void **state)
{
	struct es_docroot *docroot;
	char name[32];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		file_make(name, 1);
	}
	docroot = docroot_new(15, 0);
	assert_int_equal(es_docroot_stats(docroot)->files, 15);
	assert_int_equal(es_docroot_stats(docroot)->beyond, 5);
	docroot_free(&docroot);
}

static void test_root_comes_and_goes(void **state)
{
	char was[PATH_MAX], expected[512];
	struct es_docroot *docroot;

	(void)state;
	snprintf(was, sizeof(was), "%s", root);
	assert_int_equal(rmdir(root), 0);
	docroot = docroot_new(1000, 0);
	snprintf(expected, sizeof(expected), "document root %s: No such file or directory", root);
	assert_string_equal(said, expected);
	assert_int_equal(es_docroot_stats(docroot)->watch, ES_DOCROOT_MISSING);
	assert_int_equal(size_now(docroot, "/a"), -2);
	assert_int_equal(mkdir(root, 0755), 0);
	dir_make("v1");
	file_make("v1/a", 1);
	es_docroot_tick(docroot, 3000);
	scan_all(docroot);
	assert_int_equal(size_now(docroot, "/v1/a"), 1);
	assert_int_equal(es_docroot_stats(docroot)->watch, ES_DOCROOT_WATCHED);
	assert_int_equal(says, 2);
	docroot_free(&docroot);

	/* A link that is set to another directory, as deployments do. */
	dir_make("v2");
	file_make("v2/a", 2);
	assert_int_equal(symlink("v1", path_of("current")), 0);
	snprintf(root, sizeof(root), "%.40s/current", was);
	docroot = docroot_new(1000, 0);
	assert_int_equal(size_now(docroot, "/a"), 1);
	assert_int_equal(unlink(root), 0);
	assert_int_equal(symlink("v2", root), 0);
	es_docroot_tick(docroot, 3000);
	scan_all(docroot);
	assert_int_equal(size_now(docroot, "/a"), 2);
	docroot_free(&docroot);
	snprintf(root, sizeof(root), "%.60s", was);
}

static void test_unreadable(void **state)
{
	struct es_docroot *docroot;

	(void)state;
	if (!geteuid()) { /* who reads all */
		assert_int_equal(chown(root, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	dir_make("closed");
	assert_int_equal(chmod(path_of("closed"), 0), 0);
	docroot = docroot_new(1000, 0);
	assert_int_equal(es_docroot_stats(docroot)->unreadable, 1);
	assert_int_equal(es_docroot_stats(docroot)->watch, ES_DOCROOT_WATCHED);
	assert_int_equal(chmod(path_of("closed"), 0755), 0);
	file_make("closed/a", 1);
	assert_int_equal(size_now(docroot, "/closed/a"), 1);
	docroot_free(&docroot);
}

/* Until @path has @size; the thread gives a new tree at most once a second, so this may take one. */
static void wait_for_size(struct es_url_table *table, const char *path, long long size)
{
	struct es_url_path normal;
	struct es_url_entry entry;

	assert_int_equal(es_url_path_normalize(path, strlen(path), &normal), 0);
	for (int i = 0; i < 3000; i++) {
		es_url_lookup(table, NULL, &normal, &entry);
		if ((entry.info.has & ES_URL_SIZE ? (long long)entry.info.size_bytes : -1) == size)
			return;
		poll(NULL, 0, 10);
	}
	fail_msg("%s has not got the size %lld", path, size);
}

static void test_thread(void **state)
{
	struct es_docroot_options options = {.root = root, .max_entries = 1000, .say = on_say};
	struct es_docroot_thread *thread = NULL;
	struct es_url_table *table = NULL;
	struct es_docroot_stats stats;

	(void)state;
	file_make("a", 1);
	assert_int_equal(es_url_table_new(1000, &table), 0);
	assert_int_equal(es_docroot_thread_new(&options, table, &thread), 0);
	wait_for_size(table, "/a", 1);
	file_make("a", 2);
	wait_for_size(table, "/a", 2);
	assert_int_equal(unlink(path_of("a")), 0);
	wait_for_size(table, "/a", -1);
	es_docroot_thread_stats(thread, &stats);
	assert_int_equal(stats.watch, ES_DOCROOT_WATCHED);
	assert_int_equal(stats.watches, 1);
	assert_true(stats.events >= 2);
	es_docroot_thread_free(&thread);
	es_url_table_free(&table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scan),	   TEST(changes),     TEST(overflow),
		TEST(watch_limit), TEST(entry_limit), TEST(root_comes_and_goes),
		TEST(unreadable),  TEST(thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
