/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REBUILD_H
#define ES_NETFILTER_REBUILD_REBUILD_H

/*
 * TCP Rebuilding with what every kernel since 4.18 has. A conntrack entry, and a SYN that nobody sent, make
 * the listening socket and the kernel's SYNPROXY hook (hook.h) shake hands with each other; the request
 * follows. From then on, the kernel translates sequence numbers, SACK and timestamps by itself, whatever
 * becomes of the daemon. The handshake is a true one: TIME_WAIT, SO_REUSEPORT, TCP_DEFER_ACCEPT, MPTCP and
 * all else are the kernel's own affair.
 */
#include "netfilter/kernel/conntrack.h"
#include "netfilter/kernel/socket.h"
#include "netfilter/kernel/tun.h"
#include "netfilter/rebuild/copies.h"
#include "netfilter/rebuild/request.h"

/**
 * struct es_nf_rebuild - for one thread
 * @tun: may be shared; not owned
 * @diag: for es_nf_socket_look()
 * @copies: of requests; @halves: half connections to which a RST was sent, so that each gets one at a time
 * @made: conntrack's entry of the connection that es_nf_rebuild() made last, from before its request
 */
struct es_nf_rebuild {
	const struct es_nf_tun *tun;
	struct es_nf_conntrack ct;
	struct es_nf_netlink diag;
	struct es_nf_copies *copies;
	struct es_nf_copies *halves;
	struct es_nf_entry made;
};

/**
 * struct es_nf_rebuild_settings
 * @zone: the conntrack zone of the services' packets, 0: none
 * @has_label: as in struct es_nf_hook
 * @copies: how many requests are remembered for a second; ES_NF_COPIES_DEFAULT
 */
#define ES_NF_COPIES_DEFAULT 16384
struct es_nf_rebuild_settings {
	size_t copies;
	int has_label;
	__u16 zone;
};

/* es_nf_rebuild_open() - Returns 0 or -errno, with @why. */
int es_nf_rebuild_open(struct es_nf_rebuild *rebuild, const struct es_nf_tun *tun,
		       const struct es_nf_rebuild_settings *settings, struct es_nf_why *why);

/* es_nf_rebuild_close() - connections go on; may be called again */
void es_nf_rebuild_close(struct es_nf_rebuild *rebuild);

/**
 * struct es_nf_attempt - a connection that is being made: its SYN, or the answer to it, is still under way
 * Usually, the kernel has processed both when write() returns. But another CPU may have the packet (RPS);
 * this CPU may be so busy that packets wait (ksoftirqd, before 6.4); or a rule has dropped it, and it never
 * arrives.
 * @request: its packet stays the caller's until the attempt is over
 */
struct es_nf_attempt {
	struct es_nf_request request;
	__u8 stage;
	__u8 has_come;
	__u8 is_whole;
	__u8 late;
};

/**
 * es_nf_rebuild_begin() - es_nf_rebuild() without waiting
 * @is_patient: 0: give up if something is still under way
 * Returns as es_nf_rebuild() does; or -EINPROGRESS, with @ret_attempt: this thread must call
 * es_nf_rebuild_go_on() until the attempt is over, and must not begin another one for the flow meanwhile.
 */
int es_nf_rebuild_begin(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns,
			int is_patient, struct es_nf_attempt *ret_attempt);

/*
 * es_nf_rebuild_go_on() - look at the attempt again; @is_patient: 0: for the last time. Returns as
 * es_nf_rebuild_begin() does.
 */
int es_nf_rebuild_go_on(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient);

/*
 * es_nf_rebuild_give_up() - end the attempt. Returns -ETIMEDOUT: certainly no connection comes of it; or
 * -ENOBUFS.
 */
int es_nf_rebuild_give_up(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt);

/**
 * es_nf_rebuild() - make a connection here from its request packet; wait for packets under way, 0.1 s at most
 * @request: read (es_nf_request_read()); @now_ns: CLOCK_MONOTONIC
 * Returns
 * - ES_NF_REBUILT: the connection is there;
 * - ES_NF_COPY: it was made from the same request within the last second, and this packet was given to it;
 * - -ENOBUFS: the accept queue is full: nothing has happened, and the client will repeat its request;
 * - -ETIMEDOUT: the listening socket has room, but the attempt came to nothing and was withdrawn
 *   (withdraw.h);
 * - -ECONNREFUSED: nothing listens, and the client got a RST that it believes; if another node could serve,
 *   call es_nf_socket_look() before, to find out whether something listens;
 * - -EADDRINUSE: the flow has a connection here, which is left alone;
 * - -errno: the kernel refused the entry (-ENOSPC, -ENOMEM: the table is full) or a packet.
 */
#define ES_NF_REBUILT 0
#define ES_NF_COPY    1
int es_nf_rebuild(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns);

/**
 * es_nf_leave() - the connection goes to another node: its socket and entry vanish, and the client hears
 * nothing
 * @rcv_nxt: exactly the next byte that the socket expects: the sequence number of the request that is held
 * back For a connection whose server has read everything, and whose client has acknowledged everything.
 * Returns 0, also if there is none; -EBUSY: it is still here, since @rcv_nxt was wrong; or -errno.
 */
int es_nf_leave(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 rcv_nxt);

#endif
