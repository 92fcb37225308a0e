/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_NETLINK_H
#define ES_NETFILTER_KERNEL_NETLINK_H

/*
 * A netlink socket to one of the kernel's subsystems, and requests to it. The kernel carries out a request
 * before sendmsg() returns, so nothing here waits. A socket belongs to the network namespace of the thread
 * that opened it, and to one thread at a time.
 */
#include <libmnl/libmnl.h>

/**
 * struct es_nf_netlink
 * @seq: of the last message that es_nf_netlink_put() began
 */
struct es_nf_netlink {
	struct mnl_socket *socket;
	unsigned int portid;
	unsigned int seq;
};

#define ES_NF_NETLINK_ROOM 8192

/* es_nf_netlink_open() - @bus: NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_SOCK_DIAG. Returns 0 or -errno. */
int es_nf_netlink_open(struct es_nf_netlink *nl, int bus);

/* es_nf_netlink_close() - may be called again, and on a zeroed structure */
void es_nf_netlink_close(struct es_nf_netlink *nl);

/* es_nf_netlink_put() - begin a message at @buf, with NLM_F_REQUEST and @flags */
struct nlmsghdr *es_nf_netlink_put(struct es_nf_netlink *nl, void *buf, unsigned int type,
				   unsigned int flags);

/**
 * es_nf_netlink_push() - send requests without NLM_F_ACK in one system call, and collect the errors
 * @messages: @n of them, begun one after the other by es_nf_netlink_put(); the first has the number
 * @first_seq
 * @ret_rc: for each request 0, or the kernel's negative error
 */
void es_nf_netlink_push(struct es_nf_netlink *nl, const void *messages, size_t len, unsigned int first_seq,
			size_t n, int *ret_rc);

/**
 * es_nf_netlink_talk() - send one request, and read the kernel's answer
 * @nlh: with NLM_F_ACK or NLM_F_DUMP; with neither, @fn must return MNL_CB_STOP for the only message of the
 * answer
 * @fn: called for each message of the answer, or NULL; returns MNL_CB_OK, or MNL_CB_ERROR with errno set
 * Returns 0; the kernel's negative error; or -EINTR if a dump was not consistent.
 */
int es_nf_netlink_talk(struct es_nf_netlink *nl, const struct nlmsghdr *nlh, mnl_cb_t fn, void *ctx);

#endif
