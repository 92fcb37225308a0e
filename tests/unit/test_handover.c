// SPDX-License-Identifier: GPL-2.0-or-later
/* Handover messages: layout on the wire, MAC, and a real trip over loopback sockets. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/wall.h"
#include "inspector/handover/handover.h"
#include "kmod/core/track.h"

static const struct es_sipkey key = {.k0 = 0x0706050403020100ULL, .k1 = 0x0f0e0d0c0b0a0908ULL};

static void test_layout(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct es_handover, magic), 0);
	assert_int_equal(offsetof(struct es_handover, kind), 5);
	assert_int_equal(offsetof(struct es_handover, source), 6);
	assert_int_equal(offsetof(struct es_handover, target), 7);
	assert_int_equal(offsetof(struct es_handover, epoch), 8);
	assert_int_equal(offsetof(struct es_handover, service), 12);
	assert_int_equal(offsetof(struct es_handover, stream), 13);
	assert_int_equal(offsetof(struct es_handover, attempt), 14);
	assert_int_equal(offsetof(struct es_handover, nack), 15);
	assert_int_equal(offsetof(struct es_handover, sequence), 16);
	assert_int_equal(offsetof(struct es_handover, packet_len), 24);
	assert_int_equal(offsetof(struct es_handover, mss), 26);
	assert_int_equal(offsetof(struct es_handover, flags), 30);
	assert_int_equal(offsetof(struct es_handover, requests), 32);
	assert_int_equal(offsetof(struct es_handover, next_request_seq), 36);
	assert_int_equal(offsetof(struct es_handover, cost), 44);
	assert_int_equal(offsetof(struct es_handover, url_key), 48);
	assert_int_equal(offsetof(struct es_handover, mac), 56);
	assert_int_equal(sizeof(struct es_handover), 64);
}

static void test_options(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits < 16; bits++) {
		struct es_tcp_options in = {.mss = 1440,
					    .snd_wscale = 7,
					    .rcv_wscale = 10,
					    .wscale_ok = bits & 1,
					    .sack_ok = bits >> 1 & 1,
					    .tstamp_ok = bits >> 2 & 1,
					    .ecn_ok = bits >> 3 & 1};
		struct es_tcp_options out;
		struct es_handover h = {};

		es_handover_options_put(&h, &in);
		es_handover_options_get(&h, &out);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

/* The contents of an order come out of its message again, in the track of the node that serves it. */
static void test_cost(void **state)
{
	static const struct {
		uint32_t cost, arrives;
	} cases[] = {{0, 0}, {1, 1}, {0x1234, 0x1234}, {0xffff, 0xffff}, {0x10000, 0xffff}, {~0u, 0xffff}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_handover h = {.cost = es_htons(es_handover_cost(cases[i].cost)),
					.url_key = (__be64)es_cpu_be64(0x0123456789abcdefULL),
					.next_request_seq = es_htonl(77),
					.request_flags = ES_REQUEST_F_MEASURE};
		struct es_handover_order order;
		struct es_track t = {};

		es_handover_order_of(&h, &order);
		assert_int_equal(order.cost, cases[i].arrives);
		assert_true(order.url_key == 0x0123456789abcdefULL);
		es_track_serve(&t, 5, &h, 0);
		assert_int_equal(t.cost, cases[i].arrives);
		assert_true(t.url_key == 0x0123456789abcdefULL);
		assert_int_equal(t.next_request_seq, 77);
		assert_int_equal(t.request_flags, ES_REQUEST_F_MEASURE);
	}
}

static void test_mac_covers_everything(void **state)
{
	uint8_t packet[101];
	struct es_handover h;
	uint64_t seed = 6;
	__be64 mac;

	(void)state;
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)es_test_random(&seed);
	memset(&h, 0x5a, sizeof(h));
	for (size_t len = 0; len <= sizeof(packet); len++) {
		mac = es_handover_mac(&key, &h, packet, len);
		for (size_t i = 0; i < len; i++) {
			packet[i] ^= 1;
			assert_true(es_handover_mac(&key, &h, packet, len) != mac);
			packet[i] ^= 1;
		}
		for (size_t i = 0; i < offsetof(struct es_handover, mac); i++) {
			((uint8_t *)&h)[i] ^= 0x80;
			assert_true(es_handover_mac(&key, &h, packet, len) != mac);
			((uint8_t *)&h)[i] ^= 0x80;
		}
		h.mac ^= 1; /* not over itself */
		assert_true(es_handover_mac(&key, &h, packet, len) == mac);
	}
	/* A trailing zero byte is another packet. */
	packet[8] = 0;
	assert_true(es_handover_mac(&key, &h, packet, 8) != es_handover_mac(&key, &h, packet, 9));
}

