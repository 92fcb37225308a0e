// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads which TCP sockets listen here, from the kernel's sock_diag: /proc/net/tcp would tell neither the
 * length of the accept queue nor that a socket is one of MPTCP.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "inspector/check/facts.h"
#include "inspector/check/netlink.h"

#define STATE_LISTEN 10 /* include/net/tcp_states.h */

/* Says in its ULP that its connections are subflows of MPTCP. */
static int is_mptcp(const void *attributes, size_t len)
{
	size_t n = 0, name_len = 0;
	const void *ulp = es_netlink_attribute(attributes, len, INET_DIAG_ULP_INFO, &n);
	const char *name = ulp ? es_netlink_attribute(ulp, n, INET_ULP_INFO_NAME, &name_len) : NULL;

	return name && name_len >= 5 && !memcmp(name, "mptcp", 5);
}

static struct es_facts_listener *listener_add(struct es_facts *facts)
{
	size_t n = facts->listener_count;
	struct es_facts_listener *all = reallocarray(facts->listeners, n + 1, sizeof(*all));

	if (!all) {
		facts->listeners_rc = -ENOMEM;
		return NULL;
	}
	memset(&all[n], 0, sizeof(all[n]));
	facts->listeners = all;
	facts->listener_count++;
	return &all[n];
}

static void on_socket(void *ctx, const void *data, size_t len)
{
	const struct inet_diag_msg *m = data;
	const void *attributes = (const char *)data + NLMSG_ALIGN(sizeof(*m));
	struct es_facts_listener *l;
	const void *p;
	size_t n;

	if (len < NLMSG_ALIGN(sizeof(*m)))
		return;
	l = listener_add(ctx);
	if (!l)
		return;
	len -= NLMSG_ALIGN(sizeof(*m));
	l->v6 = m->idiag_family == AF_INET6;
	if (l->v6)
		memcpy(&l->address, m->id.idiag_src, sizeof(l->address));
	else if (m->id.idiag_src[0])
		l->address = es_addr_from_v4(m->id.idiag_src[0]);
	l->port = ntohs(m->id.idiag_sport);
	l->waiting = m->idiag_rqueue;
	l->backlog = m->idiag_wqueue;
	p = es_netlink_attribute(attributes, len, INET_DIAG_SKV6ONLY, &n);
	l->v6only = p && n && *(const unsigned char *)p;
	l->mptcp = is_mptcp(attributes, len);
}

void es_facts_read_listeners(struct es_facts *facts)
{
	static const unsigned char families[] = {AF_INET, AF_INET6};
	size_t i;
	int rc = 0;

	facts->listeners_rc = 0;
	for (i = 0; i < sizeof(families) && !rc; i++) {
		struct inet_diag_req_v2 request = {
			.sdiag_family = families[i],
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = 1u << STATE_LISTEN,
			.idiag_ext = 1u << (INET_DIAG_INFO - 1),
		};

		rc = es_netlink_ask(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request,
				    sizeof(request), on_socket, facts);
		if (rc == -ENOENT && families[i] == AF_INET6) /* a kernel without IPv6 */
			rc = 0;
	}
	if (rc)
		facts->listeners_rc = rc;
}
