// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Later requests on connections that a node of the netfilter datapath has: what its servers send is read,
 * what their clients send is the inspector's or the socket's, and a connection leaves only when nothing can
 * get lost. test_track.c and test_response.c test what is decided.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "netfilter/node/public.h"
#include "netfilter/node/reply.h"
#include "netfilter/node/tracks.h"
#include "netfilter_letter.h"

#define ACK	5001u /* where the first answer begins */
#define REQUEST "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define NEXT	(ISN + 1 + (__u32)strlen(REQUEST)) /* where the second request begins */
#define ANSWER	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define BEHIND	(ACK + (__u32)strlen(ANSWER))

static struct es_track *the_track(const struct world *w)
{
	struct es_nf_connection *c = es_nf_connection_find(w->node->memory.connections, the_flow_hash(w));

	assert_non_null(c);
	return &c->track;
}

/* Puts in a segment of the server, as it is on the wire. */
static void reply(struct world *w, __u32 seq, __u8 flags, const char *payload)
{
	const struct es_flow flow = the_flow(), back = {.client = flow.service,
							.service = flow.client,
							.client_port = flow.service_port,
							.service_port = flow.client_port};
	const struct es_segment seg = {
		.seq = seq, .ack = NEXT, .flags = flags, .len = (__u32)strlen(payload), .has_ts = 1};
	uint8_t bytes[1024];

	es_nf_reply(w->node, bytes, es_ip_packet_make(&back, &seg, (const uint8_t *)payload, bytes));
}

/* Puts in a segment of the client; conntrack knows its connection. */
static enum es_nf_fate say(struct world *w, __u32 seq, __u32 ack, __u8 flags, const char *payload)
{
	uint8_t bytes[1024];
	const struct es_nf_frame frame = {
		.bytes = bytes,
		.len = segment(bytes, seq, ack, (__u8)(ES_TCP_ACK | flags), 9, payload),
		.ifindex = 2,
		.is_here = 1};

	return es_nf_public(w->node, &frame);
}

/* The socket has got that much of its client, and its client has acknowledged that much of it. */
static void socket_is(struct world *w, __u32 rcv_nxt, __u32 snd_una, __u32 unacked)
{
	w->found.received = rcv_nxt - ISN - 1;
	w->found.acked = snd_una - ACK;
	w->found.unacked = unacked;
}

/* A connection of a request that ends at @next, by a message of another node. */
static void begin(struct world *w, __u32 next, __u8 request_flags)
{
	struct letter l;

	w->config.service[0].inspect = ES_INSPECT_EVERY;
	w->found_after = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED, .is_open = 1};
	ring_give(w, OTHER);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, REQUEST);
	l.h.next_request_seq = es_htonl(next);
	l.h.request_flags = request_flags;
	l.h.requests = es_htonl(6);
	l.h.moves = es_htons(2);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(the_track(w)->requests, 7);
	w->looks = 0;
	socket_is(w, NEXT, ACK, 0);
}

static int every_setup(void **state)
{
	int rc = world_setup(state);

	if (!rc)
		begin(*state, NEXT, 0);
	return rc;
}

#define LEASE_NS (NOW_NS + 1000000000ULL)

/* The same where nodes have leases: the connection is not proven. */
static int leased_setup(void **state)
{
	int rc = world_setup(state);
	struct world *w = *state;

	if (rc)
		return rc;
	w->config.leased = 1;
	w->node->memory.state->lease_ns = w->node->memory.state->firm_ns = LEASE_NS;
	begin(w, NEXT, 0);
	return 0;
}

/* A message of this node's own inspector about the request at NEXT. */
static void tell(struct world *w, __u8 kind)
{
	struct letter l;

	letter_begin(w, &l, kind, REQUEST);
	l.h.source = SELF;
	l.h.next_request_seq = es_htonl(NEXT + (__u32)strlen(REQUEST));
	l.packet_len = segment(l.packet, NEXT, BEHIND, ES_TCP_ACK | ES_TCP_PSH, 9, REQUEST);
	letter_put(w, &l, 1);
}

/* The inspector's newest record. */
static struct es_record told(struct world *w)
{
	struct es_record record = {};

	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[w->queued.count - 1], sizeof(record));
	return record;
}

/* The inspector has the request at NEXT. */
static void queue_second(struct world *w)
{
	reply(w, ACK, ES_TCP_ACK | ES_TCP_PSH, ANSWER);
	socket_is(w, NEXT, ACK, (__u32)strlen(ANSWER));
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_DROP);
	assert_int_equal(told(w).kind, ES_RECORD_FIRST);
	assert_int_equal(the_track(w)->state, ES_TRACK_QUEUED);
}

