/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_TUN_H
#define ES_NETFILTER_KERNEL_TUN_H

/*
 * A tun device of the daemon's own. What is written into it has come in, for the kernel: it goes through
 * PRE_ROUTING, routing, conntrack and LOCAL_IN as packets from the wire do, before the write returns. Nothing is
 * ever read from it. The kernel removes the device, its address and its routes with the last descriptor, so a
 * daemon that crashes leaves none.
 */
#include <net/if.h>
#include <stddef.h>
#include <sys/uio.h>
#include "netfilter/kernel/why.h"

#define ES_NF_TUN_NAME "earshot-nf"

/**
 * struct es_nf_tun
 * @fd: what to write to, from any thread; -1: none
 * @is_marked: what comes in there has to be marked with ES_NF_MARK_SOURCE: es_nf_hook_set() must know
 */
struct es_nf_tun {
	int fd;
	unsigned int index;
	int is_marked;
	char name[IF_NAMESIZE];
};

/**
 * es_nf_tun_open() - make the device in the calling thread's network namespace, and switch it on
 * @name: ES_NF_TUN_NAME, or whatever tests want
 * It gets what the kernel's check of sources asks for (source.h). Returns 0 or -errno, with @why: -EBUSY if another
 * program, as a daemon that still runs, has a device of this name.
 */
int es_nf_tun_open(struct es_nf_tun *tun, const char *name, struct es_nf_why *why);

/* es_nf_tun_close() - removes the device and what belongs to it; may be called again */
void es_nf_tun_close(struct es_nf_tun *tun);

/**
 * es_nf_tun_write() - let a packet come in
 * @packet: IPv4 or IPv6, from its IP header on, with valid checksums
 * Returns 0 or -errno. What becomes of the packet it does not tell.
 */
int es_nf_tun_write(const struct es_nf_tun *tun, const void *packet, size_t len);

/* es_nf_tun_write_parts() - the same for a packet that is in @n places */
int es_nf_tun_write_parts(const struct es_nf_tun *tun, const struct iovec *parts, int n);

#endif
