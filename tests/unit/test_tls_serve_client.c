// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client's connection in earshot-tls: where a request begins in its records, and that another process goes
 * on from there, however the bytes were cut.
 */
#include "cmocka_all.h"
#include "inspector/base/clock.h"
#include "tls_serve_world.h"

#define LINES 60

/* The client gets what it is sent. */
static void respond(struct world *w, struct peers *p, unsigned int number)
{
	uint8_t bytes[4096];
	char text[32], got[64];
	ssize_t len;

	snprintf(text, sizeof(text), "response %u", number);
	assert_int_equal(es_client_send(&w->client, text, strlen(text)), 0);
	assert_int_equal(es_client_flush(&w->client), 0);
	len = recv(w->far, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(len > 0);
	peers_tell(p, bytes, (size_t)len);
	assert_int_equal(SSL_read(p->client, got, sizeof(got)), strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

/* A line stands for a request: it begins anywhere in a record, and goes over some. */
static size_t line_of(struct world *w, unsigned int number, char *ret)
{
	static const unsigned int most[] = {1, 20, 300, 3000};
	size_t len = (size_t)sprintf(ret, "%u:", number);

	for (unsigned int i = any(w, most[any(w, 4)]); i; i--)
		ret[len++] = (char)('a' + any(w, 26));
	ret[len++] = '\n';
	return len;
}

static void read_line(struct world *w, const char *line, size_t len)
{
	while (!es_buffer_len(&w->client.text) ||
	       !memchr(es_buffer_front(&w->client.text), '\n', es_buffer_len(&w->client.text)))
		assert_int_equal(es_client_read(&w->client), 1);
	assert_true(es_buffer_len(&w->client.text) >= len);
	assert_memory_equal(es_buffer_front(&w->client.text), line, len);
}

static void go_on(const struct peers_kind *kind, unsigned int seed)
{
	char *line[LINES], *all = malloc(LINES * 4096);
	size_t len[LINES], total = 0, sent = 0;
	unsigned int moves = 0;
	struct world w;
	struct peers p;

	set_up(&w, seed);
	peers_shake(&p, kind, NULL);
	begin(&w, &p);
	for (unsigned int i = 0; i < LINES; i++) {
		line[i] = all + total;
		len[i] = line_of(&w, i, line[i]);
		total += len[i];
	}
	/* Records of any length, some of which are empty to the reader: KeyUpdates that want no answer. */
	while (sent < total) {
		size_t part = 1 + any(&w, seed % 3 ? 500 : 5000), there;
		uint8_t *bytes;

		part = part < total - sent ? part : total - sent;
		assert_int_equal(SSL_write(p.client, all + sent, (int)part), (int)part);
		sent += part;
		if (kind->version == ES_TLS_1_3 && !any(&w, 40))
			SSL_key_update(p.client, SSL_KEY_UPDATE_NOT_REQUESTED);
		bytes = peers_sent(&p, &there);
		say(&w, bytes, there);
		free(bytes);
	}
	for (unsigned int i = 0; i < LINES; i++) {
		read_line(&w, line[i], len[i]);
		for (unsigned int again = any(&w, 3); again; again--) {
			/* At most that much moves: with more a request stays. */
			if (es_buffer_len(&w.client.in) < 60000) {
				move(&w);
				moves++;
				read_line(&w, line[i], len[i]);
			}
		}
		es_client_take(&w.client, len[i]);
		respond(&w, &p, i);
	}
	assert_true(moves > LINES / 4);
	assert_int_equal(w.counters.count[ES_SERVE_arrived], moves + 1);
	leave(&w);
	peers_free(&p);
	tear_down(&w);
	free(all);
}

static void test_goes_on(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PEERS_KINDS; i++)
		for (unsigned int seed = 0; seed < 12; seed++)
			go_on(&peers_kinds[i], 12 * i + seed);
}

/* After an answer to a KeyUpdate within a head it stays; before the next request it may move again. */
static void test_key_update(void **state)
{
	uint8_t pack[ES_CLIENT_PACK_MAX], *bytes;
	struct world w;
	struct peers p;
	size_t len;

	(void)state;
	set_up(&w, 1);
	peers_shake(&p, &peers_kinds[0], NULL);
	begin(&w, &p);
	assert_int_equal(SSL_write(p.client, "GET ", 4), 4);
	SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED);
	assert_int_equal(SSL_write(p.client, "/\nPOST\n", 7), 7);
	bytes = peers_sent(&p, &len);
	say(&w, bytes, len);
	free(bytes);
	read_line(&w, "GET /\n", 6);
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE);
	es_client_take(&w.client, 6);
	read_line(&w, "POST\n", 5);
	assert_int_equal(es_client_flush(&w.client), 0);
	len = (size_t)recv(w.far, pack, sizeof(pack), MSG_DONTWAIT);
	peers_tell(&p, pack, len);
	assert_int_equal(peers_reason(&p), 0);
	move(&w);
	read_line(&w, "POST\n", 5);
	respond(&w, &p, 1);
	leave(&w);
	peers_free(&p);
	tear_down(&w);
}