static void test_the_next_request_is_the_inspectors(void **state)
{
	struct world *w = *state;
	struct es_record record;

	reply(w, ACK, ES_TCP_ACK | ES_TCP_PSH, ANSWER);
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_DONE);
	socket_is(w, NEXT, ACK, (__u32)strlen(ANSWER));
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_owned_queued), 1);
	record = told(w);
	assert_int_equal(record.kind, ES_RECORD_FIRST);
	assert_int_equal(record.flow, ES_FLOW_HERE);
	assert_int_equal(record.requests, 7);
	assert_int_equal(record.moves, 2);
	assert_int_equal(record.options.mss, 1400);
	/* And the segments after it; and the end. */
	say(w, NEXT + (__u32)strlen(REQUEST), BEHIND, 0, "more");
	assert_int_equal(told(w).kind, ES_RECORD_LATER);
	say(w, NEXT + (__u32)strlen(REQUEST) + 4, BEHIND, ES_TCP_FIN, "");
	assert_int_equal(told(w).kind, ES_RECORD_LATER);
	assert_int_equal(w->injected.count, 0);
}

/* A large response, a chunk at a time; what was lost on its way is repeated. */
static void test_responses(void **state)
{
	struct world *w = *state;
	const char *head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		   *body = "5\r\nhello\r\n0\r\n\r\n";
	__u32 seq = ACK + (__u32)strlen(head);

	reply(w, ACK, ES_TCP_ACK, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_STATUS);
	seq += 25;
	reply(w, seq, ES_TCP_ACK, body); /* without its head, nothing */
	assert_int_equal(the_track(w)->response_seq, ACK + 25);
	reply(w, ACK + 25, ES_TCP_ACK, head);
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_CHUNK_SIZE);
	reply(w, seq, ES_TCP_ACK | ES_TCP_PSH, body);
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_DONE);
	reply(w, seq, ES_TCP_ACK | ES_TCP_PSH, body); /* again */
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_DONE);
	assert_int_equal(the_track(w)->response_seq, seq + strlen(body));
}

/* Missing bytes of a counted body are counted. */
static void test_gap_in_a_body(void **state)
{
	struct world *w = *state;
	const char *head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
	__u32 seq = ACK + (__u32)strlen(head);

	reply(w, ACK, ES_TCP_ACK, head);
	reply(w, seq + 5, ES_TCP_ACK, "world");
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_DONE);
	assert_int_equal(the_track(w)->response_seq, seq + 10);
}

static void test_measured(void **state)
{
	struct world *w = *state;
	struct es_nf_ring *ring;
	struct es_ring_reader *reader;
	struct es_response_entry entry;

	assert_int_equal(es_nf_ring_new(ES_RESPONSES_BYTES, &ring), 0);
	assert_int_equal(es_ring_reader_new(es_nf_ring_fd(ring), ES_RESPONSES_BYTES, on_queued, w, &reader),
			 0);
	w->node->responses = ring;
	begin(w, NEXT, ES_REQUEST_F_MEASURE);
	w->node->now_ns += 5000000;
	reply(w, ACK, ES_TCP_ACK | ES_TCP_PSH, ANSWER);
	assert_int_equal(es_ring_reader_consume(reader), 1);
	memcpy(&entry, w->queued.bytes[0], sizeof(entry));
	assert_int_equal(entry.bytes, strlen(ANSWER));
	assert_int_equal(entry.status, 200);
	assert_in_range(entry.took_ns, 4900000, 5100000);
	reply(w, ACK, ES_TCP_ACK | ES_TCP_PSH, ANSWER);
	assert_int_equal(es_ring_reader_consume(reader), 0);
	es_ring_reader_free(&reader);
	es_nf_ring_free(&ring);
}

/* A body costs no question to the kernel. */
static void test_inside_a_body(void **state)
{
	struct world *w = *state;

	assert_int_equal(say(w, ISN + 5, ACK, 0, "body"), ES_NF_ACCEPT);
	assert_int_equal(say(w, NEXT, BEHIND, 0, ""), ES_NF_ACCEPT);
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_RST, ""), ES_NF_ACCEPT);
	assert_int_equal(w->looks, 0);
	assert_int_equal(counted(w, ES_COUNT_deliver_established), 3);
	assert_int_equal(the_track(w)->pin, ES_PIN_none);
}