static int is_v6;

static int setup(void **state)
{
	(void)state;
	is_v6 = 0;
	return 0;
}

/* Both nodes are at the only loopback address that there is. */
static int setup_v6(void **state)
{
	(void)state;
	is_v6 = 1;
	return 0;
}

static struct es_addr address_of(unsigned int node)
{
	struct es_addr address = es_addr_from_v4(htonl(INADDR_LOOPBACK + node));

	if (is_v6)
		memcpy(&address, &in6addr_loopback, sizeof(address));
	return address;
}

/* Two nodes, 127.0.0.1 and 127.0.0.2; the second one's datapath is a socket of ours. */
static struct es_cluster *cluster(uint16_t port)
{
	static struct es_conf conf; /* of one cluster at a time */
	struct es_cluster *result = NULL;

	memset(&conf, 0, sizeof(conf));
	conf.cluster.handover_port = port;
	conf.cluster.virtual_nodes = 63;
	conf.node_count = 2;
	for (unsigned int i = 0; i < 2; i++) {
		conf.nodes[i].address = es_addr_from_v4(htonl(INADDR_LOOPBACK + i)); /* the ring wants two */
		conf.nodes[i].weight = 100;
	}
	assert_int_equal(es_cluster_new(&conf, 0, 1, NULL, NULL, &result), 0);
	for (unsigned int i = 0; i < 2; i++) {
		const struct es_addr address = address_of(i);

		result->handover_address[i] = es_sockaddr_of(&address, port);
	}
	return result;
}

static int receiver(uint16_t *ret_port)
{
	const struct es_addr address = address_of(1);
	union es_sockaddr sin = es_sockaddr_of(&address, 0);
	socklen_t len = sizeof(sin);
	int fd = socket(sin.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &sin.sa, es_sockaddr_len(&sin)), 0);
	assert_int_equal(getsockname(fd, &sin.sa, &len), 0);
	*ret_port = ntohs(is_v6 ? sin.v6.sin6_port : sin.v4.sin_port);
	return fd;
}

struct message {
	struct es_handover h;
	uint8_t packet[256];
};

