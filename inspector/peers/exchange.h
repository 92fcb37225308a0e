/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PEERS_EXCHANGE_H
#define ES_PEERS_EXCHANGE_H

/*
 * Nodes tell each other how busy they are, many times a second: one datagram to each other node, to the
 * handover port, from where the datapath lets it pass (ES_LOADS_MAGIC). Not over the ordered bus: loads need
 * no order, and each message there makes corosync's token run around the ring some dozens of times. A
 * datagram that is lost is made up for by the next one.
 *
 * Authentic by SipHash-2-4 under the cluster's handover key, fresh by a sequence number that goes up with the
 * number clock (base/wall.h). A node that receives a number below the last one replies with the last one. So
 * a node that begins anew with an earlier clock learns where its numbers must continue, of these and of all
 * that it numbers.
 */
#include "inspector/base/datagram.h"
#include "inspector/cluster/cluster.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/handover.h"
#include "membership/wire.h"

#define ES_LOADS_ANSWER_NS    100000000ULL /* no node is told more often that it is behind */
#define ES_LOADS_PAYLOAD_SIZE 40

/**
 * struct es_loads_message - in network byte order; @len: bytes of @payload (es_wire_put_load()), zeros behind
 * Of an answer, @sequence is what was heard last of the node whose number is @payload's first byte, and which
 * it is for; it needs no freshness, since no node goes back for it, nor beyond what it once was.
 * As long as a handover message's header, which the datapath reads first.
 */
struct es_loads_message {
	__be32 magic;
	__u8 version;
	__u8 source;
	__be16 len;
	__be64 sequence;
	__u8 payload[ES_LOADS_PAYLOAD_SIZE];
	__be64 mac;
};
_Static_assert(sizeof(struct es_loads_message) == sizeof(struct es_handover), "one size");
_Static_assert(ES_WIRE_LOAD_SIZE <= ES_LOADS_PAYLOAD_SIZE, "room for what a node says of itself");

/**
 * struct es_home_wire - without a bus: who serves what (inspector/policy/contents.h)
 * For nodes that say that they understand it. In network byte order; @tag: the service's,
 * es_content_sync_tag(); the rest is a struct es_content_word.
 */
struct es_home_wire {
	__be64 content;
	__be64 stamp;
	__be64 nodes[2];
	__be32 tag;
	__be32 by;
};
_Static_assert(sizeof(struct es_home_wire) == ES_LOADS_PAYLOAD_SIZE, "a word fills a payload");

/**
 * struct es_evidence_wire - whether a node's clients were heard of there (inspector/health/vanishing.h)
 * For that node, if it says that it understands it. In network byte order; struct es_evidence without the
 * node; @tag: the service's, as above.
 */
struct es_evidence_wire {
	__be64 address;
	__be64 prefix;
	__be64 request;
	__be32 tag;
	__u8 is_heard;
	__u8 spare[11];
};
_Static_assert(sizeof(struct es_evidence_wire) == ES_LOADS_PAYLOAD_SIZE, "it fills a payload");

/**
 * struct es_idle_wire - how many of the requests that a node has in hand are connections on which nothing
 * goes on
 * Told where requests are refused because of loads, to nodes that say that they understand it: a message with
 * loads has no room for it. In network byte order; @idle: as in struct es_load_report.
 */
struct es_idle_wire {
	__be32 idle;
};

/**
 * struct es_takes_wire - what the sender can take
 * How long a client's packet in a handover message may be, of which packets it makes connections, and for
 * which services it has no server; for nodes that say that they understand it. In network byte order; @makes:
 * ES_MAKES_*, 0 from a version that does not tell; @lacks: as in struct es_serving, likewise. The version
 * before takes no message whose length says more than @packet_max. So the length never does, and the two
 * fields after it are authentic all the same.
 */
struct es_takes_wire {
	__be32 packet_max;
	__be32 makes;
	__be64 lacks;
};

/**
 * struct es_grant_wire - a node asks another one for a lease, and grants one (membership/grants.h)
 * For members that say in their settings that they grant leases. In network byte order; @ring, @number,
 * @lease_ms: a struct es_grants_ask, 0: it asks for nothing; @granted: es_grants_tell(); @to: whom it is for
 */
struct es_grant_wire {
	__be64 ring;
	__be64 number;
	__be64 granted;
	__be32 lease_ms;
	__u8 to;
	__u8 spare[11];
};
_Static_assert(sizeof(struct es_grant_wire) == ES_LOADS_PAYLOAD_SIZE, "it fills a payload");

