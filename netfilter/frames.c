// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps frames, and sends them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include "netfilter/frames.h"

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
		/* The first one cannot leave; others may. */
		if (sent < 0)
			lost++;
		at += sent < 0 ? 1 : (unsigned int)sent;
	}
	return lost;
}