/* struct doubt - why a connection stays: how far its answer was read, and what its socket has */
static const struct doubt {
	const char *answer;
	__u32 acked;
	__u32 rcv_nxt;
	const char *what;
} doubts[] = {
	{"", 0, 0, "no answer yet"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 0, 0, "a byte is missing"},
	{ANSWER, 1, 0, "the client does not have all"},
	{ANSWER, 0, 1, "the server has got more than was seen here"},
	{ANSWER "x", 0, 0, "the server says more than it should"},
	{"HTTP/1.1 200 OK\r\n\r\n", 0, 0, "it ends with the connection"},
	{"HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, 0, "it is HTTP no more"},
};

static void test_doubts(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++) {
		const struct doubt *d = &doubts[i];
		__u32 end = ACK + (__u32)strlen(d->answer);

		w->node->now_ns += 60000000000ULL;
		w->node->memory.state->worker[0].heartbeat_ns = w->node->now_ns;
		es_nf_connection_begin(w->node->memory.connections, the_flow_hash(w), ISN + 1, ACK, 0);
		es_response_init(&the_track(w)->response, 0);
		the_track(w)->response_seq = ACK;
		the_track(w)->next_request_seq = NEXT;
		if (*d->answer)
			reply(w, ACK, ES_TCP_ACK, d->answer);
		socket_is(w, NEXT + d->rcv_nxt, ACK, end - ACK);
		if (say(w, NEXT, end - d->acked, ES_TCP_PSH, REQUEST) != ES_NF_ACCEPT ||
		    the_track(w)->pin == ES_PIN_none)
			fail_msg("%s", d->what);
		/* It stays so, and nobody asks any more. */
		w->looks = 0;
		assert_int_equal(say(w, NEXT + 100, end, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
		assert_int_equal(w->looks, 0);
	}
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
}

/* Nobody waits for a worker that does not answer. */
static void test_without_a_worker(void **state)
{
	struct world *w = *state;

	queue_second(w);
	say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST); /* the client repeats it, and so does the inspector */
	assert_int_equal(told(w).kind, ES_RECORD_FIRST);
	w->node->memory.state->worker[0].heartbeat_ns = NOW_NS - 2000000000;
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
	assert_int_equal(the_track(w)->pin, ES_PIN_uninspected);
	assert_int_equal(counted(w, ES_COUNT_pin_uninspected), 1);
}

static void test_stays(void **state)
{
	struct world *w = *state;

	queue_second(w);
	tell(w, ES_HANDOVER_STAY);
	assert_int_equal(counted(w, ES_COUNT_stay_delivered), 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(the_track(w)->state, ES_TRACK_SERVED);
	assert_int_equal(the_track(w)->requests, 8);
	assert_int_equal(the_track(w)->next_request_seq, NEXT + strlen(REQUEST));
	assert_int_equal(the_track(w)->response.phase, ES_RESPONSE_STATUS);
	/* The message is repeated: the socket has it already. */
	tell(w, ES_HANDOVER_STAY);
	assert_int_equal(the_track(w)->requests, 8);
	assert_int_equal(w->proven, 0); /* nobody asks */
	assert_int_equal(w->held + w->ended, 0);
}

/*
 * The socket has heard the bytes that its client acknowledged with the request: the kernel need not ask about
 * them any more.
 */
static void test_stays_and_is_proven(void **state)
{
	struct world *w = *state;

	queue_second(w);
	assert_int_equal(w->proven, 0);
	socket_is(w, NEXT, BEHIND, 0);
	tell(w, ES_HANDOVER_STAY);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(w->proven, 1);
}

/* Without a lease, a connection that is not proven hears nothing. One that is goes on. */
static void test_lease_that_is_over(void **state)
{
	struct world *w = *state;

	w->node->now_ns = LEASE_NS + 1;
	assert_int_equal(say(w, NEXT, ACK, ES_TCP_PSH, REQUEST), ES_NF_DROP);
	assert_int_equal(say(w, NEXT, ACK, 0, ""), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_silent), 2);
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
	socket_is(w, NEXT, ACK + 1, 0);
	assert_int_equal(say(w, NEXT, ACK + 1, 0, ""), ES_NF_ACCEPT);
	assert_int_equal(say(w, NEXT, ACK + 1, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_drop_silent), 2);
}

static void test_leaves(void **state)
{
	struct world *w = *state;

	queue_second(w);
	tell(w, ES_HANDOVER_END);
	assert_int_equal(counted(w, ES_COUNT_end_done), 1);
	assert_int_equal(told(w).kind, ES_RECORD_ENDING);
	assert_int_equal(w->held, 1);
	assert_int_equal(w->released, 0);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->ended_rcv_nxt, NEXT);
	assert_int_equal(the_track(w)->state, ES_TRACK_ENDING);

	/* Asked once more, it says nothing new; and its socket may take its time. */
	tell(w, ES_HANDOVER_END);
	assert_int_equal(counted(w, ES_COUNT_end_again), 1);
	tell(w, ES_HANDOVER_GONE);
	assert_int_equal(counted(w, ES_COUNT_end_again), 2);
	assert_int_equal(w->ended, 2);
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
	/* Segments that the client sends meanwhile are the inspector's. */
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_DROP);
	assert_int_equal(told(w).kind, ES_RECORD_FIRST);
	assert_int_equal(say(w, NEXT, BEHIND, 0, ""), ES_NF_DROP);

	w->found = (struct es_nf_found){.listening = 1};
	tell(w, ES_HANDOVER_GONE);
	assert_int_equal(counted(w, ES_COUNT_end_seen), 1);
	assert_int_equal(told(w).kind, ES_RECORD_ENDED);
	assert_int_equal(w->forgotten, 1);
	/* A segment that was on its way meets nothing here that would answer it. */
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_DROP);
	assert_int_equal(w->forgotten, 2);
	assert_int_equal(w->injected.count, 0);
}