/* Bytes that are held back for the client travel along, and stand before everything else. */
static void test_held_back(void **state)
{
	static const uint8_t held[] = "as it is";
	uint8_t pack[ES_CLIENT_PACK_MAX], *bytes;
	struct world w;
	struct peers p;
	size_t len;

	(void)state;
	set_up(&w, 1);
	peers_shake(&p, &peers_kinds[0], NULL);
	begin(&w, &p);
	assert_int_equal(es_buffer_add(&w.client.out, held, sizeof(held)), 0);
	w.client.is_holding = 1;
	assert_int_equal(SSL_write(p.client, "GET\n", 4), 4);
	bytes = peers_sent(&p, &len);
	say(&w, bytes, len);
	free(bytes);
	read_line(&w, "GET\n", 4);
	assert_int_equal(es_client_flush(&w.client), 0);
	assert_true(recv(w.far, pack, sizeof(pack), MSG_DONTWAIT) < 0);
	assert_true(es_client_is_settled(&w.client));
	move(&w);
	read_line(&w, "GET\n", 4);
	assert_int_equal(es_client_flush(&w.client), 0);
	assert_int_equal(recv(w.far, pack, sizeof(pack), MSG_DONTWAIT), sizeof(held));
	assert_memory_equal(pack, held, sizeof(held));
	respond(&w, &p, 1);
	leave(&w);
	peers_free(&p);
	tear_down(&w);
}

/* A client that wants short records goes to nodes that are known to heed that, and gets short ones there. */
static void test_short_records(void **state)
{
	struct es_peers peers = {};
	uint8_t pack[ES_CLIENT_PACK_MAX], bytes[8192], text[3000] = {};
	struct peers p;
	struct world w;
	ssize_t len, at = 0;
	size_t sent_len;
	uint8_t *sent;

	(void)state;
	set_up(&w, 5);
	peers_shake(&p, &peers_kinds[0], NULL);
	begin(&w, &p);
	assert_int_equal(SSL_write(p.client, "GET /\n", 6), 6);
	sent = peers_sent(&p, &sent_len);
	say(&w, sent, sent_len);
	free(sent);
	read_line(&w, "GET /\n", 6);
	w.client.text_max = 512;
	w.serve.peers = NULL;
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE);
	w.serve.peers = &peers;
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE);
	es_peers_note(&peers, es_tls_node_digest("n2"), es_clock_now_ns());
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE);
	es_peers_note(&peers, es_tls_node_digest("n1"), es_clock_now_ns() - ES_PEERS_KNOWN_NS);
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE); /* it may have gone back since */
	es_peers_note(&peers, es_tls_node_digest("n1"), es_clock_now_ns());
	assert_true(es_client_pack(&w.client, "n1", pack) > 0);
	move(&w);
	read_line(&w, "GET /\n", 6);
	assert_int_equal(w.client.text_max, 512);
	assert_true(es_peers_can(&peers, es_tls_node_digest("n1"), es_clock_now_ns()));
	assert_int_equal(es_client_send(&w.client, text, sizeof(text)), 0);
	assert_int_equal(es_client_flush(&w.client), 0);
	len = recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (at < len) {
		ssize_t record = bytes[at + 3] << 8 | bytes[at + 4];

		assert_true(record <= 512 + 64);
		at += 5 + record;
	}
	assert_int_equal(at, len);
	leave(&w);
	peers_free(&p);
	tear_down(&w);
}

