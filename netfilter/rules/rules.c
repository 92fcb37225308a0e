// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Composes the rules by which packets come to this datapath.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include "kmod/core/icmp.h"
#include "kmod/core/neighbour.h"
#include "netfilter/kernel/match.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/rules.h"

#define ES_CAPTURE "capture" /* where packets enter */
#define ES_SERVICE "service" /* packets for a service address */
#define ES_EVERY   "every"   /* clients' packets on connections here */
#define ES_ENDED   "ended"   /* likewise, if the connection is over */
#define ES_LEASED  "leased"  /* likewise, if nodes have leases */
#define ES_ANSWERS "answers" /* packets that the daemon sends */
#define ES_REPLIES "replies" /* packets that servers send */
#define ES_CLOSED  "closed"  /* packets that have come as far as the sockets */

static const unsigned char families[ES_NF_RULES_TABLES] = {NFPROTO_IPV4, NFPROTO_IPV6};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* How a rule gives packets to the queue. */
enum way {
	WAY_NFT,    /* nf_tables' expression */
	WAY_COMPAT, /* xtables' target */
};

/* struct how - what the kernel can do; @remembers: remember flows (drop_by_flow.h) */
struct how {
	enum way way;
	int remembers;
};

static int is_of(const struct es_addr *address, unsigned char family)
{
	return es_addr_is_v4(address) == (family == NFPROTO_IPV4);
}

/* Do the rules need a table of that family? */
static int have(const struct es_nf_rules *rules, unsigned char family)
{
	return is_of(&rules->self, family) || es_nf_rules_serve(rules, family == NFPROTO_IPV6);
}

/* The rule's last expression. While nobody reads the queue, packets are dropped, or pass if @bypasses. */
static void put_queue(struct es_nf_nft *nft, enum way way, __u16 queue, int bypasses)
{
	const struct xt_NFQ_info_v3 info = {
		.queuenum = queue,
		.queues_total = 1,
		.flags = bypasses ? NFQ_FLAG_BYPASS : 0,
	};
	struct nlattr *nest;

	if (way == WAY_COMPAT) {
		es_nf_nft_target(nft, "NFQUEUE", 3, &info, sizeof(info));
		return;
	}
	es_nf_nft_begin_expression(nft, "queue", &nest);
	mnl_attr_put_u16(nft->rule, NFTA_QUEUE_NUM, htons(queue));
	mnl_attr_put_u16(nft->rule, NFTA_QUEUE_TOTAL, htons(1));
	if (bypasses)
		mnl_attr_put_u16(nft->rule, NFTA_QUEUE_FLAGS, htons(NFT_QUEUE_FLAG_BYPASS));
	es_nf_nft_end_expression(nft, nest);
}

static void put_accept(struct es_nf_nft *nft)
{
	es_nf_nft_verdict(nft, NF_ACCEPT, NULL);
	es_nf_nft_end_rule(nft);
}

/* Bare acknowledgements (es_nf_match_bare()). */
static void put_bare(struct es_nf_nft *nft, const char *chain, __u8 words, __u8 says, int verdict)
{
	es_nf_nft_begin_rule(nft, chain);
	es_nf_match_bare(nft, words, says);
	es_nf_nft_verdict(nft, verdict, NULL);
	es_nf_nft_end_rule(nft);
}

/*
 * With leases, two kinds of packets pass: those of proven connections, and replies to connections that this
 * node has begun itself. Packets of other entries, such as those of ssh to the service address, are for the
 * node that has the client now.
 */
static void put_gate(struct es_nf_nft *nft, enum way way, enum es_nf_gate gate)
{
	const __u8 reply = IP_CT_DIR_REPLY;

	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_ours(nft, 1);
	put_accept(nft);
	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_ours(nft, 0);
	if (gate == ES_NF_GATE_OPEN)
		es_nf_nft_verdict(nft, NF_ACCEPT, NULL);
	else
		put_queue(nft, way, ES_NF_RULES_UNPROVEN, 0);
	es_nf_nft_end_rule(nft);
	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_established(nft, 1);
	es_nf_nft_load_ct(nft, NFT_CT_DIRECTION);
	es_nf_nft_match(nft, &reply, sizeof(reply));
	put_accept(nft);
}

