// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks the kernel for the route to a client, and for the neighbour on that route. */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include "netfilter/rebuild/reach.h"

/* A neighbour entry that is valid stays usable for longer than this. */
#define ES_REACHED_NS 1000000000ULL

/* The kernel's NUD_VALID: the MAC is known, or none is needed. */
#define ES_VALID (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

/* struct hop - the packet's next hop: address @at of @family; @state: of its neighbour entry, NUD_… */
struct hop {
	unsigned char family;
	__u32 ifindex;
	struct es_addr at;
	__u16 state;
};

int es_nf_reach_open(struct es_nf_reach *reach)
{
	memset(reach, 0, sizeof(*reach));
	return es_nf_netlink_open(&reach->nl, NETLINK_ROUTE);
}

void es_nf_reach_close(struct es_nf_reach *reach)
{
	es_nf_netlink_close(&reach->nl);
}

static size_t address_len(unsigned char family)
{
	return family == AF_INET ? 4 : 16;
}

static const void *address_of(const struct es_addr *address, unsigned char family)
{
	return family == AF_INET ? (const void *)&address->w[3] : address;
}

static void address_read(const struct nlattr *attr, unsigned char family, struct es_addr *ret)
{
	if (mnl_attr_get_payload_len(attr) < address_len(family))
		return;
	if (family == AF_INET)
		*ret = es_addr_from_v4(mnl_attr_get_u32(attr));
	else
		memcpy(ret, mnl_attr_get_payload(attr), sizeof(*ret));
}

/* A router of the other address family. */
static void via_read(const struct nlattr *attr, struct hop *hop)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	const size_t head = sizeof(via->rtvia_family), len = mnl_attr_get_payload_len(attr);
	__be32 v4;

	if (len < head || (via->rtvia_family != AF_INET && via->rtvia_family != AF_INET6) ||
	    len < head + address_len((unsigned char)via->rtvia_family))
		return;
	hop->family = (unsigned char)via->rtvia_family;
	if (hop->family == AF_INET6) {
		memcpy(&hop->at, via->rtvia_addr, sizeof(hop->at));
		return;
	}
	memcpy(&v4, via->rtvia_addr, sizeof(v4));
	hop->at = es_addr_from_v4(v4);
}

static int on_route(const struct nlmsghdr *nlh, void *data)
{
	struct hop *hop = data;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct rtmsg))
	{
		if (mnl_attr_get_type(attr) == RTA_OIF && mnl_attr_get_payload_len(attr) >= sizeof(__u32))
			hop->ifindex = mnl_attr_get_u32(attr);
		if (mnl_attr_get_type(attr) == RTA_GATEWAY)
			address_read(attr, hop->family, &hop->at);
		if (mnl_attr_get_type(attr) == RTA_VIA)
			via_read(attr, hop);
	}
	return MNL_CB_STOP;
}

static int on_neighbour(const struct nlmsghdr *nlh, void *data)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	struct hop *hop = data;

	hop->state = ndm->ndm_state;
	return MNL_CB_STOP;
}

static int find_route(struct es_nf_reach *reach, const struct es_flow *flow, __u32 mark, struct hop *ret)
{
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(&reach->nl, buf, RTM_GETROUTE, 0);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	size_t len = address_len(ret->family);

	rtm->rtm_family = ret->family;
	rtm->rtm_dst_len = rtm->rtm_src_len = (unsigned char)(len * 8);
	mnl_attr_put(nlh, RTA_DST, len, address_of(&flow->client, ret->family));
	mnl_attr_put(nlh, RTA_SRC, len, address_of(&flow->service, ret->family));
	if (mark)
		mnl_attr_put_u32(nlh, RTA_MARK, mark);
	ret->at = flow->client; /* if there is no router */
	return es_nf_netlink_talk(&reach->nl, nlh, on_route, ret);
}

static struct nlmsghdr *put_neighbour(struct es_nf_reach *reach, void *buf, unsigned int type,
				      const struct hop *hop, unsigned char flags)
{
	struct nlmsghdr *nlh = es_nf_netlink_put(&reach->nl, buf, type, 0);
	struct ndmsg *ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));

	ndm->ndm_family = hop->family;
	ndm->ndm_ifindex = (int)hop->ifindex;
	ndm->ndm_flags = flags;
	mnl_attr_put(nlh, NDA_DST, address_len(hop->family), address_of(&hop->at, hop->family));
	return nlh;
}

static int find_neighbour(struct es_nf_reach *reach, struct hop *hop)
{
	char buf[256];

	return es_nf_netlink_talk(&reach->nl, put_neighbour(reach, buf, RTM_GETNEIGH, hop, 0), on_neighbour,
				  hop);
}

/*
 * Makes the kernel ask for the MAC, as a packet would. Where there is no MAC to ask for, the entry is valid
 * at once.
 */
static void ask_for(struct es_nf_reach *reach, const struct hop *hop)
{
	char buf[256];
	struct nlmsghdr *nlh = put_neighbour(reach, buf, RTM_NEWNEIGH, hop, NTF_USE);
	int rc;

	nlh->nlmsg_flags |= NLM_F_CREATE;
	es_nf_netlink_push(&reach->nl, nlh, nlh->nlmsg_len, nlh->nlmsg_seq, 1, &rc);
}

/* If the kernel does not tell (before Linux 5.0), nothing is held back. */
static int ask(struct es_nf_reach *reach, const struct es_flow *flow, __u32 mark)
{
	struct hop hop = {.family = es_addr_is_v4(&flow->client) ? AF_INET : AF_INET6};
	int rc = find_route(reach, flow, mark, &hop);

	if (rc)
		return 1;
	rc = find_neighbour(reach, &hop);
	if (rc == -ENOENT || (!rc && !(hop.state & (ES_VALID | NUD_INCOMPLETE)))) {
		ask_for(reach, &hop);
		rc = find_neighbour(reach, &hop);
	}
	return rc || hop.state & ES_VALID;
}

int es_nf_reach_is(struct es_nf_reach *reach, const struct es_flow *flow, __u32 mark, __u64 now_ns)
{
	const __u32 *w = flow->client.w;
	__u32 at = (w[0] ^ w[1] ^ w[2] ^ w[3]) * 0x9e3779b1u >> 24 & (ES_NF_REACHED - 1);

	if (now_ns < reach->reached[at].until_ns && reach->reached[at].mark == mark &&
	    es_addr_equal(&reach->reached[at].client, &flow->client))
		return 1;
	if (!ask(reach, flow, mark))
		return 0;
	reach->reached[at].client = flow->client;
	reach->reached[at].mark = mark;
	reach->reached[at].until_ns = now_ns + ES_REACHED_NS;
	return 1;
}
