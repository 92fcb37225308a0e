// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads ctnetlink's messages about entries. All numbers in messages are in network byte order. */
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <string.h>
#include "netfilter/kernel/entry.h"

/*
 * An array of attributes, indexed by type. Readers treat attributes that are too short for a number as
 * missing.
 */
struct attributes {
	const struct nlattr **at;
	unsigned int last;
};

static int note_attribute(const struct nlattr *attr, void *data)
{
	const struct attributes *attributes = data;

	if (mnl_attr_get_type(attr) <= attributes->last)
		attributes->at[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

/* Sets all @last + 1 elements of @at. */
static void read_nested(const struct nlattr *nest, const struct nlattr **at, unsigned int last)
{
	struct attributes attributes = {at, last};

	for (unsigned int i = 0; i <= last; i++)
		at[i] = NULL;
	if (nest)
		mnl_attr_parse_nested(nest, note_attribute, &attributes);
}

static __u32 get_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) >= 4 ? ntohl(mnl_attr_get_u32(attr)) : 0;
}

static __u16 get_be16(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) >= 2 ? mnl_attr_get_u16(attr) : 0;
}

static __u8 get_u8(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) >= 1 ? mnl_attr_get_u8(attr) : 0;
}

static int get_address(const struct nlattr *v4, const struct nlattr *v6, struct es_addr *ret)
{
	if (v4 && mnl_attr_get_payload_len(v4) >= 4)
		*ret = es_addr_from_v4(mnl_attr_get_u32(v4));
	else if (v6 && mnl_attr_get_payload_len(v6) >= sizeof(*ret))
		memcpy(ret, mnl_attr_get_payload(v6), sizeof(*ret));
	else
		return -ENOENT;
	return 0;
}

static int read_flow(const struct nlattr *nest, struct es_flow *ret)
{
	const struct nlattr *tuple[CTA_TUPLE_MAX + 1], *ip[CTA_IP_MAX + 1], *proto[CTA_PROTO_MAX + 1];

	read_nested(nest, tuple, CTA_TUPLE_MAX);
	read_nested(tuple[CTA_TUPLE_IP], ip, CTA_IP_MAX);
	read_nested(tuple[CTA_TUPLE_PROTO], proto, CTA_PROTO_MAX);
	if (get_u8(proto[CTA_PROTO_NUM]) != IPPROTO_TCP)
		return -ENOENT;
	ret->client_port = get_be16(proto[CTA_PROTO_SRC_PORT]);
	ret->service_port = get_be16(proto[CTA_PROTO_DST_PORT]);
	if (get_address(ip[CTA_IP_V4_SRC], ip[CTA_IP_V6_SRC], &ret->client))
		return -ENOENT;
	return get_address(ip[CTA_IP_V4_DST], ip[CTA_IP_V6_DST], &ret->service);
}

/* The reply direction goes from where the server listens to the client. */
static void read_socket(const struct nlattr *nest, struct es_nf_entry *ret)
{
	struct es_flow reply;

	ret->socket = ret->flow;
	if (!nest || read_flow(nest, &reply))
		return;
	ret->socket = (struct es_flow){
		.client = reply.service,
		.service = reply.client,
		.client_port = reply.service_port,
		.service_port = reply.client_port,
	};
}