static void test_trip(void **state)
{
	struct es_handover_order order = {
		.kind = ES_HANDOVER_REQUEST, .service = 3, .attempt = 1, .cost = 70000, .url_key = 42};
	struct es_handover_sender *sender = NULL;
	struct es_handover_back back = {.node = 99};
	uint8_t packet[200];
	union es_sockaddr from;
	socklen_t from_len = sizeof(from);
	struct message m;
	__u64 last = 0;
	uint16_t port;
	int fd = receiver(&port), got;
	struct es_cluster *c = cluster(port);

	(void)state;
	memset(packet, 0x42, sizeof(packet));
	assert_int_equal(es_handover_sender_new(c, 5, &key, &sender), 0);
	/* More than a batch: a full one is sent on the way. */
	for (size_t i = 0; i < ES_HANDOVER_BATCH + 3; i++) {
		packet[0] = (uint8_t)i;
		assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 1), 0);
	}
	assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 2), -ENOENT);
	assert_int_equal(request_handover(sender, c, &order, packet, ES_HANDOVER_PACKET_MAX + 1, 1),
			 -EMSGSIZE);
	assert_int_equal(es_handover_flush(sender), 0);
	for (size_t i = 0; i < ES_HANDOVER_BATCH + 3; i++) {
		assert_int_equal(recvfrom(fd, &m, sizeof(m), 0, &from.sa, &from_len),
				 sizeof(m.h) + sizeof(packet));
		assert_int_equal(m.packet[0], (uint8_t)i); /* in order */
		assert_true(es_cpu_be64((__u64)m.h.sequence) > last);
		last = es_cpu_be64((__u64)m.h.sequence);
		assert_int_equal(m.h.source, 0);
		assert_int_equal(m.h.target, 1);
		assert_int_equal(m.h.stream, 5);
		assert_int_equal(m.h.service, 3);
		assert_int_equal(es_ntohs(m.h.cost), 0xffff);
		assert_true(es_cpu_be64((__u64)m.h.url_key) == 42);
		assert_true(m.h.mac == es_handover_mac(&key, &m.h, m.packet, sizeof(packet)));
	}
	/* A NACK returns to the socket that sent the message; a NACK with a wrong MAC is refused. */
	m.h.kind = ES_HANDOVER_NACK;
	for (int good = 0; good < 2; good++) {
		m.h.mac = good ? es_handover_mac(&key, &m.h, m.packet, sizeof(packet)) : 0;
		assert_int_equal(sendto(fd, &m, sizeof(m.h) + sizeof(packet), 0, &from.sa, from_len),
				 sizeof(m.h) + sizeof(packet));
		got = es_handover_receive(sender, &key, 1, &back);
		assert_int_equal(got, good ? (int)sizeof(packet) : -EBADMSG);
		assert_int_equal(back.node, 1);
	}
	assert_memory_equal(back.packet, m.packet, sizeof(packet));
	assert_int_equal(es_handover_receive(sender, &key, 1, &back), 0);
	/* Nobody there any more: the kernel says so, about the right node. */
	close(fd);
	request_handover(sender, c, &order, packet, sizeof(packet), 1);
	es_handover_flush(sender);
	back.node = 99;
	assert_int_equal(es_handover_receive(sender, &key, 1, &back), -ECONNREFUSED);
	assert_int_equal(back.node, 1);
	/* And which message it was. */
	assert_int_equal(back.quoted, sizeof(packet));
	assert_int_equal(back.header.kind, ES_HANDOVER_REQUEST);
	assert_memory_equal(back.packet, packet, sizeof(packet));
	assert_int_equal(es_handover_receive(sender, &key, 1, &back), 0);
	es_handover_sender_free(&sender);
	assert_null(sender);
	es_cluster_free(&c);
}

/* An ICMP error quotes the beginning of a long message. */
static void test_quoted(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .repeat = 1};
	struct es_handover_sender *sender = NULL;
	struct es_handover_back back;
	uint8_t packet[1400];
	uint16_t port;
	int fd = receiver(&port);
	struct es_cluster *c = cluster(port);
	enum { BATCH = 9 };

	(void)state;
	close(fd);
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)i;
	assert_int_equal(es_handover_sender_new(c, 5, &key, &sender), 0);
	assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 1), 0);
	assert_int_equal(es_handover_flush(sender), 0);
	assert_int_equal(es_handover_receive(sender, &key, 1, &back), -ECONNREFUSED);
	assert_in_range(back.quoted, 100, sizeof(packet) - 1);
	assert_memory_equal(back.packet, packet, back.quoted);
	assert_int_equal(es_ntohs(back.header.packet_len), sizeof(packet));
	assert_int_equal(back.header.flags & ES_HANDOVER_F_REPEAT, ES_HANDOVER_F_REPEAT);
	/* Each message of a batch has its own, and is sent whatever became of the one before. */
	for (unsigned int i = 0; i < BATCH; i++) {
		packet[0] = (uint8_t)i;
		request_handover(sender, c, &order, packet, 100, 1);
	}
	assert_int_equal(es_handover_flush(sender), 0);
	for (unsigned int i = 0; i < BATCH; i++) {
		assert_int_equal(es_handover_receive(sender, &key, 1, &back), -ECONNREFUSED);
		assert_int_equal(back.quoted, 100);
		assert_int_equal(back.packet[0], i);
	}
	assert_int_equal(es_handover_receive(sender, &key, 1, &back), 0);
	es_handover_sender_free(&sender);
	es_cluster_free(&c);
}

