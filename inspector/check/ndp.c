// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the network who has an IPv6 address, as arp.c does for IPv4: neighbour solicitations for the services'
 * addresses and this node's own. They are sent from the interface's link-local address, so that each answer
 * comes to this node alone: one to a solicitation without an address goes to all neighbours (RFC 4861,
 * 7.2.4), who would then remember a wrong MAC.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspector/check/facts.h"
#include "inspector/machine/solicited.h"

#define ROUNDS	 3
#define ROUND_MS 150
#define HOPS	 255 /* it has passed no router */

/* A solicitation or an advertisement, with the one option that says a MAC. */
struct ndp_message {
	struct nd_neighbor_solicit head;
	struct nd_opt_hdr option;
	__u8 mac[6];
};
_Static_assert(sizeof(struct ndp_message) == 32, "no padding: it is sent");

struct ndp_question {
	struct es_addr address;
	struct es_facts_answer *answer;
};

/* One network and what is asked there. */
struct ndp_network {
	const struct es_facts_link *link;
	struct ndp_question questions[ES_CONF_SERVICES_MAX + 1];
	size_t count;
	int fd;
	int rc;
};

static int set_up(int fd, unsigned int ifindex)
{
	const int hops = HOPS, on = 1, off = 0, index = (int)ifindex;
	const struct sockaddr_in6 here = {.sin6_family = AF_INET6};
	struct icmp6_filter filter;
	char name[IF_NAMESIZE];

	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
	/* By its name: kernels before 5.0 know no SO_BINDTOIFINDEX. */
	return !if_indextoname(ifindex, name) ||
			       setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter)) ||
			       setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name)) ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)) ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof(off)) ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on)) ||
			       bind(fd, (const void *)&here, sizeof(here))
		       ? -errno
		       : 0;
}

static int open_on(unsigned int ifindex)
{
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6), rc;

	if (fd < 0)
		return -errno;
	rc = set_up(fd, ifindex);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int ask(int fd, const struct es_facts_link *link, const struct es_addr *address)
{
	const struct es_addr group = es_solicited_group(address);
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_scope_id = link->index};
	struct ndp_message asks = {
		.head.nd_ns_type = ND_NEIGHBOR_SOLICIT,
		.option = {.nd_opt_type = ND_OPT_SOURCE_LINKADDR, .nd_opt_len = 1},
	};

	memcpy(&to.sin6_addr, &group, sizeof(group));
	memcpy(&asks.head.nd_ns_target, address, sizeof(*address));
	memcpy(asks.mac, link->mac, sizeof(asks.mac));
	return sendto(fd, &asks, sizeof(asks), 0, (const void *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* Returns the hop limit with which the packet arrived, -1 if there is none left. */
static int take_one(int fd, struct ndp_message *told, size_t *ret_len)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec part = {.iov_base = told, .iov_len = sizeof(*told)};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(fd, &m, 0);
	int hops = 0;

	if (len < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)
			memcpy(&hops, CMSG_DATA(c), sizeof(hops));
	*ret_len = (size_t)len;
	return hops;
}

static void take(const struct ndp_network *network)
{
	struct ndp_message told;
	size_t len;
	int hops;

	while ((hops = take_one(network->fd, &told, &len)) >= 0) {
		if (hops != HOPS || len < sizeof(told) || told.option.nd_opt_type != ND_OPT_TARGET_LINKADDR ||
		    told.option.nd_opt_len != 1)
			continue;
		for (size_t i = 0; i < network->count; i++)
			if (!memcmp(&told.head.nd_ns_target, &network->questions[i].address,
				    sizeof(struct es_addr)))
				es_facts_answer_add(network->questions[i].answer, told.mac);
	}
}

static void ask_all(struct ndp_network *network)
{
	for (size_t i = 0; i < network->count && !network->rc; i++)
		network->rc = ask(network->fd, network->link, &network->questions[i].address);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Listens to the end of the time in any case, since no answer is what is hoped for. */
static void listen_on(const struct ndp_network *networks, long deadline)
{
	struct pollfd p[] = {
		{.fd = networks[0].rc ? -1 : networks[0].fd, .events = POLLIN},
		{.fd = networks[1].rc ? -1 : networks[1].fd, .events = POLLIN},
	};
	long left;

	while ((left = deadline - now_ms()) > 0 && poll(p, 2, (int)left) >= 0)
		for (int i = 0; i < 2; i++)
			if (p[i].revents)
				take(&networks[i]);
}

static void network_open(struct ndp_network *n)
{
	n->fd = !n->count ? -1 : n->link->rc ? n->link->rc : open_on(n->link->index);
	n->rc = n->count && n->fd < 0 ? n->fd : 0;
}

static void network_close(struct ndp_network *n)
{
	for (size_t i = 0; i < n->count; i++)
		n->questions[i].answer->rc = n->rc;
	if (n->fd >= 0)
		close(n->fd);
}

static int is_asked(const struct ndp_network *n)
{
	return n->count && !n->rc;
}

static void exchange(struct ndp_network *networks)
{
	for (int i = 0; i < 2; i++)
		network_open(&networks[i]);
	for (int round = 0; round < ROUNDS && (is_asked(&networks[0]) || is_asked(&networks[1])); round++) {
		ask_all(&networks[0]);
		ask_all(&networks[1]);
		listen_on(networks, now_ms() + ROUND_MS);
	}
	for (int i = 0; i < 2; i++)
		network_close(&networks[i]);
}

static void question_add(struct ndp_network *network, const struct es_addr *address,
			 struct es_facts_answer *answer)
{
	network->questions[network->count++] = (struct ndp_question){.address = *address, .answer = answer};
}

void es_facts_read_ndp(const struct es_conf *conf, int self, struct es_facts *facts)
{
	struct ndp_network networks[2] = {{.link = &facts->public}, {.link = &facts->cluster}};

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			question_add(&networks[0], &conf->services[i].address6, &facts->service_ndp[i]);
	if (self >= 0 && !es_addr_is_v4(&conf->nodes[self].address))
		question_add(&networks[1], &conf->nodes[self].address, &facts->self_ndp);
	exchange(networks);
}
