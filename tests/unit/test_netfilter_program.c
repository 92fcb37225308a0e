// SPDX-License-Identifier: GPL-2.0-or-later
/* Connections that programs hand over, on a node of the netfilter datapath. */
#include "cmocka_all.h"
#include "netfilter/node/program.h"
#include "netfilter/node/program_name.h"
#include "netfilter/node/unproven.h"
#include "netfilter/rules/translation.h"
#include "netfilter_letter.h"

#define SERVER_PORT 8080
#define BYTES	    "GET /"
#define ID	    7

/* A server listens behind the program of the service. */
static struct world *world_of(void **state)
{
	struct world *w = *state;
	struct es_service_entry *service = &w->config.service[0];

	service->inspect = ES_INSPECT_NEVER;
	service->server = es_addr_from_v4(es_htonl(0x7f000001));
	service->server6 = (struct es_addr){.b = {[15] = 1}};
	service->server_port = es_htons(SERVER_PORT);
	w->server.listening = 1;
	ring_give(w, SELF);
	return w;
}

static void put_letter(struct world *w, __u8 kind, const char *payload, __u64 id)
{
	struct letter l;

	letter_begin(w, &l, kind, payload);
	l.h.program = (__be64)es_cpu_be64(id);
	letter_put(w, &l, 1);
}

/* Returns the answer to a question; 0: there is none. */
static __u8 ask(struct world *w, __u8 kind, __u64 id)
{
	size_t before = w->sent.count;

	put_letter(w, kind, "", id);
	if (w->sent.count == before)
		return 0;
	assert_int_equal(answer(w).kind, ES_HANDOVER_ANSWER);
	return answer(w).nack;
}

static void put_connection(struct world *w, __u64 id)
{
	size_t before = w->sent.count;

	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, id);
	assert_int_equal(w->sent.count, before); /* who asks behind it hears what came of it */
}

static void test_nobody_serves_it(void **state)
{
	struct world *w = *state;

	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_NO_LISTENER);
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(answer(w).nack, ES_PROGRAM_ANSWER_NO_LISTENER);
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), ES_PROGRAM_ANSWER_CANCELLED);
	w = world_of(state);
	w->server.listening = 0;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID + 1), ES_PROGRAM_ANSWER_NO_LISTENER);
	w->server.listening = w->server.accept_full = 1;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID + 1), ES_PROGRAM_ANSWER_FULL);
	assert_int_equal(w->rebuilt.count, 0);
}

/* Where servers listen that listen on loopback addresses, or on all, and on one that is named. */
static void test_where_the_server_is(void **state)
{
	struct world *w = world_of(state);
	struct es_service_entry *service = &w->config.service[0];
	const struct es_flow flow = the_flow();
	const struct es_addr own = es_nf_translation_address(are.clients_v6, 0);
	struct es_flow socket;

	assert_int_equal(es_nf_program_socket(&w->config, 0, &flow, &socket), 1);
	assert_memory_equal(&socket.client, &flow.client, sizeof(flow.client));
	assert_int_equal(socket.client_port, flow.client_port);
	assert_memory_equal(&socket.service, &own, sizeof(own));
	assert_int_equal(socket.service_port, es_htons(SERVER_PORT));
	/* Each service has another address: one client may have connections to both by one port. */
	w->config.service[1] = *service;
	assert_int_equal(es_nf_program_socket(&w->config, 1, &flow, &socket), 1);
	assert_memory_not_equal(&socket.service, &own, sizeof(own));
	service->server = host(0, 9);
	service->server6 = host(1, 9);
	assert_int_equal(es_nf_program_socket(&w->config, 0, &flow, &socket), 1);
	assert_memory_equal(&socket.service, are.clients_v6 ? &service->server6 : &service->server,
			    sizeof(own));
	memset(are.clients_v6 ? &service->server6 : &service->server, 0, sizeof(own));
	assert_int_equal(es_nf_program_socket(&w->config, 0, &flow, &socket), 0);
}

