// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the network who has an address: ARP for the nodes' addresses, and ARP probes (RFC 5227, sender
 * 0.0.0.0, which no neighbour remembers) for this node's own and the services'. This node does not hear its
 * own requests, so every answer is somebody else's. For IPv6: ndp.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspector/check/facts.h"

#define ROUNDS	 3
#define ROUND_MS 150

struct arp_packet {
	__be16 hardware, protocol;
	__u8 hardware_len, protocol_len;
	__be16 operation;
	__u8 sender_mac[6], sender[4], target_mac[6], target[4];
} __attribute__((packed));

/* One question: an address, and where the answer goes. */
struct arp_question {
	__be32 address;
	int probe;
	struct es_facts_answer *answer;
};

static int open_on(unsigned int ifindex)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = (int)ifindex,
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ARP));
	int rc;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const void *)&address, sizeof(address)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int ask(int fd, const struct es_facts_link *link, __be32 self, const struct arp_question *q)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = (int)link->index,
		.sll_halen = 6,
		.sll_addr = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	};
	struct arp_packet packet = {
		.hardware = htons(ARPHRD_ETHER),
		.protocol = htons(ETH_P_IP),
		.hardware_len = 6,
		.protocol_len = 4,
		.operation = htons(ARPOP_REQUEST),
	};

	memcpy(packet.sender_mac, link->mac, 6);
	if (!q->probe)
		memcpy(packet.sender, &self, 4);
	memcpy(packet.target, &q->address, 4);
	return sendto(fd, &packet, sizeof(packet), 0, (const void *)&to, sizeof(to)) < 0 ? -errno : 0;
}

void es_facts_answer_add(struct es_facts_answer *answer, const __u8 *mac)
{
	unsigned int i;

	for (i = 0; i < answer->answers && i < 2; i++)
		if (!memcmp(answer->mac[i], mac, 6))
			return;
	if (answer->answers < 2)
		memcpy(answer->mac[answer->answers], mac, 6);
	answer->answers++;
}

/* One network and what is asked there. */
struct arp_network {
	const struct es_facts_link *link;
	struct arp_question questions[ES_CONF_NODES_MAX + ES_CONF_SERVICES_MAX];
	size_t count;
	int fd;
	int rc;
};

static void take(const struct arp_network *network)
{
	struct arp_packet packet;
	size_t i;

	while (recv(network->fd, &packet, sizeof(packet), 0) >= (ssize_t)sizeof(packet))
		for (i = 0; i < network->count && packet.operation == htons(ARPOP_REPLY); i++)
			if (!memcmp(packet.sender, &network->questions[i].address, 4))
				es_facts_answer_add(network->questions[i].answer, packet.sender_mac);
}

static void ask_all(struct arp_network *network, __be32 self)
{
	size_t i;

	for (i = 0; i < network->count && !network->rc; i++)
		network->rc = ask(network->fd, network->link, self, &network->questions[i]);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Listens to the end of the time in any case, since most of the questions hope for no answer. */
static void listen_on(const struct arp_network *networks, long deadline)
{
	struct pollfd p[] = {
		{.fd = networks[0].rc ? -1 : networks[0].fd, .events = POLLIN},
		{.fd = networks[1].rc ? -1 : networks[1].fd, .events = POLLIN},
	};
	long left;
	int i;

	while ((left = deadline - now_ms()) > 0 && poll(p, 2, (int)left) >= 0)
		for (i = 0; i < 2; i++)
			if (p[i].revents)
				take(&networks[i]);
}

static void exchange(struct arp_network *networks, __be32 self)
{
	int i, round;
	size_t k;

	for (i = 0; i < 2; i++) {
		struct arp_network *n = &networks[i];

		n->fd = n->link->rc ? n->link->rc : open_on(n->link->index);
		n->rc = n->fd < 0 ? n->fd : 0;
	}
	for (round = 0; round < ROUNDS && !(networks[0].rc && networks[1].rc); round++) {
		ask_all(&networks[0], self);
		ask_all(&networks[1], self);
		listen_on(networks, now_ms() + ROUND_MS);
	}
	for (i = 0; i < 2; i++) {
		for (k = 0; k < networks[i].count; k++)
			networks[i].questions[k].answer->rc = networks[i].rc;
		if (networks[i].fd >= 0)
			close(networks[i].fd);
	}
}

static void question_add(struct arp_network *network, const struct es_addr *address, int probe,
			 struct es_facts_answer *answer)
{
	network->questions[network->count++] =
		(struct arp_question){.address = address->w[3], .probe = probe, .answer = answer};
}

void es_facts_read_arp(const struct es_conf *conf, int self, struct es_facts *facts)
{
	struct arp_network networks[2] = {{.link = &facts->public}, {.link = &facts->cluster}};
	unsigned int i;

	for (i = 0; i < conf->service_count; i++)
		if (es_conf_service_of(&conf->services[i], 0))
			question_add(&networks[0], &conf->services[i].address, 1, &facts->service_arp[i]);
	for (i = 0; i < conf->node_count && es_addr_is_v4(&conf->nodes[i].address); i++)
		if (conf->nodes[i].removed)
			continue;
		else if ((int)i == self)
			question_add(&networks[1], &conf->nodes[i].address, 1, &facts->self_arp);
		else
			question_add(&networks[1], &conf->nodes[i].address, self < 0, &facts->node_arp[i]);
	exchange(networks, self < 0 ? 0 : conf->nodes[self].address.w[3]);
	if (self < 0)
		facts->self_arp.rc = -ENODATA;
}
