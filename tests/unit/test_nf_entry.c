// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages of ctnetlink, whole and broken. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "netfilter/kernel/entry.h"

static struct nlmsghdr *begin(char *buf)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	memset(mnl_nlmsg_put_extra_header(nlh, sizeof(struct nfgenmsg)), 0, sizeof(struct nfgenmsg));
	return nlh;
}

static void put_tuple(struct nlmsghdr *nlh, unsigned short type, unsigned char protocol, __u32 source,
		      __u32 dest, __u16 sport, __u16 dport)
{
	struct nlattr *tuple = mnl_attr_nest_start(nlh, type);
	struct nlattr *nest = mnl_attr_nest_start(nlh, CTA_TUPLE_IP);

	mnl_attr_put_u32(nlh, CTA_IP_V4_SRC, htonl(source));
	mnl_attr_put_u32(nlh, CTA_IP_V4_DST, htonl(dest));
	mnl_attr_nest_end(nlh, nest);
	nest = mnl_attr_nest_start(nlh, CTA_TUPLE_PROTO);
	mnl_attr_put_u8(nlh, CTA_PROTO_NUM, protocol);
	mnl_attr_put_u16(nlh, CTA_PROTO_SRC_PORT, htons(sport));
	mnl_attr_put_u16(nlh, CTA_PROTO_DST_PORT, htons(dport));
	mnl_attr_nest_end(nlh, nest);
	mnl_attr_nest_end(nlh, tuple);
}

static void put_flow(struct nlmsghdr *nlh, unsigned char protocol)
{
	put_tuple(nlh, CTA_TUPLE_ORIG, protocol, 0x0a000001, 0x0a000002, 40000, 80);
}

static void put_numbers(struct nlmsghdr *nlh, unsigned short type, const __u32 *numbers, unsigned short n)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, type);

	for (unsigned short i = 0; i < n; i++)
		mnl_attr_put_u32(nlh, i + 1, htonl(numbers[i]));
	mnl_attr_nest_end(nlh, nest);
}

static void put_tcp(struct nlmsghdr *nlh)
{
	struct nf_ct_tcp_flags client = {.flags = 0x03}, server = {.flags = 0x01};
	struct nlattr *info = mnl_attr_nest_start(nlh, CTA_PROTOINFO);
	struct nlattr *tcp = mnl_attr_nest_start(nlh, CTA_PROTOINFO_TCP);

	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_STATE, TCP_CONNTRACK_ESTABLISHED);
	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_WSCALE_ORIGINAL, 7);
	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_WSCALE_REPLY, 9);
	mnl_attr_put(nlh, CTA_PROTOINFO_TCP_FLAGS_ORIGINAL, sizeof(client), &client);
	mnl_attr_put(nlh, CTA_PROTOINFO_TCP_FLAGS_REPLY, sizeof(server), &server);
	mnl_attr_nest_end(nlh, tcp);
	mnl_attr_nest_end(nlh, info);
}

static struct nlmsghdr *whole(char *buf)
{
	struct nlmsghdr *nlh = begin(buf);
	unsigned long label[ES_NF_LABEL_BYTES / sizeof(long)] = {};

	put_flow(nlh, IPPROTO_TCP);
	put_tcp(nlh);
	put_numbers(nlh, CTA_SEQ_ADJ_ORIG, (__u32[]){1, 2, 3}, 3);
	put_numbers(nlh, CTA_SEQ_ADJ_REPLY, (__u32[]){4, (__u32)-5, (__u32)-6}, 3);
	put_numbers(nlh, CTA_SYNPROXY, (__u32[]){0xfffffff0, 8, 9}, 3);
	mnl_attr_put_u32(nlh, CTA_TIMEOUT, htonl(300));
	mnl_attr_put_u16(nlh, CTA_ZONE, htons(7));
	label[ES_NF_LABEL / (8 * sizeof(long))] = 1UL << ES_NF_LABEL % (8 * sizeof(long));
	mnl_attr_put(nlh, CTA_LABELS, sizeof(label), label);
	return nlh;
}