static void read_tcp(const struct nlattr *nest, struct es_nf_entry *ret)
{
	const struct nlattr *info[CTA_PROTOINFO_MAX + 1], *tcp[CTA_PROTOINFO_TCP_MAX + 1];
	__u8 client, server;

	read_nested(nest, info, CTA_PROTOINFO_MAX);
	read_nested(info[CTA_PROTOINFO_TCP], tcp, CTA_PROTOINFO_TCP_MAX);
	ret->state = get_u8(tcp[CTA_PROTOINFO_TCP_STATE]);
	ret->client_wscale = get_u8(tcp[CTA_PROTOINFO_TCP_WSCALE_ORIGINAL]);
	ret->server_wscale = get_u8(tcp[CTA_PROTOINFO_TCP_WSCALE_REPLY]);
	client = get_u8(tcp[CTA_PROTOINFO_TCP_FLAGS_ORIGINAL]); /* the flags, followed by their mask */
	server = get_u8(tcp[CTA_PROTOINFO_TCP_FLAGS_REPLY]);
	ret->has_wscale = !!(client & server & IP_CT_TCP_FLAG_WINDOW_SCALE);
	ret->has_sack = !!(client & server & IP_CT_TCP_FLAG_SACK_PERM);
}

static void read_shift(const struct nlattr *nest, struct es_nf_shift *ret)
{
	const struct nlattr *shift[CTA_SEQADJ_MAX + 1];

	read_nested(nest, shift, CTA_SEQADJ_MAX);
	ret->position = get_u32(shift[CTA_SEQADJ_CORRECTION_POS]);
	ret->before = (__s32)get_u32(shift[CTA_SEQADJ_OFFSET_BEFORE]);
	ret->after = (__s32)get_u32(shift[CTA_SEQADJ_OFFSET_AFTER]);
}

static void read_synproxy(const struct nlattr *nest, struct es_nf_offsets *ret)
{
	const struct nlattr *synproxy[CTA_SYNPROXY_MAX + 1];

	read_nested(nest, synproxy, CTA_SYNPROXY_MAX);
	ret->isn = get_u32(synproxy[CTA_SYNPROXY_ISN]);
	ret->its = get_u32(synproxy[CTA_SYNPROXY_ITS]);
	ret->tsoff = get_u32(synproxy[CTA_SYNPROXY_TSOFF]);
}

/* In the kernel, the bitmap consists of longs. */
static int has_label(const struct nlattr *attr, unsigned int bit)
{
	unsigned long bits[ES_NF_LABEL_BYTES / sizeof(unsigned long)];

	if (!attr || mnl_attr_get_payload_len(attr) < sizeof(bits))
		return 0;
	memcpy(bits, mnl_attr_get_payload(attr), sizeof(bits));
	return bits[bit / (8 * sizeof(long))] >> bit % (8 * sizeof(long)) & 1;
}

int es_nf_entry_read(const struct nlmsghdr *nlh, struct es_nf_entry *ret_entry)
{
	const struct nlattr *at[CTA_MAX + 1] = {};
	struct attributes attributes = {at, CTA_MAX};
	struct es_nf_entry entry = {};

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg))
		return -ENOENT;
	mnl_attr_parse(nlh, sizeof(struct nfgenmsg), note_attribute, &attributes);
	if (read_flow(at[CTA_TUPLE_ORIG], &entry.flow))
		return -ENOENT;
	read_socket(at[CTA_TUPLE_REPLY], &entry);
	read_tcp(at[CTA_PROTOINFO], &entry);
	read_shift(at[CTA_SEQ_ADJ_ORIG], &entry.offsets.client);
	read_shift(at[CTA_SEQ_ADJ_REPLY], &entry.offsets.server);
	read_synproxy(at[CTA_SYNPROXY], &entry.offsets);
	entry.timeout_s = get_u32(at[CTA_TIMEOUT]);
	entry.zone = ntohs(get_be16(at[CTA_ZONE]));
	entry.has_synproxy = !!at[CTA_SYNPROXY];
	entry.has_label = (__u8)has_label(at[CTA_LABELS], ES_NF_LABEL);
	entry.is_proven = (__u8)has_label(at[CTA_LABELS], ES_NF_LABEL_PROVEN);
	entry.is_held = (__u8)has_label(at[CTA_LABELS], ES_NF_LABEL_HELD);
	entry.is_making = (__u8)has_label(at[CTA_LABELS], ES_NF_LABEL_MAKING);
	*ret_entry = entry;
	return 0;
}
