// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The key file: golden vectors of the derivation (made with Python's hmac, RFC 5869), what is refused, and
 * what rotation keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/config/keyfile.h"
#include "inspector/config/tls_keys.h"

#define RING "ring 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define HEX1 "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
#define HEX2 "1111111111111111111111111111111111111111111111111111111111111111"

static char directory[] = "/tmp/earshot-keyfile-XXXXXX";
static char path[64];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/k", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static int remove_file(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void put(const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_key(const struct es_sipkey *key, unsigned long long k0, unsigned long long k1)
{
	assert_int_equal(key->k0, k0);
	assert_int_equal(key->k1, k1);
}

static void test_golden(void **state)
{
	struct es_conf_error err;
	struct es_keys keys;

	(void)state;
	put("# a comment\n\n" RING "key 4294967295 " HEX1 " # current\r\n\tkey\t7\t" HEX2);
	assert_int_equal(es_keys_read(path, &keys, &err), 0);
	assert_key(&keys.ring, 0x92672a3ae2fe322bULL, 0x86833e5bf69e5220ULL);
	assert_int_equal(keys.ring_seed, 0x0978);
	assert_int_equal(keys.count, 2);
	assert_int_equal(keys.key[0].id, 4294967295U);
	assert_key(&keys.key[0].cookie, 0x7bceab14faeb8bf6ULL, 0xcf2f11080c2b15ffULL);
	assert_key(&keys.key[0].handover, 0x3d7a8877a6873c64ULL, 0x6faa58c964af0c55ULL);
	assert_key(&keys.key[0].home, 0x453047707cd23ad4ULL, 0x35e177decbc995edULL);
	assert_int_equal(keys.key[1].id, 7);
	assert_key(&keys.key[1].cookie, 0x188fd6f758f9b695ULL, 0x76389c26d3a151bcULL);
	assert_key(&keys.key[1].handover, 0xffbe6c6eb0c3f52fULL, 0x8d423a9a59640a9fULL);
	assert_key(&keys.key[1].home, 0x1982f7e78e726a71ULL, 0x7c23d3480978c5f2ULL);
	es_keys_wipe(&keys);
	assert_key(&keys.ring, 0, 0);
}

