// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks the kernel for a flow's socket. */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <linux/tcp.h>
#include "netfilter/kernel/socket.h"

#define ES_ALL_STATES 0xfffU

/* Offset of tcpi_rcv_wnd, which headers before 6.2 lack: it follows tcpi_snd_wnd, the last field there. */
#define ES_RCV_WND_AT 232

/* The attribute is aligned to 4 bytes; these numbers need 8. */
static __u64 sent_of(const struct tcp_info *info)
{
	__u64 all, again;

	memcpy(&all, &info->tcpi_bytes_sent, sizeof(all));
	memcpy(&again, &info->tcpi_bytes_retrans, sizeof(again));
	return all - again;
}

static int on_socket(const struct nlmsghdr *nlh, void *data)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	struct es_nf_socket *socket = data;
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg)) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	socket->rqueue = msg->idiag_rqueue;
	socket->wqueue = msg->idiag_wqueue;
	socket->state = msg->idiag_state;
	memcpy(socket->cookie, msg->id.idiag_cookie, sizeof(socket->cookie));
	socket->is_accepted = msg->idiag_inode && msg->idiag_state != ES_NF_TCP_LISTEN;
	mnl_attr_for_each(attr, nlh, sizeof(*msg))
	{
		const struct tcp_info *info = mnl_attr_get_payload(attr);

		if (mnl_attr_get_type(attr) != INET_DIAG_INFO ||
		    mnl_attr_get_payload_len(attr) < offsetof(struct tcp_info, tcpi_rto))
			continue;
		if (mnl_attr_get_payload_len(attr) >= offsetof(struct tcp_info, tcpi_delivery_rate)) {
			__u32 sent_ms = info->tcpi_last_data_sent, received_ms = info->tcpi_last_data_recv;

			socket->heard_ms = info->tcpi_last_ack_recv;
			socket->quiet_ms = sent_ms < received_ms ? sent_ms : received_ms;
			socket->said_last = info->tcpi_data_segs_out && sent_ms <= received_ms;
		}
		socket->snd_wscale = info->tcpi_snd_wscale;
		socket->rcv_wscale = info->tcpi_rcv_wscale;
		if (mnl_attr_get_payload_len(attr) >= offsetof(struct tcp_info, tcpi_segs_out)) {
			memcpy(&socket->acked, &info->tcpi_bytes_acked, sizeof(socket->acked));
			memcpy(&socket->received, &info->tcpi_bytes_received, sizeof(socket->received));
		}
		if (mnl_attr_get_payload_len(attr) >= offsetof(struct tcp_info, tcpi_min_rtt))
			socket->unsent = info->tcpi_notsent_bytes;
		if (mnl_attr_get_payload_len(attr) >= offsetof(struct tcp_info, tcpi_dsack_dups))
			socket->sent = sent_of(info);
		socket->rcv_wnd = (__u32)UINT16_MAX << socket->rcv_wscale;
		if (mnl_attr_get_payload_len(attr) >= ES_RCV_WND_AT + sizeof(socket->rcv_wnd))
			memcpy(&socket->rcv_wnd, (const __u8 *)info + ES_RCV_WND_AT, sizeof(socket->rcv_wnd));
	}
	return MNL_CB_STOP;
}

/* A request about a flow's socket, in any state. */
static struct inet_diag_req_v2 *begin(struct es_nf_netlink *nl, void *buf, unsigned int type,
				      unsigned int flags, const struct es_flow *flow,
				      struct nlmsghdr **ret_nlh)
{
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, type, flags);
	struct inet_diag_req_v2 *req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	int is_v4 = es_addr_is_v4(&flow->client);

	req->sdiag_family = is_v4 ? AF_INET : AF_INET6;
	req->sdiag_protocol = IPPROTO_TCP;
	req->idiag_states = ES_ALL_STATES;
	memcpy(req->id.idiag_src, is_v4 ? &flow->service.w[3] : flow->service.w, is_v4 ? 4 : 16);
	memcpy(req->id.idiag_dst, is_v4 ? &flow->client.w[3] : flow->client.w, is_v4 ? 4 : 16);
	req->id.idiag_sport = flow->service_port;
	req->id.idiag_dport = flow->client_port;
	req->id.idiag_cookie[0] = req->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	*ret_nlh = nlh;
	return req;
}

int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *flow, struct es_nf_socket *ret_socket)
{
	char buf[256];
	struct nlmsghdr *nlh;

	memset(ret_socket, 0, sizeof(*ret_socket));
	begin(nl, buf, SOCK_DIAG_BY_FAMILY, 0, flow, &nlh)->idiag_ext = 1U << (INET_DIAG_INFO - 1);
	return es_nf_netlink_talk(nl, nlh, on_socket, ret_socket);
}

int es_nf_socket_end(struct es_nf_netlink *nl, const struct es_flow *flow, const struct es_nf_socket *socket)
{
	char buf[256];
	struct nlmsghdr *nlh;
	int rc;

	memcpy(begin(nl, buf, SOCK_DESTROY, NLM_F_ACK, flow, &nlh)->id.idiag_cookie, socket->cookie,
	       sizeof(socket->cookie));
	rc = es_nf_netlink_talk(nl, nlh, NULL, NULL);
	return rc == -ENOENT || rc == -ESTALE ? 0 : rc;
}
