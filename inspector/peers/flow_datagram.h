/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_FLOW_DATAGRAM_H
#define ES_FLOW_DATAGRAM_H

/*
 * The header of datagrams by which a node tells another one of its flows: the idle ones (kept_words.h), and
 * those with a long response (download_words.h). They go where loads go, and begin as those do
 * (ES_LOADS_MAGIC). Authentic by SipHash-2-4 under the cluster's handover key, over all of the datagram;
 * fresh by @sequence, which goes up with the number clock, and by the sender's time, for a node that has just
 * started and has heard no number yet. A version that does not know them ignores them.
 */
#include "inspector/base/datagram.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/handover.h"

/* A datagram that was sent so long ago, or will be, is not taken. */
#define ES_FLOW_DATAGRAM_LATE_NS (ES_HANDOVER_LATE_S * 1000000000ULL)

/*
 * struct es_flow_datagram - in network byte order; as long as a handover message's header, which the datapath
 * reads first
 * @version: enum es_datagram; @count: of what follows, where that is of use; @sent_ns: by the sender's wall
 * clock; @target: the node that it is for
 */
struct es_flow_datagram {
	__be32 magic;
	__u8 version;
	__u8 source;
	__be16 count;
	__be64 sequence;
	__be64 sent_ns;
	__u8 target;
	__u8 spare[31];
	__be64 mac;
};
_Static_assert(sizeof(struct es_flow_datagram) == sizeof(struct es_handover), "one size");

/* es_flow_datagram_init() - a header from @self to @target; @wall_ns: this node's wall clock */
void es_flow_datagram_init(struct es_flow_datagram *header, enum es_datagram version, unsigned int self,
			   unsigned int target, __u64 sequence, __u64 wall_ns);

/* es_flow_datagram_sign() - the last step; @len: the datagram's bytes, of which @header are the first */
void es_flow_datagram_sign(struct es_flow_datagram *header, size_t len, const struct es_sipkey *key);

/**
 * es_flow_datagram_is_new() - is it an authentic datagram of this kind, of another node to this one, timely,
 * and newer than @heard (by node), which it is then noted in?
 * @len: the datagram's bytes, of which @header are the first
 */
int es_flow_datagram_is_new(const struct es_flow_datagram *header, size_t len, enum es_datagram version,
			    unsigned int self, unsigned int node_count, const struct es_keys *keys,
			    __u64 wall_ns, __u64 *heard);

#endif
