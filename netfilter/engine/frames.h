/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_FRAMES_H
#define ES_NETFILTER_ENGINE_FRAMES_H

/*
 * Frames that wait until all packets of a batch are decided. They leave in one system call, after the kernel
 * has the verdicts on the packets that they answer. A near client sends the handshake's ACK before the call
 * for its SYN-ACK returns, and by then the kernel must know that nobody needs that ACK (drop_by_flow.h).
 */
#include <linux/if_packet.h>
#include <sys/socket.h>
#include "kmod/core/abi.h"

#define ES_NF_FRAMES	64
#define ES_NF_FRAME_MAX 128 /* bytes: an answer by IPv6, with all TCP options */

/**
 * struct es_nf_frames - for one thread
 * @fd: the packet socket, not owned; @ifindex: the interface that sends them
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
 * es_nf_frames_listen() - from now on, send frames by that interface, and receive its ARP packets; opens the
 * socket if needed Returns 0 or -errno.
 */
int es_nf_frames_listen(struct es_nf_frames *frames, unsigned int ifindex);

/*
 * es_nf_frames_put() - add a packet of @protocol for that MAC. If there is no room, sends those that wait.
 * Returns 0 or -EMSGSIZE.
 */
int es_nf_frames_put(struct es_nf_frames *frames, const __u8 target[6], __u16 protocol, const void *bytes,
		     size_t len);

/*
 * es_nf_frames_send() - send all that wait, or, unless @may_leave, discard them. Returns how many were not
 * sent.
 */
unsigned int es_nf_frames_send(struct es_nf_frames *frames, int may_leave);

#endif
