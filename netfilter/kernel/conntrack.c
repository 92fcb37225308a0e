// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes, deletes and reads conntrack entries of TCP connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "netfilter/kernel/conntrack.h"

/* Long enough for a busy machine. If no SYN has followed by then, the attempt has failed. */
#define ES_EXPECTED_S 10
/* The least lifetime of a restored entry. Its next packet sets what the operator's sysctls say. */
#define ES_RESTORED_S 60
#define ES_MESSAGE    512

#define ES_ESTABLISHED_S 432000

/*
 * Nothing has been answered yet. So the SYN is NEW to firewalls, and their rules decide about the client. The
 * kernel sets the other bits when the server answers. It sets CONFIRMED anyway, and refuses to clear it.
 */
#define ES_STATUS_EXPECTED IPS_CONFIRMED
/* An open connection: `ctstate ESTABLISHED`, and spared by the early drop of a full table. */
#define ES_STATUS_RESTORED (IPS_CONFIRMED | IPS_SEEN_REPLY | IPS_ASSURED)

/* nf_conntrack_tcp_timeout_established; if it cannot be read, its default of five days */
static __u32 established_s(void)
{
	char text[16] = "";
	int fd = open("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned long seconds = got > 0 ? strtoul(text, NULL, 10) : 0;

	if (fd >= 0)
		close(fd);
	return seconds ? (__u32)seconds : ES_ESTABLISHED_S;
}

int es_nf_conntrack_open(struct es_nf_conntrack *ct, __u16 zone, int has_label)
{
	*ct = (struct es_nf_conntrack){
		.zone = zone, .has_label = has_label, .established_s = established_s()};
	return es_nf_netlink_open(&ct->nl, NETLINK_NETFILTER);
}

void es_nf_conntrack_close(struct es_nf_conntrack *ct)
{
	es_nf_netlink_close(&ct->nl);
}

static struct nlmsghdr *begin(struct es_nf_conntrack *ct, void *buf, unsigned int type, unsigned int flags,
			      unsigned char family)
{
	struct nlmsghdr *nlh = es_nf_netlink_put(&ct->nl, buf, NFNL_SUBSYS_CTNETLINK << 8 | type, flags);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	return nlh;
}

static unsigned char family_of(const struct es_flow *flow)
{
	return es_addr_is_v4(&flow->client) ? AF_INET : AF_INET6;
}

static void put_tuple(struct nlmsghdr *nlh, unsigned int type, const struct es_addr *source,
		      const struct es_addr *dest, __be16 sport, __be16 dport)
{
	struct nlattr *tuple = mnl_attr_nest_start(nlh, (__u16)type);
	struct nlattr *nest = mnl_attr_nest_start(nlh, CTA_TUPLE_IP);

	if (es_addr_is_v4(source)) {
		mnl_attr_put_u32(nlh, CTA_IP_V4_SRC, source->w[3]);
		mnl_attr_put_u32(nlh, CTA_IP_V4_DST, dest->w[3]);
	} else {
		mnl_attr_put(nlh, CTA_IP_V6_SRC, sizeof(*source), source);
		mnl_attr_put(nlh, CTA_IP_V6_DST, sizeof(*dest), dest);
	}
	mnl_attr_nest_end(nlh, nest);
	nest = mnl_attr_nest_start(nlh, CTA_TUPLE_PROTO);
	mnl_attr_put_u8(nlh, CTA_PROTO_NUM, IPPROTO_TCP);
	mnl_attr_put_u16(nlh, CTA_PROTO_SRC_PORT, sport);
	mnl_attr_put_u16(nlh, CTA_PROTO_DST_PORT, dport);
	mnl_attr_nest_end(nlh, nest);
	mnl_attr_nest_end(nlh, tuple);
}

static void put_zone(struct nlmsghdr *nlh, __u16 zone)
{
	if (zone)
		mnl_attr_put_u16(nlh, CTA_ZONE, htons(zone));
}

/* Without the original tuple, DELETE would empty the whole table. */
static void put_original(struct nlmsghdr *nlh, const struct es_flow *flow, __u16 zone)
{
	put_tuple(nlh, CTA_TUPLE_ORIG, &flow->client, &flow->service, flow->client_port, flow->service_port);
	put_zone(nlh, zone);
}

static void put_tcp(struct nlmsghdr *nlh, __u8 state, const struct es_nf_entry *entry)
{
	/* The kernel's window check cannot follow shifts that begin in the middle of a connection. */
	struct nf_ct_tcp_flags flags = {.flags = IP_CT_TCP_FLAG_BE_LIBERAL};
	struct nlattr *info = mnl_attr_nest_start(nlh, CTA_PROTOINFO);
	struct nlattr *tcp = mnl_attr_nest_start(nlh, CTA_PROTOINFO_TCP);

	if (entry->has_wscale)
		flags.flags |= IP_CT_TCP_FLAG_WINDOW_SCALE;
	if (entry->has_sack)
		flags.flags |= IP_CT_TCP_FLAG_SACK_PERM;
	flags.mask = IP_CT_TCP_FLAG_BE_LIBERAL | IP_CT_TCP_FLAG_WINDOW_SCALE | IP_CT_TCP_FLAG_SACK_PERM;
	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_STATE, state);
	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_WSCALE_ORIGINAL, entry->client_wscale);
	mnl_attr_put_u8(nlh, CTA_PROTOINFO_TCP_WSCALE_REPLY, entry->server_wscale);
	mnl_attr_put(nlh, CTA_PROTOINFO_TCP_FLAGS_ORIGINAL, sizeof(flags), &flags);
	mnl_attr_put(nlh, CTA_PROTOINFO_TCP_FLAGS_REPLY, sizeof(flags), &flags);
	mnl_attr_nest_end(nlh, tcp);
	mnl_attr_nest_end(nlh, info);
}

