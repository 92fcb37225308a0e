// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps frames, sends them, and receives ARP by the same socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <string.h>
#include "netfilter/engine/frames.h"

#define ES_MAC_GROUP 1	     /* in the first byte of a MAC */
#define ES_WHOLE     0x40000 /* more than the bytes of any packet */

/*
 * Drops frames with a VLAN's tag, which belong to another network on the same cable. The kernel has removed
 * the tag, and says that such a frame is for another host. It never says that of an untagged frame to a
 * group's MAC.
 */
static int es_nf_frames_filter(int fd)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (__u32)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OTHERHOST, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (__u32)SKF_LL_OFF),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ES_MAC_GROUP, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, ES_WHOLE),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog untagged = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &untagged, sizeof(untagged));
}

int es_nf_frames_listen(struct es_nf_frames *frames, unsigned int ifindex)
{
	const struct sockaddr_ll here = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = (int)ifindex,
	};

	/* It receives nothing until it is bound. */
	if (frames->fd < 0)
		frames->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (frames->fd < 0 || es_nf_frames_filter(frames->fd) ||
	    bind(frames->fd, (const struct sockaddr *)&here, sizeof(here)))
		return -errno;
	frames->ifindex = ifindex;
	return 0;
}

int es_nf_frames_put(struct es_nf_frames *frames, const __u8 target[6], __u16 protocol, const void *bytes,
		     size_t len)
{
	unsigned int i;

	if (len > ES_NF_FRAME_MAX)
		return -EMSGSIZE;
	if (frames->count == ES_NF_FRAMES)
		(void)es_nf_frames_send(frames, 1);
	i = frames->count++;
	frames->to[i] = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = (int)frames->ifindex,
		.sll_halen = ETH_ALEN,
	};
	memcpy(frames->to[i].sll_addr, target, ETH_ALEN);
	memcpy(frames->bytes[i], bytes, len);
	frames->part[i] = (struct iovec){frames->bytes[i], len};
	frames->message[i] = (struct mmsghdr){
		.msg_hdr =
			{
				.msg_name = &frames->to[i],
				.msg_namelen = sizeof(frames->to[i]),
				.msg_iov = &frames->part[i],
				.msg_iovlen = 1,
			},
	};
	return 0;
}

unsigned int es_nf_frames_send(struct es_nf_frames *frames, int may_leave)
{
	unsigned int count = frames->count, at = 0, lost = 0;

	frames->count = 0;
	if (!may_leave)
		return count;
	while (at < count) {
		int sent = sendmmsg(frames->fd, frames->message + at, count - at, MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		/* The first one failed; the others may not. */
		if (sent < 0)
			lost++;
		at += sent < 0 ? 1 : (unsigned int)sent;
	}
	return lost;
}
