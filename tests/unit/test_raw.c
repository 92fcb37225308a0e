// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets that the inspector sends itself reach their client, in both families. In a network namespace of its
 * own, which has a loopback interface only; skipped where nobody may make one.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/handover/raw.h"
#include "inspector/packet/packet.h"

static int is_apart;

static int group_setup(void **state)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	(void)state;
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
	is_apart = 1;
	return 0;
}

static struct es_flow flow_of(int family)
{
	struct es_flow flow = {.client_port = es_htons(40000), .service_port = es_htons(80)};

	flow.client = flow.service = es_addr_from_v4(es_htonl(0x7f000001));
	if (family == AF_INET6) {
		memset(&flow.client, 0, sizeof(flow.client));
		flow.client.b[15] = 1;
		flow.service = flow.client;
	}
	return flow;
}

static void goes_to_its_client(int family)
{
	struct es_flow flow = flow_of(family);
	struct es_segment seg = {.seq = 7, .flags = ES_TCP_ACK};
	uint8_t bytes[ES_ANSWER_HEADER_MAX], rst[ES_RESET_MAX], got[200];
	struct es_ip_packet packet;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	socklen_t mark_len = sizeof(unsigned int);
	unsigned int mark = 0;
	struct es_raw raw;
	size_t len, header = family == AF_INET ? 0 : 40; /* IPv6 sockets get what is after the header */

	assert_true(fd >= 0);
	assert_int_equal(es_raw_open(&raw), 0);
	assert_int_equal(es_ip_packet_parse(bytes, es_ip_packet_make(&flow, &seg, bytes, bytes), &packet), 0);
	len = es_ip_packet_reset(&packet, rst);
	assert_int_equal(es_raw_send(&raw, &flow, rst, len), 0);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(recv(fd, got, sizeof(got), 0), len - header);
	assert_memory_equal(got + (header ? 0 : 20), rst + (header ? 40 : 20), 20);
	assert_int_equal(es_raw_mark(&raw, 5), 0);
	assert_int_equal(
		getsockopt(family == AF_INET ? raw.v4_fd : raw.v6_fd, SOL_SOCKET, SO_MARK, &mark, &mark_len),
		0);
	assert_int_equal(mark, 5);
	es_raw_close(&raw);
	assert_int_equal(es_raw_send(&raw, &flow, rst, len), -EBADF);
	close(fd);
}

static void test_v4(void **state)
{
	(void)state;
	if (!is_apart)
		skip();
	goes_to_its_client(AF_INET);
}

static void test_v6(void **state)
{
	(void)state;
	if (!is_apart)
		skip();
	goes_to_its_client(AF_INET6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_v4), cmocka_unit_test(test_v6)};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