/*
 * Drops what a leaving connection sends. If it stays after all, the stack repeats this. Needed even if no
 * service inspects every request any more: a reload may have changed that while connections were leaving.
 */
static void put_held(struct es_nf_nft *nft)
{
	es_nf_nft_begin_rule(nft, ES_REPLIES);
	es_nf_match_label(nft, ES_NF_LABEL_HELD);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/*
 * At the end of each of a connection's two handshakes (rebuild.c), the hook sends the client a window update,
 * which tells it nothing new. Nothing else acknowledges while a connection is being made; if nobody listens,
 * a RST answers the SYN.
 */
static void put_making_replies(struct es_nf_nft *nft)
{
	es_nf_nft_begin_rule(nft, ES_REPLIES);
	es_nf_match_label(nft, ES_NF_LABEL_MAKING);
	es_nf_match_flags(nft, ES_TCP_SYN | ES_TCP_RST | ES_TCP_FIN, 0);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* A server's packets on unproven connections go to a queue. A SYN-ACK never gets further than the hook. */
static void put_unproven_replies(struct es_nf_nft *nft, enum way way)
{
	es_nf_nft_begin_rule(nft, ES_REPLIES);
	es_nf_match_flags(nft, ES_TCP_SYN, 0);
	es_nf_match_ours(nft, 0);
	es_nf_match_leaves(nft);
	put_queue(nft, way, ES_NF_RULES_UNPROVEN, 0);
	es_nf_nft_end_rule(nft);
}

/* After conntrack, which knows the labels, and after operators mark packets, since marks select routes. */
static void put_replies_chain(struct es_nf_nft *nft, const struct es_nf_rules *rules, enum way way)
{
	es_nf_nft_add_base_chain(nft, ES_REPLIES, NF_INET_LOCAL_OUT, NF_IP_PRI_MANGLE + 1);
	if (rules->holds)
		put_held(nft);
	/*
	 * With leases, the hook's window update tells the daemon that a response is about to come
	 * (unproven.c); the daemon drops it.
	 */
	if (rules->gate == ES_NF_GATE_CLOSED)
		put_unproven_replies(nft, way);
	else if (rules->holds)
		put_making_replies(nft);
}

/*
 * Most packets acknowledge what was sent, without options or with timestamps. These pass here, which is
 * cheaper than the queue.
 */
static void put_every_chain(struct es_nf_nft *nft, enum way way)
{
	const __u8 says = ES_TCP_FIN | ES_TCP_SYN | ES_TCP_URG;

	es_nf_nft_add_chain(nft, ES_EVERY);
	put_bare(nft, ES_EVERY, 5, says, NF_ACCEPT);
	put_bare(nft, ES_EVERY, 8, says, NF_ACCEPT);
	es_nf_nft_begin_rule(nft, ES_EVERY);
	put_queue(nft, way, ES_NF_RULES_HERE, 1);
	es_nf_nft_end_rule(nft);
}

/*
 * Nearly all that arrives for an ended connection is the acknowledgement of its end, and the client's FIN.
 * Bare acknowledgements must not go through the queue. If the server has repeated its FIN, the client
 * acknowledges it twice, and one that waited in the queue would be overtaken by the client's FIN. It would
 * then find a socket in TIME_WAIT, which answers once more, and the client, which has forgotten the
 * connection, would end it by a RST.
 */
static void put_ended_chain(struct es_nf_nft *nft, enum way way)
{
	static const __u8 words[] = {5, 8, 11};
	const __u8 says = ES_TCP_SYN | ES_TCP_URG;

	es_nf_nft_add_chain(nft, ES_ENDED);
	for (size_t i = 0; i < sizeof(words); i++)
		put_bare(nft, ES_ENDED, words[i], says, NFT_RETURN);
	es_nf_nft_begin_rule(nft, ES_ENDED);
	put_queue(nft, way, ES_NF_RULES_ENDED, 1);
	es_nf_nft_end_rule(nft);
}

/*
 * A connection that is over, or half so, has an entry for at most two minutes more, while an open one has
 * five days. No rule can tell them apart otherwise. If the operator keeps open ones as shortly, their packets
 * go to the queue as well.
 */
static void put_ended(struct es_nf_nft *nft, enum es_nf_gate gate)
{
	const __u32 long_ms = ~((1U << 17) - 1), none = 0; /* 131 s */

	es_nf_nft_begin_rule(nft, ES_SERVICE);
	if (gate == ES_NF_GATE_NONE)
		es_nf_match_established(nft, 1);
	else
		es_nf_match_ours(nft, gate == ES_NF_GATE_CLOSED);
	es_nf_nft_load_ct(nft, NFT_CT_EXPIRATION);
	es_nf_match_bits(nft, &long_ms, &none, sizeof(long_ms));
	es_nf_nft_verdict(nft, NFT_JUMP, ES_ENDED);
	es_nf_nft_end_rule(nft);
}

/* No packet from the wire for an unproven connection passes by itself. */
static void put_leased_chain(struct es_nf_nft *nft, enum way way, enum es_nf_gate gate)
{
	es_nf_nft_add_chain(nft, ES_LEASED);
	if (gate != ES_NF_GATE_CLOSED)
		return;
	es_nf_nft_begin_rule(nft, ES_LEASED);
	es_nf_match_ours(nft, 1);
	es_nf_nft_verdict(nft, NFT_JUMP, ES_EVERY);
	es_nf_nft_end_rule(nft);
	es_nf_nft_begin_rule(nft, ES_LEASED);
	es_nf_match_ours(nft, 0);
	put_queue(nft, way, ES_NF_RULES_UNPROVEN_HERE, 0);
	es_nf_nft_end_rule(nft);
}

static void match_endpoint(struct es_nf_nft *nft, const struct es_nf_rules_endpoint *endpoint)
{
	es_nf_match_address(nft, ES_NF_TARGET, &endpoint->address);
	es_nf_match_protocol(nft, IPPROTO_TCP);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	es_nf_nft_match(nft, &endpoint->port, sizeof(endpoint->port));
}

static void put_every(struct es_nf_nft *nft, enum es_nf_gate gate,
		      const struct es_nf_rules_endpoint *endpoint)
{
	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_established(nft, 1);
	match_endpoint(nft, endpoint);
	es_nf_nft_verdict(nft, NFT_JUMP, gate == ES_NF_GATE_CLOSED ? ES_LEASED : ES_EVERY);
	es_nf_nft_end_rule(nft);
}

/*
 * Packets from the wire for a connection that is just being made wait: the queue's reader makes it, and then
 * gives them to the stack (attempts.h). If the attempt was withdrawn (withdraw.h), the reader treats them as
 * of a flow that is not here.
 */
static void put_making(struct es_nf_nft *nft, enum way way)
{
	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_label(nft, ES_NF_LABEL_MAKING);
	put_queue(nft, way, ES_NF_RULES_QUEUE, 0);
	es_nf_nft_end_rule(nft);
}

/*
 * Packets for a service address are this host's, whatever their MAC said. Packets of connections here pass.
 */
static void put_service_chain(struct es_nf_nft *nft, const struct es_nf_rules *rules, const struct how *how)
{
	const enum way way = how->way;
	const __u8 host = PACKET_HOST;

	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_nft_load(nft, &host, sizeof(host));
	es_nf_nft_set_meta(nft, NFT_META_PKTTYPE);
	es_nf_nft_end_rule(nft);

	es_nf_nft_begin_rule(nft, ES_SERVICE);
	es_nf_match_flags(nft, ES_TCP_SYN | ES_TCP_ACK | ES_TCP_RST | ES_TCP_FIN, ES_TCP_SYN);
	es_nf_match_established(nft, 1);
	put_queue(nft, way, ES_NF_RULES_KNOWN, 0);
	es_nf_nft_end_rule(nft);

	if (rules->holds)
		put_making(nft, way);
	put_ended(nft, (enum es_nf_gate)rules->gate);

	for (unsigned int i = 0; i < rules->every_count; i++)
		if (is_of(&rules->every[i].address, nft->family))
			put_every(nft, (enum es_nf_gate)rules->gate, &rules->every[i]);

	if (rules->gate == ES_NF_GATE_NONE) {
		es_nf_nft_begin_rule(nft, ES_SERVICE);
		es_nf_match_established(nft, 1);
		put_accept(nft);
	} else {
		put_gate(nft, way, (enum es_nf_gate)rules->gate);
	}

	if (how->remembers)
		es_nf_drop_by_flow_put(nft, ES_SERVICE);
	es_nf_nft_begin_rule(nft, ES_SERVICE);
	put_queue(nft, way, ES_NF_RULES_QUEUE, 0);
	es_nf_nft_end_rule(nft);
}

static void put_service(struct es_nf_nft *nft, const struct es_nf_rules *rules, const struct es_addr *address)
{
	es_nf_nft_begin_rule(nft, ES_CAPTURE);
	es_nf_match_interface(nft, rules->public_ifindex);
	es_nf_match_address(nft, ES_NF_TARGET, address);
	es_nf_nft_verdict(nft, NFT_JUMP, ES_SERVICE);
	es_nf_nft_end_rule(nft);
}

/*
 * Neighbours ask for the address at its multicast group (kmod/core/neighbour.h), and when they ask again, at
 * the address itself.
 */
static void put_solicitations(struct es_nf_nft *nft, const struct es_nf_rules *rules,
			      const struct es_addr *address, enum way way)
{
	const __u8 type = ES_ICMPV6_SOLICITATION;

	es_nf_nft_begin_rule(nft, ES_CAPTURE);
	es_nf_match_interface(nft, rules->public_ifindex);
	es_nf_match_protocol(nft, IPPROTO_ICMPV6);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, offsetof(struct es_neighbour, type),
			       sizeof(type));
	es_nf_nft_match(nft, &type, sizeof(type));
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, offsetof(struct es_neighbour, target),
			       sizeof(*address));
	es_nf_nft_match(nft, address, sizeof(*address));
	put_queue(nft, way, ES_NF_RULES_QUEUE, 0);
	es_nf_nft_end_rule(nft);
}