static void put_label(struct nlmsghdr *nlh, const struct es_nf_entry *entry, int is_making)
{
	unsigned long bits[ES_NF_LABEL_LONGS];

	es_nf_label(bits);
	if (entry->is_proven)
		es_nf_label_set(bits, ES_NF_LABEL_PROVEN);
	if (entry->is_held)
		es_nf_label_set(bits, ES_NF_LABEL_HELD);
	if (is_making)
		es_nf_label_set(bits, ES_NF_LABEL_MAKING);
	mnl_attr_put(nlh, CTA_LABELS, sizeof(bits), bits);
}

static void put_shift(struct nlmsghdr *nlh, unsigned int type, const struct es_nf_shift *shift)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, (__u16)type);

	mnl_attr_put_u32(nlh, CTA_SEQADJ_CORRECTION_POS, htonl(shift->position));
	mnl_attr_put_u32(nlh, CTA_SEQADJ_OFFSET_BEFORE, htonl((__u32)shift->before));
	mnl_attr_put_u32(nlh, CTA_SEQADJ_OFFSET_AFTER, htonl((__u32)shift->after));
	mnl_attr_nest_end(nlh, nest);
}

/* Destination NAT: what the client sends to the service goes to the address where the server listens. */
static void put_translation(struct nlmsghdr *nlh, const struct es_flow *socket)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, CTA_NAT_DST), *ports;

	if (es_addr_is_v4(&socket->service)) {
		mnl_attr_put_u32(nlh, CTA_NAT_V4_MINIP, socket->service.w[3]);
		mnl_attr_put_u32(nlh, CTA_NAT_V4_MAXIP, socket->service.w[3]);
	} else {
		mnl_attr_put(nlh, CTA_NAT_V6_MINIP, sizeof(socket->service), &socket->service);
		mnl_attr_put(nlh, CTA_NAT_V6_MAXIP, sizeof(socket->service), &socket->service);
	}
	ports = mnl_attr_nest_start(nlh, CTA_NAT_PROTO);
	mnl_attr_put_u16(nlh, CTA_PROTONAT_PORT_MIN, socket->service_port);
	mnl_attr_put_u16(nlh, CTA_PROTONAT_PORT_MAX, socket->service_port);
	mnl_attr_nest_end(nlh, ports);
	mnl_attr_nest_end(nlh, nest);
}

