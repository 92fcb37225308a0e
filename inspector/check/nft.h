/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CHECK_NFT_H
#define ES_CHECK_NFT_H

/* The parts that the readers of nf_tables' rules share: attributes, and the expressions of a rule. */
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>

#include "inspector/check/netlink.h"

/* struct es_nft_bytes - an attribute's payload; @at NULL: there is none */
struct es_nft_bytes {
	const void *at;
	size_t len;
};

static inline struct es_nft_bytes es_nft_attribute(struct es_nft_bytes in, int type)
{
	struct es_nft_bytes out = {};

	out.at = in.at ? es_netlink_attribute(in.at, in.len, type, &out.len) : NULL;
	return out;
}

static inline int es_nft_is_text(struct es_nft_bytes text, const char *wanted)
{
	return text.at && text.len == strlen(wanted) + 1 && !memcmp(text.at, wanted, text.len);
}

/* The attributes after a message's own header. */
static inline struct es_nft_bytes es_nft_message(const void *data, size_t len)
{
	const size_t header = NLMSG_ALIGN(sizeof(struct nfgenmsg));

	return len < header ? (struct es_nft_bytes){}
			    : (struct es_nft_bytes){(const char *)data + header, len - header};
}

/*
 * The next element of a list, whose elements follow each other in attributes of the same type; @list then
 * begins after it.
 */
static inline struct es_nft_bytes es_nft_next(struct es_nft_bytes *list)
{
	struct es_nft_bytes one = es_nft_attribute(*list, NFTA_LIST_ELEM);
	size_t behind = one.at ? (size_t)((const char *)one.at - (const char *)list->at) + NLA_ALIGN(one.len)
			       : list->len;

	*list = behind < list->len
			? (struct es_nft_bytes){(const char *)list->at + behind, list->len - behind}
			: (struct es_nft_bytes){};
	return one;
}

#endif
