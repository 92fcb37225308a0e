// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does the private network carry what the interface's MTU promises? Sends each other node two ICMP echo
 * requests that may not be fragmented, a short one and one of full length.
 */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspector/base/sockaddr.h"
#include "inspector/check/facts.h"

#define ROUNDS	     3
#define ROUND_MS     200
#define PACKET_MAX   65535
#define SMALL_BYTES  64
#define HEADER_BYTES ((int)sizeof(struct icmphdr))

/* ICMPv6's header of an echo is the same, and its kinds have other numbers. */
_Static_assert(sizeof(struct icmphdr) == sizeof(struct icmp6_hdr), "one header for both families");

struct echo {
	const struct es_conf *conf;
	struct es_facts *facts;
	unsigned int self;
	unsigned short id;
	int fd;
	size_t full_bytes;
	unsigned char *buffer;
};

static unsigned short checksum(const unsigned char *data, size_t len)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (unsigned int)data[i] << 8 | data[i + 1];
	if (len % 2)
		sum += (unsigned int)data[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((unsigned short)~sum);
}

static int is_v6(const struct es_conf *conf)
{
	return !es_addr_is_v4(&conf->nodes[0].address);
}

/*
 * Lets no packet be fragmented, nor be held back because it is longer than a route's MTU. Returns 0, or -1
 * and errno.
 */
static int unfragmented(int fd, int family)
{
	const int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE, on = 1;

	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
	return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6)) ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &on, sizeof(on))
		       ? -1
		       : 0;
}

static int open_socket(const struct es_conf *conf, unsigned int self)
{
	const union es_sockaddr from = es_sockaddr_of(&conf->nodes[self].address, 0);
	int family = from.sa.sa_family;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	int rc;

	if (fd < 0)
		return -errno;
	if (!unfragmented(fd, family) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, conf->datapath.cluster_interface,
			(socklen_t)strlen(conf->datapath.cluster_interface)) &&
	    !bind(fd, &from.sa, es_sockaddr_len(&from)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void request(const struct echo *e, unsigned int node, int full)
{
	size_t len = (full ? e->full_bytes : SMALL_BYTES) -
		     (is_v6(e->conf) ? sizeof(struct ip6_hdr) : sizeof(struct iphdr));
	const union es_sockaddr to = es_sockaddr_of(&e->conf->nodes[node].address, 0);
	struct icmphdr header = {
		.type = is_v6(e->conf) ? ICMP6_ECHO_REQUEST : ICMP_ECHO,
		.un.echo = {.id = e->id, .sequence = htons((unsigned short)(2 * node + (full ? 1 : 0)))},
	};

	memset(e->buffer, 0, len);
	memcpy(e->buffer, &header, sizeof(header));
	if (!is_v6(e->conf)) { /* the kernel makes that of ICMPv6 */
		header.checksum = checksum(e->buffer, len);
		memcpy(e->buffer, &header, sizeof(header));
	}
	/* Whatever goes wrong here (no route, too long for the interface) shows as no answer. */
	(void)!sendto(e->fd, e->buffer, len, 0, &to.sa, es_sockaddr_len(&to));
}

static void take(const struct echo *e)
{
	struct icmphdr header;
	unsigned int node, at;
	ssize_t n;

	while ((n = recv(e->fd, e->buffer, PACKET_MAX, 0)) > 0) {
		at = is_v6(e->conf) ? 0
				    : (e->buffer[0] & 15U) * 4; /* IPv6's raw sockets keep the header back */
		if (n < (ssize_t)at + HEADER_BYTES)
			continue;
		memcpy(&header, e->buffer + at, sizeof(header));
		node = ntohs(header.un.echo.sequence) / 2;
		if (header.type != (is_v6(e->conf) ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) ||
		    header.un.echo.id != e->id || node >= e->conf->node_count)
			continue;
		if (ntohs(header.un.echo.sequence) % 2)
			e->facts->node_echo[node].full = 1;
		else
			e->facts->node_echo[node].small = 1;
	}
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Asks the open questions, if @send. Return: how many have no answer yet. */
static unsigned int ask(const struct echo *e, int send)
{
	unsigned int i, open = 0;
	int full;

	for (i = 0; i < e->conf->node_count; i++)
		for (full = 0; full < 2 && i != e->self && !e->conf->nodes[i].removed; full++) {
			if (full ? e->facts->node_echo[i].full : e->facts->node_echo[i].small)
				continue;
			open++;
			if (send)
				request(e, i, full);
		}
	return open;
}

static void exchange(const struct echo *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	int round;

	for (round = 0; round < ROUNDS; round++) {
		long left, deadline = now_ms() + ROUND_MS;

		if (!ask(e, 1))
			return;
		while ((left = deadline - now_ms()) > 0 && poll(&p, 1, (int)left) >= 0) {
			take(e);
			if (!ask(e, 0))
				return;
		}
	}
}

void es_facts_read_echo(const struct es_conf *conf, int self, struct es_facts *facts)
{
	unsigned int i, mtu = conf->datapath.mtu ? conf->datapath.mtu : facts->cluster.mtu;
	struct echo e = {
		.conf = conf,
		.facts = facts,
		.self = (unsigned int)self,
		.id = htons((unsigned short)getpid()),
		.full_bytes = mtu > PACKET_MAX	  ? PACKET_MAX
			      : mtu < SMALL_BYTES ? SMALL_BYTES
						  : mtu,
		.buffer = malloc(PACKET_MAX),
	};
	int rc = -ENODATA;

	if (self >= 0)
		rc = e.buffer ? open_socket(conf, e.self) : -ENOMEM;
	if (rc >= 0) {
		e.fd = rc;
		exchange(&e);
		close(e.fd);
	}
	for (i = 0; i < conf->node_count; i++)
		facts->node_echo[i].rc = rc < 0 ? rc : 0;
	free(e.buffer);
}
