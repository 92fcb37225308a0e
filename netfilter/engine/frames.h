/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_FRAMES_H
#define ES_NETFILTER_ENGINE_FRAMES_H

/*
 * Frames that wait to leave by a packet socket until all packets of a batch are decided: by one system call, and behind what the kernel
 * is told about the packets that they answer. A client that is near sends the handshake's ACK before the call for its SYN-ACK
 * returns; by then, the kernel is to know that nobody waits for that (drop_by_flow.h).
 */
#include <linux/if_packet.h>
#include <sys/socket.h>
#include "kmod/core/abi.h"

#define ES_NF_FRAMES	64
#define ES_NF_FRAME_MAX 128 /* bytes: an answer by IPv6, with all options of TCP */

/**
 * struct es_nf_frames - for one thread
 * @fd: of the packet socket, not owned; @ifindex: where they leave
 */
struct es_nf_frames {
	int fd;
	unsigned int ifindex;
	unsigned int count;
	struct mmsghdr message[ES_NF_FRAMES];
	struct iovec part[ES_NF_FRAMES];
	struct sockaddr_ll to[ES_NF_FRAMES];
	__u8 bytes[ES_NF_FRAMES][ES_NF_FRAME_MAX];
};

/*
 * es_nf_frames_listen() - open the socket, if it is not: frames leave by that interface from now on, and its ARP packets come in
 * Returns 0 or -errno.
 */
int es_nf_frames_listen(struct es_nf_frames *frames, unsigned int ifindex);

/* es_nf_frames_put() - a packet of @protocol to that MAC. Returns 0, or -EMSGSIZE. Where too many wait, they leave. */
int es_nf_frames_put(struct es_nf_frames *frames, const __u8 target[6], __u16 protocol, const void *bytes,
		     size_t len);

/* es_nf_frames_send() - let all leave that wait, or, unless @may_leave, none. Returns how many have not left. */
unsigned int es_nf_frames_send(struct es_nf_frames *frames, int may_leave);

#endif
