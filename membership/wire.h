/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_WIRE_H
#define ES_MEMBERSHIP_WIRE_H

/*
 * The messages of members on the ordered bus. A datagram is a sequence of messages, each a type (1 byte), a
 * spare byte, a length (2 bytes) and so many bytes of payload. All numbers are big endian. Types that a
 * version does not know are skipped; the format of ES_WIRE_HELLO never changes, or nodes of two versions
 * could not refuse each other: what is new in it goes into the settings.
 */
#include <stddef.h>
#include <stdint.h>
#include "membership/node_state.h"

#define ES_WIRE_NAME_SIZE     64
#define ES_WIRE_SETTINGS_SIZE 12288 /* 128 nodes, 64 services */
#define ES_WIRE_PROOFS_MAX    1024
#define ES_WIRE_MESSAGE_MAX   (4 + 65535)

enum es_wire_type {
	ES_WIRE_HELLO = 1, /* in each new view, from each member */
	ES_WIRE_PROOFS,	   /* before ES_WIRE_STOPPED, any number */
	ES_WIRE_STOPPED,   /* the sender inspects nothing more that the epoch gives to another */
	ES_WIRE_CHANGE,	   /* a node's state or weight */
	ES_WIRE_LEAVE,	   /* the sender leaves in order */
	ES_WIRE_LOAD,	   /* the sender is alive, and this busy */
	ES_WIRE_SUSPECT,   /* a member does not answer */
	/* A service's content table; inspector/cluster/content_sync.h. */
	ES_WIRE_CONTENTS,	  /* changes */
	ES_WIRE_CONTENTS_WANT,	  /* the sender has joined, and lacks the table */
	ES_WIRE_CONTENTS_BEGIN,	  /* a snapshot for one member: as of this place in the order */
	ES_WIRE_CONTENTS_ENTRIES, /* a piece of it */
	ES_WIRE_CONTENTS_END,
	ES_WIRE_CONTENTS_CHECK,	 /* remember the digest of the table, as of this place in the order */
	ES_WIRE_CONTENTS_DIGEST, /* the sender's */
	ES_WIRE_SIZES,		 /* how long responses of a service were; inspector/daemon/observed.h */
	ES_WIRE_SETTINGS,	 /* the sender's, as in its HELLO, since it has read its configuration anew */
	ES_WIRE_BY_HAND, /* who wants the ES_WIRE_CHANGE that follows, and why; inspector/daemon/by_hand.h */
	ES_WIRE_SERVICE_DRAIN,	/* drain a node of a service, or not; self/service_drains.h */
	ES_WIRE_SERVICE_DRAINS, /* of which services the sender is */
};

/**
 * struct es_wire_hello
 * @epoch: the highest that the sender has seen; @served: the highest that was in force where it was
 * @in_ring: it is on the ring in force
 * @state: an enum es_node_state, @weight: percent; of the sender
 * @name: of its node; @settings: "name=value\n" for each thing that must be, or should be, alike on all nodes
 */
struct es_wire_hello {
	uint32_t epoch;
	uint32_t served;
	uint8_t in_ring;
	uint8_t state;
	uint16_t weight;
	char name[ES_WIRE_NAME_SIZE];
	char settings[ES_WIRE_SETTINGS_SIZE];
};

/**
 * struct es_wire_stopped
 * @hold_ms: for how long yet a node that vanished may take itself for a member, as far as the sender knows
 * @doubt_ms: for how long yet a client may repeat a request that a lost node has executed; 0 from a node that
 * does not send it
 */
struct es_wire_stopped {
	uint32_t epoch;
	uint32_t hold_ms;
	uint32_t doubt_ms;
};

/* struct es_wire_proof - as struct es_proof (inspector/inspect/worker.h), of the sender */
struct es_wire_proof {
	uint64_t flow_hash;
	uint32_t cookie;
	uint32_t first_seq;
};

enum es_wire_change_what { ES_WIRE_CHANGE_STATE = 1, ES_WIRE_CHANGE_WEIGHT };

struct es_wire_change {
	uint16_t node;
	uint8_t what;
	uint16_t value;
};

/**
 * struct es_wire_load
 * @sent_ns: on the bus, the sender's own clock, for itself; in a datagram to each other node
 * (inspector/peers/exchange.h), its wall clock, 0 from a version that does not tell when it sends a handover;
 * @connections: open ones; @cpu: busy share in 1/1000; @queue: requests that wait in its inspector
 * @has_requests: what follows is there; the first version's message ends before it
 * @is_new: it was counted since the sender's last message; a receiver must not take the same figures twice
 * @active: requests in hand; @load: the sum of their costs; @mean_us: how long one takes, 0: not known;
 * @disk: share of time in which something waited for a disk, in 1/1000
 * @understands: ES_WIRE_UNDERSTANDS_*, what the sender's version does and others before it do not;
 * ES_WIRE_UNKEPT and ES_WIRE_FAILING_YIELDS
 * @trouble: an enum es_trouble, 0 also from a version that does not tell
 * @failing: a bit for each of the first ES_WIRE_FAILING_MAX services whose server fails its check there, or
 * is an outlier; 0 also from a version that does not tell
 */