static void test_whose_socket_it_is(void **state)
{
	struct world *w = world_of(state);
	const struct es_flow flow = the_flow();
	struct es_flow socket, found = {};

	w->config.service_count = 2;
	w->config.service[1] = w->config.service[0];
	w->config.service[1].port = es_htons(SERVICE_PORT + 1);
	es_nf_program_socket(&w->config, 0, &flow, &socket);
	assert_int_equal(es_nf_program_flow(&w->config, &socket, &found), 0);
	assert_true(es_flow_equal(&found, &flow));
	es_nf_program_socket(&w->config, 1, &flow, &socket);
	assert_int_equal(es_nf_program_flow(&w->config, &socket, &socket), 1);
	assert_int_equal(socket.service_port, es_htons(SERVICE_PORT + 1));
	/* The program's own, and one on another port. */
	assert_int_equal(es_nf_program_flow(&w->config, &flow, &found), -1);
	es_nf_program_socket(&w->config, 1, &flow, &socket);
	socket.service_port = es_htons(SERVER_PORT + 1);
	assert_int_equal(es_nf_program_flow(&w->config, &socket, &found), -1);
	/* A service without an address of that family has no such sockets. */
	es_nf_program_socket(&w->config, 1, &flow, &socket);
	memset(are.clients_v6 ? &w->config.service[1].address6 : &w->config.service[1].address, 0,
	       sizeof(flow.service));
	assert_int_equal(es_nf_program_flow(&w->config, &socket, &found), -1);
}

static void test_handed_over(void **state)
{
	struct world *w = world_of(state);
	struct es_flow flow = the_flow(), socket;

	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_READY);
	w->found_after.received = 3;
	put_connection(w, ID);
	assert_int_equal(counted(w, ES_COUNT_connection_rebuilt), 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(w->ended_old, 0);
	assert_int_equal(w->rebuilt_options.mss, 1400);
	es_nf_program_socket(&w->config, 0, &flow, &socket);
	assert_memory_equal(&w->rebuilt_socket, &socket, sizeof(socket));
	/* The number of bytes that it got, in the client's numbers */
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_HERE);
	assert_int_equal(es_ntohl(answer(w).next_request_seq), ISN + 1 + 3);
	/* The message is repeated, and the one after it; then the connection is over. */
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(answer(w).nack, ES_PROGRAM_ANSWER_HERE);
	put_letter(w, ES_HANDOVER_FOLLOW, BYTES, 0);
	assert_int_equal(w->injected.count, 1);
	w->server = (struct es_nf_found){.listening = 1};
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_SERVED);
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(answer(w).nack, ES_PROGRAM_ANSWER_SERVED);
	assert_int_equal(w->rebuilt.count, 1);
	/* A question about an earlier handover is not answered any more. */
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID - 1), 0);
	assert_int_equal(counted(w, ES_COUNT_connection_old), 1);
}

static void test_a_promise_is_kept(void **state)
{
	struct world *w = world_of(state);

	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), ES_PROGRAM_ANSWER_CANCELLED);
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(answer(w).nack, ES_PROGRAM_ANSWER_CANCELLED);
	assert_int_equal(w->rebuilt.count, 0);
	/* Another handover of it is another one. */
	put_connection(w, ID + 1);
	assert_int_equal(w->rebuilt.count, 1);
	/* So it is for a minute: no message is on its way for longer. */
	w->server = (struct es_nf_found){.listening = 1};
	w->node->now_ns += (ES_NF_PROGRAM_NOTE_MS - 1) * 1000000ULL;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID + 1), ES_PROGRAM_ANSWER_SERVED);
	w->node->now_ns += 1000000;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID + 1), ES_PROGRAM_ANSWER_READY);
}

/* The program's own connection, of another node's or of this one's, which ends before. */
static void test_occupied(void **state)
{
	struct world *w = world_of(state);

	w->found.socket = ES_SOCKET_ESTABLISHED;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_OCCUPIED);
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(answer(w).nack, ES_PROGRAM_ANSWER_OCCUPIED);
	assert_int_equal(w->rebuilt.count, 0);
}

