// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel's sockets, and which addresses are the machine's own: with real ones, of each family, in a
 * network namespace of its own; skipped where nobody may make one.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/base/sockaddr.h"
#include "inspector/datapath/network.h"
#include "inspector/machine/sock_diag.h"
#include "kmod/core/load.h"

#define NEXT(address) ((address).b[15]++)

/*
 * struct way - a connection over lo
 * @to: where the client connects to; @any: the server listens on all addresses of that family, with
 * IPV6_V6ONLY or not
 */
struct way {
	const char *name;
	struct es_addr to;
	int family;
	int is_v6only;
};

#define V4_LOOPBACK                                                                                          \
	{                                                                                                    \
		.b = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 }                                      \
	}
#define V6_LOOPBACK                                                                                          \
	{                                                                                                    \
		.b = { [15] = 1 }                                                                            \
	}

static const struct way ways[] = {
	{"IPv4", V4_LOOPBACK, AF_INET, 0},
	{"IPv6", V6_LOOPBACK, AF_INET6, 1},
	{"IPv6 on a socket of both", V6_LOOPBACK, AF_INET6, 0},
	{"IPv4 on a socket of both", V4_LOOPBACK, AF_INET6, 0},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static int is_apart;

static int group_setup(void **state)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	(void)state;
	is_apart = !unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (is_apart)
		assert_return_code(ioctl(fd, SIOCSIFFLAGS, &lo), errno);
	return close(fd);
}

/* struct link - a listening socket, a connection to it, and its server's side once it is accepted */
struct link {
	const struct way *way;
	int listener, client, server;
	unsigned int port, client_port;
};

static unsigned int port_of(int fd)
{
	union es_sockaddr at = {};
	socklen_t len = sizeof(at);

	assert_return_code(getsockname(fd, &at.sa, &len), errno);
	return es_sockaddr_port(&at);
}

static struct link link_make(const struct way *way)
{
	struct link l = {.way = way, .server = -1};
	union es_sockaddr any = {.sa.sa_family = (sa_family_t)way->family}, to;

	l.listener = socket(way->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (way->family == AF_INET6)
		assert_return_code(setsockopt(l.listener, IPPROTO_IPV6, IPV6_V6ONLY, &way->is_v6only,
					      sizeof(way->is_v6only)),
				   errno);
	assert_return_code(bind(l.listener, &any.sa, es_sockaddr_len(&any)), errno);
	assert_return_code(listen(l.listener, 8), errno);
	l.port = port_of(l.listener);
	to = es_sockaddr_of(&way->to, l.port);
	l.client = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(l.client, &to.sa, es_sockaddr_len(&to)), errno);
	l.client_port = port_of(l.client);
	return l;
}

static void link_end(struct link *l)
{
	close(l->listener);
	close(l->client);
	if (l->server >= 0)
		close(l->server);
}

/* Is this machine one on which that way can be gone? */
static int can(const struct way *way)
{
	return is_apart && (way->family == AF_INET || !access("/proc/sys/net/ipv6", F_OK));
}

#define EACH_WAY                                                                                             \
	if (!can(&ways[WAYS - 1]))                                                                           \
		skip();                                                                                      \
	for (const struct way *way = ways; way < ways + WAYS; way++)

/* struct finding - the socket of the server's side of @link, @count times, in @id */
struct finding {
	const struct link *link;
	unsigned int count;
	struct es_sock_diag_id id;
};

static void on_socket(void *ctx, const struct es_sock_diag_id *id)
{
	struct finding *f = ctx;

	if (id->flow.service_port != es_htons(f->link->port))
		return;
	f->count++;
	f->id = *id;
}

static struct finding find(const struct link *l)
{
	struct finding f = {.link = l};

	assert_int_equal(es_sock_diag_walk(on_socket, &f), 0);
	return f;
}

/* Each connection is listed once, with the addresses that its packets have, and ended by that. */
static void test_walk_and_end(void **state)
{
	(void)state;
	EACH_WAY
	{
		struct link l = link_make(way);
		struct finding f;
		char byte;
		int rc;

		l.server = accept(l.listener, NULL, NULL);
		f = find(&l);
		assert_int_equal(f.count, 1);
		assert_memory_equal(&f.id.flow.service, &way->to, sizeof(way->to));
		assert_memory_equal(&f.id.flow.client, &way->to, sizeof(way->to));
		assert_int_equal(f.id.flow.client_port, es_htons(l.client_port));
		f.id.cookie[0]++;
		assert_int_equal(es_sock_diag_end(&f.id), -ENOENT); /* another one of the same flow */
		f.id.cookie[0]--;
		rc = es_sock_diag_end(&f.id);
		if (rc != -EOPNOTSUPP) { /* of a kernel that ends none */
			assert_int_equal(rc, 0);
			assert_int_equal(recv(l.client, &byte, 1, 0), -1);
			assert_int_equal(errno, ECONNRESET);
			assert_int_equal(find(&l).count, 0);
		}
		link_end(&l);
	}
}

