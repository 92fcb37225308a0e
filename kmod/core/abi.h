/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_ABI_H
#define ES_CORE_ABI_H

/*
 * The memory that the daemon and the datapath share: configuration (written whole, then switched to by
 * index), live state (mapped by both) and the records in which packets travel to the inspector. Sizes are
 * part of the ABI: a daemon that starts takes over a running datapath's tables only if ES_ABI_VERSION is the
 * same.
 */
#include "guesses.h"
#include "poison.h"
#include "ring.h"
#include "siphash.h"
#include "tcp.h"

#define ES_ABI_VERSION	12
#define ES_SERVICES_MAX 64
#define ES_WORKERS_MAX	8

enum es_inspect {
	ES_INSPECT_NEVER = 0, /* layer 4: the inspecting node serves, or one that does */
	ES_INSPECT_FIRST = 1,
	ES_INSPECT_EVERY = 2,
};

/* Which requests may have been executed once, and must not be again, when their node is lost. */
enum es_unsafe {
	ES_UNSAFE_ONCE = 0, /* those whose method is not safe (RFC 9110 section 9.2.1) */
	ES_UNSAFE_AGAIN,    /* none */
	ES_UNSAFE_ALL,	    /* those, and whatever cannot be read */
};

/**
 * struct es_service_entry - one service
 * @inspect: an enum es_inspect; @unsafe: an enum es_unsafe
 * @server, @server_port: where the server listens that gets the connections that a program hands over
 * (docs/programs.md); port 0: nobody does that here
 * @survives: other nodes know idle connections of it, and go on with them when this one is no member any more
 * (es_track_is_ceded())
 * @gives: of ES_INSPECT_NEVER: which node gets a connection is for the inspector to say (es_serving_gives())
 * @address6: its address of IPv6, of the same port; all zero: it has none
 * @server6: as @server, for connections of IPv6, on the same port. Either is all zero if no connection of
 * that family is handed over
 */
struct es_service_entry {
	struct es_addr address;
	__be16 port;
	__u8 inspect;
	__u8 unsafe;
	struct es_addr server;
	__be16 server_port;
	__u8 gives;
	__u8 survives;
	struct es_addr address6;
	struct es_addr server6;
};
_Static_assert(sizeof(struct es_service_entry) == 72, "entries are ABI");

/**
 * struct es_config - one version of the datapath's configuration
 * @cookie_key, @handover_key: [0] signs, both verify; key_count says whether [1] exists
 * @ring_seed: as of es_flow_hash(): 0: SipHash says whose a flow is, else jhash
 * @slot_s: length of a cookie slot in seconds; a cookie lives for two to three of them
 * @synack_window: what the SYN-ACK's window promises, so what a client may send before a socket exists
 * @mss: what we announce; a full segment still fits into a handover message
 * @leased: membership changes: this node may serve only as long as its lease says, never without its daemon,
 * and the epochs in handover messages mean something
 * @requires_time: all nodes tell when they send a handover message; one that does not say is recorded
 * @reads_replies: some service inspects every request, so where responses end matters
 * @offer_*: what the node's TCP can keep: never promise in the SYN-ACK what a sysctl forbids the socket
 */
struct es_config {
	__u32 abi;
	__u32 epoch;
	__u32 self;
	__u32 service_count;
	struct es_sipkey ring_key;
	struct es_sipkey cookie_key[2];
	struct es_sipkey handover_key[2];
	__u16 key_count;
	__u16 ring_seed;
	__u32 slot_s;
	__u32 synack_window;
	__u32 decision_sets;
	__u32 workers;
	__u32 race_window_ms;
	__u32 fallback_after_ms;
	__u32 public_ifindex;
	__u32 cluster_ifindex;
	__u16 mss;
	__be16 handover_port;
	__u8 rcv_wscale;
	__u8 offer_wscale;
	__u8 offer_sack;
	__u8 offer_ts;
	__u8 offer_ecn;
	__u8 cluster_mac[6];
	__u8 public_mac[6];
	__u8 leased;
	__u8 reads_replies;
	__u8 requires_time;
	struct es_addr self_address;
	struct es_service_entry service[ES_SERVICES_MAX];
};

/**
 * struct es_worker_state - what one worker and the datapath tell each other, on a cache line of its own
 * @heartbeat_ns: CLOCK_MONOTONIC time at which it last looked, to the millisecond
 * @awake: it is running, or was woken already: a packet need not wake it (kmod/bpf/queue.h)
 * @refused_services, @refused_until_ns: of the first one, and not a worker's own: what the daemon does not
 * let this node serve (serving.h); @refused_of: and what of clients of IPv4, of IPv6; @given_services: what
 * it would rather give away, for as long
 */