/*
 * A SYN may arrive late: then the connection is here, and before that it is tried again, but never promised
 * that it will not be.
 */
static void test_whether_there_is_one_is_unsure(void **state)
{
	struct world *w = world_of(state);

	w->rebuild_rc = -ENOBUFS;
	put_connection(w, ID);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_READY);
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), 0);
	/* That the kernel refuses the second attempt says nothing of the first. */
	w->rebuild_rc = -EADDRINUSE;
	put_connection(w, ID);
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), 0);
	w->server.socket = ES_SOCKET_ESTABLISHED;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_HERE);
	w->server = (struct es_nf_found){.listening = 1};
	w->rebuild_rc = 0;
	put_connection(w, ID);
	assert_int_equal(w->rebuilt.count, 3);
	w->server = (struct es_nf_found){.listening = 1};
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_SERVED);
}

static void test_the_kernel_refuses_it(void **state)
{
	struct world *w = world_of(state);

	w->rebuild_rc = -ENOMEM;
	put_connection(w, ID);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), ES_PROGRAM_ANSWER_CANCELLED);
}

static void lease_until(struct world *w, __u64 until_ns)
{
	w->config.leased = 1;
	ring_give(w, SELF);
	w->node->memory.state->lease_ns = w->node->memory.state->firm_ns = until_ns;
}

/* Puts in a segment of the server, by the name that its socket has. */
static enum es_nf_fate server_says(struct world *w)
{
	const struct es_flow flow = the_flow();
	struct es_flow socket, back;
	const struct es_segment seg = {.seq = 9, .ack = ISN + 6, .flags = ES_TCP_ACK | ES_TCP_PSH, .len = 4};
	uint8_t bytes[256];
	struct es_nf_frame frame = {.bytes = bytes};

	es_nf_program_socket(&w->config, 0, &flow, &socket);
	back = (struct es_flow){
		.client = socket.service,
		.service = socket.client,
		.client_port = socket.service_port,
		.service_port = socket.client_port,
	};
	frame.len = es_ip_packet_make(&back, &seg, (const uint8_t *)"answ", bytes);
	return es_nf_unproven_out(w->node, &frame);
}

static void on_listed(void *ctx, const struct es_connection_entry *entry)
{
	*(struct es_connection_entry *)ctx = *entry;
}

/* The last one that is unproven; all zero: none is. */
static struct es_connection_entry listed(struct world *w)
{
	struct es_connection_entry entry = {};
	size_t at = 0;

	do {
		at = es_nf_unproven_walk(w->node, at, on_listed, &entry);
	} while (at);
	return entry;
}

/* An acknowledgement by the node that gave it here may be lost: then its client repeats its request. */
static void test_is_not_proven(void **state)
{
	struct world *w = world_of(state);

	lease_until(w, NOW_NS + 1000000);
	put_connection(w, ID);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(listed(w).flow_hash, the_flow_hash(w));
	assert_int_equal(listed(w).first_seq, ISN + 1);
	assert_int_equal(listed(w).source, OTHER);
	assert_int_equal(server_says(w), ES_NF_ACCEPT);
	w->node->now_ns += 1000000;
	assert_int_equal(server_says(w), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_reply_silent), 1);
	assert_int_equal(w->proven, 0);
	w->server.acked = 1;
	assert_int_equal(server_says(w), ES_NF_ACCEPT);
	assert_int_equal(w->proven, 1);
	assert_int_equal(listed(w).flow_hash, 0);
}

static void test_is_not_proven_and_not_made(void **state)
{
	struct world *w = world_of(state);

	lease_until(w, NOW_NS + 1000000);
	w->server.socket = ES_SOCKET_NONE;
	w->rebuild_rc = -ENOMEM;
	put_connection(w, ID);
	w->server.socket = ES_SOCKET_ESTABLISHED; /* of another request */
	assert_int_equal(listed(w).flow_hash, 0);
}