/* Messages go to the handover port, and their answers come from it. */
static void put_messages(struct es_nf_nft *nft, const struct es_nf_rules *rules, unsigned int ifindex,
			 enum way way)
{
	for (unsigned int offset = 0; offset <= 2; offset += 2) {
		es_nf_nft_begin_rule(nft, ES_CAPTURE);
		es_nf_match_interface(nft, ifindex);
		es_nf_match_address(nft, ES_NF_TARGET, &rules->self);
		es_nf_match_protocol(nft, IPPROTO_UDP);
		es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, offset, 2);
		es_nf_nft_match(nft, &rules->handover_port, sizeof(rules->handover_port));
		put_queue(nft, way, ES_NF_RULES_QUEUE, 0);
		es_nf_nft_end_rule(nft);
	}
}

/*
 * An ICMP error to the cluster address by the public interface; the daemon finds out whether it is about a
 * message.
 */
static void put_error(struct es_nf_nft *nft, const struct es_nf_rules *rules, __u8 mask, __u8 type,
		      enum way way)
{
	es_nf_nft_begin_rule(nft, ES_CAPTURE);
	es_nf_match_interface(nft, rules->public_ifindex);
	es_nf_match_address(nft, ES_NF_TARGET, &rules->self);
	es_nf_match_protocol(nft, nft->family == NFPROTO_IPV6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 0, sizeof(type));
	es_nf_match_bits(nft, &mask, &type, sizeof(type));
	put_queue(nft, way, ES_NF_RULES_QUEUE, 0);
	es_nf_nft_end_rule(nft);
}