/* A state is taken once, whole, by the node that it is for, and with no more than can be in front of it. */
static void test_refused(void **state)
{
	uint8_t pack[ES_TLS_SEALED_BYTES + 2] = {};
	struct world w;
	struct peers p;

	(void)state;
	set_up(&w, 1);
	peers_shake(&p, &peers_kinds[0], NULL);
	assert_int_equal(es_tls_seal(w.serve.seal, &flow, "n1", es_wall_ns(), &p.state, pack), 0);
	for (int again = 0; again < 2; again++) {
		arrive(&w, pack, sizeof(pack));
		es_client_shake(&w.client);
		assert_int_equal(w.client.over, again ? ES_CLIENT_BROKEN : ES_CLIENT_NOT_OVER);
		leave(&w);
	}
	assert_int_equal(es_tls_seal(w.serve.seal, &flow, "n2", es_wall_ns(), &p.state, pack), 0);
	arrive(&w, pack, sizeof(pack));
	es_client_shake(&w.client);
	assert_int_equal(w.client.over, ES_CLIENT_BROKEN);
	leave(&w);
	assert_int_equal(es_tls_seal(w.serve.seal, &flow, "n1", es_wall_ns(), &p.state, pack), 0);
	pack[ES_TLS_SEALED_BYTES] = 0x80;
	arrive(&w, pack, sizeof(pack));
	es_client_shake(&w.client);
	assert_int_equal(w.client.over, ES_CLIENT_NOT_OVER); /* 32 KB are to come */
	shutdown(w.far, SHUT_WR);
	hear(&w);
	es_client_shake(&w.client);
	assert_int_equal(w.client.over, ES_CLIENT_BROKEN);
	leave(&w);
	peers_free(&p);
	tear_down(&w);
}

#define PART 3000

/* It leaves with so many records that it has not read. */
static void leave_with(struct world *w, struct peers *p, unsigned int records)
{
	static const uint8_t text[PART];

	set_up(w, 1);
	peers_shake(p, &peers_kinds[0], NULL);
	begin(w, p);
	for (; records; records--) {
		assert_int_equal(es_client_send(&w->client, text, sizeof(text)), 0);
		assert_int_equal(es_client_flush(&w->client), 0);
	}
	es_client_leave(&w->client);
	assert_false(es_client_is_left(&w->client));
	assert_true(w->client.is_shut);
}

static void read_record(const struct world *w)
{
	uint8_t bytes[PART + 22]; /* as TLS 1.3 has it */

	assert_int_equal(recv(w->far, bytes, sizeof(bytes), MSG_DONTWAIT), sizeof(bytes));
}

static void end_world(struct world *w, struct peers *p)
{
	leave(w);
	tear_down(w);
	peers_free(p);
}

/* A client that reads slowly has time; one that does not, or is left nothing it has asked for, has none. */
static void test_lingers(void **state)
{
	const unsigned long long stuck_ns = (unsigned long long)ES_SERVE_STUCK_S * 1000000000;
	struct world w;
	struct peers p;

	(void)state;
	leave_with(&w, &p, 4);
	for (int i = 0; i < 3; i++) {
		assert_true(es_client_lingers(&w.client));
		assert_true(ev_is_active(&w.client.timer));
		w.client.read_ns -= stuck_ns;
		read_record(&w);
	}
	assert_true(es_client_lingers(&w.client));
	w.client.read_ns -= stuck_ns / 2;
	assert_true(es_client_lingers(&w.client));
	w.client.read_ns -= stuck_ns / 2;
	assert_false(es_client_lingers(&w.client));
	end_world(&w, &p);

	/* Nothing was left of what it had asked for, or it has broken the rules. */
	leave_with(&w, &p, 0);
	assert_false(es_client_lingers(&w.client));
	end_world(&w, &p);
	set_up(&w, 1);
	peers_shake(&p, &peers_kinds[0], NULL);
	begin(&w, &p);
	assert_int_equal(es_client_send(&w.client, "text", 4), 0);
	w.client.over = ES_CLIENT_BROKEN;
	es_client_leave(&w.client);
	assert_false(es_client_lingers(&w.client));
	end_world(&w, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),	  cmocka_unit_test(test_key_update),
		cmocka_unit_test(test_held_back), cmocka_unit_test(test_short_records),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_lingers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