/* Other clients have connections. */
static int look_of_others(void *ctx, const struct es_flow *flow, struct es_nf_found *ret_found)
{
	const struct es_flow ours = the_flow();

	if (flow->client_port == ours.client_port)
		return hand_look(ctx, flow, ret_found);
	*ret_found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	return 0;
}

/* A connection of which others could not be told is not made. */
static void test_no_room_for_what_is_not_proven(void **state)
{
	struct world *w = world_of(state);
	const struct es_nf_unproven other = {
		.flow_hash = 1, .made_ns = NOW_NS, .flow = {.client_port = 9, .service_port = 9}};

	lease_until(w, NOW_NS + 1000000);
	w->node->hands.look = look_of_others;
	for (int i = 0; i < ES_NF_UNPROVEN_SETS; i++)
		for (int j = 0; j < ES_NF_UNPROVEN_WAYS; j++)
			w->node->memory.unproven[i].way[j] = other;
	put_connection(w, ID);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(w->rebuilt.count, 0);
	/* It may be promised: nothing was noted of it. */
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), ES_PROGRAM_ANSWER_CANCELLED);
}

/* A connection that cannot be remembered is neither made nor promised; a question about it is told so. */
static void test_no_room(void **state)
{
	struct world *w = world_of(state);
	struct es_nf_program_note_set *set =
		es_nf_program_note_set(w->node->memory.programs, the_flow_hash(w));

	for (int i = 0; i < ES_NF_PROGRAM_NOTE_WAYS; i++)
		set->way[i] = (struct es_nf_program_note){.id = 1, .at_ms = es_ns_to_ms(NOW_NS)};
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_FULL);
	put_connection(w, ID);
	assert_int_equal(w->rebuilt.count, 0);
	assert_int_equal(ask(w, ES_HANDOVER_CANCEL, ID), 0);
	set->way[3].at_ms -= ES_NF_PROGRAM_NOTE_MS;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_READY);
	put_connection(w, ID);
	assert_int_equal(w->rebuilt.count, 1);
}

static void test_malformed(void **state)
{
	struct world *w = world_of(state);
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_PROGRAM, BYTES);
	l.packet_len = segment(l.packet, ISN + 1, 5001, ES_TCP_ACK | ES_TCP_FIN, 9, BYTES);
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_malformed), 1);
	w->config.service[0].port = es_htons(81);
	ring_give(w, SELF);
	put_letter(w, ES_HANDOVER_PROGRAM, BYTES, ID);
	assert_int_equal(counted(w, ES_COUNT_handover_wrong_target), 1);
	assert_int_equal(w->sent.count, 0);
}

/* A leftover of an old connection of these ports is ended first. */
static void test_old_socket(void **state)
{
	struct world *w = world_of(state);

	w->server.time_wait = w->server.is_old = 1;
	assert_int_equal(ask(w, ES_HANDOVER_ASK, ID), ES_PROGRAM_ANSWER_READY);
	assert_int_equal(w->ended_old, 0);
	put_connection(w, ID);
	assert_true(w->ended_old);
	assert_int_equal(w->rebuilt.count, 1);
}

int main(void)
{
#define EACH(name)                                                                                           \
	ES_TEST_OF(name, v4), ES_TEST_OF(name, v6), ES_TEST_OF(name, v6_by_v4), ES_TEST_OF(name, v4_by_v6)
	const struct CMUnitTest tests[] = {
		EACH(test_nobody_serves_it),
		EACH(test_where_the_server_is),
		EACH(test_whose_socket_it_is),
		EACH(test_handed_over),
		EACH(test_a_promise_is_kept),
		EACH(test_occupied),
		EACH(test_old_socket),
		EACH(test_whether_there_is_one_is_unsure),
		EACH(test_the_kernel_refuses_it),
		EACH(test_is_not_proven),
		EACH(test_is_not_proven_and_not_made),
		EACH(test_no_room_for_what_is_not_proven),
		EACH(test_no_room),
		EACH(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
