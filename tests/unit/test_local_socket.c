// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sockets of programs, and who may use them. The test says which groups there are, and hears to whom a
 * file is given.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/machine/local_socket.h"

#define GID 12345u

static const char *group_name;
static gid_t given;

struct group *getgrnam(const char *name)
{
	static struct group group = {.gr_gid = GID};

	return group_name && !strcmp(name, group_name) ? &group : NULL;
}

int chown(const char *path, uid_t owner, gid_t group)
{
	assert_true(*path && owner == (uid_t)-1);
	given = group;
	return 0;
}

static void expect(struct es_conf *conf, gid_t gid)
{
	struct es_conf_error err = {};

	given = 0;
	assert_int_equal(es_local_socket_share("/x", conf, &err), 0);
	assert_int_equal(given, gid);
}

static void test_share(void **state)
{
	struct es_conf *conf = calloc(1, sizeof(*conf));
	struct es_conf_error err = {};

	(void)state;
	assert_non_null(conf);
	conf->service_count = 2;
	group_name = ES_TLS_GROUP;
	expect(conf, getegid()); /* the program is there, and has nothing to do */
	conf->services[1].tls.line = 1;
	expect(conf, GID);
	group_name = NULL;
	expect(conf, getegid());
	strcpy(conf->inspector.program_group, "apps");
	assert_int_equal(es_local_socket_share("/x", conf, &err), -ENOENT);
	assert_string_equal(err.text, "inspector: program_group = apps: there is no such group");
	group_name = "apps";
	expect(conf, GID);
	es_conf_free(&conf);
}

static void test_open(void **state)
{
	char directory[] = "/tmp/local-socketXXXXXX", path[64], text[128];
	struct es_conf_error err = {};
	struct stat st;
	int fd, again;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/n1.ask", directory);
	fd = es_local_socket_open(path, "tests", 4, &err);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	again = es_local_socket_open(path, "tests", 4, &err); /* a daemon that died has left one */
	assert_true(again >= 0);
	close(fd);
	close(again);
	unlink(path);
	rmdir(directory);
	assert_int_equal(es_local_socket_open(path, "tests", 4, &err), -ENOENT);
	snprintf(text, sizeof(text), "socket for tests %s: cannot be made: No such file or directory", path);
	assert_string_equal(err.text, text);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(es_local_socket_open(text, "tests", 4, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_share), cmocka_unit_test(test_open)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