/* An error that quotes none of the last messages says nothing: its message may be invented. */
static void test_quoted_too_late(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST};
	struct es_handover_sender *sender = NULL;
	struct es_handover_back back;
	uint8_t packet[100] = {};
	uint16_t port;
	int fd = receiver(&port), got;
	struct es_cluster *c = cluster(port);

	(void)state;
	close(fd);
	assert_int_equal(es_handover_sender_new(c, 5, &key, &sender), 0);
	assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 1), 0);
	assert_int_equal(es_handover_flush(sender), 0);
	for (int i = 0; i < 1024; i++)
		assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 0), 0);
	es_handover_flush(sender);
	do
		got = es_handover_receive(sender, &key, 1, &back);
	while (got && back.node == 0);
	assert_int_equal(got, -ENOMSG);
	assert_int_equal(back.node, 1);
	assert_int_equal(back.quoted, 0);
	es_handover_sender_free(&sender);
	es_cluster_free(&c);
}

static __u32 stamp_of(__u64 wall_s)
{
	return (__u32)(wall_s << 8);
}

/* When a message was sent, on a circle of half a year: taken for two minutes in either direction. */
static void test_time(void **state)
{
	static const __u64 now[] = {1700000000, 0xffffff,   0x1000000, 0x1000001,
				    0x100003c,	0x5fffffff, 100000};
	struct es_handover h = {.kind = ES_HANDOVER_REQUEST};

	(void)state;
	assert_int_equal(es_handover_time(&h, stamp_of(1700000000)), ES_HANDOVER_UNTIMED);
	for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
		for (int ago = -1000; ago <= 1000; ago++) {
			es_handover_stamp_put(&h, stamp_of(now[i] - (__u64)(__s64)ago));
			assert_int_not_equal(es_handover_sent(&h), 0);
			if (ago == ES_HANDOVER_LATE_S || ago == -ES_HANDOVER_LATE_S)
				continue; /* 0 is told as 1 */
			assert_int_equal(es_handover_time(&h, stamp_of(now[i])),
					 ago > ES_HANDOVER_LATE_S || ago < -ES_HANDOVER_LATE_S
						 ? ES_HANDOVER_LATE
						 : ES_HANDOVER_TIMELY);
		}
		es_handover_stamp_put(&h, stamp_of(now[i] - 86400));
		assert_int_equal(es_handover_time(&h, stamp_of(now[i])), ES_HANDOVER_LATE);
		es_handover_stamp_put(&h, stamp_of(now[i] - 0x800000));
		assert_int_equal(es_handover_time(&h, stamp_of(now[i])), ES_HANDOVER_LATE);
	}
}

/* Somebody has set the clock: what its sender's clock, or this node's own one before, calls timely is. */
static void test_time_set(void **state)
{
	const __u64 s = 1000000000ULL, now = 1700000000 * s, before = now - 3600 * s;
	struct es_handover h = {.kind = ES_HANDOVER_REQUEST};

	(void)state;
	assert_int_equal(es_handover_time_set(&h, now, before), ES_HANDOVER_UNTIMED);
	for (int ago = -4000; ago <= 8000; ago++) {
		int by_now = ago < ES_HANDOVER_LATE_S && ago > -ES_HANDOVER_LATE_S;
		int by_before = ago < 3600 + ES_HANDOVER_LATE_S && ago > 3600 - ES_HANDOVER_LATE_S;

		if (ago == ES_HANDOVER_LATE_S || ago == -ES_HANDOVER_LATE_S ||
		    ago == 3600 - ES_HANDOVER_LATE_S || ago == 3600 + ES_HANDOVER_LATE_S)
			continue; /* a limit is in time */
		es_handover_stamp_put(&h, stamp_of(1700000000 - (__u64)(__s64)ago));
		assert_int_equal(es_handover_time_set(&h, now, now),
				 by_now ? ES_HANDOVER_TIMELY : ES_HANDOVER_LATE);
		assert_int_equal(es_handover_time_set(&h, now, before),
				 by_now || by_before ? ES_HANDOVER_TIMELY : ES_HANDOVER_LATE);
	}
}

/*
 * The sender's numbers go on after the one that it was told, one by one again from there; and never go back.
 */