/**
 * struct es_load_exchange
 * @fd: -1 until es_load_exchange_open(); @bound: its address; @heard: the last sequence of each node
 * @cluster_ifindex: the interface of the nodes' network, which the caller sets; what comes by any other but
 * lo is refused. 0: not known, and all is taken
 * @ifindex: the one by which the last datagram came, 0: not known; @elsewhere_ifindex: by which another
 * node's, authentic, was refused last for that, 0: none
 * @other: gets what begins as a message and is of another version, with @ctx (inspector/inspect/poison.h,
 * snapshots.h, rate_words.h, inspector/rollout/message.h); returns 0 if it took it; may be NULL
 * @answered_ns: when each node was last told that it is behind
 * @answered, @outrun: called with @ctx when a node is told so, by how much, and when this one is; may be NULL
 * @home: gets other nodes' words about sets, with @ctx; may be NULL. Likewise @evidence, about requests given
 * to this node,
 * @idle, what they have of idle connections, @takes, what they can receive and make connections of, and
 * @grant, for which lease they ask, and which they grant
 * @refused: datagrams that were no authentic, fresh message of another node, or came by another interface
 */
struct es_load_exchange {
	int fd;
	union es_sockaddr bound;
	__u64 sequence;
	__u64 heard[ES_NODES_MAX];
	unsigned int cluster_ifindex;
	unsigned int ifindex;
	unsigned int elsewhere_ifindex;
	unsigned long long answered_ns[ES_NODES_MAX];
	unsigned long long sent;
	unsigned long long received;
	unsigned long long refused;
	int (*other)(void *ctx, const void *data, size_t len);
	void (*answered)(void *ctx, unsigned int node, __u64 behind);
	void (*outrun)(void *ctx, unsigned int node, __u64 number);
	void (*home)(void *ctx, unsigned int node, const struct es_home_wire *word);
	void (*evidence)(void *ctx, unsigned int node, const struct es_evidence_wire *evidence);
	void (*idle)(void *ctx, unsigned int node, unsigned int idle);
	void (*takes)(void *ctx, unsigned int node, unsigned int packet_max, unsigned int makes, __u64 lacks);
	void (*grant)(void *ctx, unsigned int node, const struct es_grant_wire *grant);
	void *ctx;
};

/* es_load_exchange_open() - listen at this node's cluster address. Returns 0 or -errno. */
int es_load_exchange_open(struct es_load_exchange *exchange, const struct es_cluster *cluster);
void es_load_exchange_close(struct es_load_exchange *exchange);

/* es_load_exchange_send() - to all other nodes; what cannot be sent is lost */
void es_load_exchange_send(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			   const struct es_keys *keys, const struct es_wire_load *load);

/* es_load_exchange_tell() - a word about a set, to all that @understand it (by node); lost as loads are */
void es_load_exchange_tell(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			   const struct es_keys *keys, const _Atomic unsigned char *understands,
			   const struct es_home_wire *word);

/*
 * es_load_exchange_testify() - what was heard, or not, of a request that was given to @node; lost as loads
 * are
 */
void es_load_exchange_testify(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			      const struct es_keys *keys, unsigned int node,
			      const struct es_evidence_wire *evidence);

/* es_load_exchange_grant() - to @node, which @grant is for; lost as loads are */
void es_load_exchange_grant(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			    const struct es_keys *keys, unsigned int node, const struct es_grant_wire *grant);

/* es_load_exchange_tell_idle() - to all that @understand it (by node); lost as loads are */
void es_load_exchange_tell_idle(struct es_load_exchange *exchange, const struct es_cluster *cluster,
				const struct es_keys *keys, const _Atomic unsigned char *understands,
				unsigned int idle);

/*
 * es_load_exchange_tell_takes() - what this node can receive, of what it makes connections, and what it
 * lacks, likewise
 */
void es_load_exchange_tell_takes(struct es_load_exchange *exchange, const struct es_cluster *cluster,
				 const struct es_keys *keys, const _Atomic unsigned char *understands,
				 unsigned int packet_max, unsigned int makes, __u64 lacks);

/**
 * es_load_exchange_receive() - take one message
 * Returns 1, 0 if there is none, -EBADMSG for one that was refused.
 */
int es_load_exchange_receive(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			     const struct es_keys *keys, unsigned int *ret_node,
			     struct es_wire_load *ret_load);

/*
 * So many datagrams are taken at a time: twice what all other nodes send in the pause that follows when there
 * were as many. More is a flood, and the thread that reads has real-time priority.
 */
#define ES_LOADS_AT_A_TIME 128
#define ES_LOADS_PAUSE_S   0.025

/* es_load_exchange_drain() - take what is there; @fn gets each message. Returns 0, or 1 if there was too
 * much. *@cluster is read anew for each: what is taken may put another version in its place. */
int es_load_exchange_drain(struct es_load_exchange *exchange, struct es_cluster *const *cluster,
			   const struct es_keys *keys,
			   void (*fn)(void *ctx, unsigned int node, const struct es_wire_load *load),
			   void *ctx);

#endif
