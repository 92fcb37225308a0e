// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The little netlink that looking at a node takes: one request, its answers or dump, attributes by type.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "inspector/check/netlink.h"

#define ANSWER_BYTES  65536
#define REQUEST_BYTES 512
#define TIMEOUT_S     5

const void *es_netlink_attribute(const void *data, size_t len, int type, size_t *ret_len)
{
	const struct nlattr *a = data;

	while (len >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= len) {
		size_t step = NLA_ALIGN(a->nla_len);

		if ((a->nla_type & NLA_TYPE_MASK) == type) {
			*ret_len = a->nla_len - sizeof(*a);
			return a + 1;
		}
		if (step >= len)
			break;
		len -= step;
		a = (const void *)((const char *)a + step);
	}
	return NULL;
}

/* Return: 1 when the answer is complete, 0 when more must come, or -errno. */
static int take(const struct nlmsghdr *h, size_t len, es_netlink_fn fn, void *ctx)
{
	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		const struct nlmsgerr *error = NLMSG_DATA(h);

		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return error->error ? error->error : 1;
		fn(ctx, NLMSG_DATA(h), h->nlmsg_len - NLMSG_HDRLEN);
		if (!(h->nlmsg_flags & NLM_F_MULTI))
			return 1;
	}
	return 0;
}

static int exchange(int fd, const void *request, size_t len, es_netlink_fn fn, void *ctx)
{
	void *answer = malloc(ANSWER_BYTES);
	int rc = answer ? 0 : -ENOMEM;

	if (!rc && send(fd, request, len, 0) < 0)
		rc = -errno;
	while (!rc) {
		ssize_t n = recv(fd, answer, ANSWER_BYTES, 0);

		rc = n < 0 ? -errno : take(answer, (size_t)n, fn, ctx);
	}
	free(answer);
	return rc > 0 ? 0 : rc;
}

int es_netlink_ask(int protocol, int type, int flags, const void *body, size_t len, es_netlink_fn fn,
		   void *ctx)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct {
		struct nlmsghdr header;
		char body[REQUEST_BYTES];
	} request = {.header = {
			     .nlmsg_len = (__u32)NLMSG_LENGTH(len),
			     .nlmsg_type = (__u16)type,
			     .nlmsg_flags = (__u16)(flags | NLM_F_REQUEST),
			     .nlmsg_seq = 1,
		     }};
	int fd, rc;

	if (len > sizeof(request.body))
		return -EMSGSIZE;
	memcpy(request.body, body, len);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	rc = exchange(fd, &request, request.header.nlmsg_len, fn, ctx);
	close(fd);
	return rc;
}