/* A reset of its server is not heard while the connection leaves; and when the connection is back, it is. */
static void test_resets_of_the_leaving(void **state)
{
	struct world *w = *state;
	const struct es_flow flow = the_flow(), back = {.client = flow.service,
							.service = flow.client,
							.client_port = flow.service_port,
							.service_port = flow.client_port};
	const struct es_segment seg = {.seq = 77, .flags = ES_TCP_RST};
	uint8_t bytes[128];
	size_t len = es_ip_packet_make(&back, &seg, (const uint8_t *)"", bytes);

	queue_second(w);
	assert_false(es_nf_reply_is_held(w->node, bytes, len) || es_nf_track_is_ending(w->node, &flow));
	tell(w, ES_HANDOVER_END);
	assert_true(es_nf_reply_is_held(w->node, bytes, len) && es_nf_track_is_ending(w->node, &flow));
	w->rebuilt.count = 0;
	w->found = (struct es_nf_found){.listening = 1};
	w->node->now_ns += 600000000000ULL; /* its first request is forgotten */
	begin(w, NEXT, 0);
	/* The new socket is not taken for the one that should have ended. */
	assert_false(w->known_before);
	assert_false(es_nf_reply_is_held(w->node, bytes, len) || es_nf_track_is_ending(w->node, &flow));
}

/* struct obstacle - what the socket has when nothing of it gets out any more */
static const struct obstacle {
	__u32 unread;
	__u32 unacked;
	__u32 received;
	int is_open;
} obstacles[] = {
	{1, 0, 0, 1}, /* its server has not read all */
	{0, 1, 0, 1}, /* it has said more */
	{0, 0, 1, 1}, /* it has got more */
	{0, 0, 0, 0}, /* it has closed */
};

static void test_stays_after_all(void **state)
{
	struct world *w = *state;

	queue_second(w);
	for (size_t i = 0; i < sizeof(obstacles) / sizeof(obstacles[0]); i++) {
		const struct obstacle *o = &obstacles[i];

		w->found_held = w->found;
		w->found_held.unread += o->unread;
		w->found_held.unacked += o->unacked;
		w->found_held.received += o->received;
		w->found_held.is_open = (__u8)o->is_open;
		tell(w, ES_HANDOVER_END);
		assert_int_equal(counted(w, ES_COUNT_end_refused), i + 1);
		assert_int_equal(told(w).kind, ES_RECORD_KEPT);
		assert_int_equal(w->held, i + 1);
		assert_int_equal(w->released, i + 1);
		socket_is(w, NEXT, ACK, (__u32)strlen(ANSWER));
		w->found.unread = 0;
		w->found.is_open = 1;
	}
	/* Where nothing can be held back, none leaves. */
	w->hold_rc = -EOPNOTSUPP;
	tell(w, ES_HANDOVER_END);
	assert_int_equal(told(w).kind, ES_RECORD_KEPT);
	assert_int_equal(w->ended, 0);
	assert_int_equal(the_track(w)->state, ES_TRACK_QUEUED);
	tell(w, ES_HANDOVER_STAY);
	assert_int_equal(w->injected.count, 1);
}

