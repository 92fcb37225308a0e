// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The frames by which the nodes hear each other on the public network: sending, receiving, what is wrong with
 * this node's link. The protocol is one of its own: a packet socket for IP would be in the datapath's way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/datagram_mac.h"
#include "inspector/base/wall.h"
#include "inspector/datapath/network.h"
#include "inspector/self/public_link.h"
#include "kmod/core/abi.h"
#include "kmod/core/types.h"

#define RECEIVE_MAX 256 /* frames at once: somebody else may send more than we like */
#define REPLAY_MS   10000

static __be64 message_mac(const struct es_sipkey *key, const struct es_public_link_message *message)
{
	const size_t len = offsetof(struct es_public_link_message, mac);

	return es_datagram_mac(key, message, len, len);
}

void es_public_link_put(struct es_public_link_message *ret, const struct es_sipkey *ring, unsigned int source,
			uint64_t sequence, const struct es_hearing_word *word)
{
	*ret = (struct es_public_link_message){
		.magic = es_htonl(ES_PUBLIC_LINK_MAGIC),
		.version = ES_PUBLIC_LINK_VERSION,
		.source = (__u8)source,
		.flags = word->is_steady ? ES_PUBLIC_LINK_STEADY : 0,
		.sequence = (__be64)es_cpu_be64(sequence),
	};
	for (unsigned int i = 0; i < ES_HEARING_WORDS; i++)
		ret->hears[i] = (__be64)es_cpu_be64(word->hears[i]);
	ret->mac = message_mac(ring, ret);
}

int es_public_link_get(const struct es_public_link_message *message, const struct es_sipkey *ring,
		       struct es_hearing_word *ret_word)
{
	if (message->magic != es_htonl(ES_PUBLIC_LINK_MAGIC) || message->version != ES_PUBLIC_LINK_VERSION ||
	    message->mac != message_mac(ring, message))
		return -EBADMSG;
	ret_word->is_steady = !!(message->flags & ES_PUBLIC_LINK_STEADY);
	for (unsigned int i = 0; i < ES_HEARING_WORDS; i++)
		ret_word->hears[i] = es_cpu_be64((__u64)message->hears[i]);
	return 0;
}

int es_public_link_open(struct es_public_link *link, const struct es_conf *conf, unsigned int self,
			unsigned int ifindex, const unsigned char *public_mac, const struct es_sipkey *ring)
{
	memset(link, 0, sizeof(*link));
	link->fd = -1;
	link->ring = ring;
	es_hearing_init(&link->hearing, self, conf->node_count);
	memcpy(link->frame, conf->datapath.cluster_mac, ETH_ALEN);
	link->frame[12] = ES_WAKE_PROTOCOL >> 8;
	link->frame[13] = ES_WAKE_PROTOCOL & 0xff;
	return es_public_link_bind(link, ifindex, public_mac);
}

int es_public_link_bind(struct es_public_link *link, unsigned int ifindex, const unsigned char *public_mac)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ES_WAKE_PROTOCOL),
		.sll_ifindex = (int)ifindex,
	};
	int rc;

	es_public_link_close(link);
	link->ifindex = ifindex;
	memcpy(link->frame + ETH_ALEN, public_mac, ETH_ALEN);
	link->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd < 0)
		return -errno;
	if (!bind(link->fd, (struct sockaddr *)&at, sizeof(at)))
		return 0;
	rc = -errno;
	es_public_link_close(link);
	return rc;
}

void es_public_link_close(struct es_public_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

void es_public_link_begin_deaf(struct es_public_link *link, uint64_t clients, uint64_t now_ms)
{
	es_deaf_begin(&link->deaf, clients, now_ms);
	link->began_deaf = 1;
}

static void probe_send(struct es_public_link *link, uint64_t now_ms)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)link->ifindex,
		.sll_halen = ETH_ALEN,
	};
	struct es_public_link_message message;
	uint64_t number = es_number_ns();
	struct es_hearing_word word;

	es_hearing_say(&link->hearing, now_ms, &word);
	link->sequence = number > link->sequence ? number : link->sequence + 1;
	es_public_link_put(&message, link->ring, link->hearing.self, link->sequence, &word);
	memcpy(link->frame + ETH_HLEN, &message, sizeof(message));
	memcpy(to.sll_addr, link->frame, ETH_ALEN);
	/* A frame that is lost is lost: the next one follows. */
	if (sendto(link->fd, link->frame, sizeof(link->frame), 0, (struct sockaddr *)&to, sizeof(to)) > 0)
		es_hearing_sent(&link->hearing, now_ms);
}

