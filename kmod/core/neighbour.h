/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_NEIGHBOUR_H
#define ES_CORE_NEIGHBOUR_H

/*
 * Neighbour solicitations (RFC 4861, 7.2) for a service's IPv6 address, and the advertisement that answers
 * them with the cluster MAC.
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
#define ES_NEIGHBOUR_SOURCE_AT 1 /* the option with the asker's link-layer address */
#define ES_NEIGHBOUR_TARGET_AT 2 /* the one with the target's */

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
#define ES_NEIGHBOUR_ASKS __builtin_offsetof(struct es_neighbour, option)

/* A message and its options are in units of this many bytes. Signed ones (RFC 3971) have some 60 of them. */
#define ES_NEIGHBOUR_UNIT      8
#define ES_NEIGHBOUR_UNITS_MAX 128

/**
 * struct es_neighbour_walk - over a solicitation's units, to learn if it is valid
 * @unit: the next one to be read, of @units
 * @option: the one at which the next option begins
 */
struct es_neighbour_walk {
	__u32 sum;
	__u16 unit;
	__u16 units;
	__u16 option;
	__u8 is_unspecified; /* the asker has no address yet */
	__u8 is_wrong;
};

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

/* RFC 4291, 2.7.1: ff02::1:ff00:0/104 */
static __always_inline int es_neighbour_is_group(const struct es_addr *a)
{
	return a->w[0] == es_htonl(0xff020000) && !a->w[1] && a->w[2] == es_htonl(1) && a->b[12] == 0xff;
}

/*
 * @len: of the message, as the IPv6 header says it. Then es_neighbour_step() until it returns 0, then
 * es_neighbour_is_valid().
 */
static __always_inline void es_neighbour_walk_init(const struct es_addr *source, const struct es_addr *dest,
						   __u32 len, struct es_neighbour_walk *ret)
{
	es_memset(ret, 0, sizeof(*ret));
	ret->is_unspecified = (__u8)es_addr_is_unspecified(source);
	ret->option = ES_NEIGHBOUR_ASKS / ES_NEIGHBOUR_UNIT;
	ret->units = (__u16)(len / ES_NEIGHBOUR_UNIT);
	ret->is_wrong = len % ES_NEIGHBOUR_UNIT || len < ES_NEIGHBOUR_ASKS ||
			len > ES_NEIGHBOUR_UNIT * ES_NEIGHBOUR_UNITS_MAX ||
			(ret->is_unspecified && !es_neighbour_is_group(dest));
	for (int i = 0; i < 4; i++)
		ret->sum += (source->w[i] >> 16) + (source->w[i] & 0xffff) + (dest->w[i] >> 16) +
			    (dest->w[i] & 0xffff);
	ret->sum += (__u32)(__u16)es_htons(len & 0xffff) + (__u16)es_htons(ES_HEADER_ICMPV6);
}

/* Take unit @w->unit, whose bytes are @words. Returns 1 if another one follows. */
static __always_inline int es_neighbour_step(struct es_neighbour_walk *w, const __u16 *words)
{
	const __u8 *option = (const __u8 *)words;

	w->sum += es_csum_words(words, ES_NEIGHBOUR_UNIT / 2);
	if (w->unit == w->option) {
		if (!option[1] || (w->is_unspecified && option[0] == ES_NEIGHBOUR_SOURCE_AT))
			w->is_wrong = 1;
		w->option += option[1];
	}
	w->unit++;
	return !w->is_wrong && w->unit < w->units;
}

/* RFC 4861, 7.1.1, behind es_neighbour_is_solicitation(): checksum, lengths, and who has no address yet. */
static __always_inline int es_neighbour_is_valid(const struct es_neighbour_walk *w)
{
	return !w->is_wrong && w->unit == w->units && w->option == w->units && es_csum_fold(w->sum) == 0xffff;
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
