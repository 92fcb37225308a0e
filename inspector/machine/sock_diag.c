// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the kernel for its TCP sockets (sock_diag(7)). The kernel makes an answer before recvfrom() returns,
 * so nothing here waits.
 */
#include <errno.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include "inspector/machine/sock_diag.h"
#include "kmod/core/load.h"

/* Those that have no connection: what listens, what waits for its time to be over, what is closed. */
#define ES_WITHOUT_CONNECTION                                                                                \
	(1U << ES_TCP_STATE_LISTEN | 1U << ES_TCP_STATE_TIME_WAIT | 1U << ES_TCP_STATE_CLOSE)
#define ES_ALL_STATES 0xfffU
#define ES_ROOM	      (1 << 15)

struct walk {
	es_sock_diag_fn fn;
	void *ctx;
};

/* A socket of IPv6 that speaks IPv4 has mapped addresses, as ours are. */
static struct es_addr address_of(unsigned char family, const __be32 *from)
{
	struct es_addr address;

	if (family != AF_INET6)
		return es_addr_from_v4(from[0]);
	memcpy(&address, from, sizeof(address));
	return address;
}

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	const struct walk *walk = data;
	struct es_sock_diag_id id;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return MNL_CB_OK;
	/* The socket's own side is the service's. */
	id.flow.service = address_of(msg->idiag_family, msg->id.idiag_src);
	id.flow.client = address_of(msg->idiag_family, msg->id.idiag_dst);
	id.flow.service_port = msg->id.idiag_sport;
	id.flow.client_port = msg->id.idiag_dport;
	memcpy(id.cookie, msg->id.idiag_cookie, sizeof(id.cookie));
	id.unacked = msg->idiag_wqueue;
	id.unread = msg->idiag_rqueue;
	id.state = msg->idiag_state;
	walk->fn(walk->ctx, &id);
	return MNL_CB_OK;
}

static struct inet_diag_req_v2 *begin(char *buf, unsigned char family, __u16 type, __u16 flags,
				      struct nlmsghdr **ret_nlh)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *req;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = (__u16)(NLM_F_REQUEST | flags);
	nlh->nlmsg_seq = 1;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = family;
	req->sdiag_protocol = IPPROTO_TCP;
	*ret_nlh = nlh;
	return req;
}

/* Send the request, and read what comes back until its end. */
static int transact(const struct nlmsghdr *nlh, mnl_cb_t fn, void *ctx)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
	char answer[ES_ROOM];
	ssize_t got;
	int rc = 0;

	if (!socket)
		return -errno;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) < 0)
		rc = -errno;
	while (!rc) {
		got = mnl_socket_recvfrom(socket, answer, sizeof(answer));
		if (got < 0)
			rc = -errno;
		else
			got = mnl_cb_run(answer, (size_t)got, nlh->nlmsg_seq, mnl_socket_get_portid(socket),
					 fn, ctx);
		if (!rc && got < 0)
			rc = -errno;
		if (got <= MNL_CB_STOP)
			break;
	}
	mnl_socket_close(socket);
	return rc;
}

/* Call @fn for each socket in one of @states. @ext: what more the kernel shall tell of them. */
static int dump(unsigned int states, unsigned char ext, mnl_cb_t fn, void *ctx)
{
	static const unsigned char families[] = {AF_INET, AF_INET6};
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) && !rc; i++) {
		char buf[256];
		struct nlmsghdr *nlh;
		struct inet_diag_req_v2 *req = begin(buf, families[i], SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &nlh);

		req->idiag_states = states;
		req->idiag_ext = ext;
		rc = transact(nlh, fn, ctx);
		if (rc == -ENOENT && families[i] == AF_INET6) /* a kernel without IPv6 */
			rc = 0;
	}
	return rc;
}

int es_sock_diag_walk(es_sock_diag_fn fn, void *ctx)
{
	struct walk walk = {.fn = fn, .ctx = ctx};

	return dump(ES_ALL_STATES & ~ES_WITHOUT_CONNECTION, 0, on_message, &walk);
}

struct listeners {
	es_sock_diag_listener_fn fn;
	void *ctx;
};

/* Says in its ULP that its connections are subflows of MPTCP. */
static int is_mptcp(const struct nlattr *ulp)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, ulp) if (mnl_attr_get_type(attr) ==
						INET_ULP_INFO_NAME) return mnl_attr_get_payload_len(attr) >=
			5 &&
		!memcmp(mnl_attr_get_payload(attr), "mptcp", 5);
	return 0;
}

