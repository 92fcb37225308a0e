// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request that waits for its socket to be ended, so that another node can have its connection: messages are
 * lost, and the worker does not run for a while. Nobody else has the request then.
 */
#include "cmocka_all.h"
#include "kmod/core/strays.h"
#include "tests/unit/inspect_world.h"

#define OTHER ((SELF + 1) % NODES)

static unsigned int number;

/* A later request that is for another node: its socket is to be ended. */
static void leave(void)
{
	struct message m;

	conf->services[0].inspect = ES_INSPECT_EVERY;
	number = flow_find(number + 1, 1);
	only(OTHER);
	inspect(number, ES_FLOW_HERE, 0, REQUEST);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_END);
}

static void answered(enum es_record_kind kind, int is_late)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 0, REQUEST, bytes);

	record.kind = (__u8)kind;
	record.flow = ES_FLOW_HERE;
	if (is_late)
		es_inspect_late(&in, &record, bytes);
	else
		es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* The socket is being ended; so the datapath is asked whether it is gone. */
static void ending(int is_late)
{
	struct message m;

	answered(ES_RECORD_ENDING, is_late);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_GONE);
	assert_int_equal(m.len, text_at());
}

static void later(unsigned int ms)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
}

static void expect(int node, enum es_handover_kind kind)
{
	struct message m;

	assert_int_equal(sent_to(&m), node);
	assert_int_equal(m.h.kind, kind);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* The socket is gone: the request goes where it is for, whenever the worker hears of it. */
static void test_hears_late(void **state)
{
	(void)state;
	leave();
	for (unsigned int ms = 0; ms < 4000; ms += 100)
		later(100);
	ending(0);
	answered(ES_RECORD_ENDED, 0);
	expect(OTHER, ES_HANDOVER_REQUEST);
}

/* The RST does not reach it at once: nobody gets the request until it is gone. */
static void test_is_still_there(void **state)
{
	struct message m;

	(void)state;
	leave();
	answered(ES_RECORD_ENDED, 0); /* of an earlier request: this one's socket is not even being ended */
	assert_int_equal(sent_to(&m), -1);
	ending(0);
	answered(ES_RECORD_KEPT, 0);
	assert_int_equal(sent_to(&m), -1);
	for (unsigned int i = 0; i < 3; i++) {
		later(250);
		assert_int_equal(sent_to(&m), SELF);
		assert_int_equal(m.h.kind, ES_HANDOVER_GONE);
		assert_int_equal(sent_to(&m), -1);
	}
	inspect(number, ES_FLOW_HERE, 0, REQUEST);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_GONE);
	answered(ES_RECORD_ENDED, 0);
	expect(OTHER, ES_HANDOVER_REQUEST);
	answered(ES_RECORD_ENDED, 0);
	assert_int_equal(sent_to(&m), -1);
}

/* The worker did not run for a while: who else should have what no socket gets any more? */
static void test_is_not_forgotten(void **state)
{
	(void)state;
	leave();
	ending(1);
	es_inspect_forget(&in);
	answered(ES_RECORD_ENDED, 1);
	expect(OTHER, ES_HANDOVER_REQUEST);
	leave();
	es_inspect_forget(&in);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

static void test_finds_it_late(void **state)
{
	(void)state;
	leave();
	ending(1);
	answered(ES_RECORD_ENDED, 1);
	expect(OTHER, ES_HANDOVER_REQUEST);
	leave();
	answered(ES_RECORD_KEPT, 1);
	expect(SELF, ES_HANDOVER_STAY);
	answered(ES_RECORD_FIRST, 1); /* of a request it is not known who has it */
	assert_int_equal(COUNT(late), 1);
}

/* May its connection be on its way from here, as the datapath sees it? */
static int is_on_its_way(void)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 0, REQUEST, bytes);
	struct es_ip_packet packet;

	assert_int_equal(es_ip_packet_parse(bytes, record.len, &packet), 0);
	return es_stray_is_on_its_way(
		&in.decisions.sets[es_decision_index(record.flow_hash, in.decisions.count)], record.flow_hash,
		1, packet.seg.seq, packet.seg.ack, (__u32)(in.now_ns / 1000000));
}

/*
 * While the worker is busy with another request, its socket is gone and nobody has the connection: all are
 * asked about it after half a second, and somebody must say that it is not nobody's.
 */
static void test_is_on_its_way(void **state)
{
	(void)state;
	leave();
	assert_true(is_on_its_way());
	in.now_ns += 4900000000ULL;
	assert_true(is_on_its_way());
	ending(0);
	assert_true(is_on_its_way());
	answered(ES_RECORD_ENDED, 0);
	expect(OTHER, ES_HANDOVER_REQUEST);
	assert_true(is_on_its_way());
	leave();
	answered(ES_RECORD_KEPT, 0);
	expect(SELF, ES_HANDOVER_STAY);
	/* Not for ever: the client is told in the end. */
	leave();
	for (unsigned int ms = 0; ms < 6000; ms += 100)
		later(100);
	assert_false(is_on_its_way());
}

