/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REBUILD_H
#define ES_NETFILTER_REBUILD_REBUILD_H

/*
 * TCP Rebuilding with what every kernel since 4.18 has: an entry in the connection tracking and a SYN that nobody sent
 * make the listening socket and the kernel's SYNPROXY hook (hook.h) shake hands between themselves; the request follows.
 * From then on the kernel translates sequence numbers, SACK and timestamps by itself, whatever becomes of the daemon.
 *
 * The handshake is a true one: TIME_WAIT, SO_REUSEPORT, TCP_DEFER_ACCEPT, MPTCP and all else are the kernel's own affair.
 */
#include "netfilter/kernel/conntrack.h"
#include "netfilter/rebuild/copies.h"
#include "netfilter/rebuild/request.h"
#include "netfilter/kernel/socket.h"
#include "netfilter/kernel/tun.h"

/**
 * struct es_nf_rebuild - for one thread
 * @tun: may be shared; not owned
 * @diag: for es_nf_socket_look()
 * @copies: of requests; @halves: of those half connections that were ended, so that each gets one RST at a time
 * @made: of the connection that es_nf_rebuild() made last, what the connection tracking knew before its request
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
 * @has_label: struct es_nf_hook's
 * @copies: how many requests are remembered for a second, ES_NF_COPIES_DEFAULT
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
 * struct es_nf_attempt - to make a connection, which is not over: its SYN, or the answer to it, has not come as far as it must. Mostly, the
 * kernel is through with both when they are written. But another CPU may have them (RPS), or the one here may be so busy that packets wait
 * (ksoftirqd, before 6.4); or a rule has dropped them, and they never come.
 * @request: its packet is the caller's, up to the end
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
 * @is_patient: 0: what has not come yet is not waited for
 * Returns what that does; or -EINPROGRESS, with @ret_attempt: it is to be looked at again, by this thread, until it is over. Its flow
 * is not to be made of another request meanwhile.
 */
int es_nf_rebuild_begin(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns,
			int is_patient, struct es_nf_attempt *ret_attempt);

/* es_nf_rebuild_go_on() - look at it; @is_patient: 0: for the last time. Returns what es_nf_rebuild_begin() does. */
int es_nf_rebuild_go_on(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient);

/* es_nf_rebuild_give_up() - nothing comes of it any more. Returns -ETIMEDOUT: that is certain; or -ENOBUFS. */
int es_nf_rebuild_give_up(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt);

/**
 * es_nf_rebuild() - make the connection from its request packet, here, and wait for what is on its way, 0.1 s at most
 * @request: read (es_nf_request_read()); @now_ns: CLOCK_MONOTONIC
 * Returns ES_NF_REBUILT: it is there;
 * ES_NF_COPY: it was made from the same request within the last second, and this one was put in as it is;
 * -ENOBUFS: the accept queue is full: nothing has happened, and the client repeats its request;
 * -ETIMEDOUT: the listening socket has room, and nothing has come of the attempt, nor will: it is withdrawn (withdraw.h);
 * -ECONNREFUSED: nothing listens, and the client has got a RST that it believes (es_nf_socket_look() before tells
 * whether there is somebody, if another node could serve);
 * -EADDRINUSE: the flow has a connection here, which is left alone;
 * or -errno: the kernel refused the entry (-ENOSPC, -ENOMEM: the table is full) or a packet.
 */
#define ES_NF_REBUILT 0
#define ES_NF_COPY    1
int es_nf_rebuild(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns);

/**
 * es_nf_leave() - the connection goes to another node: its socket and its entry vanish here, and the client hears nothing
 * @rcv_nxt: the next byte that the socket expects, exactly: the sequence number of the request that is held back
 * For a connection whose server has read all, and whose client has acknowledged all.
 * Returns 0, also if there was none; -EBUSY: it is here still, since @rcv_nxt was wrong; or -errno.
 */
int es_nf_leave(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 rcv_nxt);

#endif