static void put_errors(struct es_nf_nft *nft, const struct es_nf_rules *rules, enum way way)
{
	if (nft->family == NFPROTO_IPV6) {
		put_error(nft, rules, ES_ICMPV6_INFORMS, 0, way);
		return;
	}
	for (__u8 type = 0; type <= ES_ICMP_ERROR_LAST; type++)
		if (es_icmp_is_error(type, 0))
			put_error(nft, rules, 0xff, type, way);
}

/*
 * A RST of an open connection, before conntrack sees it. The kernel's hook takes every RST for the answer to
 * a SYN, and would give it a number that the client has passed long ago (resets.h). The answer to a SYN has
 * the number 0.
 */
static void put_reset(struct es_nf_nft *nft, const struct es_addr *address, enum way way)
{
	const __u32 none = 0;

	es_nf_nft_begin_rule(nft, ES_ANSWERS);
	es_nf_match_flags(nft, ES_TCP_RST, ES_TCP_RST);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 4, 4);
	es_nf_nft_differ(nft, &none, sizeof(none));
	es_nf_match_address(nft, ES_NF_SOURCE, address);
	es_nf_match_leaves(nft);
	put_queue(nft, way, ES_NF_RULES_QUEUE, 1);
	es_nf_nft_end_rule(nft);
}

