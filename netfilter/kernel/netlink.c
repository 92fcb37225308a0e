// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Talks to the kernel's netlink subsystems.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include "netfilter/kernel/netlink.h"

int es_nf_netlink_open(struct es_nf_netlink *nl, int bus)
{
	int yes = 1, rc;

	*nl = (struct es_nf_netlink){.socket = mnl_socket_open2(bus, SOCK_CLOEXEC)};
	if (!nl->socket)
		return -errno;
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		rc = -errno;
		es_nf_netlink_close(nl);
		return rc;
	}
	/* Errors need not quote the request. Kernels before 4.3 quote it all the same. */
	(void)mnl_socket_setsockopt(nl->socket, NETLINK_CAP_ACK, &yes, sizeof(yes));
	nl->portid = mnl_socket_get_portid(nl->socket);
	return 0;
}

void es_nf_netlink_close(struct es_nf_netlink *nl)
{
	if (nl->socket)
		mnl_socket_close(nl->socket);
	nl->socket = NULL;
}

struct nlmsghdr *es_nf_netlink_put(struct es_nf_netlink *nl, void *buf, unsigned int type, unsigned int flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = (__u16)type;
	nlh->nlmsg_flags = (__u16)(NLM_F_REQUEST | flags);
	nlh->nlmsg_seq = ++nl->seq;
	return nlh;
}

/* Sets rc[] of each request that the kernel refused. @got: length of @answer */
static void note_errors(const char *answer, ssize_t got, unsigned int first_seq, size_t n, int *rc)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)answer;
	int left = (int)got;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		const struct nlmsgerr *error = mnl_nlmsg_get_payload(nlh);
		size_t which = nlh->nlmsg_seq - first_seq;

		if (nlh->nlmsg_type == NLMSG_ERROR && mnl_nlmsg_get_payload_len(nlh) >= sizeof(*error) &&
		    which < n)
			rc[which] = error->error;
	}
}

void es_nf_netlink_push(struct es_nf_netlink *nl, const void *messages, size_t len, unsigned int first_seq,
			size_t n, int *ret_rc)
{
	int fd = mnl_socket_get_fd(nl->socket);
	char answer[ES_NF_NETLINK_ROOM];
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		ret_rc[i] = 0;
	if (mnl_socket_sendto(nl->socket, messages, len) < 0)
		rc = -errno;
	/* The kernel queued its errors before sendto() returned. */
	while (!rc) {
		ssize_t got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

		if (got >= 0)
			note_errors(answer, got, first_seq, n, ret_rc);
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			rc = -errno; /* ENOBUFS: an error was lost, and it may be about any request */
	}
	for (size_t i = 0; rc && i < n; i++)
		ret_rc[i] = rc;
}

/* Reads the rest of an answer that nobody wants, so that it is not taken for the next one. Returns @error. */
static int drain(struct es_nf_netlink *nl, int error)
{
	char rest[ES_NF_NETLINK_ROOM];

	while (recv(mnl_socket_get_fd(nl->socket), rest, sizeof(rest), MSG_DONTWAIT | MSG_TRUNC) >= 0 ||
	       errno == EINTR)
		;
	return error;
}

int es_nf_netlink_talk(struct es_nf_netlink *nl, const struct nlmsghdr *nlh, mnl_cb_t fn, void *ctx)
{
	char answer[ES_NF_NETLINK_ROOM * 4]; /* the largest message of a dump */
	ssize_t got;
	int rc;

	if (mnl_socket_sendto(nl->socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	for (;;) {
		got = mnl_socket_recvfrom(nl->socket, answer, sizeof(answer));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return drain(nl, -errno);
		rc = mnl_cb_run(answer, (size_t)got, nlh->nlmsg_seq, nl->portid, fn, ctx);
		if (rc < 0)
			return drain(nl, -errno);
		if (rc == MNL_CB_STOP)
			return 0;
	}
}