static void assert_hex(const unsigned char *bytes, size_t len, const char *hex)
{
	char text[256];

	assert_int_equal(strlen(hex), 2 * len);
	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

static void test_golden_tls(void **state)
{
	unsigned char ticket[ES_TLS_TICKET_KEY_BYTES];
	struct es_conf_error err;
	struct es_tls_keys keys;

	(void)state;
	put(RING "key 4294967295 " HEX1 "\nkey 7 " HEX2);
	assert_int_equal(es_tls_keys_read(path, &keys, &err), 0);
	assert_int_equal(keys.count, 2);
	assert_int_equal(keys.key[0].id, 4294967295U);
	assert_hex(keys.key[0].handover, 32,
		   "ee60d0895a037f2fa6253acd6842fe2978a8dfb45bcaa9e8ec4771d36f888c2b");
	assert_hex(keys.key[0].tickets, 32,
		   "78fe2c5384d6771ae94164a67857f015751910189f60a4e4424c8038f05e26fb");
	assert_key(&keys.key[0].home, 0x453047707cd23ad4ULL, 0x35e177decbc995edULL);
	assert_int_equal(keys.key[1].id, 7);
	assert_key(&keys.key[1].home, 0x1982f7e78e726a71ULL, 0x7c23d3480978c5f2ULL);
	assert_hex(keys.key[1].handover, 32,
		   "a6496a04f42b5aa7306c504cabe4be637c51d656acae9e36b8b01a6ee2b8b7d6");
	assert_hex(keys.key[1].tickets, 32,
		   "91f3f548b3af7a5aaa597f6bc1d1756b494ff3eeeb8612804a5fab4431ca9986");
	assert_int_equal(es_tls_ticket_key(&keys.key[0], "web", 20785, ticket), 0);
	assert_hex(ticket, sizeof(ticket),
		   "b91aa66a58736654a9cacca6bb12bef82a8fce9dd24e3b9c93c53cbcfa8687c4d938bd900276c1d57382330b9"
		   "550517c"
		   "a41f547e0dd329df5e63ef6c7256a092dd4bb81833157aedb421b6525ffb79b5");
	assert_int_equal(es_tls_ticket_key(&keys.key[0], "web", 20786, ticket), 0);
	assert_hex(ticket, sizeof(ticket),
		   "33d3c00f840399db4a0b34d287c13194f367f2fb55a8861f62ffc7b121c806b5a9d19a6af098ad775a934b3cf"
		   "2e75f37"
		   "eeb1d55ceab3349e94158234aca94f3127e4d06ec9e29b8f6d544319876e8d26");
	assert_int_equal(es_tls_ticket_key(&keys.key[1], "", 20785, ticket), 0);
	assert_hex(ticket, sizeof(ticket),
		   "b68f3a6639242a8a4e5f08b768f872e672e8e1fd15bf52356c3e57f3b0df2e2f99c6eb42b57cbe83d8adc05a3"
		   "7e56f51"
		   "15d4a0611aa71aa6b3c55f164957b0f8e11b240166e662c6ed448dc6daaec24d");
	es_tls_keys_wipe(&keys);
	assert_int_equal(keys.count + keys.key[0].handover[0] + keys.key[1].tickets[31], 0);
	put(RING);
	assert_int_equal(es_tls_keys_read(path, &keys, &err), -EINVAL);
	assert_int_equal(keys.count, 0);
}

/* Wrong files; %s is the path. */
static const struct {
	const char *text;
	const char *error;
} errors[] = {
	{"", "%s: no ring line: expected ring SECRET"},
	{"key 1 " HEX1, "%s: no ring line: expected ring SECRET"},
	{RING, "%s: no key line: expected key ID SECRET"},
	{RING RING, "%s:2: second ring line: expected one"},
	{RING "key 1 " HEX1 "\nkey 2 " HEX1 "\nkey 3 " HEX1, "%s:4: third key line: expected one or two"},
	{RING "key 1 " HEX1 "\nkey 1 " HEX2, "%s:3: key id used twice: expected two different ones"},
	{RING "key 0 " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key -1 " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key 4294967296 " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key 99999999999999999999999 " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key 1x " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key " HEX1, "%s:2: bad key id: expected 1..4294967295"},
	{RING "key", "%s:2: bad key id: expected 1..4294967295"},
	{RING "key 1", "%s:2: bad secret: expected 64 hexadecimal digits"},
	{RING "key 1 00" HEX1, "%s:2: bad secret: expected 64 hexadecimal digits"},
	{RING "key 1 0011", "%s:2: bad secret: expected 64 hexadecimal digits"},
	{"ring xyz", "%s:1: bad secret: expected 64 hexadecimal digits"},
	{"ring", "%s:1: bad secret: expected 64 hexadecimal digits"},
	{RING "key 1 " HEX1 " " HEX1, "%s:2: text after the secret: expected the end of the line"},
	{"\nsecret " HEX1, "%s:2: unknown line: expected ring SECRET or key ID SECRET"},
};

static void test_errors(void **state)
{
	struct es_keys keys, before;
	struct es_conf_error err;
	char expected[512];
	size_t i;

	(void)state;
	memset(&keys, 0x5a, sizeof(keys));
	before = keys;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		const char *error = errors[i].error + 2;

		put(errors[i].text);
		assert_int_equal(es_keys_read(path, &keys, &err), -EINVAL);
		snprintf(expected, sizeof(expected), "%s%s", path, error);
		assert_string_equal(err.text, expected);
		assert_memory_equal(&keys, &before, sizeof(keys));
	}
}

static void expect_failure(int code, const char *what)
{
	struct es_conf_error err;
	struct es_keys keys;
	char expected[512];

	assert_int_equal(es_keys_read(path, &keys, &err), code);
	snprintf(expected, sizeof(expected), "%s: %s", path, what);
	assert_string_equal(err.text, expected);
}

static void test_files(void **state)
{
	int fd;

	(void)state;
	expect_failure(-ENOENT, "cannot be opened: No such file or directory (earshot keygen makes one)");
	put(RING "key 1 " HEX1);
	assert_int_equal(chmod(path, 0640), 0);
	expect_failure(-EPERM, "mode 0640 lets others use the cluster's keys: expected 0600 (chmod 600)");
	assert_int_equal(chmod(path, 0601), 0);
	expect_failure(-EPERM, "mode 0601 lets others use the cluster's keys: expected 0600 (chmod 600)");
	assert_int_equal(chmod(path, 0400), 0);
	if (!geteuid()) {
		assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
		expect_failure(-EPERM, "belongs to user 12345: expected root or user 0");
	}
	unlink(path);
	put(RING "key 1 " HEX1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 20000), 0); /* NULs, and too long */
	close(fd);
	expect_failure(-EINVAL, "is not a text of at most 16384 bytes: expected a key file (earshot keygen)");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_failure(-EINVAL, "is not a regular file: expected a key file (earshot keygen)");
}