static void test_all_of_it(void **state)
{
	char buf[1024] __attribute__((aligned(4)));
	struct es_nf_entry e;

	(void)state;
	assert_int_equal(es_nf_entry_read(whole(buf), &e), 0);
	assert_int_equal(e.flow.client.w[3], htonl(0x0a000001));
	assert_int_equal(e.flow.service.w[3], htonl(0x0a000002));
	assert_true(es_addr_is_v4(&e.flow.client) && es_addr_is_v4(&e.flow.service));
	assert_int_equal(e.flow.client_port, htons(40000));
	assert_int_equal(e.flow.service_port, htons(80));
	assert_int_equal(e.state, TCP_CONNTRACK_ESTABLISHED);
	assert_int_equal(e.client_wscale, 7);
	assert_int_equal(e.server_wscale, 9);
	assert_true(e.has_wscale);
	assert_false(e.has_sack);
	assert_int_equal(e.offsets.client.position, 1);
	assert_int_equal(e.offsets.client.before, 2);
	assert_int_equal(e.offsets.client.after, 3);
	assert_int_equal(e.offsets.server.position, 4);
	assert_int_equal(e.offsets.server.before, -5);
	assert_int_equal(e.offsets.server.after, -6);
	assert_int_equal(e.offsets.isn, 0xfffffff0);
	assert_int_equal(e.offsets.its, 8);
	assert_int_equal(e.offsets.tsoff, 9);
	assert_int_equal(e.timeout_s, 300);
	assert_int_equal(e.zone, 7);
	assert_true(e.has_synproxy && e.has_label);
}

/* A connection that a program hands over is translated, so its server has another name for it. */
static void test_translated(void **state)
{
	char buf[1024] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = whole(buf);
	struct es_nf_entry e;

	(void)state;
	assert_int_equal(es_nf_entry_read(nlh, &e), 0);
	assert_memory_equal(&e.socket, &e.flow, sizeof(e.flow));
	put_tuple(nlh, CTA_TUPLE_REPLY, IPPROTO_TCP, 0x0a000009, 0x0a000001, 8080, 40000);
	assert_int_equal(es_nf_entry_read(nlh, &e), 0);
	assert_memory_equal(&e.socket.client, &e.flow.client, sizeof(e.flow.client));
	assert_int_equal(e.socket.client_port, htons(40000));
	assert_int_equal(e.socket.service.w[3], htonl(0x0a000009));
	assert_int_equal(e.socket.service_port, htons(8080));
	assert_int_equal(e.flow.service_port, htons(80));
}

static void test_what_is_not_said_is_zero(void **state)
{
	char buf[1024] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = begin(buf);
	struct es_nf_entry e;

	(void)state;
	put_flow(nlh, IPPROTO_TCP);
	assert_int_equal(es_nf_entry_read(nlh, &e), 0);
	assert_false(e.state || e.zone || e.timeout_s || e.has_synproxy || e.has_label || e.has_wscale);
}

static void test_what_is_no_tcp(void **state)
{
	char buf[1024] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = begin(buf);
	struct es_nf_entry e;

	(void)state;
	assert_int_equal(es_nf_entry_read(nlh, &e), -ENOENT);
	put_flow(nlh, IPPROTO_UDP);
	assert_int_equal(es_nf_entry_read(nlh, &e), -ENOENT);
}

/*
 * Attributes of the wrong length are those of a kernel that means something else by them: nothing is read
 * beyond.
 */
static void test_damage(void **state)
{
	char buf[1024] __attribute__((aligned(4)));
	uint64_t seed = 21;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct nlmsghdr *nlh = whole(buf), *copy;
		struct es_nf_entry e;
		size_t len;

		for (int k = 0; k < 3; k++)
			buf[NLMSG_HDRLEN + es_test_random(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN)] =
				(char)es_test_random(&seed);
		len = NLMSG_HDRLEN + es_test_random(&seed) % (nlh->nlmsg_len - NLMSG_HDRLEN + 1);
		copy = calloc(
			1,
			MNL_ALIGN(
				len)); /* so that the sanitizer sees each byte beyond; messages are padded */
		assert_non_null(copy);
		memcpy(copy, buf, len);
		copy->nlmsg_len = (__u32)len;
		(void)es_nf_entry_read(copy, &e);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it),
		cmocka_unit_test(test_translated),
		cmocka_unit_test(test_what_is_not_said_is_zero),
		cmocka_unit_test(test_what_is_no_tcp),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
