// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that were sent on idle connections before their node was known to be lost: which are kept, whose
 * clients are asked, and which go on.
 */
#include "cmocka_all.h"
#include "tests/unit/survive_world.h"

/*
 * A client's segment, as the datapath tells of one that this node may not take: @seq behind the record's,
 * @ack behind its
 */
static void heard(uint32_t seq, uint32_t ack, const char *text, uint32_t tsecr)
{
	const struct es_segment seg = {
		.seq = ISN + 1 + seq,
		.ack = COOKIE + 1 + ack,
		.flags = ES_TCP_ACK,
		.len = (__u32)strlen(text),
		.has_ts = tsecr != 0,
		.tsval = 7,
		.tsecr = tsecr,
	};
	const struct es_flow flow = flow_of(number);
	uint8_t bytes[1500];
	struct es_record record = {
		.flow_hash = hash_of(number),
		.len = (__u32)es_ip_packet_make(&flow, &seg, (const uint8_t *)text, bytes),
		.kind = ES_RECORD_HEARD,
		.flow = ES_FLOW_HEARD,
	};

	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* Its node is lost, and the client is asked whether it waits; there is no socket here to ask it with. */
static void client_is_asked(void)
{
	node_is_lost();
	assert_int_equal(COUNT(survive_asked), 0);
	later(20);
	assert_int_equal(COUNT(survive_asked), 1);
	assert_int_equal(COUNT(send_failed), 1);
	assert_int_equal(slot()->is_asked, 1);
	assert_true(asked_until_s > es_ns_to_s(in.now_ns));
}

/* It was repeated before its node was known to be lost, and does not come again. */
static void held(uint32_t tsecr)
{
	struct message m;

	heard(0, 0, REQUEST, tsecr);
	heard(0, 0, REQUEST, tsecr);
	assert_int_equal(in.holds.count, 1);
	assert_int_equal(COUNT(survive_held), 2);
	client_is_asked();
	assert_int_equal(sent_to(&m), -1);
	heard(sizeof(REQUEST) - 1, 0, "", tsecr);
	assert_int_equal(COUNT(survive_answered), 1);
	assert_int_equal(in.holds.count, 0);
	assert_int_equal(in.holds.bytes, 0);
	heard(sizeof(REQUEST) - 1, 0, "", tsecr);
	assert_int_equal(COUNT(survive_answered), 1);
	nobody_has_it(&m);
	expect_goes_on(&m);
}

static void test_held(void **state)
{
	(void)state;
	held(0);
}

static void test_held_timestamps(void **state)
{
	(void)state;
	held(99);
}

/* A request that this node may not take comes as a stray, too, if it is repeated for long. */
static void test_held_stray(void **state)
{
	struct message m;

	(void)state;
	es_health_set_lost(&health, LOST, NOW_NS - S);
	comes(0, REQUEST);
	assert_int_equal(COUNT(survive_held), 1);
	client_is_asked();
	heard(sizeof(REQUEST) - 1, 0, "", 0);
	nobody_has_it(&m);
	expect_goes_on(&m);
}

/* One that was heard before may have been executed, whatever the datapath knows of it now. */
static void test_held_unsafe(void **state)
{
	struct message m;

	(void)state;
	heard(0, 0, post, 0);
	client_is_asked();
	slot()->is_heard = 0;
	in.now_ns += S;
	heard(sizeof(post) - 1, 0, "", 0);
	nobody_has_it(&m);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(survived), 0);
	assert_int_equal(COUNT(survive_unsafe), 1);
	assert_int_equal(COUNT(doubtful), 1);
}

/* Nobody is asked while the lost node may have a lease, and this one has none, or not this flow. */
static void test_held_leased(void **state)
{
	(void)state;
	heard(0, 0, REQUEST, 0);
	es_health_set_lost(&health, LOST, NOW_NS - S);
	later(1000);
	assert_int_equal(COUNT(survive_asked), 0);
	node_is_lost();
	lease_ns = in.now_ns;
	later(20);
	assert_int_equal(COUNT(survive_asked), 0);
	lease_ns = 0;
	client_is_asked();
}

static void test_held_not_ours(void **state)
{
	struct es_kept_look look;

	(void)state;
	assert_int_equal(es_directory_look(directory, hash_of(number), &look), 1);
	number = flow_find(1, 0);
	look.kept.flow = flow_of(number);
	es_directory_keep(directory, hash_of(number), &look.kept, NOW_NS - 20 * S);
	heard(0, 0, REQUEST, 0);
	assert_int_equal(COUNT(survive_held), 1);
	node_is_lost();
	later(20);
	assert_int_equal(COUNT(survive_asked), 0);
}

/* Whoever does not wait for just this answer, or not with just this, is left alone. */
static void expect_left_alone(uint32_t seq, uint32_t ack, uint32_t tsecr)
{
	struct message m;

	heard(0, 0, REQUEST, 99);
	client_is_asked();
	heard(seq, ack, "", tsecr);
	assert_int_equal(COUNT(survive_answered), 0);
	assert_int_equal(in.holds.count, 0);
	later(2000);
	assert_int_equal(COUNT(survive_asked), 1);
	assert_int_equal(sent_to(&m), -1);
}

static void test_held_has_the_answer(void **state)
{
	(void)state;
	expect_left_alone(sizeof(REQUEST) - 1, 1, 99);
}

static void test_held_was_acknowledged(void **state)
{
	(void)state;
	expect_left_alone(sizeof(REQUEST) - 1, 0, 100);
}

