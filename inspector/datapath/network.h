/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETWORK_H
#define ES_NETWORK_H

/*
 * The node's network as the datapath needs it: what is there (interfaces, MTU, which TCP options the sysctls
 * allow), whether the kernel can do it at all, and the few settings that the daemon makes itself.
 */
#include "inspector/config/config.h"
#include "inspector/base/error.h"
#include "inspector/datapath/datapath.h"

/**
 * struct es_network - facts about this node
 * @packet_max: bytes of the longest client packet that fits into a handover message
 * @mss: what a SYN-ACK announces, so that a full segment is no longer than that
 */
struct es_network {
	unsigned int public_ifindex;
	unsigned int cluster_ifindex;
	unsigned int packet_max;
	unsigned int mss;
	unsigned char public_mac[6];
	int wscale;
	int sack;
	int timestamps;
	int ecn;
};

/**
 * es_network_probe_kernel() - does this kernel have what the BPF datapath is built on?
 * Asks the kernel's own type information for bpf_sk_assign_tcp_reqsk(), never the version.
 * Returns 0, or -ENOTSUP and in @err what is missing and what to do, in one line.
 */
int es_network_probe_kernel(struct es_conf_error *err);

/**
 * es_network_cookies_are_wrong() - does net.ipv4.tcp_syncookies keep this datapath from making connections?
 * BPF has the kernel believe a cookie, and with 0 it believes none. Netfilter has the listening socket take a
 * SYN: with 2 it answers each by a cookie of its own, which forgets window scale and SACK unless the client
 * sends back its timestamp. The module makes its requests itself, whether the kernel sends cookies or not.
 * Returns 0, or 1 and the reason in @why, to which "; set it to 1" can be added.
 */
int es_network_cookies_are_wrong(enum es_datapath_kind kind, const char **ret_why);

/* es_network_probe() - do kernel and sysctls let this datapath rebuild?
 * Returns as es_network_probe_kernel(). */
int es_network_probe(enum es_datapath_kind kind, struct es_conf_error *err);

/*
 * Bytes by which a handover message is longer than the client's packet in it: depends on the family of the
 * nodes' addresses.
 */
unsigned int es_network_overhead(const struct es_conf *conf);

/* The longest client packet that fits into a handover message;
 * below the minimum the daemon does not start. */
#define ES_NETWORK_PACKET_MIN (40 + ES_TCP_MSS_MIN)
unsigned int es_network_packet_max(const struct es_conf *conf, unsigned int cluster_mtu,
				   unsigned int public_mtu);

/* The MSS with which a full segment of IPv4 is no longer than that. */
static inline unsigned int es_network_mss(unsigned int packet_max)
{
	return packet_max - 40;
}

/* es_network_read() - returns 0, or -errno and @err */
int es_network_read(const struct es_conf *conf, struct es_network *ret_network, struct es_conf_error *err);

/**
 * es_network_prepare() - make the settings that belong to the datapath
 * The public interface takes frames for the cluster MAC; rp_filter is loose where handovers arrive; the node
 * never answers or announces ARP for the service address by itself. The file @found notes what sysctls were
 * before (sysctl.h). Idempotent. Returns 0, or -errno and @err.
 */
int es_network_prepare(const struct es_conf *conf, const char *found, struct es_conf_error *err);

/* Is there a cable in @interface, with something at its other end? 1 also if the kernel does not tell. */
int es_network_has_carrier(const char *interface);

/* Does the kernel take what is sent to @address for its own? 1 also if it does not tell. */
int es_network_has_address(const struct es_addr *address);

/* The reverse-path filter in force on @interface: 1 is strict. */
int es_network_rp_filter(const char *interface);

/* Does a handover message of so many bytes go through @cluster_interface as a whole? */
int es_network_mtu_is_enough(const char *cluster_interface, unsigned int bytes);

#endif
