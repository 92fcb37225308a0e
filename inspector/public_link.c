// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_link.h>
#include "inspector/network.h"
#include "inspector/public_link.h"
#include "kmod/core/abi.h"

#define PROBE_EVERY_MS 300
#define DEAF_AFTER_MS  1500

int es_public_link_open(struct es_public_link *link, const struct es_conf *conf, unsigned int ifindex,
			const unsigned char *public_mac)
{
	static const char text[] = "earshot: can you hear me?";

	memset(link, 0, sizeof(*link));
	link->ifindex = ifindex;
	memcpy(link->frame, conf->datapath.cluster_mac, ETH_ALEN);
	memcpy(link->frame + ETH_ALEN, public_mac, ETH_ALEN);
	link->frame[12] = ES_WAKE_PROTOCOL >> 8;
	link->frame[13] = ES_WAKE_PROTOCOL & 0xff;
	memcpy(link->frame + ETH_HLEN, text, sizeof(text));
	/* Protocol 0: it receives nothing. */
	link->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return link->fd < 0 ? -errno : 0;
}

void es_public_link_close(struct es_public_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

static void probe_send(const struct es_public_link *link)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)link->ifindex,
		.sll_halen = ETH_ALEN,
	};
	ssize_t sent;

	memcpy(to.sll_addr, link->frame, ETH_ALEN);
	sent = sendto(link->fd, link->frame, sizeof(link->frame), 0, (struct sockaddr *)&to, sizeof(to));
	(void)sent; /* what is lost is lost: the next one follows */
}

/* Frames that the interface has received; 0 if the kernel does not tell. */
static uint64_t received_read(const char *interface)
{
	struct ifaddrs *list, *ifa;
	uint64_t received = 0;

	if (getifaddrs(&list))
		return 0;
	for (ifa = list; ifa; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_PACKET && ifa->ifa_data &&
		    !strcmp(ifa->ifa_name, interface))
			received = ((const struct rtnl_link_stats *)ifa->ifa_data)->rx_packets;
	freeifaddrs(list);
	return received;
}

const char *es_public_link_check(struct es_public_link *link, const char *interface, int has_others,
				 uint64_t now_ms)
{
	uint64_t received;

	if (!es_network_has_carrier(interface))
		return "has no carrier";
	if (now_ms - link->probed_ms >= PROBE_EVERY_MS) {
		/* After a sleep, what was sent meanwhile is still to be counted. */
		if (now_ms - link->probed_ms >= DEAF_AFTER_MS)
			link->heard_ms = now_ms;
		link->probed_ms = now_ms;
		probe_send(link);
		received = received_read(interface);
		if (received != link->received || (!has_others && !link->is_deaf))
			link->heard_ms = now_ms;
		link->received = received;
	}
	link->is_deaf = now_ms - link->heard_ms >= DEAF_AFTER_MS;
	return link->is_deaf ? "receives nothing" : NULL;
}