static void test_held_sent_less(void **state)
{
	(void)state;
	expect_left_alone(sizeof(REQUEST) - 2, 0, 99);
}

static void test_held_without_timestamps(void **state)
{
	(void)state;
	expect_left_alone(sizeof(REQUEST) - 1, 0, 0);
}

/* An answer that is lost is asked for once more, and that is all. */
static void test_held_silence(void **state)
{
	(void)state;
	heard(0, 0, REQUEST, 0);
	client_is_asked();
	later(500);
	assert_int_equal(COUNT(survive_asked), 1);
	later(100);
	assert_int_equal(COUNT(survive_asked), 2);
	for (int i = 0; i < 10; i++)
		later(1000);
	assert_int_equal(COUNT(survive_asked), 2);
	assert_int_equal(in.holds.count, 1);
	later(ES_HELD_LIFE_NS / 1000000);
	assert_int_equal(in.holds.count, 0);
}

/* Only what the record waits for is kept, of a node that may be lost. */
static void test_held_others(void **state)
{
	(void)state;
	heard(1, 0, REQUEST, 0);
	heard(0, 1, REQUEST, 0);
	conf->services[0].survive = 0;
	heard(0, 0, REQUEST, 0);
	conf->services[0].survive = 1;
	in.holds.bytes = ES_HELD_BYTES - sizeof(REQUEST);
	heard(0, 0, REQUEST, 0);
	in.holds.bytes = 0;
	es_directory_forget(directory, hash_of(number), LOST);
	heard(0, 0, REQUEST, 0);
	assert_int_equal(COUNT(survive_held), 0);
	assert_int_equal(in.holds.count, 0);
}

/* Its node has told something else since, or took back what it had told. */
static void test_held_outdated(void **state)
{
	struct es_kept_look look;

	(void)state;
	heard(0, 0, REQUEST, 0);
	assert_int_equal(es_directory_look(directory, hash_of(number), &look), 1);
	look.kept.seq += 10;
	es_directory_keep(directory, hash_of(number), &look.kept, NOW_NS - 10 * S);
	node_is_lost();
	later(20);
	assert_int_equal(COUNT(survive_asked), 0);
	assert_int_equal(in.holds.count, 0);
}

/* A request on each of so many connections, which are all kept here. */
static struct es_directory *many(unsigned int flows)
{
	struct es_directory *all;
	struct es_kept_look look;

	assert_int_equal(es_directory_look(directory, hash_of(number), &look), 1);
	assert_int_equal(es_directory_new(flows, &all), 0);
	es_directory_watch(all, slots);
	params.directory = all;
	for (number = 1; number <= flows; number++) {
		look.kept.flow = flow_of(number);
		es_directory_keep(all, hash_of(number), &look.kept, NOW_NS - 20 * S);
		heard(0, 0, REQUEST, 0);
		in.now_ns++;
	}
	assert_int_equal(COUNT(survive_held), flows);
	return all;
}

static void many_end(struct es_directory **all)
{
	es_inspect_held_forget(&in);
	assert_int_equal(in.holds.count, 0);
	assert_int_equal(in.holds.bytes, 0);
	params.directory = directory;
	es_directory_free(all);
}

/* There is room for so many, be there ever so many. */
static void test_held_many(void **state)
{
	struct es_directory *all = many(3 * ES_HELD_SETS * ES_HELD_WAYS);

	(void)state;
	assert_in_range(in.holds.count, ES_HELD_SETS * ES_HELD_WAYS / 2, ES_HELD_SETS * ES_HELD_WAYS);
	many_end(&all);
}

/* So many are asked at a time, and those that this node does not ask are in nobody's way. */
static void test_held_pace(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - S};
	const unsigned long long alive_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - 3 * S};
	struct es_directory *all = many(1500);
	unsigned int ours = 0;

	(void)state;
	for (number = 1; number <= 1500; number++)
		ours += es_cluster_inspects(cluster, hash_of(number));
	assert_in_range(ours, 2 * ES_HELD_ASK_MOST + 1, 1500 - ES_HELD_ASK_MOST);
	es_health_set_lost(&health, LOST, NOW_NS - S);
	es_directory_orphan(all, over_ns, alive_ns, NOW_NS);
	later(20);
	assert_int_equal(COUNT(survive_asked), ES_HELD_ASK_MOST);
	later(20);
	assert_int_equal(COUNT(survive_asked), 2 * ES_HELD_ASK_MOST);
	for (unsigned int i = 0; i < ours / ES_HELD_ASK_MOST; i++)
		later(20);
	assert_in_range(COUNT(survive_asked), ours - 10,
			ours); /* but those that share a slot of the datapath */
	many_end(&all);
}

#define CASE(f)	   cmocka_unit_test_setup_teardown(f, world, unmade)
#define CASE_V6(f) cmocka_unit_test_setup_teardown(f, world_v6, unmade)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_held),
		CASE(test_held_timestamps),
		CASE(test_held_stray),
		CASE(test_held_unsafe),
		CASE(test_held_leased),
		CASE(test_held_not_ours),
		CASE(test_held_has_the_answer),
		CASE(test_held_was_acknowledged),
		CASE(test_held_sent_less),
		CASE(test_held_without_timestamps),
		CASE(test_held_silence),
		CASE(test_held_others),
		CASE(test_held_outdated),
		CASE(test_held_many),
		CASE(test_held_pace),
		CASE_V6(test_held),
		CASE_V6(test_held_timestamps),
		CASE_V6(test_held_unsafe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