static int on_listener(const struct nlmsghdr *nlh, void *data)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	const struct listeners *listeners = data;
	struct es_sock_diag_listener l = {};
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return MNL_CB_OK;
	memcpy(l.cookie, msg->id.idiag_cookie, sizeof(l.cookie));
	l.is_v6 = msg->idiag_family == AF_INET6;
	if (l.is_v6 || msg->id.idiag_src[0])
		l.address = address_of(msg->idiag_family, msg->id.idiag_src);
	l.port = es_ntohs(msg->id.idiag_sport);
	l.waiting = msg->idiag_rqueue;
	l.interface = msg->id.idiag_if;
	l.backlog = msg->idiag_wqueue;
	mnl_attr_for_each(attr, nlh, sizeof(*msg))
	{
		if (mnl_attr_get_type(attr) == INET_DIAG_SKV6ONLY && mnl_attr_get_payload_len(attr))
			l.is_v6only = mnl_attr_get_u8(attr);
		if (mnl_attr_get_type(attr) == INET_DIAG_ULP_INFO)
			l.is_mptcp = is_mptcp(attr);
	}
	listeners->fn(listeners->ctx, &l);
	return MNL_CB_OK;
}

int es_sock_diag_listeners(es_sock_diag_listener_fn fn, void *ctx)
{
	struct listeners listeners = {.fn = fn, .ctx = ctx};

	return dump(1U << ES_TCP_STATE_LISTEN, 1U << (INET_DIAG_INFO - 1), on_listener, &listeners);
}

static int is_any(const struct es_addr *a)
{
	return !a->w[0] && !a->w[1] && !a->w[2] && !a->w[3];
}

int es_sock_diag_takes(const struct es_sock_diag_listener *l, const struct es_addr *address,
		       unsigned int port)
{
	int speaks = es_addr_is_v4(address) ? !(l->is_v6 && l->is_v6only) : l->is_v6;
	char name[IF_NAMESIZE];

	/* As earshot-tls does with one whose queue it is about to empty. */
	if (l->interface && !if_indextoname(l->interface, name))
		return 0;
	return l->port == port && speaks && (is_any(&l->address) || es_addr_equal(&l->address, address));
}

/* A request about the one connection between these two. */
static struct inet_diag_req_v2 *begin_one(char *buf, __u16 type, __u16 flags, const struct es_flow *flow,
					  struct nlmsghdr **ret_nlh)
{
	int is_v4 = es_addr_is_v4(&flow->service);
	struct inet_diag_req_v2 *req = begin(buf, is_v4 ? AF_INET : AF_INET6, type, flags, ret_nlh);

	req->idiag_states = ES_ALL_STATES;
	if (is_v4) {
		req->id.idiag_src[0] = flow->service.w[3];
		req->id.idiag_dst[0] = flow->client.w[3];
	} else {
		memcpy(req->id.idiag_src, &flow->service, sizeof(req->id.idiag_src));
		memcpy(req->id.idiag_dst, &flow->client, sizeof(req->id.idiag_dst));
	}
	req->id.idiag_sport = flow->service_port;
	req->id.idiag_dport = flow->client_port;
	return req;
}

/* An accepted socket has an inode until its server closes it; one that waits was closed by nobody here. */
static int on_one(const struct nlmsghdr *nlh, void *data)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	int *is_waiting = data;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return MNL_CB_OK;
	if (msg->idiag_state == ES_TCP_STATE_LISTEN || msg->idiag_state == ES_TCP_STATE_TIME_WAIT)
		*is_waiting = -ENOENT;
	else
		*is_waiting = (msg->idiag_state == ES_TCP_STATE_ESTABLISHED ||
			       msg->idiag_state == ES_TCP_STATE_CLOSE_WAIT) &&
			      !msg->idiag_inode;
	return MNL_CB_STOP;
}

int es_sock_diag_is_waiting(const struct es_addr *service, unsigned int port, const struct es_addr *client,
			    unsigned int client_port)
{
	const struct es_flow flow = {
		.client = *client,
		.service = *service,
		.client_port = es_htons((__u16)client_port),
		.service_port = es_htons((__u16)port),
	};
	int is_waiting = -ENOENT, rc;
	char buf[256];
	struct nlmsghdr *nlh;
	struct inet_diag_req_v2 *req = begin_one(buf, SOCK_DIAG_BY_FAMILY, 0, &flow, &nlh);

	req->id.idiag_cookie[0] = req->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	rc = transact(nlh, on_one, &is_waiting);
	return rc ? rc : is_waiting;
}

int es_sock_diag_end(const struct es_sock_diag_id *id)
{
	char buf[256];
	struct nlmsghdr *nlh;
	struct inet_diag_req_v2 *req = begin_one(buf, SOCK_DESTROY, NLM_F_ACK, &id->flow, &nlh);

	memcpy(req->id.idiag_cookie, id->cookie, sizeof(id->cookie));
	return transact(nlh, NULL, NULL);
}
