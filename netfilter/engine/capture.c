// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a queue of NFQUEUE. libnetfilter_queue builds and parses the messages. The socket is ours, so that
 * one system call reads or sends many of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "netfilter/engine/capture.h"
#include "netfilter/rules/drop_by_flow.h"

#define ES_PACKET_MAX	0xffff
#define ES_MESSAGE_MAX	(ES_PACKET_MAX + 1024) /* with its attributes */
#define ES_HEADERS_MAX	256
#define ES_WAITING_MAX	8192 /* packets in the kernel */
#define ES_SOCKET_BYTES (8 << 20)
#define ES_VERDICT_MAX	64 /* bytes */

struct es_nf_capture {
	struct es_nf_capture_params params;
	struct es_nf_netlink nl;
	struct mmsghdr message[ES_NF_CAPTURE_BATCH];
	struct iovec part[ES_NF_CAPTURE_BATCH];
	/* Verdicts to send: one for each packet that goes on, then one that drops all others. */
	char verdicts[(ES_NF_CAPTURE_BATCH + 1) * ES_VERDICT_MAX];
	size_t verdicts_len;
	__u32 last_id;
	int has_dropped;
	es_nf_capture_fn fn;
	void *ctx;
	unsigned char bytes[ES_NF_CAPTURE_BATCH][ES_MESSAGE_MAX];
};

static struct nlmsghdr *begin_config(struct es_nf_capture *capture, char *buf)
{
	struct nlmsghdr *nlh = nfq_nlmsg_put(buf, NFQNL_MSG_CONFIG, capture->params.queue);

	nlh->nlmsg_flags |= NLM_F_ACK;
	nlh->nlmsg_seq = ++capture->nl.seq;
	return nlh;
}

/*
 * Becomes the queue's reader. Two flags stay unset: the queue does not fail open, and whole packets are not
 * merged ones.
 */