struct es_wire_load {
	uint64_t sent_ns;
	uint32_t connections;
	uint16_t cpu;
	uint16_t queue;
	uint8_t state;
	uint8_t has_requests;
	uint8_t is_new;
	uint32_t active;
	uint32_t load;
	uint32_t mean_us;
	uint16_t disk;
	uint8_t understands;
	uint8_t trouble;
	uint64_t failing;
};

#define ES_WIRE_UNDERSTANDS_STRAYS    1 /* ES_HANDOVER_STRAYS */
#define ES_WIRE_UNDERSTANDS_HOMES     2 /* ES_DATAGRAM_HOMES (inspector/peers/exchange.h) */
#define ES_WIRE_UNDERSTANDS_SNAPSHOTS 4 /* ES_DATAGRAM_SNAPSHOT (inspector/peers/snapshots.h) */
#define ES_WIRE_UNDERSTANDS_ROLLOUTS                                                                         \
	8 /* ES_DATAGRAM_ROLLOUT (inspector/rollout/message.h), and to be asked for settings */
#define ES_WIRE_UNDERSTANDS_STRAYS6 16 /* ES_HANDOVER_STRAYS6 */
#define ES_WIRE_UNDERSTANDS_FATE    32 /* ES_HANDOVER_FATE, ES_DATAGRAM_IDLE to ES_DATAGRAM_TAKES */
#define ES_WIRE_UNKEPT		    64 /* an operator's changes of the sender will not outlast its daemon */
#define ES_WIRE_FAILING_YIELDS                                                                               \
	128 /* of @failing, the sender has or claims places (inspector/health/place.h) */
#define ES_WIRE_FAILING_MAX 48
#define ES_WIRE_LOAD_SIZE   40 /* of the payload, at most */

#define ES_WIRE_WHO_SIZE     64
#define ES_WIRE_WHY_SIZE     128
#define ES_WIRE_BY_HAND_SIZE (26 + ES_WIRE_WHO_SIZE + ES_WIRE_WHY_SIZE) /* of the payload */

/**
 * struct es_wire_by_hand - an operator's change of a node
 * @what: an enum es_wire_change_what, never 0 in a message; @value: the state or weight
 * @until_restart: the next start of the node's daemon ends it
 * @for_s: seconds that it is for, @until_ms: the end by the wall clock of who sent it, since 1970; 0: no end
 * @set_ms: when it was set, likewise; @who, @why: text for people, "" if it is not known
 */
struct es_wire_by_hand {
	uint16_t node;
	uint8_t what;
	uint8_t until_restart;
	uint16_t value;
	uint32_t for_s;
	uint64_t set_ms;
	uint64_t until_ms;
	char who[ES_WIRE_WHO_SIZE];
	char why[ES_WIRE_WHY_SIZE];
};

/* struct es_wire_suspect - a member as the bus knows it */
struct es_wire_suspect {
	uint32_t nodeid;
	uint32_t pid;
};

/* The payload of each type; returns its length, 0 if it does not fit. */
size_t es_wire_put_hello(void *buf, size_t size, const struct es_wire_hello *hello);
size_t es_wire_put_proofs(void *buf, size_t size, uint32_t epoch, const struct es_wire_proof *proofs,
			  size_t count);
size_t es_wire_put_stopped(void *buf, size_t size, const struct es_wire_stopped *stopped);
size_t es_wire_put_change(void *buf, size_t size, const struct es_wire_change *change);
size_t es_wire_put_by_hand(void *buf, size_t size, const struct es_wire_by_hand *by_hand);
size_t es_wire_put_load(void *buf, size_t size, const struct es_wire_load *load);
size_t es_wire_put_suspect(void *buf, size_t size, const struct es_wire_suspect *suspect);

/* And back; return 0, or -EBADMSG. */
int es_wire_get_hello(const void *data, size_t len, struct es_wire_hello *ret);
/* @ret_proofs has room for ES_WIRE_PROOFS_MAX */
int es_wire_get_proofs(const void *data, size_t len, uint32_t *ret_epoch, struct es_wire_proof *ret_proofs,
		       size_t *ret_count);
int es_wire_get_stopped(const void *data, size_t len, struct es_wire_stopped *ret);
int es_wire_get_change(const void *data, size_t len, struct es_wire_change *ret);
int es_wire_get_by_hand(const void *data, size_t len, struct es_wire_by_hand *ret);
int es_wire_get_load(const void *data, size_t len, struct es_wire_load *ret);
int es_wire_get_suspect(const void *data, size_t len, struct es_wire_suspect *ret);

/* es_wire_append() - add a message to a datagram; returns its new length, 0 if it does not fit */
size_t es_wire_append(void *datagram, size_t size, size_t len, enum es_wire_type type, const void *payload,
		      size_t payload_len);

/**
 * es_wire_next() - the message at *@at of a datagram; moves *@at past it
 * Returns 1, 0 at the end, -EBADMSG if the rest is no message.
 */
int es_wire_next(const void *datagram, size_t len, size_t *at, uint8_t *ret_type, const void **ret_payload,
		 size_t *ret_payload_len);

#endif