static void test_renumber(void **state)
{
	const __u64 ahead_ns = 1ULL << 60, hour_ns = 3600000000000ULL;
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST};
	struct es_handover_sender *sender = NULL;
	uint8_t packet[40] = {};
	struct message m;
	uint16_t port;
	int fd = receiver(&port);
	struct es_cluster *c = cluster(port);
	__u64 numbers[8];

	(void)state;
	assert_int_equal(es_handover_sender_new(c, 5, &key, &sender), 0);
	for (size_t i = 0; i < 8; i++) {
		if (i == 2)
			es_wall_set(ahead_ns, ahead_ns);
		if (i == 4)
			es_wall_set(ahead_ns - hour_ns, ahead_ns + hour_ns);
		if (i == 6)
			es_wall_set(ahead_ns, 1);
		assert_int_equal(request_handover(sender, c, &order, packet, sizeof(packet), 1), 0);
		assert_int_equal(es_handover_flush(sender), 0);
		assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m.h) + sizeof(packet));
		numbers[i] = es_cpu_be64((__u64)m.h.sequence);
	}
	assert_true(numbers[1] == numbers[0] + 1);
	assert_true(numbers[2] >= es_handover_number(ahead_ns) && numbers[3] == numbers[2] + 1);
	assert_true(numbers[4] >= es_handover_number(ahead_ns + hour_ns) && numbers[5] == numbers[4] + 1);
	assert_true(numbers[6] == numbers[5] + 1 && numbers[7] == numbers[6] + 1);
	es_wall_set(0, 0);
	es_handover_sender_free(&sender);
	close(fd);
	es_cluster_free(&c);
}

/*
 * A message is early if it may have been sent before the node began, by the sender's clock or by the node's
 * own: both go round the same circle.
 */
static void test_early(void **state)
{
	static const __u32 began[] = {0x100, 0xdeadbe00, 0xfffffff0, 1};
	const __u64 second_ns = 1000000000ULL;
	struct es_handover h = {.kind = ES_HANDOVER_REQUEST};

	(void)state;
	for (size_t i = 0; i < sizeof(began) / sizeof(began[0]); i++) {
		__u32 own = began[i] + 5000; /* which says nothing, where the sender's is known */

		for (__u32 by = 1; by < 130 * 256; by++) {
			es_handover_stamp_put(&h, began[i] + by - 1);
			if (es_handover_stamp(&h) != began[i] + by - 1)
				continue; /* 0 s are told as 1 s */
			assert_false(es_handover_is_early(&h, began[i], own, second_ns));
			es_handover_stamp_put(&h, began[i] - by);
			if (es_handover_stamp(&h) != began[i] - by)
				continue;
			assert_true(es_handover_is_early(&h, began[i], own, second_ns));
			assert_true(es_handover_is_early(&h, began[i], own, ES_HANDOVER_EARLY_NS - 1));
			assert_false(es_handover_is_early(&h, began[i], own, ES_HANDOVER_EARLY_NS));
		}
	}
	/* It has not told its time. */
	es_handover_stamp_put(&h, 70000);
	assert_true(es_handover_is_early(&h, 0, 60000, 0));
	assert_true(es_handover_is_early(&h, 0, 60000, ES_HANDOVER_UNTOLD_NS - 1));
	assert_false(es_handover_is_early(&h, 0, 60000, ES_HANDOVER_UNTOLD_NS));
	assert_true(es_handover_is_early(&h, 0, 70001, ES_HANDOVER_UNTOLD_NS));
	/* No daemon: tests of the module. */
	assert_false(es_handover_is_early(&h, 0, 0, 0));
	/* A refusal says the second only: what is not before, by that, may be taken. */
	h.kind = ES_HANDOVER_NACK;
	h.nack = ES_NACK_RETRY;
	es_handover_sent_put(&h, 70000);
	assert_int_equal(h.nack, ES_NACK_RETRY);
	assert_false(es_handover_is_early(&h, 70100, 1, 0));
	assert_true(es_handover_is_early(&h, 70000 + 256, 1, 0));
	/* Nor does the version before tell anything. */
	assert_false(es_handover_is_early(&(struct es_handover){.kind = ES_HANDOVER_REQUEST}, 70000, 1, 0));
}

#define TEST(f)                                                                                              \
	cmocka_unit_test_setup(f, setup),                                                                    \
	{                                                                                                    \
#f " (IPv6)", f, setup_v6, NULL, NULL                                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_time_set),
		TEST(test_renumber),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_mac_covers_everything),
		TEST(test_trip),
		TEST(test_quoted),
		TEST(test_quoted_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