static void put_answers_chain(struct es_nf_nft *nft, const struct es_nf_rules *rules, enum way way)
{
	const __u32 mark = ES_NF_RULES_MARK, mask = ES_NF_MARK_MASK;
	struct nlattr *nest;

	es_nf_nft_add_base_chain(nft, ES_ANSWERS, NF_INET_LOCAL_OUT, NF_IP_PRI_RAW);
	es_nf_nft_begin_rule(nft, ES_ANSWERS);
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_match_bits(nft, &mask, &mark, sizeof(mark));
	es_nf_nft_begin_expression(nft, "notrack", &nest);
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_verdict(nft, NF_ACCEPT, NULL);
	es_nf_nft_end_rule(nft);
	for (unsigned int i = 0; i < rules->count; i++)
		if (is_of(&rules->address[i], nft->family))
			put_reset(nft, &rules->address[i], way);
	for (unsigned int i = 0; i < rules->server_count; i++)
		if (is_of(&rules->server[i], nft->family))
			put_reset(nft, &rules->server[i], way);
}

static void put_capture_chain(struct es_nf_nft *nft, const struct es_nf_rules *rules, enum way way)
{
	es_nf_nft_add_base_chain(nft, ES_CAPTURE, NF_INET_PRE_ROUTING, ES_NF_PRIORITY_CAPTURE);
	for (unsigned int i = 0; i < rules->count; i++) {
		if (!is_of(&rules->address[i], nft->family))
			continue;
		put_service(nft, rules, &rules->address[i]);
		if (nft->family == NFPROTO_IPV6)
			put_solicitations(nft, rules, &rules->address[i], way);
	}
	if (!is_of(&rules->self, nft->family))
		return;
	put_messages(nft, rules, rules->cluster_ifindex, way);
	put_messages(nft, rules, ES_LOOPBACK_IFINDEX, way);
	/* From the clients' network, nobody may send messages. */
	if (rules->public_ifindex == rules->cluster_ifindex)
		return;
	put_messages(nft, rules, rules->public_ifindex, way);
	put_errors(nft, rules, way);
}

/*
 * Drops packets for a service from the public interface that are of no established connection: connections
 * begin by our own device. Such a packet was to be dropped earlier, by its mark, which somebody has changed.
 * The stack would answer it: each node a SYN, and anything else with a RST. It was counted when its fate was
 * decided.
 */