struct es_worker_state {
	__u64 heartbeat_ns;
	__u32 awake;
	__u32 pad0;
	__u64 refused_services;
	__u64 refused_until_ns;
	__u64 refused_of[2];
	__u64 given_services;
	__u32 pad[2];
};
_Static_assert(sizeof(struct es_worker_state) == 64, "one cache line");

/**
 * struct es_state - live words; the first line is read for every packet and seldom written
 * @active: index of the configuration and ring table in force (0 or 1)
 * @attached: 0 makes the datapath take no new flow; sockets that are here go on
 * @lease_ns: CLOCK_MONOTONIC time until which the other nodes leave this one its share of the ring, 0 without
 * membership. When it is over, the node is silent: it takes no new flow, and what others may have taken over
 * stands still.
 * @reset_ns: when the stack last ended a connection with a RST (resets.h), 0 if it never did
 * @firm_ns: until when before that this node may acknowledge a request that it has not answered: the client
 * does not repeat it then, so it had better be answered while the lease lasts
 * @hears_ns: since when this node hears, and notes, all that arrives on the public network (overheard.h); 0:
 * not yet; @heard_slot_s: the configuration's slot_s by which it did
 * @doubt_ns: until when a lost node may have executed what its client repeats (firsts.h)
 * @guesses: how many first requests without a cookie of ours came lately
 * @wall_offset_ns: CLOCK_REALTIME - CLOCK_MONOTONIC, so that a datapath without a daemon still knows the time
 * @sequence: the datapath's own handover sequence (its NACKs)
 * @served_epoch: the daemon's, for the next one: the last epoch that was in force here
 * @began_ns: CLOCK_MONOTONIC time since which this node takes handover messages, with windows that were empty
 * @mark, @poisons: the daemon's, for the next one (poison.h)
 * @was_deaf: the daemon's, for the next one: the clients' network is not heard (inspector/self/deaf.h)
 * @wall_before_ns, @wall_before_until_s: wall_offset_ns before the clock was set the last time, and until
 * when that counts, in CLOCK_MONOTONIC's seconds (wall.h)
 * @asked_until_s: until when clients may answer that were asked about idle connections (kept.h), in
 * CLOCK_MONOTONIC's seconds; 0: none was
 * @number_ns: the daemon's, for the next one: from what its messages are numbered
 * (inspector/peers/own_clock.h)
 * @began: what stamp each node's clock showed at began_ns, 0 if it has not told (es_handover_is_early())
 */
struct es_state {
	__u32 active;
	__u32 attached;
	__u64 wall_offset_ns;
	__u64 sequence;
	__u64 lease_ns;
	__u32 served_epoch;
	__u32 heard_slot_s;
	__u64 firm_ns;
	__u64 reset_ns;
	__u64 hears_ns;
	__u64 doubt_ns;
	struct es_guesses guesses;
	__u64 began_ns;
	__u64 was_deaf;
	__u64 wall_before_ns;
	__u64 number_ns;
	__u32 wall_before_until_s;
	__u32 asked_until_s;
	struct es_worker_state worker[ES_WORKERS_MAX];
	struct es_mark mark[ES_WORKERS_MAX];
	struct es_poisons poisons;
	__u32 began[ES_NODES_MAX];
};

enum es_record_kind {
	ES_RECORD_FIRST = 1, /* first segment of a request: cookie and client ISN proven */
	ES_RECORD_LATER = 2, /* a later segment of a first request: only the flow is proven */
	ES_RECORD_ENDED = 3, /* the answer to ES_HANDOVER_GONE: it is */
	ES_RECORD_KEPT = 4,  /* the answer to ES_HANDOVER_END: the connection cannot leave its socket */
	ES_RECORD_STRAY = 5, /* a segment that nobody takes, come again (strays.h) */
	ES_RECORD_ENDING =
		6, /* the answer to ES_HANDOVER_END: the socket gets nothing more, and is being ended */
	ES_RECORD_OPEN = 7,  /* es_answer_next(): its client is to be asked for it (challenges.h) */
	ES_RECORD_HEARD = 8, /* of another node's idle connection: es_view_tells() */
};

