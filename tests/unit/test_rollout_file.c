// SPDX-License-Identifier: GPL-2.0-or-later
/* The way of a rollout's file on a node: beside the one in force, into its place, and back. */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/rollout/file.h"

static void write_text(const char *path, const char *what)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(what, file);
	assert_int_equal(fclose(file), 0);
}

static void assert_text(const char *path, const char *expected)
{
	char got[64] = "";
	FILE *file = fopen(path, "re");

	if (!expected) {
		assert_null(file);
		return;
	}
	assert_non_null(file);
	assert_true(fread(got, 1, sizeof(got) - 1, file) > 0);
	fclose(file);
	assert_string_equal(got, expected);
}

static void test_file(void **state)
{
	char directory[] = "/tmp/earshot-rollout-XXXXXX", path[64], link_path[64], next[64], previous[64],
	     before[64], own[64];
	struct es_rollout_file file = {};
	struct es_conf_error err = {};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a", directory);
	snprintf(link_path, sizeof(link_path), "%s/link", directory);
	snprintf(next, sizeof(next), "%s/a.rollout-next", directory);
	snprintf(before, sizeof(before), "%s/a.rollout-before", directory);
	snprintf(own, sizeof(own), "%s/a.next", directory);
	snprintf(previous, sizeof(previous), "%s/a.previous", directory);
	write_text(path, "one");
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(symlink("a", link_path), 0);

	assert_int_equal(es_rollout_file_stage(&file, link_path, "two", 3, &err), 0);
	assert_text(path, "one");
	assert_text(next, "two");
	es_rollout_file_forget(&file);
	assert_text(next, NULL);
	es_rollout_file_forget(&file);

	assert_int_equal(es_rollout_file_stage(&file, link_path, "two", 3, &err), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), 0);
	assert_text(path, "two");
	assert_text(previous, "one");
	assert_text(next, NULL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(es_rollout_file_back(&file, &err), 0);
	assert_text(path, "one");
	assert_text(previous, NULL);

	/* The same text again must not make the one before the same, too. */
	assert_int_equal(es_rollout_file_stage(&file, path, "two", 3, &err), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), 0);
	es_rollout_file_forget(&file);
	assert_int_equal(es_rollout_file_stage(&file, path, "two", 3, &err), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), 0);
	assert_text(previous, "one");
	assert_int_equal(es_rollout_file_back(&file, &err), 0);
	assert_text(path, "two");

	/*
	 * Going back leaves the previous file from before the last rollout, which may be the one that was to
	 * be rolled out; and it touches no file of others.
	 */
	write_text(own, "mine");
	assert_int_equal(es_rollout_file_stage(&file, path, "three", 5, &err), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), 0);
	assert_text(previous, "two");
	assert_int_equal(es_rollout_file_back(&file, &err), 0);
	assert_text(path, "two");
	assert_text(previous, "one");
	assert_text(before, NULL);
	assert_int_equal(es_rollout_file_stage(&file, path, "three", 5, &err), 0);
	assert_int_equal(unlink(next), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), -ENOENT);
	assert_text(path, "two");
	assert_text(previous, "one");
	es_rollout_file_forget(&file);
	assert_text(before, NULL);
	assert_int_equal(es_rollout_file_stage(&file, path, "three", 5, &err), 0);
	assert_int_equal(es_rollout_file_place(&file, &err), 0);
	es_rollout_file_forget(&file);
	assert_text(path, "three");
	assert_text(previous, "two");
	assert_text(before, NULL);
	assert_text(own, "mine");
	unlink(own);

	unlink(path);
	assert_int_equal(es_rollout_file_stage(&file, path, "two", 3, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	unlink(link_path);
	unlink(previous);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
