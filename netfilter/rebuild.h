/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_H
#define ES_NETFILTER_REBUILD_H

/*
 * TCP Rebuilding with what every kernel since 4.18 has: an entry in the connection tracking and a SYN that nobody sent
 * make the listening socket and the kernel's SYNPROXY hook shake hands between themselves; the request follows. From
 * then on the kernel translates sequence numbers, SACK and timestamps by itself, whatever becomes of the daemon.
 *
 * The handshake is a true one. So a full accept queue drops the SYN, and the client's repetition finds the flow without a
 * socket; where nothing listens, the client gets a RST that it believes.
 */
#include "netfilter/conntrack.h"
#include "netfilter/copies.h"
#include "netfilter/request.h"
#include "netfilter/socket.h"
#include "netfilter/tun.h"

/**
 * struct es_nf_rebuild - for one thread
 * @tun: may be shared; not owned
 */
struct es_nf_rebuild {
	const struct es_nf_tun *tun;
	struct es_nf_conntrack ct;
	struct es_nf_netlink diag;
	struct es_nf_copies *copies;
};

/**
 * struct es_nf_rebuild_settings
 * @zone: the conntrack zone of the services' packets, 0: none
 * @has_label: struct es_nf_hook's
 * @copies: requests that are remembered for a second; 0: 16,384
 */
struct es_nf_rebuild_settings {
	__u16 zone;
	int has_label;
	size_t copies;
};

int es_nf_rebuild_open(struct es_nf_rebuild *rebuild, const struct es_nf_tun *tun,
		       const struct es_nf_rebuild_settings *settings, struct es_nf_why *why);
void es_nf_rebuild_close(struct es_nf_rebuild *rebuild);

/**
 * es_nf_rebuild() - make the connection from its request packet, here
 * @request: read (es_nf_request_read())
 * @now_ns: CLOCK_MONOTONIC
 * Returns ES_NF_REBUILT: all packets are in, and whether there is a socket es_nf_socket_look() tells;
 * ES_NF_COPY: the connection was made from the same request within the last second, which was put in again, as it is;
 * or -errno, and nothing has happened: -EADDRINUSE if the flow has another connection here (make it leave first).
 */
#define ES_NF_REBUILT 0
#define ES_NF_COPY    1
int es_nf_rebuild(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns);

/* es_nf_rebuild_many() - the same for several, at most ES_NF_BATCH, with one system call less for each */
void es_nf_rebuild_many(struct es_nf_rebuild *rebuild, const struct es_nf_request *requests, size_t n,
			__u64 now_ns, int *ret_rc);

/**
 * es_nf_leave() - the connection goes to another node: its socket and its entry vanish here, and the client hears nothing
 * @rcv_nxt: the next byte that the socket expects, exactly: the sequence number of the request that is held back
 * Call it when the server has read all, and the client acknowledged all (es_nf_socket_is_idle()).
 * Returns 0, also if there was no socket; -EBUSY: it has one still, since @rcv_nxt was wrong, and nothing has changed
 * for it; or -errno.
 */
int es_nf_leave(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 rcv_nxt);

#endif