static void test_create(void **state)
{
	struct es_keys keys, again;
	struct es_conf_error err;
	char expected[128];
	struct stat st;

	(void)state;
	assert_int_equal(es_keyfile_create(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(es_keys_read(path, &keys, &err), 0);
	assert_int_equal(keys.count, 1);
	assert_int_equal(keys.key[0].id, 1);
	assert_int_equal(es_keyfile_create(path, &err), -EEXIST);
	snprintf(expected, sizeof(expected), "%s: cannot be created: File exists", path);
	assert_string_equal(err.text, expected);
	unlink(path);
	assert_int_equal(es_keyfile_create(path, &err), 0);
	assert_int_equal(es_keys_read(path, &again, &err), 0);
	assert_memory_not_equal(&keys.ring, &again.ring, sizeof(keys.ring));
	assert_memory_not_equal(&keys.key[0].cookie, &again.key[0].cookie, sizeof(keys.ring));
}

static void load(struct es_keys *keys)
{
	struct es_conf_error err;
	struct stat st;

	memset(keys, 0, sizeof(*keys));
	if (es_keys_read(path, keys, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_rotate(void **state)
{
	struct es_keys first, second, third;
	struct es_conf_error err;

	(void)state;
	assert_int_equal(es_keyfile_create(path, &err), 0);
	load(&first);
	assert_int_equal(es_keyfile_rotate(path, &err), 0);
	load(&second);
	assert_memory_equal(&second.ring, &first.ring, sizeof(first.ring));
	assert_int_equal(second.count, 2);
	assert_int_equal(second.key[0].id, 2);
	assert_memory_equal(&second.key[1], &first.key[0], sizeof(first.key[0]));
	assert_memory_not_equal(&second.key[0].cookie, &first.key[0].cookie, sizeof(first.key[0].cookie));
	assert_int_equal(es_keyfile_rotate(path, &err), 0);
	load(&third);
	assert_memory_equal(&third.ring, &first.ring, sizeof(first.ring));
	assert_int_equal(third.key[0].id, 3);
	assert_memory_equal(&third.key[1], &second.key[0], sizeof(second.key[0]));
}

static void test_stage(void **state)
{
	struct es_keys first, staged, rotated;
	struct es_conf_error err;
	char expected[128];

	(void)state;
	assert_int_equal(es_keyfile_create(path, &err), 0);
	load(&first);
	assert_int_equal(es_keyfile_stage(path, &err), 0);
	load(&staged);
	assert_memory_equal(&staged.ring, &first.ring, sizeof(first.ring));
	assert_memory_equal(&staged.key[0], &first.key[0], sizeof(first.key[0]));
	assert_int_equal(staged.key[1].id, 2);
	assert_int_equal(es_keyfile_stage(path, &err), -EEXIST);
	snprintf(expected, sizeof(expected), "%s: key 2 is staged already: expected --rotate", path);
	assert_string_equal(err.text, expected);
	assert_int_equal(es_keyfile_rotate(path, &err), 0);
	load(&rotated);
	assert_memory_equal(&rotated.key[0], &staged.key[1], sizeof(first.key[0]));
	assert_memory_equal(&rotated.key[1], &staged.key[0], sizeof(first.key[0]));
	/* the next stage replaces the previous key */
	assert_int_equal(es_keyfile_stage(path, &err), 0);
	load(&staged);
	assert_memory_equal(&staged.key[0], &rotated.key[0], sizeof(first.key[0]));
	assert_int_equal(staged.key[1].id, 3);
}

static void test_rotate_refuses(void **state)
{
	struct es_conf_error err;
	char other[80], expected[160];

	(void)state;
	assert_int_equal(es_keyfile_rotate(path, &err), -ENOENT);
	put("ring x");
	assert_int_equal(es_keyfile_rotate(path, &err), -EINVAL);
	unlink(path);
	put(RING "key 4294967295 " HEX1);
	assert_int_equal(es_keyfile_rotate(path, &err), -EOVERFLOW);
	snprintf(expected, sizeof(expected), "%s: no key id is left: expected ids below 4294967295", path);
	assert_string_equal(err.text, expected);
	/* somebody else's unfinished rotation is not overwritten */
	put(RING "key 1 " HEX1);
	snprintf(other, sizeof(other), "%s.new", path);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(es_keyfile_rotate(path, &err), -EEXIST);
	assert_int_equal(unlink(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_golden, remove_file),
		cmocka_unit_test_teardown(test_golden_tls, remove_file),
		cmocka_unit_test_teardown(test_errors, remove_file),
		cmocka_unit_test_teardown(test_files, remove_file),
		cmocka_unit_test_teardown(test_create, remove_file),
		cmocka_unit_test_teardown(test_rotate, remove_file),
		cmocka_unit_test_teardown(test_stage, remove_file),
		cmocka_unit_test_teardown(test_rotate_refuses, remove_file),
	};

	return cmocka_run_group_tests_name("keyfile", tests, make_directory, remove_directory);
}
