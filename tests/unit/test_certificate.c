// SPDX-License-Identifier: GPL-2.0-or-later
/* Certificates and keys of operators: what is told of them, and in which words they are refused. */
#include "made_certificate.h"
#include <errno.h>
#include "inspector/base/wall.h"
#include "inspector/certificate/certificate.h"
#include "inspector/certificate/staple.h"

static long long now_s(void)
{
	return (long long)(es_wall_ns() / 1000000000ULL);
}

static void put(const char *name, const struct made *made)
{
	struct pair pair = made_pair(made, NULL);

	put_pair(name, &pair, NULL);
	pair_free(&pair);
}

/* Expects that looking at the files fails with these words, %s being the file @blamed. */
static void expect(const char *certificate, const char *key, int code, const char *blamed, const char *words)
{
	struct es_certificate_facts facts, before;
	struct es_conf_error err;
	char text[512];

	memset(&facts, 0x5a, sizeof(facts));
	before = facts;
	assert_int_equal(
		es_certificate_look(made_path(certificate), key ? made_path(key) : NULL, &facts, &err), code);
	snprintf(text, sizeof(text), "%s: %s", made_path(blamed), words);
	assert_string_equal(err.text, text);
	assert_memory_equal(&facts, &before, sizeof(facts));
}

static void test_facts(void **state)
{
	static const struct {
		const char *kind, *key;
		unsigned int bits;
	} kinds[] = {{"rsa", "RSA", 2048},
		     {"p256", "ECDSA", 256},
		     {"p384", "ECDSA", 384},
		     {"ed25519", "Ed25519", 256}};
	struct es_certificate_facts facts;
	struct es_conf_error err;
	char key[128];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct made made = {.key = kinds[i].kind,
				    .names = "DNS:WWW.a.example,DNS:*.b.example,IP:192.0.2.1",
				    .from_s = -100,
				    .until_s = 1000};

		put("a", &made);
		snprintf(key, sizeof(key), "%s", made_path("a.key"));
		assert_int_equal(es_certificate_look(made_path("a.pem"), key, &facts, &err), 0);
		assert_string_equal(facts.key, kinds[i].key);
		assert_int_equal(facts.key_bits, kinds[i].bits);
		assert_in_range(now_s() - facts.from_s, 100, 110);
		assert_in_range(facts.until_s - now_s(), 990, 1000);
		assert_null(facts.weak);
		assert_int_equal(facts.name_count, 2);
		assert_string_equal(facts.name[0], "www.a.example");
		assert_string_equal(facts.name[1], "*.b.example");
		assert_int_equal(es_certificate_judge(&facts, "f", now_s(), &err), 0);
		assert_int_equal(es_certificate_judge(&facts, "f", facts.until_s, &err), 0);
		es_certificate_facts_free(&facts);
	}
}

static void test_match(void **state)
{
	char names[][ES_CERTIFICATE_NAME_SIZE] = {"a.example", "*.b.example", "x.b.example", "*."};
	struct es_certificate_facts facts = {.name_count = 4, .name = names};

	(void)state;
	assert_int_equal(es_certificate_match(&facts, "A.Example"), ES_CERTIFICATE_EXACT);
	assert_int_equal(es_certificate_match(&facts, "x.B.example"), ES_CERTIFICATE_EXACT);
	assert_int_equal(es_certificate_match(&facts, "y.B.example"), ES_CERTIFICATE_WILDCARD);
	assert_int_equal(es_certificate_match(&facts, "y.x.b.example"), ES_CERTIFICATE_OTHER);
	assert_int_equal(es_certificate_match(&facts, "b.example"), ES_CERTIFICATE_OTHER);
	assert_int_equal(es_certificate_match(&facts, ".b.example"), ES_CERTIFICATE_OTHER);
	assert_int_equal(es_certificate_match(&facts, "www.a.example"), ES_CERTIFICATE_OTHER);
	assert_int_equal(es_certificate_match(&facts, "a"), ES_CERTIFICATE_OTHER);
	assert_int_equal(es_certificate_match(&facts, ""), ES_CERTIFICATE_OTHER);
}