/*
 * A request for a new entry: with NLM_F_EXCL, an existing one is an error. @state: TCP_CONNTRACK_SYN_SENT for
 * a connection that is to be made
 */
static struct nlmsghdr *put_entry(struct es_nf_conntrack *ct, void *buf, const struct es_nf_entry *entry,
				  __u8 state, __u32 timeout_s, int is_making)
{
	const __u32 status = state == TCP_CONNTRACK_SYN_SENT ? ES_STATUS_EXPECTED : ES_STATUS_RESTORED;
	const struct es_flow *flow = &entry->flow;
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_NEW, NLM_F_CREATE | NLM_F_EXCL, family_of(flow));

	put_original(nlh, flow, ct->zone);
	put_tuple(nlh, CTA_TUPLE_REPLY, &flow->service, &flow->client, flow->service_port, flow->client_port);
	mnl_attr_put_u32(nlh, CTA_STATUS, htonl(status));
	mnl_attr_put_u32(nlh, CTA_TIMEOUT, htonl(timeout_s));
	put_tcp(nlh, state, entry);
	put_shift(nlh, CTA_SEQ_ADJ_ORIG, &entry->offsets.client);
	if (!es_flow_equal(&entry->socket, flow))
		put_translation(nlh, &entry->socket);
	if (ct->has_label)
		put_label(nlh, entry, is_making);
	return nlh;
}

static struct es_nf_entry entry_of(const struct es_nf_expected *expected)
{
	const struct es_tcp_options *o = &expected->options;

	return (struct es_nf_entry){
		.flow = expected->flow,
		.socket = expected->socket,
		.offsets.client.position = expected->first_seq,
		.has_wscale = o->wscale_ok,
		.has_sack = o->sack_ok,
		.client_wscale = o->wscale_ok ? o->snd_wscale : 0,
		.server_wscale = o->wscale_ok ? o->rcv_wscale : 0,
	};
}

void es_nf_conntrack_expect(struct es_nf_conntrack *ct, const struct es_nf_expected *expected, size_t n,
			    int *ret_rc)
{
	char buf[ES_NF_BATCH * ES_MESSAGE];
	unsigned int first = ct->nl.seq + 1;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		struct es_nf_entry entry = entry_of(&expected[i]);

		len += put_entry(ct, buf + len, &entry, TCP_CONNTRACK_SYN_SENT, ES_EXPECTED_S,
				 expected[i].is_making)
			       ->nlmsg_len;
	}
	es_nf_netlink_push(&ct->nl, buf, len, first, n, ret_rc);
}

/* Changes the labels in @mask. The others stay; they may be the operator's. */
static int set_labels(struct es_nf_conntrack *ct, const struct es_flow *flow,
		      const unsigned long mask[ES_NF_LABEL_LONGS],
		      const unsigned long bits[ES_NF_LABEL_LONGS])
{
	const size_t len = ES_NF_LABEL_LONGS * sizeof(long);
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_NEW, 0, family_of(flow));
	int rc;

	if (!ct->has_label)
		return -EOPNOTSUPP;
	put_original(nlh, flow, ct->zone);
	mnl_attr_put(nlh, CTA_LABELS, len, bits);
	mnl_attr_put(nlh, CTA_LABELS_MASK, len, mask);
	es_nf_netlink_push(&ct->nl, nlh, nlh->nlmsg_len, nlh->nlmsg_seq, 1, &rc);
	return rc;
}

static int set_label(struct es_nf_conntrack *ct, const struct es_flow *flow, unsigned int bit, int is_set)
{
	const unsigned long none[ES_NF_LABEL_LONGS] = {};
	unsigned long mask[ES_NF_LABEL_LONGS] = {};

	es_nf_label_set(mask, bit);
	return set_labels(ct, flow, mask, is_set ? mask : none);
}

int es_nf_conntrack_prove(struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	return set_label(ct, flow, ES_NF_LABEL_PROVEN, 1);
}

int es_nf_conntrack_hold(struct es_nf_conntrack *ct, const struct es_flow *flow, int is_held)
{
	return set_label(ct, flow, ES_NF_LABEL_HELD, is_held);
}

