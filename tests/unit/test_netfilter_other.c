// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets that are no segments of clients, on a node of the netfilter datapath: echo requests and errors,
 * neighbours' questions, and packets for the node itself.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <linux/if_arp.h>
#include "netfilter/node/other.h"
#include "netfilter_world.h"

static void test_other_traffic(void **state)
{
	struct world *w = *state;
	const struct es_addr client = host(are.clients_v6, 7), service = host(are.clients_v6, 100),
			     self = host(are.nodes_v6, 201);
	uint8_t echo[64], udp[64];
	size_t at = datagram(echo, &client, &service, 0, 0, 0) - ES_NF_UDP_LEN, len = at + ES_NF_UDP_LEN;

	echo[are.clients_v6 ? 6 : 9] = are.clients_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	echo[at] = are.clients_v6 ? 128 : 8;
	assert_int_equal(put(w, echo, len), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_icmp_echo_mine), 1);
	ring_give(w, OTHER);
	assert_int_equal(put(w, echo, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_other_not_mine), 1);
	w->error_rc = -ENOENT;
	echo[at] = are.clients_v6 ? 2 : 3; /* an error may be about any node's connection */
	assert_int_equal(put(w, echo, len), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_icmp_error), 1);
	assert_int_equal(w->errors.count, 1);
	assert_memory_equal(w->errors.bytes[0], echo, len);
	w->error_rc = 0; /* the stack has been given another one, about a connection that is here */
	assert_int_equal(put(w, echo, len), ES_NF_DROP);

	/* To the node itself: its own affair, unless it pretends to be a node's message. */
	len = datagram(udp, &client, &self, 53, 53, 0);
	assert_int_equal(put(w, udp, len), ES_NF_ACCEPT);
	datagram(udp, &client, &self, 53, HANDOVER_PORT, 0);
	assert_int_equal(put(w, udp, len), ES_NF_DROP);
	datagram(udp, &client, &self, HANDOVER_PORT, 53, 0);
	assert_int_equal(put(w, udp, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_handover_public), 2);
}

/*
 * An error to the cluster address that quotes a datagram from @sport to @dport but for its last @cut bytes.
 * Returns its length.
 */
static size_t error_about(uint8_t *bytes, __u8 type, __u16 sport, __u16 dport, size_t cut)
{
	const struct es_addr client = host(are.clients_v6, 7), self = host(are.nodes_v6, 201),
			     peer = host(are.nodes_v6, 202);
	uint8_t quoted[64];
	size_t quoted_len = datagram(quoted, &self, &peer, sport, dport, 0) - cut, at, len;

	/* The UDP header's room is the error's header. */
	len = datagram(bytes, &client, &self, 0, 0, quoted_len) + quoted_len;
	at = len - quoted_len - ES_NF_UDP_LEN;
	bytes[are.nodes_v6 ? 6 : 9] = are.nodes_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	memset(bytes + at, 0, ES_NF_UDP_LEN);
	bytes[at] = type;
	memcpy(bytes + at + ES_NF_UDP_LEN, quoted, quoted_len);
	return len;
}

/* The nodes' own network tells of their messages. */
static void test_errors_about_messages(void **state)
{
	static const __u8 types4[] = {3, 4, 5, 11, 12}, types6[] = {1, 2, 3, 4, 127};
	struct world *w = *state;
	uint8_t bytes[160];
	size_t len;

	for (size_t i = 0; i < sizeof(types4); i++) {
		__u8 type = are.nodes_v6 ? types6[i] : types4[i];

		len = error_about(bytes, type, HANDOVER_PORT, HANDOVER_PORT, 0);
		assert_int_equal(put(w, bytes, len), ES_NF_DROP);
		len = error_about(bytes, type, HANDOVER_PORT, HANDOVER_PORT, 5);
		assert_int_equal(put(w, bytes, len), ES_NF_ACCEPT); /* quotes no port whole */
		len = error_about(bytes, type, 40000, HANDOVER_PORT, 0);
		assert_int_equal(put(w, bytes, len), ES_NF_DROP);
		len = error_about(bytes, type, 40000, 53, 0);
		assert_int_equal(put(w, bytes, len), ES_NF_ACCEPT);
	}
	assert_int_equal(counted(w, ES_COUNT_handover_public), 10);
	len = error_about(bytes, are.nodes_v6 ? 128 : 8, HANDOVER_PORT, HANDOVER_PORT, 0);
	assert_int_equal(put(w, bytes, len), ES_NF_ACCEPT); /* an echo request */
}

