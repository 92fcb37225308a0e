// SPDX-License-Identifier: GPL-2.0-or-later
/* Signs and checks the datagrams by which nodes tell each other of their flows. */
#include "inspector/base/datagram_mac.h"
#include "inspector/peers/flow_datagram.h"

#define MAC_AT offsetof(struct es_flow_datagram, mac)

void es_flow_datagram_init(struct es_flow_datagram *header, enum es_datagram version, unsigned int self,
			   unsigned int target, __u64 sequence, __u64 wall_ns)
{
	*header = (struct es_flow_datagram){
		.magic = es_htonl(ES_LOADS_MAGIC),
		.version = (__u8)version,
		.source = (__u8)self,
		.target = (__u8)target,
		.sequence = (__be64)es_cpu_be64(sequence),
		.sent_ns = (__be64)es_cpu_be64(wall_ns),
	};
}

void es_flow_datagram_sign(struct es_flow_datagram *header, size_t len, const struct es_sipkey *key)
{
	header->mac = es_datagram_mac(key, header, len, MAC_AT);
}

int es_flow_datagram_is_new(const struct es_flow_datagram *header, size_t len, enum es_datagram version,
			    unsigned int self, unsigned int node_count, const struct es_keys *keys,
			    __u64 wall_ns, __u64 *heard)
{
	__u64 sequence = es_cpu_be64((__u64)header->sequence);
	__u64 sent_ns = es_cpu_be64((__u64)header->sent_ns);

	if (header->magic != es_htonl(ES_LOADS_MAGIC) || header->version != version ||
	    header->target != self || header->source == self || header->source >= node_count ||
	    !es_keys_have_signed(keys, header, len, MAC_AT) || sequence <= heard[header->source] ||
	    wall_ns - sent_ns + ES_FLOW_DATAGRAM_LATE_NS > 2 * ES_FLOW_DATAGRAM_LATE_NS)
		return 0;
	heard[header->source] = sequence;
	return 1;
}