/* The request was too long ago: the client may have given up, and its port may be another connection's. */
static void test_too_late(void **state)
{
	struct message m;

	(void)state;
	leave();
	ending(0);
	in.now_ns += 6000000000ULL;
	answered(ES_RECORD_ENDED, 1);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 0);
	leave();
	for (unsigned int ms = 0; ms < 6000; ms += 100)
		later(100);
	assert_int_equal(es_gather_count(in.gathers), 0);
	answered(ES_RECORD_ENDED, 0);
	assert_int_equal(sent_to(&m), -1);
}

/* The question or the answer was lost: the client's retransmission makes it be asked again. */
static void test_asks_again(void **state)
{
	struct message m;

	(void)state;
	leave();
	inspect(number, ES_FLOW_HERE, 0, REQUEST);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_END);
	ending(0);
	answered(ES_RECORD_ENDED, 0);
	expect(OTHER, ES_HANDOVER_REQUEST);
	answered(ES_RECORD_KEPT, 0); /* the second question found no socket any more */
	assert_int_equal(sent_to(&m), -1);
}

/* Others do not wait for longer because one does. */
static void test_others_do_not_wait(void **state)
{
	unsigned int another;
	struct message m;

	(void)state;
	leave();
	later(150);
	another = flow_find(number + 1, 1);
	inspect(another, ES_FLOW_NEW, 0, "GET /");
	later(100);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 2);
	later(100);
	assert_int_equal(es_gather_count(in.gathers), 1);
	assert_int_equal(COUNT(gather_timeout), 1);
}

/* --- back at once */

static struct es_contents *table;

/* The home of what is asked for is another node, as far as is known here; with static membership. */
static void know_home(void)
{
	__u64 content = es_content_hash("/", 1);

	assert_int_equal(es_contents_new(64, &table), 0);
	es_contents_propose(table, content, ES_CONTENT_ASSIGN, OTHER, 0, NOW_NS);
	cluster->contents[0] = table;
	conf->services[0].inspect = ES_INSPECT_EVERY;
	strcpy(conf->services[0].policy, "lard");
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
}

/* The @nth request of the connection, which has moved @moves times. Returns where it goes. */
static enum es_handover_kind ask(unsigned int nth, unsigned int moves)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 0, REQUEST, bytes);
	__be32 seq = htonl(ISN + 1 + nth * (uint32_t)strlen(REQUEST)), ack = htonl(COOKIE + 1 + nth * 1000);
	struct message m;
	int node;

	memcpy(bytes + 24, &seq, sizeof(seq));
	memcpy(bytes + tcp_at() + 8, &ack, sizeof(ack));
	record.flow = ES_FLOW_HERE;
	record.moves = (__u16)moves;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
	node = sent_to(&m);
	assert_int_equal(node, SELF);
	if (m.h.kind != ES_HANDOVER_END)
		return m.h.kind;
	record.kind = ES_RECORD_ENDING;
	es_inspect_record(&in, &record, bytes);
	record.kind = ES_RECORD_ENDED;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
	for (int i = 0; i < 2; i++) /* GONE, and the request */
		while (recv(receiver[i ? OTHER : SELF], &m, sizeof(m), 0) > 0)
			node = i ? OTHER : SELF;
	assert_int_equal(node, OTHER);
	return m.h.kind;
}

/* The other node does not agree, and sends the connection back at once: it stays, for a second. */
static void test_back_at_once(void **state)
{
	(void)state;
	number = flow_find(number + 1, 1);
	know_home();
	assert_int_equal(ask(0, 0), ES_HANDOVER_REQUEST);
	assert_int_equal(in.count[ES_WORKER_moved_locality], 1);
	in.now_ns += 10000000;
	assert_int_equal(ask(2, 2), ES_HANDOVER_STAY);
	in.now_ns += 900000000;
	assert_int_equal(ask(3, 2), ES_HANDOVER_STAY);
	assert_int_equal(in.count[ES_WORKER_came_back], 2);
	in.now_ns += 200000000;
	assert_int_equal(ask(4, 2), ES_HANDOVER_REQUEST);
	assert_int_equal(in.count[ES_WORKER_moved], 2);
	assert_int_equal(in.count[ES_WORKER_moved_locality], 2);
	/* A connection that has been elsewhere meanwhile does not count as one that came straight back. */
	in.now_ns += 10000000;
	assert_int_equal(ask(7, 5), ES_HANDOVER_REQUEST);
	assert_int_equal(in.count[ES_WORKER_came_back], 2);
	cluster->contents[0] = NULL;
	es_contents_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hears_late),	     TEST(test_finds_it_late),	    TEST(test_too_late),
		TEST(test_asks_again),	     TEST(test_others_do_not_wait), TEST(test_is_still_there),
		TEST(test_is_not_forgotten), TEST(test_is_on_its_way),	    TEST(test_back_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