/* An inspector that cannot be told gives nobody the request. */
static void test_full_queue(void **state)
{
	struct world *w = *state;
	struct es_nf_ring *ring = w->node->queue[0];

	queue_second(w);
	w->node->queue[0] = NULL;
	tell(w, ES_HANDOVER_END);
	w->node->queue[0] = ring;
	assert_int_equal(counted(w, ES_COUNT_drop_queue_full), 1);
	assert_int_equal(w->ended, 0);
	assert_int_equal(w->released, 1);
	assert_int_equal(the_track(w)->state, ES_TRACK_QUEUED);
}

/*
 * Segments of a service that inspects first requests only, or that has begun to inspect every one, are the
 * stack's.
 */
static void test_others(void **state)
{
	struct world *w = *state;

	w->node->config.service[0].inspect = ES_INSPECT_FIRST;
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
	w->node->config.service[0].inspect = ES_INSPECT_EVERY;
	es_nf_connection_forget(w->node->memory.connections, the_flow_hash(w));
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
	assert_int_equal(the_track(w)->pin, ES_PIN_unknown);
	assert_int_equal(counted(w, ES_COUNT_pin_unknown), 1);
	/* Nor are segments of a connection that is over the inspector's. */
	es_nf_connection_forget(w->node->memory.connections, the_flow_hash(w));
	w->found = (struct es_nf_found){.listening = 1};
	assert_int_equal(say(w, NEXT, BEHIND, ES_TCP_PSH, REQUEST), ES_NF_ACCEPT);
	assert_int_equal(w->forgotten, 0);
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
}

/* Where the longest unused connection of a set is lost, it stays, and no other one. */
static void test_more_than_there_is_room_for(void **state)
{
	struct world *w = *state;
	struct es_nf_connection_set *sets = w->node->memory.connections;
	__u64 hash = the_flow_hash(w);

	for (__u32 i = 1; i <= ES_NF_CONNECTION_WAYS; i++) {
		assert_true(i < ES_NF_CONNECTION_WAYS || es_nf_connection_find(sets, hash));
		es_nf_connection_begin(sets, hash ^ i, i, i, es_ns_to_ms(NOW_NS) + i);
	}
	assert_null(es_nf_connection_find(sets, hash));
	for (__u32 i = 1; i <= ES_NF_CONNECTION_WAYS; i++)
		assert_int_equal(es_nf_connection_find(sets, hash ^ i)->first_seq, i);
}

/* A daemon that follows one that died in the middle of a move. */
static void test_next_daemon(void **state)
{
	struct world *w = *state;
	struct es_nf_node_params params = {.path = w->path,
					   .hands = &w->node->hands,
					   .workers = 1,
					   .queue_bytes = QUEUE_BYTES,
					   .decision_sets = 64};
	const struct es_nf_hands hands = w->node->hands;

	queue_second(w);
	tell(w, ES_HANDOVER_END);
	assert_int_equal(the_track(w)->state, ES_TRACK_ENDING);
	es_nf_node_free(&w->node);
	params.hands = &hands;
	assert_int_equal(es_nf_node_new(&params, &w->node), 0);
	assert_int_equal(the_track(w)->state, ES_TRACK_QUEUED);
}

/* Each test runs with clients and nodes of IPv4, and of IPv6. */
#define OF(name, setup, family)                                                                              \
	{                                                                                                    \
#name "." #family, name, setup, world_teardown, (void *)&(family)                            \
	}
#define EACH(name, setup) OF(name, setup, v4), OF(name, setup, v6)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_the_next_request_is_the_inspectors, every_setup),
		EACH(test_responses, every_setup),
		EACH(test_gap_in_a_body, every_setup),
		EACH(test_inside_a_body, every_setup),
		EACH(test_doubts, every_setup),
		EACH(test_without_a_worker, every_setup),
		EACH(test_stays, every_setup),
		EACH(test_stays_and_is_proven, leased_setup),
		EACH(test_lease_that_is_over, leased_setup),
		EACH(test_leaves, every_setup),
		EACH(test_resets_of_the_leaving, every_setup),
		EACH(test_stays_after_all, every_setup),
		EACH(test_full_queue, every_setup),
		EACH(test_others, every_setup),
		EACH(test_more_than_there_is_room_for, every_setup),
		EACH(test_next_daemon, every_setup),
		EACH(test_measured, world_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
