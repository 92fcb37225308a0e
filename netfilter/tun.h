/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_TUN_H
#define ES_NETFILTER_TUN_H

/*
 * A tun device of the daemon's own. What is written into it has come in, to the kernel: it goes through
 * PRE_ROUTING, routing, conntrack and LOCAL_IN as packets from the wire do, before the write returns. Nothing is
 * ever read from it. The kernel removes the device, its address and its routes with the last descriptor, so a
 * daemon that crashes leaves nothing behind.
 */
#include <net/if.h>
#include <stddef.h>
#include "netfilter/why.h"

#define ES_NF_TUN_NAME "earshot-nf"

/**
 * struct es_nf_tun - @fd: what to write to, from any thread; -1: none
 */
struct es_nf_tun {
	int fd;
	unsigned int index;
	char name[IF_NAMESIZE];
};

/**
 * es_nf_tun_open() - make the device in the calling thread's network namespace, and switch it on
 * @name: ES_NF_TUN_NAME, or whatever tests want
 * @v4: an address of its own (ES_NF_TUN_ADDRESS/32, scope host, so nothing is ever sent from it): without any, the kernel's
 *      source check (rp_filter 2) refuses every packet that comes in there.
 * Returns 0 or -errno, with @why.
 */
#define ES_NF_TUN_ADDRESS "169.254.254.1"
int es_nf_tun_open(struct es_nf_tun *tun, const char *name, struct es_nf_why *why);

/* es_nf_tun_close() - removes the device; may be called again */
void es_nf_tun_close(struct es_nf_tun *tun);

/**
 * es_nf_tun_write() - let a packet come in
 * @packet: IPv4 or IPv6, from its IP header on, with valid checksums
 * Returns 0 or -errno; what becomes of the packet, it does not tell.
 */
int es_nf_tun_write(const struct es_nf_tun *tun, const void *packet, size_t len);

#endif