static void put_closed(struct es_nf_nft *nft, const struct es_nf_rules *rules,
		       const struct es_nf_rules_endpoint *endpoint)
{
	es_nf_nft_begin_rule(nft, ES_CLOSED);
	es_nf_match_interface(nft, rules->public_ifindex);
	match_endpoint(nft, endpoint);
	es_nf_match_established(nft, 0);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* Before all filters: another node's packets are not for their rules, which may count or limit them. */
static void put_closed_chain(struct es_nf_nft *nft, const struct es_nf_rules *rules)
{
	es_nf_nft_add_base_chain(nft, ES_CLOSED, NF_INET_LOCAL_IN, NF_IP_PRI_FIRST);
	for (unsigned int i = 0; i < rules->endpoint_count; i++)
		if (is_of(&rules->endpoint[i].address, nft->family))
			put_closed(nft, rules, &rules->endpoint[i]);
}

/* The chains are the same for all rules, so a reload deletes none (es_nf_nft_begin_table()). */
static int make(struct es_nf_netlink *nl, const struct es_nf_rules *rules, const struct how *how, int anew,
		struct es_nf_rules_whole *ret_whole)
{
	const enum way way = how->way;
	size_t count[FAMILIES] = {};
	struct es_nf_nft nft;
	int rc;

	es_nf_nft_begin(&nft, nl);
	nft.table = ES_NF_RULES_TABLE;
	for (size_t i = 0; i < FAMILIES; i++) {
		if (!have(rules, families[i]))
			continue;
		nft.family = families[i];
		es_nf_nft_begin_table(&nft, anew);
		put_every_chain(&nft, way);
		put_ended_chain(&nft, way);
		put_leased_chain(&nft, way, (enum es_nf_gate)rules->gate);
		es_nf_nft_add_chain(&nft, ES_SERVICE);
		put_service_chain(&nft, rules, how);
		put_replies_chain(&nft, rules, way);
		put_answers_chain(&nft, rules, way);
		put_capture_chain(&nft, rules, way);
		put_closed_chain(&nft, rules);
		count[i] = nft.rules;
	}
	rc = es_nf_nft_commit(&nft);
	ret_whole->remembers = how->remembers;
	for (size_t i = 0; i < FAMILIES && !rc; i++)
		if (have(rules, families[i]))
			rc = es_nf_whole_note(nl, families[i], nft.table, count[i], &ret_whole->table[i]);
	return rc;
}

static int make_in_any_way(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
			   struct es_nf_rules_whole *ret_whole)
{
	/* Best first. */
	static const struct how hows[] = {{WAY_NFT, 1}, {WAY_COMPAT, 1}, {WAY_NFT, 0}, {WAY_COMPAT, 0}};
	int rc = -ENOENT;

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]) && (rc == -ENOENT || rc == -EOPNOTSUPP); i++)
		rc = make(nl, rules, &hows[i], anew, ret_whole);
	return rc;
}

int es_nf_rules_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
		    struct es_nf_rules_whole *ret_whole, struct es_nf_why *why)
{
	int rc = anew ? -EEXIST : make_in_any_way(nl, rules, 0, ret_whole);

	/* Another version's chains may have other hooks. */
	if (rc && rc != -EMSGSIZE)
		rc = make_in_any_way(nl, rules, 1, ret_whole);
	if (rc == -ENOENT)
		return es_nf_why(
			why, -EOPNOTSUPP,
			"the kernel has no queues for nf_tables (CONFIG_NFT_QUEUE, or CONFIG_NFT_COMPAT "
			"and CONFIG_NETFILTER_XT_TARGET_NFQUEUE)");
	if (rc == -EMSGSIZE)
		return es_nf_why(why, rc, "%d service addresses are too many for the table %s", rules->count,
				 ES_NF_RULES_TABLE);
	/* Remove tables of families that this configuration no longer needs. */
	for (size_t i = 0; i < FAMILIES && !rc; i++)
		rc = have(rules, families[i]) ? 0
					      : es_nf_nft_remove_table(nl, families[i], ES_NF_RULES_TABLE);
	return rc ? es_nf_why(why, rc, "nf_tables refuse the table %s: %s", ES_NF_RULES_TABLE, strerror(-rc))
		  : 0;
}

/* Returns 1, 0 or -errno. */
static int has_table(struct es_nf_netlink *nl, unsigned char family)
{
	char buf[256];
	struct nlmsghdr *nlh =
		es_nf_netlink_put(nl, buf, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, NLM_F_ACK);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	int rc;

	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, ES_NF_RULES_TABLE);
	rc = es_nf_netlink_talk(nl, nlh, NULL, NULL);
	return rc == -ENOENT || (rc == -EAFNOSUPPORT && family == NFPROTO_IPV6) ? 0 : rc ? rc : 1;
}

int es_nf_rules_are_set(struct es_nf_netlink *nl)
{
	int are_set = 0;

	for (size_t i = 0; i < FAMILIES && !are_set; i++)
		are_set = has_table(nl, families[i]);
	return are_set;
}

int es_nf_rules_are_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  const struct es_nf_rules_whole *whole)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		int rc = have(rules, families[i])
				 ? es_nf_whole_is(nl, families[i], ES_NF_RULES_TABLE, &whole->table[i])
				 : 1;

		if (rc <= 0)
			return rc;
	}
	return 1;
}

int es_nf_rules_remove(struct es_nf_netlink *nl)
{
	int rc = 0;

	for (size_t i = 0; i < FAMILIES && !rc; i++)
		rc = es_nf_nft_remove_table(nl, families[i], ES_NF_RULES_TABLE);
	return rc;
}
