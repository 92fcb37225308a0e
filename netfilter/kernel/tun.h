/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_TUN_H
#define ES_NETFILTER_KERNEL_TUN_H

/*
 * A tun device of the daemon. The kernel receives what is written into it: before write() returns, the packet
 * has passed PRE_ROUTING, routing, conntrack and LOCAL_IN, as packets from the wire do. Nothing is ever read
 * from it. The kernel removes the device with its address and routes when the last descriptor is closed, so a
 * crash leaves nothing behind.
 */
#include <net/if.h>
#include <stddef.h>
#include <sys/uio.h>
#include "netfilter/kernel/why.h"

#define ES_NF_TUN_NAME "earshot-nf"

/**
 * struct es_nf_tun
 * @fd: any thread may write to it; -1: none
 * @is_marked: packets from it need ES_NF_MARK_SOURCE: es_nf_hook_set() must know
 */
struct es_nf_tun {
	int fd;
	unsigned int index;
	int is_marked;
	char name[IF_NAMESIZE];
};

/**
 * es_nf_tun_open() - make the device in the calling thread's network namespace, and switch it on
 * @name: ES_NF_TUN_NAME, or another one for tests
 * Prepares the device for the kernel's check of sources (source.h). Returns 0 or -errno, with @why: -EBUSY if
 * another process, such as a daemon that still runs, has a device of this name.
 */
int es_nf_tun_open(struct es_nf_tun *tun, const char *name, struct es_nf_why *why);

/* es_nf_tun_close() - remove the device and its rules; may be called again */
void es_nf_tun_close(struct es_nf_tun *tun);

/**
 * es_nf_tun_write() - let the kernel receive a packet
 * @packet: IPv4 or IPv6, from its IP header on, with valid checksums
 * Returns 0 or -errno. It does not tell what becomes of the packet.
 */
int es_nf_tun_write(const struct es_nf_tun *tun, const void *packet, size_t len);

/* es_nf_tun_write_parts() - likewise, for a packet in @n parts */
int es_nf_tun_write_parts(const struct es_nf_tun *tun, const struct iovec *parts, int n);

#endif