/* Whose flow a packet is. */
enum es_record_flow {
	ES_FLOW_NEW = 0,	  /* without a socket: a first request */
	ES_FLOW_HERE,		  /* its socket is here; the record has its track */
	ES_FLOW_DOUBTFUL,	  /* the same, and a node that is lost may have executed it (firsts.h) */
	ES_FLOW_MOVED,		  /* this node has moved it away with a request that now comes again */
	ES_FLOW_HEARD,		  /* of a stray: it did exist, by more than that segment's word (strays.h) */
	ES_FLOW_EARLIER,	  /* the same, and unless a node has its connection, it is a first request */
	ES_FLOW_EARLIER_DOUBTFUL, /* which then is ES_FLOW_DOUBTFUL's */
	ES_FLOW_UNSERVED, /* as ES_FLOW_NEW, of a service that nobody reads and this node does not serve */
	/* The inspector's own (inspect/survive.c), of a request with which it goes on: */
	ES_FLOW_KEPT,	       /* the lost node of its connection had no right to take it any more */
	ES_FLOW_KEPT_DOUBTFUL, /* it may have executed it */
};

/**
 * struct es_record - a packet on its way to the inspector; the IP packet follows
 * @len: bytes of IP packet, headers included; @gso_size: payload bytes per segment if it is a merged packet,
 * else 0
 * @csum_partial: the TCP checksum was left to hardware and must be computed
 * @flow: an enum es_record_flow; @options, @requests, @moves: of ES_FLOW_HERE, and of those kept
 */
struct es_record {
	__u64 flow_hash;
	__u32 len;
	__u16 gso_size;
	__u8 kind;
	__u8 service;
	__u8 csum_partial;
	__u8 flow;
	__u16 moves;
	__u32 requests;
	struct es_tcp_options options;
};
_Static_assert(sizeof(struct es_record) == 32, "records are ABI");

/**
 * struct es_connection_entry - a connection of this node, as es_datapath_connections() shows it
 * @made_ns: when the socket was made, CLOCK_MONOTONIC; @source: the node that inspected the request,
 * ES_NODE_NONE if that is forgotten
 * @cookie: of its handshake; @first_seq: of its first request; @unproven: the client may not know yet that
 * this arrived; @is_ceded: see es_track_is_ceded(), where es_look() tells (look.h)
 */
struct es_connection_entry {
	__u64 flow_hash;
	__u64 made_ns;
	__u32 cookie;
	__u32 first_seq;
	__u16 source;
	__u8 tcp_state;
	__u8 unproven;
	__u8 is_moved;
	__u8 is_ceded;
	__u8 pad[2];
};
_Static_assert(sizeof(struct es_connection_entry) == 32, "entries are ABI");

/**
 * struct es_socket_load - what one connection adds to its service's sums (load.h)
 * @cost: of the request in hand, 0 if there is none
 * @is_ending: its socket should have ended (ES_TRACK_ENDING); whoever finds it ends it, and it counts nothing
 * @is_idle: nothing goes on there, es_load_is_idle()
 */
struct es_socket_load {
	__u32 cost;
	__u8 service;
	__u8 is_ending;
	__u8 is_idle;
	__u8 pad;
};

/**
 * struct es_response_entry - a complete response that the inspector asked to measure
 * @url_key: as in its handover message; @bytes: with its head; @request_flags: ES_REQUEST_F_*
 * @took_ns: from when the request was given to the server until the last byte went out; 0: not known. A
 * datapath of the version before ends its entries in front of it.
 */
struct es_response_entry {
	__u64 url_key;
	__u32 bytes;
	__u16 status;
	__u8 service;
	__u8 request_flags;
	__u64 took_ns;
};
_Static_assert(sizeof(struct es_response_entry) == 24, "entries are ABI");
#define ES_RESPONSE_ENTRY_LEAST 16

/**
 * struct es_connection_state - what no socket option tells of an established socket
 * @ts_recent: the client's newest timestamp
 * @is_found: there is such a socket, established, and the rest is valid
 */
struct es_connection_state {
	__u64 flow_hash;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 snd_una;
	__u32 write_seq;
	__u32 ts_recent;
	__u32 is_found;
};
_Static_assert(sizeof(struct es_connection_state) == 48, "it fits into a frame's headers");

/*
 * How the datapath wakes a worker that sleeps: a frame of this protocol (IEEE 802's number for local
 * experiments) on lo, with the worker's number in the destination address. It never leaves the node.
 */
#define ES_WAKE_PROTOCOL    0x88b5
#define ES_WAKE_WORKER_OFF  5
#define ES_LOOPBACK_IFINDEX 1 /* in every network namespace */

#define ES_RESPONSES_BYTES 65536 /* a ring buffer's: a page, be it a large one */

#define ES_RECORD_SMALL 1600  /* a frame of an ordinary network */
#define ES_RECORD_LARGE 17000 /* a merged packet of at most the promised window */
#define ES_RECORD_MAX	65536 /* more than any IPv4 packet, merged or not */

#endif