static void test_files(void **state)
{
	(void)state;
	put("a", &(struct made){.key = "p256", .names = "DNS:a.example"});
	put("b", &(struct made){.key = "p256", .names = "DNS:a.example"});
	expect("none.pem", NULL, -ENOENT, "none.pem", "cannot be read: No such file or directory");
	expect("a.pem", "none.key", -ENOENT, "none.key", "cannot be read: No such file or directory");
	expect("", NULL, -EISDIR, "", "cannot be read: Is a directory");
	assert_int_equal(mkfifo(made_path("fifo"), 0600), 0);
	expect("fifo", NULL, -EINVAL, "fifo", "cannot be read: it is not a regular file");
	expect("a.key", NULL, -EINVAL, "a.key",
	       "has no certificate: expected PEM (-----BEGIN CERTIFICATE-----), the server's own first, then "
	       "its "
	       "chain");
	expect("a.pem", "b.pem", -EPERM, "b.pem",
	       "mode 0644 lets everybody use the key: expected 0600 or 0640");
	assert_int_equal(chmod(made_path("b.pem"), 0600), 0);
	expect("a.pem", "b.pem", -EINVAL, "b.pem", "has no key: expected PEM (-----BEGIN PRIVATE KEY-----)");
	assert_int_equal(truncate(made_path("b.pem"), ES_CERTIFICATE_NAME_SIZE), 0);
	expect("b.pem", NULL, -EINVAL, "b.pem",
	       "has no certificate: expected PEM (-----BEGIN CERTIFICATE-----), the server's own first, then "
	       "its "
	       "chain");
	put_text("empty", "");
	expect("empty", NULL, -EINVAL, "empty",
	       "has no certificate: expected PEM (-----BEGIN CERTIFICATE-----), the server's own first, then "
	       "its "
	       "chain");
	expect("a.pem", "empty", -EINVAL, "empty", "has no key: expected PEM (-----BEGIN PRIVATE KEY-----)");
}

static void test_does_not_fit(void **state)
{
	struct es_conf_error err;
	struct es_certificate_facts facts;
	char text[512], certificate[128], key[128];

	(void)state;
	put("a", &(struct made){.key = "rsa", .names = "DNS:a.example"});
	put("b", &(struct made){.key = "rsa", .names = "DNS:a.example"});
	put("c", &(struct made){.key = "ed25519", .names = "DNS:a.example"});
	for (int i = 0; i < 2; i++) {
		snprintf(certificate, sizeof(certificate), "%s", made_path("a.pem"));
		snprintf(key, sizeof(key), "%s", made_path(i ? "b.key" : "c.key"));
		assert_int_equal(es_certificate_look(certificate, key, &facts, &err), -EINVAL);
		snprintf(text, sizeof(text),
			 "%s: the key does not fit: expected that of the first certificate in %s", key,
			 certificate);
		assert_string_equal(err.text, text);
	}
}

static void test_encrypted(void **state)
{
	EVP_PKEY *key = made_key("p256");
	FILE *f = made_file("e.key", 0600);

	(void)state;
	put("e2", &(struct made){.key = "p256", .names = "DNS:a.example"});
	PEM_write_PKCS8PrivateKey(f, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL);
	fclose(f);
	EVP_PKEY_free(key);
	expect("e2.pem", "e.key", -EINVAL, "e.key",
	       "the key is encrypted: expected one without a passphrase");
}

/* A chain that is cut is not taken for a shorter one. */
static void test_damaged_chain(void **state)
{
	struct made made = {.key = "p256", .names = "DNS:a.example", .is_ca = 1};
	struct pair root = made_pair(&made, NULL), leaf = made_pair(&made, &root);
	struct es_certificate_facts facts;
	struct es_conf_error err;
	struct stat st;

	(void)state;
	put_pair("d", &leaf, &root);
	assert_int_equal(es_certificate_look(made_path("d.pem"), NULL, &facts, &err), 0);
	es_certificate_facts_free(&facts);
	assert_int_equal(stat(made_path("d.pem"), &st), 0);
	assert_int_equal(truncate(made_path("d.pem"), st.st_size - 60), 0);
	expect("d.pem", NULL, -EINVAL, "d.pem", "certificate 2 is damaged");
	pair_free(&root);
	pair_free(&leaf);
}

static void judged(const struct made *made, int code, const char *words)
{
	struct es_certificate_facts facts;
	struct es_conf_error err;

	put("j", made);
	assert_int_equal(es_certificate_look(made_path("j.pem"), made_path("j.key"), &facts, &err), 0);
	assert_int_equal(es_certificate_judge(&facts, "j.pem", now_s(), &err), code);
	assert_memory_equal(err.text, words, strlen(words));
	es_certificate_facts_free(&facts);
}