/* A solicitation for fd00::@target, from @source to @dest. Returns its length. */
static size_t solicitation(uint8_t *bytes, const struct es_addr *source, const struct es_addr *dest,
			   unsigned int target)
{
	const struct es_addr wanted = host(1, target);
	size_t len = datagram(bytes, source, dest, 0, 0, 16) + 16;
	uint32_t sum = IPPROTO_ICMPV6;

	bytes[6] = IPPROTO_ICMPV6;
	bytes[7] = 255;
	memset(bytes + ES_NF_IP6_LEN, 0, 8);
	bytes[ES_NF_IP6_LEN] = 135;
	memcpy(bytes + ES_NF_IP6_LEN + 8, &wanted, sizeof(wanted));
	/* RFC 4443, 2.3: both addresses, the length, the next header, and the message */
	sum += (uint32_t)(len - ES_NF_IP6_LEN);
	for (size_t i = 8; i < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	sum = (sum >> 16) + (sum & 0xffff);
	sum = ~(sum + (sum >> 16));
	bytes[ES_NF_IP6_LEN + 2] = (uint8_t)(sum >> 8);
	bytes[ES_NF_IP6_LEN + 3] = (uint8_t)sum;
	return len;
}

/*
 * RFC 4861, 7.2: who asks the group, who asks the address itself again, and who asks whether it may take it.
 */
static void test_neighbour(void **state)
{
	struct world *w = *state;
	static const uint8_t client[6] = {2, 0, 0, 0, 0, 7}, cluster[6] = {3, 0xbf, 10, 0, 0, 100},
			     all[6] = {0x33, 0x33, 0, 0, 0, 1};
	const struct es_addr asker = host(1, 7), service = host(1, 100), nobody = {},
			     group = {.b = {0xff, 2, [11] = 1, [12] = 0xff, [15] = 100}},
			     everybody = {.b = {0xff, 2, [15] = 1}};
	const struct {
		const struct es_addr *source, *dest, *answered;
		const uint8_t *mac;
		uint8_t flags;
	} asked[] = {
		{&asker, &group, &asker, client, 0x60},
		{&asker, &service, &asker, client, 0x60},
		{&nobody, &group, &everybody, all, 0x20},
	};
	uint8_t bytes[128];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		const uint8_t *answer = w->framed.bytes[i], *body = answer + ES_NF_IP6_LEN;

		len = solicitation(bytes, asked[i].source, asked[i].dest, 100);
		assert_int_equal(put(w, bytes, len), ES_NF_DROP);
		assert_int_equal(w->framed.count, i + 1);
		assert_int_equal(w->frame_protocol, ETH_P_IPV6);
		assert_memory_equal(w->frame_target, asked[i].mac, 6);
		assert_int_equal(w->framed.len[i], 72);
		assert_int_equal(answer[7], 255);
		assert_memory_equal(answer + 8, &service, 16);
		assert_memory_equal(answer + 24, asked[i].answered, 16);
		assert_int_equal(body[0], 136);
		assert_int_equal(body[4], asked[i].flags);
		assert_memory_equal(body + 8, &service, 16);
		assert_int_equal(body[24], 2);
		assert_int_equal(body[25], 1);
		assert_memory_equal(body + 26, cluster, 6);
	}
	assert_int_equal(counted(w, ES_COUNT_ndp_answered), 3);
	/* Not as it was sent: nobody's question. */
	bytes[ES_NF_IP6_LEN + 3] ^= 1;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), 1);
	/* A question from behind a router, or for an address of the node's own, is the kernel's affair. */
	len = solicitation(bytes, &asker, &group, 100);
	bytes[7] = 254;
	assert_int_equal(put(w, bytes, len), ES_NF_ACCEPT);
	len = solicitation(bytes, &asker, &group, 1);
	assert_int_equal(put(w, bytes, len), ES_NF_ACCEPT);
	assert_int_equal(put(w, bytes, len - 1), ES_NF_ACCEPT);
	ring_give(w, OTHER);
	len = solicitation(bytes, &asker, &group, 100);
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_ndp_not_mine), 1);
	assert_int_equal(w->framed.count, 3);
}

static void test_arp(void **state)
{
	struct world *w = *state;
	uint8_t arp[28] = {0, 1, 8, 0,	6, 4, 0, ARPOP_REQUEST, 2, 0, 0,
			   0, 0, 7, 10, 0, 0, 7, [24] = 10,	0, 0, 100};
	static const uint8_t client[6] = {2, 0, 0, 0, 0, 7}, cluster[6] = {3, 0xbf, 10, 0, 0, 100};

	es_nf_other_arp(w->node, arp, sizeof(arp));
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(w->frame_protocol, ETH_P_ARP);
	assert_memory_equal(w->frame_target, client, 6);
	assert_int_equal(w->framed.bytes[0][7], ARPOP_REPLY);
	assert_memory_equal(w->framed.bytes[0] + 8, cluster, 6);
	assert_memory_equal(w->framed.bytes[0] + 14, arp + 24, 4);
	assert_memory_equal(w->framed.bytes[0] + 18, arp + 8, 10);
	assert_int_equal(counted(w, ES_COUNT_arp_answered), 1);

	arp[27] = 101;
	es_nf_other_arp(w->node, arp, sizeof(arp));
	arp[27] = 100;
	es_nf_other_arp(w->node, arp, sizeof(arp) - 1);
	ring_give(w, OTHER);
	es_nf_other_arp(w->node, arp, sizeof(arp));
	assert_int_equal(counted(w, ES_COUNT_arp_not_mine), 1);
	assert_int_equal(w->framed.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ES_TEST_OF(test_other_traffic, v4),
		ES_TEST_OF(test_other_traffic, v6),
		ES_TEST_OF(test_other_traffic, v6_by_v4),
		ES_TEST_OF(test_other_traffic, v4_by_v6),
		ES_TEST_OF(test_errors_about_messages, v4),
		ES_TEST_OF(test_errors_about_messages, v6),
		ES_TEST_OF(test_errors_about_messages, v6_by_v4),
		ES_TEST_OF(test_errors_about_messages, v4_by_v6),
		ES_TEST_OF(test_arp, v4),
		ES_TEST_OF(test_neighbour, v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
