// SPDX-License-Identifier: GPL-2.0-or-later
/* Composes the rules that accept frames for the shared MAC. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include "netfilter/kernel/nft.h"
#include "netfilter/rules/ingress.h"

#define ES_CHAIN "host"

static void put_address(struct es_nf_nft *nft, const struct es_nf_rules *rules, const struct es_addr *address)
{
	const int is_v6 = !es_addr_is_v4(address);
	const unsigned int len = is_v6 ? 16 : 4; /* the destination address follows the source address */
	const __be16 ip = htons(is_v6 ? ETH_P_IPV6 : ETH_P_IP);
	const __u8 host = PACKET_HOST;

	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_PROTOCOL);
	es_nf_nft_match(nft, &ip, sizeof(ip));
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_LL_HEADER, 0, ETH_ALEN);
	es_nf_nft_match(nft, rules->cluster_mac, ETH_ALEN);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_NETWORK_HEADER, is_v6 ? 24 : 16, len);
	es_nf_nft_match(nft, address->b + sizeof(*address) - len, len);
	es_nf_nft_load(nft, &host, sizeof(host));
	es_nf_nft_set_meta(nft, NFT_META_PKTTYPE);
	es_nf_nft_end_rule(nft);
}

static int set(struct es_nf_netlink *nl, const struct es_nf_rules *rules, const char *device, int anew,
	       struct es_nf_whole *ret_whole)
{
	struct es_nf_nft nft;
	int rc;

	es_nf_nft_begin(&nft, nl);
	nft.family = NFPROTO_NETDEV;
	nft.table = ES_NF_INGRESS_TABLE;
	es_nf_nft_begin_table(&nft, anew);
	es_nf_nft_add_ingress_chain(&nft, ES_CHAIN, device);
	for (unsigned int i = 0; i < rules->count; i++)
		put_address(&nft, rules, &rules->address[i]);
	rc = es_nf_nft_commit(&nft);
	return rc ? rc : es_nf_whole_note(nl, NFPROTO_NETDEV, nft.table, nft.rules, ret_whole);
}

int es_nf_ingress_follow(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
			 struct es_nf_whole *ret_whole, struct es_nf_why *why)
{
	char device[IF_NAMESIZE];
	int rc;

	if (!rules->is_unicast) {
		rc = es_nf_ingress_remove(nl);
		return rc ? es_nf_why(why, rc, "nf_tables keep the table %s: %s", ES_NF_INGRESS_TABLE,
				      strerror(-rc))
			  : 0;
	}
	if (!if_indextoname(rules->public_ifindex, device))
		return es_nf_why(why, -ENODEV, "the public interface is gone");
	rc = anew ? -EEXIST : set(nl, rules, device, 0, ret_whole);
	if (rc)
		rc = set(nl, rules, device, 1, ret_whole);
	/*
	 * The kernel lacks the family (EAFNOSUPPORT) or the hook (EOPNOTSUPP). ENOENT also means that the
	 * interface has just gone.
	 */
	if (rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP || (rc == -ENOENT && if_nametoindex(device)))
		return es_nf_why(why, -EOPNOTSUPP,
				 "the kernel's nf_tables see no ingress (CONFIG_NF_TABLES_NETDEV, "
				 "CONFIG_NETFILTER_INGRESS), which mac_mode = unicast needs");
	if (rc == -ENOENT)
		return es_nf_why(why, -ENODEV, "the public interface is gone");
	if (rc == -EMSGSIZE)
		return es_nf_why(why, rc, "%d service addresses are too many for the table %s", rules->count,
				 ES_NF_INGRESS_TABLE);
	return rc ? es_nf_why(why, rc, "nf_tables refuse the table %s: %s", ES_NF_INGRESS_TABLE,
			      strerror(-rc))
		  : 0;
}

/* Is there the table, or with @type NFT_MSG_GETCHAIN its chain? Returns 1, 0 or -errno. */
static int has(struct es_nf_netlink *nl, unsigned int type)
{
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, NFNL_SUBSYS_NFTABLES << 8 | type, NLM_F_ACK);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	int rc;

	nfg->nfgen_family = NFPROTO_NETDEV;
	nfg->version = NFNETLINK_V0;
	if (type == NFT_MSG_GETCHAIN) {
		mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, ES_NF_INGRESS_TABLE);
		mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, ES_CHAIN);
	} else {
		mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, ES_NF_INGRESS_TABLE);
	}
	rc = es_nf_netlink_talk(nl, nlh, NULL, NULL);
	return rc == -ENOENT || rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP ? 0 : rc ? rc : 1;
}

int es_nf_ingress_is_whole(struct es_nf_netlink *nl, const struct es_nf_whole *whole)
{
	int rc = has(nl, NFT_MSG_GETCHAIN);

	/* When the interface goes, the kernel removes the chain and keeps the table. */
	return rc > 0 ? es_nf_whole_is(nl, NFPROTO_NETDEV, ES_NF_INGRESS_TABLE, whole) : rc;
}

int es_nf_ingress_is_set(struct es_nf_netlink *nl)
{
	int rc = has(nl, NFT_MSG_GETTABLE);

	return rc > 0 ? has(nl, NFT_MSG_GETCHAIN) : rc < 0 ? rc : 1;
}

int es_nf_ingress_remove(struct es_nf_netlink *nl)
{
	return es_nf_nft_remove_table(nl, NFPROTO_NETDEV, ES_NF_INGRESS_TABLE);
}