static int configure(struct es_nf_capture *capture)
{
	char buf[256];
	struct nlmsghdr *nlh = begin_config(capture, buf);
	int rc;

	nfq_nlmsg_cfg_put_cmd(nlh, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	rc = es_nf_netlink_talk(&capture->nl, nlh, NULL, NULL);
	if (rc)
		return rc;
	nlh = begin_config(capture, buf);
	nfq_nlmsg_cfg_put_params(nlh, NFQNL_COPY_PACKET,
				 capture->params.is_headers ? ES_HEADERS_MAX : ES_PACKET_MAX);
	nfq_nlmsg_cfg_put_qmaxlen(nlh, ES_WAITING_MAX);
	if (capture->params.is_headers) { /* the library has no function for flags */
		mnl_attr_put_u32(nlh, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
		mnl_attr_put_u32(nlh, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
	}
	return es_nf_netlink_talk(&capture->nl, nlh, NULL, NULL);
}

int es_nf_capture_new(const struct es_nf_capture_params *params, struct es_nf_capture **ret_capture,
		      struct es_nf_why *why)
{
	struct es_nf_capture *capture = calloc(1, sizeof(*capture));
	int bytes = ES_SOCKET_BYTES, yes = 1, rc;

	if (!capture)
		return es_nf_why(why, -ENOMEM, "no memory for packets");
	capture->params = *params;
	rc = es_nf_netlink_open(&capture->nl, NETLINK_NETFILTER);
	if (!rc)
		rc = configure(capture);
	if (rc) {
		es_nf_capture_free(&capture);
		/* The kernel's errors if the queue has another reader. */
		if (rc == -EPERM || rc == -EBUSY)
			return es_nf_why(why, -EBUSY,
					 "queue %u of NFQUEUE has another reader, or may not be read",
					 params->queue);
		return es_nf_why(why, rc, "NFQUEUE (CONFIG_NETFILTER_NETLINK_QUEUE): %s", strerror(-rc));
	}
	/* Without room, packets are lost, and clients repeat them: that is no error. */
	(void)setsockopt(es_nf_capture_fd(capture), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	(void)mnl_socket_setsockopt(capture->nl.socket, NETLINK_NO_ENOBUFS, &yes, sizeof(yes));
	for (int i = 0; i < ES_NF_CAPTURE_BATCH; i++) {
		capture->part[i] = (struct iovec){capture->bytes[i], sizeof(capture->bytes[i])};
		capture->message[i].msg_hdr = (struct msghdr){.msg_iov = &capture->part[i], .msg_iovlen = 1};
	}
	*ret_capture = capture;
	return 0;
}

void es_nf_capture_free(struct es_nf_capture **capture)
{
	if (!*capture)
		return;
	es_nf_netlink_close(&(*capture)->nl);
	free(*capture);
	*capture = NULL;
}

int es_nf_capture_fd(const struct es_nf_capture *capture)
{
	return mnl_socket_get_fd(capture->nl.socket);
}

/*
 * @type: NFQNL_MSG_VERDICT, about that packet; or _BATCH, about all packets up to it that have no verdict yet
 * @mark: 0: the packet keeps its own
 */
static void put_verdict(struct es_nf_capture *capture, int type, int verdict, __u32 id, __u32 mark)
{
	struct nlmsghdr *nlh =
		nfq_nlmsg_put(capture->verdicts + capture->verdicts_len, type, capture->params.queue);

	nfq_nlmsg_verdict_put(nlh, (int)id, verdict);
	if (mark)
		nfq_nlmsg_verdict_put_mark(nlh, mark);
	capture->verdicts_len += nlh->nlmsg_len;
}

static __u32 get_u32(const struct nlattr *attr)
{
	return attr ? ntohl(mnl_attr_get_u32(attr)) : 0;
}

/* Reads a message. Returns 1; 0 if its packet cannot be read; -1 if it has not even a number. */
static int read_frame(const struct nlmsghdr *nlh, struct es_nf_frame *ret_frame, __u32 *ret_id)
{
	struct nlattr *attr[NFQA_MAX + 1] = {};
	const struct nfqnl_msg_packet_hw *hardware;
	const struct nfqnl_msg_packet_hdr *packet;
	int rc = nfq_nlmsg_parse(nlh, attr);

	if (!attr[NFQA_PACKET_HDR])
		return -1;
	packet = mnl_attr_get_payload(attr[NFQA_PACKET_HDR]);
	*ret_id = ntohl(packet->packet_id);
	if (rc < 0 || !attr[NFQA_PAYLOAD])
		return 0;
	*ret_frame = (struct es_nf_frame){
		.ifindex = get_u32(attr[NFQA_IFINDEX_INDEV]),
		.mark = get_u32(attr[NFQA_MARK]),
		.full_len = get_u32(attr[NFQA_CAP_LEN]),
		.bytes = mnl_attr_get_payload(attr[NFQA_PAYLOAD]),
		.len = mnl_attr_get_payload_len(attr[NFQA_PAYLOAD]),
	};
	if (attr[NFQA_HWADDR]) {
		hardware = mnl_attr_get_payload(attr[NFQA_HWADDR]);
		if (ntohs(hardware->hw_addrlen) == sizeof(ret_frame->source))
			memcpy(ret_frame->source, hardware->hw_addr, sizeof(ret_frame->source));
	}
	return ret_frame->len >= ES_NF_IP_LEN;
}

/* The mark with which a packet goes on; 0: its own. */
static const __u32 marks[] = {
	[ES_NF_ACCEPT] = 0,
	[ES_NF_DROP_OTHERS] = ES_NF_OTHERS_MARK,
	[ES_NF_DROP_GIVEN] = ES_NF_GIVEN_MARK,
	[ES_NF_DROP_GONE] = ES_NF_GONE_MARK,
};

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	struct es_nf_capture *capture = data;
	enum es_nf_fate fate = ES_NF_DROP;
	struct es_nf_frame frame;
	__u32 id = 0;
	int is_frame;

	if (nlh->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
		return MNL_CB_OK;
	is_frame = read_frame(nlh, &frame, &id);
	if (is_frame < 0)
		return MNL_CB_OK;
	if (is_frame)
		fate = capture->fn(capture->ctx, &frame);
	capture->last_id = id;
	if (fate != ES_NF_DROP)
		put_verdict(capture, NFQNL_MSG_VERDICT, NF_ACCEPT, id, marks[fate]);
	else
		capture->has_dropped = 1;
	return MNL_CB_OK;
}

int es_nf_capture_read(struct es_nf_capture *capture, es_nf_capture_fn fn, void *ctx)
{
	int count = recvmmsg(es_nf_capture_fd(capture), capture->message, ES_NF_CAPTURE_BATCH, MSG_DONTWAIT,
			     NULL);
	int rc = 0;

	if (count < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	capture->fn = fn;
	capture->ctx = ctx;
	capture->verdicts_len = 0;
	capture->has_dropped = 0;
	for (int i = 0; i < count; i++)
		(void)mnl_cb_run(capture->bytes[i], capture->message[i].msg_len, 0, 0, on_message, capture);
	if (capture->verdicts_len && capture->params.may_pass &&
	    !capture->params.may_pass(capture->params.ctx)) {
		capture->verdicts_len = 0;
		capture->has_dropped = 1;
	}
	if (capture->has_dropped)
		put_verdict(capture, NFQNL_MSG_VERDICT_BATCH, NF_DROP, capture->last_id, 0);
	if (capture->verdicts_len &&
	    mnl_socket_sendto(capture->nl.socket, capture->verdicts, capture->verdicts_len) < 0)
		rc = -errno;
	return rc ? rc : count;
}
