/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the network who has an address: ARP for the nodes' addresses, and ARP probes (RFC 5227, sender
 * 0.0.0.0, which no neighbour remembers) for this node's own and the services'. This node does not hear its
 * own requests, so every answer is somebody else's.
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

#include "inspector/cli/check_facts.h"

#define ROUNDS	 3
#define ROUND_MS 200

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
	struct es_facts_arp *answer;
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

static void answer_add(struct es_facts_arp *answer, const __u8 *mac)
{
	unsigned int i;

	for (i = 0; i < answer->answers && i < 2; i++)
		if (!memcmp(answer->mac[i], mac, 6))
			return;
	if (answer->answers < 2)
		memcpy(answer->mac[answer->answers], mac, 6);
	answer->answers++;
}

static void take(int fd, const struct arp_question *questions, size_t count)
{
	struct arp_packet packet;
	size_t i;

	while (recv(fd, &packet, sizeof(packet), 0) >= (ssize_t)sizeof(packet))
		for (i = 0; i < count && packet.operation == htons(ARPOP_REPLY); i++)
			if (!memcmp(packet.sender, &questions[i].address, 4))
				answer_add(questions[i].answer, packet.sender_mac);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void listen_until(int fd, long deadline, const struct arp_question *questions, size_t count)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	long left;

	while ((left = deadline - now_ms()) > 0 && poll(&p, 1, (int)left) >= 0)
		take(fd, questions, count);
}

static void ask_all(const struct es_facts_link *link, __be32 self, const struct arp_question *questions,
		    size_t count)
{
	int fd, round, rc;
	size_t i;

	rc = fd = link->rc ? link->rc : open_on(link->index);
	for (round = 0; round < ROUNDS && fd >= 0; round++) {
		rc = 0;
		for (i = 0; i < count && !rc; i++)
			rc = ask(fd, link, self, &questions[i]);
		if (rc)
			break;
		listen_until(fd, now_ms() + ROUND_MS, questions, count);
	}
	if (fd >= 0)
		close(fd);
	for (i = 0; i < count; i++)
		questions[i].answer->rc = rc;
}

void es_facts_read_arp(const struct es_conf *conf, int self, struct es_facts *facts)
{
	struct arp_question questions[ES_CONF_NODES_MAX + ES_CONF_SERVICES_MAX];
	__be32 address = self < 0 ? 0 : conf->nodes[self].address.w[3];
	unsigned int i;
	size_t n = 0;

	for (i = 0; i < conf->service_count; i++)
		questions[n++] =
			(struct arp_question){conf->services[i].address.w[3], 1, &facts->service_arp[i]};
	ask_all(&facts->public, address, questions, n);
	for (n = 0, i = 0; i < conf->node_count; i++) {
		int own = (int)i == self;

		questions[n++] = (struct arp_question){conf->nodes[i].address.w[3], own || self < 0,
						       own ? &facts->self_arp : &facts->node_arp[i]};
	}
	if (self < 0)
		facts->self_arp.rc = -ENODATA;
	ask_all(&facts->cluster, address, questions, n);
}