/* Bytes that the server has written before it closed its socket, and that the client does not take. */
static void test_unacked(void **state)
{
	static const char bytes[65536];

	(void)state;
	EACH_WAY
	{
		struct link l = link_make(way);
		struct finding f;
		ssize_t sent, all = 0;

		l.server = accept(l.listener, NULL, NULL);
		assert_int_equal(find(&l).id.unacked, 0);
		while ((sent = send(l.server, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
			all += sent;
		assert_int_equal(errno, EAGAIN);
		close(l.server);
		l.server = -1;
		f = find(&l);
		assert_int_equal(f.id.state, ES_TCP_STATE_FIN_WAIT1);
		assert_true(f.id.unacked && f.id.unacked < all);
		link_end(&l);
	}
}

static void test_is_waiting(void **state)
{
	(void)state;
	EACH_WAY
	{
		struct link l = link_make(way);

		assert_int_equal(es_sock_diag_is_waiting(&way->to, l.port, &way->to, l.client_port), 1);
		l.server = accept(l.listener, NULL, NULL);
		assert_return_code(l.server, errno);
		assert_int_equal(es_sock_diag_is_waiting(&way->to, l.port, &way->to, l.client_port), 0);
		assert_int_equal(es_sock_diag_is_waiting(&way->to, l.port, &way->to, l.client_port ^ 1),
				 -ENOENT);
		link_end(&l);
	}
}

struct listening {
	unsigned int port;
	int takes[2]; /* of IPv4, of IPv6 */
};

static void on_listener(void *ctx, const struct es_sock_diag_listener *l)
{
	struct listening *found = ctx;

	found->takes[0] += es_sock_diag_takes(l, &ways[0].to, found->port);
	found->takes[1] += es_sock_diag_takes(l, &ways[1].to, found->port);
}

/* A listening socket is said to take the connections that the kernel gives it. */
static void test_takes(void **state)
{
	(void)state;
	EACH_WAY
	{
		struct link l = link_make(way);
		struct listening found = {.port = l.port};

		assert_int_equal(es_sock_diag_listeners(on_listener, &found), 0);
		assert_int_equal(found.takes[0], way->family == AF_INET || !way->is_v6only);
		assert_int_equal(found.takes[1], way->family == AF_INET6);
		link_end(&l);
	}
}

/* One that is bound to an interface that there is not takes nobody, though it listens. */
static void test_takes_nobody(void **state)
{
	const int interface = INT_MAX;

	(void)state;
	EACH_WAY
	{
		struct link l = link_make(way);
		struct listening found = {.port = l.port};

		assert_return_code(
			setsockopt(l.listener, SOL_SOCKET, SO_BINDTOIFINDEX, &interface, sizeof(interface)),
			errno);
		assert_int_equal(es_sock_diag_listeners(on_listener, &found), 0);
		assert_int_equal(found.takes[0] + found.takes[1], 0);
		link_end(&l);
	}
}

/* A socket that listens on one address takes nothing that is for another. */
static void test_takes_its_address(void **state)
{
	struct es_addr a = ways[1].to, other = a;
	const struct es_sock_diag_listener l = {.address = a, .port = 80, .is_v6 = 1};

	(void)state;
	NEXT(other);
	assert_true(es_sock_diag_takes(&l, &a, 80));
	assert_false(es_sock_diag_takes(&l, &other, 80));
	assert_false(es_sock_diag_takes(&l, &a, 81));
	assert_false(es_sock_diag_takes(&l, &ways[0].to, 80));
}

static void test_has_address(void **state)
{
	(void)state;
	EACH_WAY
	{
		struct es_addr away = way->to;

		away.b[0] = es_addr_is_v4(&away) ? 0 : 0x20;
		away.b[12] = 192;
		assert_true(es_network_has_address(&way->to));
		assert_false(es_network_has_address(&away));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_and_end),
		cmocka_unit_test(test_is_waiting),
		cmocka_unit_test(test_takes),
		cmocka_unit_test(test_takes_nobody),
		cmocka_unit_test(test_takes_its_address),
		cmocka_unit_test(test_has_address),
		cmocka_unit_test(test_unacked),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
