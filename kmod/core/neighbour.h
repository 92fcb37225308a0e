/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_NEIGHBOUR_H
#define ES_CORE_NEIGHBOUR_H

/*
 * Neighbour solicitations (RFC 4861, 7.2) for a service's IPv6 address, and the advertisement that answers them with the
 * cluster MAC.
 */
#include "abi.h"
#include "checksum.h"
#include "headers.h"

enum {
	ES_ICMPV6_UNREACHABLE = 1,
	ES_ICMPV6_ERROR_LAST = 4, /* parameter problem; among them: packet too big */
	ES_ICMPV6_ECHO = 128,
	ES_ICMPV6_SOLICITATION = 135,
	ES_ICMPV6_ADVERTISEMENT = 136,
};

#define ES_NEIGHBOUR_HOPS      255 /* it has passed no router */
#define ES_NEIGHBOUR_SOLICITED 0x40000000
#define ES_NEIGHBOUR_OVERRIDE  0x20000000
#define ES_NEIGHBOUR_TARGET_AT 2 /* the option with the target's link-layer address */

/* struct es_neighbour - an advertisement, or the part of a solicitation that each has */
struct es_neighbour {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 flags;
	struct es_addr target;
	__u8 option;
	__u8 option_len;
	__u8 mac[6];
};
#define ES_NEIGHBOUR_ASKS offsetof(struct es_neighbour, option)

/* struct es_neighbour_packet - the answer, from its IPv6 header on */
union es_neighbour_packet {
	struct {
		__be32 version_class_label;
		__be16 payload_len;
		__u8 next_header;
		__u8 hop_limit;
		struct es_addr source;
		struct es_addr dest;
		struct es_neighbour body;
	};
	__u16 words[36];
	__u8 bytes[72];
};
_Static_assert(sizeof(union es_neighbour_packet) == 72, "no padding: it is sent");

/* RFC 2464, 7: the MAC of ff02::1, which all nodes hear. */
#define ES_NEIGHBOUR_ALL_MAC                                                                                 \
	{                                                                                                    \
		0x33, 0x33, 0, 0, 0, 1                                                                       \
	}

static __always_inline int es_addr_is_unspecified(const struct es_addr *a)
{
	return !(a->w[0] | a->w[1] | a->w[2] | a->w[3]);
}

/* Is ICMPv6's @type an error about a connection? Only the stacks know whose, so all get it. */
static __always_inline int es_icmpv6_is_error(__u8 type)
{
	return type >= ES_ICMPV6_UNREACHABLE && type <= ES_ICMPV6_ERROR_LAST;
}

static __always_inline int es_neighbour_is_solicitation(const struct es_neighbour *asked, __u32 hops)
{
	return hops == ES_NEIGHBOUR_HOPS && asked->type == ES_ICMPV6_SOLICITATION && !asked->code;
}

/**
 * es_neighbour_write() - the answer to @asker, who has asked for @target
 * Who has no address yet asks whether it may take this one, and all hear the answer.
 */
static __always_inline void es_neighbour_write(const struct es_config *cfg, const struct es_addr *asker,
					       const struct es_addr *target, union es_neighbour_packet *ret)
{
	es_memset(ret, 0, sizeof(*ret));
	ret->version_class_label = es_htonl(0x60000000);
	ret->payload_len = es_htons(sizeof(ret->body));
	ret->next_header = ES_HEADER_ICMPV6;
	ret->hop_limit = ES_NEIGHBOUR_HOPS;
	ret->source = *target;
	ret->body.type = ES_ICMPV6_ADVERTISEMENT;
	ret->body.flags = es_htonl(ES_NEIGHBOUR_OVERRIDE);
	ret->body.target = *target;
	ret->body.option = ES_NEIGHBOUR_TARGET_AT;
	ret->body.option_len = 1;
	es_memcpy(ret->body.mac, cfg->cluster_mac, sizeof(ret->body.mac));
	if (es_addr_is_unspecified(asker)) {
		ret->dest.w[0] = es_htonl(0xff020000);
		ret->dest.w[3] = es_htonl(1);
	} else {
		ret->dest = *asker;
		ret->body.flags |= es_htonl(ES_NEIGHBOUR_SOLICITED);
	}
	ret->body.check =
		(__u16)~es_csum_fold(es_csum_words(ret->words + 4, 32) + (__u16)es_htons(ES_HEADER_ICMPV6) +
				     (__u16)es_htons(sizeof(ret->body)));
}

#endif