int es_nf_conntrack_made(struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	return set_label(ct, flow, ES_NF_LABEL_MAKING, 0);
}

int es_nf_conntrack_delete(struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_DELETE, 0, family_of(flow));
	int rc;

	put_original(nlh, flow, ct->zone);
	es_nf_netlink_push(&ct->nl, nlh, nlh->nlmsg_len, nlh->nlmsg_seq, 1, &rc);
	return rc;
}

static int on_entry(const struct nlmsghdr *nlh, void *data)
{
	struct es_nf_entry *entry = data;

	if (!es_nf_entry_read(nlh, entry))
		return MNL_CB_STOP;
	errno = ENOENT;
	return MNL_CB_ERROR;
}

int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *flow, struct es_nf_entry *ret_entry)
{
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_GET, 0, family_of(flow));

	put_original(nlh, flow, ct->zone);
	return es_nf_netlink_talk(&ct->nl, nlh, on_entry, ret_entry);
}

int es_nf_conntrack_get_socket(struct es_nf_conntrack *ct, const struct es_flow *socket,
			       struct es_nf_entry *ret_entry)
{
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_GET, 0, family_of(socket));

	put_tuple(nlh, CTA_TUPLE_REPLY, &socket->service, &socket->client, socket->service_port,
		  socket->client_port);
	put_zone(nlh, ct->zone);
	return es_nf_netlink_talk(&ct->nl, nlh, on_entry, ret_entry);
}

int es_nf_conntrack_expect_copy(struct es_nf_conntrack *ct, const struct es_nf_expected *expected)
{
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_NEW, 0, family_of(&expected->flow));
	struct es_nf_entry entry = entry_of(expected);
	int rc;

	put_original(nlh, &entry.flow, ct->zone);
	put_tcp(nlh, TCP_CONNTRACK_SYN_SENT, &entry);
	es_nf_netlink_push(&ct->nl, nlh, nlh->nlmsg_len, nlh->nlmsg_seq, 1, &rc);
	return rc;
}

static void put_synproxy(struct nlmsghdr *nlh, const struct es_nf_offsets *offsets)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, CTA_SYNPROXY);

	mnl_attr_put_u32(nlh, CTA_SYNPROXY_ISN, htonl(offsets->isn));
	mnl_attr_put_u32(nlh, CTA_SYNPROXY_ITS, htonl(offsets->its));
	mnl_attr_put_u32(nlh, CTA_SYNPROXY_TSOFF, htonl(offsets->tsoff));
	mnl_attr_nest_end(nlh, nest);
}

int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry)
{
	char buf[2 * ES_MESSAGE];
	unsigned int first = ct->nl.seq + 1;
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_DELETE, 0, family_of(&entry->flow));
	size_t len;
	int rc[2];

	put_original(nlh, &entry->flow, ct->zone);
	len = nlh->nlmsg_len;
	nlh = put_entry(ct, buf + len, entry, TCP_CONNTRACK_ESTABLISHED,
			entry->timeout_s > ES_RESTORED_S ? entry->timeout_s : ES_RESTORED_S, 0);
	put_shift(nlh, CTA_SEQ_ADJ_REPLY, &entry->offsets.server);
	put_synproxy(nlh, &entry->offsets);
	es_nf_netlink_push(&ct->nl, buf, len + nlh->nlmsg_len, first, 2, rc);
	return rc[1];
}

struct walk {
	const struct es_nf_conntrack *ct;
	es_nf_entry_fn fn;
	void *ctx;
};

static int on_walked(const struct nlmsghdr *nlh, void *data)
{
	const struct walk *walk = data;
	struct es_nf_entry entry;

	if (!es_nf_entry_read(nlh, &entry) && es_nf_conntrack_is_ours(walk->ct, &entry))
		walk->fn(walk->ctx, &entry);
	return MNL_CB_OK;
}

int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx)
{
	struct walk walk = {.ct = ct, .fn = fn, .ctx = ctx};
	char buf[ES_MESSAGE];
	struct nlmsghdr *nlh = begin(ct, buf, IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC);

	return es_nf_netlink_talk(&ct->nl, nlh, on_walked, &walk);
}