static void test_judge(void **state)
{
	struct es_certificate_facts facts = {.from_s = 1767225600, .until_s = 1767312000};
	struct es_conf_error err;

	(void)state;
	judged(&(struct made){.key = "p256", .from_s = -7200, .until_s = -3600}, -EKEYEXPIRED,
	       "j.pem: the certificate has expired on 20");
	judged(&(struct made){.key = "p256", .from_s = 3600, .until_s = 7200}, -EKEYEXPIRED,
	       "j.pem: the certificate is not valid before 20");
	judged(&(struct made){.key = "rsa1024"}, -EKEYREJECTED,
	       "j.pem: the certificate is weak: its RSA key has less than 2048 bits");
	judged(&(struct made){.key = "rsa", .is_sha1 = 1}, -EKEYREJECTED,
	       "j.pem: the certificate is weak: it is signed with SHA-1 or something as old");
	assert_int_equal(es_certificate_judge(&facts, "f", 1767312001, &err), -EKEYEXPIRED);
	assert_string_equal(err.text, "f: the certificate has expired on 2026-01-02 00:00 UTC");
	put("k", &(struct made){.key = "k256"});
	expect("k.pem", NULL, -EINVAL, "k.pem",
	       "its key is of a kind that browsers do not take: expected RSA, ECDSA (P-256, P-384, P-521) or "
	       "Ed25519");
}

static void test_weak_chain(void **state)
{
	struct made strong = {.key = "rsa", .is_ca = 1}, weak = {.key = "rsa1024", .is_ca = 1};
	struct made old = {.key = "rsa", .is_ca = 1, .is_sha1 = 1};
	struct pair root = made_pair(&old, NULL), weak_one = made_pair(&weak, &root),
		    old_one = made_pair(&old, &root), leaf;
	struct es_certificate_facts facts;
	struct es_conf_error err;

	(void)state;
	leaf = made_pair(&strong, &root);
	put_pair("w", &leaf, &root);
	assert_int_equal(es_certificate_look(made_path("w.pem"), NULL, &facts, &err), 0);
	assert_null(facts.weak); /* nobody looks at a root's own signature */
	es_certificate_facts_free(&facts);
	put_pair("w", &leaf, &weak_one);
	assert_int_equal(es_certificate_look(made_path("w.pem"), NULL, &facts, &err), 0);
	assert_string_equal(facts.weak, "an RSA key in its chain has less than 2048 bits");
	es_certificate_facts_free(&facts);
	put_pair("w", &leaf, &old_one);
	assert_int_equal(es_certificate_look(made_path("w.pem"), NULL, &facts, &err), 0);
	assert_string_equal(facts.weak,
			    "a certificate of its chain is signed with SHA-1 or something as old");
	es_certificate_facts_free(&facts);
	pair_free(&root);
	pair_free(&weak_one);
	pair_free(&old_one);
	pair_free(&leaf);
}

static void refuse_staple(const char *name, const struct es_certificate *certificate, const char *words)
{
	struct es_certificate_staple staple;
	struct es_conf_error err;
	char text[512];

	assert_int_equal(es_certificate_staple_read(made_path(name), certificate, &staple, &err), -EINVAL);
	snprintf(text, sizeof(text), "%s: %s", made_path(name), words);
	assert_string_equal(err.text, text);
}

static void test_staple(void **state)
{
	struct pair root = made_pair(&(struct made){.key = "p256", .is_ca = 1}, NULL);
	struct pair leaf = made_pair(&(struct made){.key = "p256"}, &root);
	struct pair other = made_pair(&(struct made){.key = "p256"}, &root);
	struct es_certificate_staple staple;
	struct es_certificate certificate;
	struct es_conf_error err;

	(void)state;
	put_pair("s", &leaf, NULL); /* the issuer need not be in the file */
	assert_int_equal(es_certificate_read(made_path("s.pem"), NULL, &certificate, &err), 0);
	put_staple("good", &leaf, &root, V_OCSP_CERTSTATUS_GOOD, 1000);
	assert_int_equal(es_certificate_staple_read(made_path("good"), &certificate, &staple, &err), 0);
	assert_in_range(staple.until_s - now_s(), 990, 1000);
	assert_true(staple.len > 100);
	es_certificate_staple_fini(&staple);
	put_staple("revoked", &leaf, &root, V_OCSP_CERTSTATUS_REVOKED, 1000);
	refuse_staple("revoked", &certificate, "does not call the certificate good");
	put_staple("other", &other, &root, V_OCSP_CERTSTATUS_GOOD, 1000);
	refuse_staple("other", &certificate, "is about another certificate");
	put_staple("endless", &leaf, &root, V_OCSP_CERTSTATUS_GOOD, 0);
	refuse_staple("endless", &certificate, "says no time until which it is valid");
	refuse_staple("s.pem", &certificate, "is no OCSP response in DER");
	es_certificate_fini(&certificate);
	pair_free(&root);
	pair_free(&leaf);
	pair_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),	  cmocka_unit_test(test_match),
		cmocka_unit_test(test_files),	  cmocka_unit_test(test_does_not_fit),
		cmocka_unit_test(test_encrypted), cmocka_unit_test(test_damaged_chain),
		cmocka_unit_test(test_judge),	  cmocka_unit_test(test_weak_chain),
		cmocka_unit_test(test_staple),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