static void frame_take(struct es_public_link *link, const unsigned char *frame, uint64_t now_ms)
{
	struct es_public_link_message message;
	struct es_hearing_word word;
	uint64_t sequence;

	memcpy(&message, frame + ETH_HLEN, sizeof(message));
	if (message.source >= link->hearing.count || message.source == link->hearing.self ||
	    es_public_link_get(&message, link->ring, &word))
		return;
	sequence = es_cpu_be64((__u64)message.sequence);
	/* One whose clock was set back is heard again in the end. */
	if (sequence <= link->sequence_of[message.source] &&
	    now_ms - link->hearing.peer[message.source].heard_ms < REPLAY_MS)
		return;
	link->sequence_of[message.source] = sequence;
	link->probe_ms = now_ms;
	es_hearing_heard(&link->hearing, message.source, &word, now_ms);
}

static void frames_take(struct es_public_link *link, uint64_t now_ms)
{
	unsigned char frame[sizeof(link->frame)];

	for (unsigned int i = 0; i < RECEIVE_MAX; i++) {
		ssize_t got = recv(link->fd, frame, sizeof(frame), 0);

		/* An interface that went down is said once, as an error. */
		if (got < 0 && errno != ENETDOWN)
			return;
		if (got >= (ssize_t)(ETH_HLEN + sizeof(struct es_public_link_message)))
			frame_take(link, frame, now_ms);
	}
}

/* Frames that the interface has received; 0 if the kernel does not tell. */
static uint64_t received_read(unsigned int ifindex)
{
	struct ifaddrs *list, *ifa;
	uint64_t received = 0;

	if (getifaddrs(&list))
		return 0;
	for (ifa = list; ifa; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_PACKET && ifa->ifa_data &&
		    ((const struct sockaddr_ll *)(const void *)ifa->ifa_addr)->sll_ifindex == (int)ifindex)
			received = ((const struct rtnl_link_stats *)ifa->ifa_data)->rx_packets;
	freeifaddrs(list);
	return received;
}

/*
 * Is there a node whose frames should come? Not every version sends them, but those that were missed before
 * do.
 */
static int others_are_there(const struct es_public_link *link, const struct es_public_link_others *others)
{
	for (unsigned int i = 0; i < link->hearing.count; i++)
		if ((link->hearing.peer[i].heard_ms || link->began_deaf) && others->is_there(others->ctx, i))
			return 1;
	return 0;
}

static void deaf_look(struct es_public_link *link, const struct es_public_link_others *others,
		      uint64_t now_ms)
{
	struct es_deaf_signs signs = {
		.any = received_read(link->ifindex),
		.probe_ms = link->probe_ms,
		.has_others = others->has_others,
	};

	if (signs.probe_ms == link->deaf.probe_ms) {
		signs.clients = others->clients(others->ctx);
		signs.others_are_there = others_are_there(link, others);
	}
	es_deaf_look(&link->deaf, &signs, now_ms);
}

/* The trouble, from when it begins until it is over, or NULL. */
static const char *mute_check(struct es_public_link *link, const struct es_conf *conf, uint64_t now_ms)
{
	unsigned int one, other;

	if (!es_hearing_is_mute(&link->hearing, now_ms)) {
		link->mute[0] = 0;
		return NULL;
	}
	if (!link->mute[0] && !es_hearing_witnesses(&link->hearing, now_ms, &one, &other))
		snprintf(link->mute, sizeof(link->mute),
			 "is mute: %s and %s hear each other there, and nobody hears this node any more",
			 conf->nodes[one].name, conf->nodes[other].name);
	return link->mute;
}

const char *es_public_link_check(struct es_public_link *link, const struct es_conf *conf,
				 const struct es_public_link_others *others, uint64_t now_ms)
{
	const char *interface = conf->datapath.interface;

	frames_take(link, now_ms);
	if (!es_network_has_carrier(interface))
		return "has no carrier";
	if (now_ms - link->probed_ms >= ES_HEARING_EVERY_MS) {
		deaf_look(link, others, now_ms);
		link->probed_ms = now_ms;
		probe_send(link, now_ms);
	}
	if (link->deaf.kind == ES_DEAF_ALL)
		return "receives nothing";
	if (link->deaf.kind == ES_DEAF_MAC)
		return "receives nothing that is sent to the cluster MAC, only other frames: "
		       "the switch does not send it to this port any more (IGMP snooping?)";
	return mute_check(link, conf, now_ms);
}
