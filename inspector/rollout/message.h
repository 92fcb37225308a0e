/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_MESSAGE_H
#define ES_ROLLOUT_MESSAGE_H

/*
 * Messages of nodes while one of them, the leader, rolls a configuration out. The datagrams go where loads
 * go, and begin as those do (ES_LOADS_MAGIC); a version that does not know them ignores them. Authentic by
 * SipHash-2-4 under the cluster's handover key, over all of the datagram. Fresh, since each repeats two
 * numbers: the leader's of this rollout, and the one that the other node has given its part in it. Only an
 * offer is without the latter; one that is not newer than the last of its leader is no news. Either side says
 * again what the other one has not answered.
 */
#include <stddef.h>
#include "inspector/base/datagram.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/handover.h"

#define ES_ROLLOUT_MAX	      (1024U * 1024) /* bytes of what is rolled out */
#define ES_ROLLOUT_PART_BYTES 1024U
#define ES_ROLLOUT_PARTS_MAX  (ES_ROLLOUT_MAX / ES_ROLLOUT_PART_BYTES)

enum es_rollout_kind {
	ES_ROLLOUT_OFFER,   /* of the leader: there is a text of @total bytes */
	ES_ROLLOUT_WANT,    /* of the node: @len parts from @part on */
	ES_ROLLOUT_PART,    /* of the leader: part @part, @len bytes */
	ES_ROLLOUT_COMMIT,  /* of the leader: switch */
	ES_ROLLOUT_REVERT,  /* of the leader: back to what was before */
	ES_ROLLOUT_END,	    /* of the leader: that was all */
	ES_ROLLOUT_STATE,   /* of the node: @state, and why, @len bytes; answers COMMIT, REVERT, END, OFFER */
	ES_ROLLOUT_RESTART, /* of the leader: begin anew; whoever has says that it is GONE, when it serves */
	/*
	 * A node that joins: its file has @digest. An offer or one of the next two answers; an older version
	 * does not.
	 */
	ES_ROLLOUT_ASK,
	ES_ROLLOUT_ALIKE,   /* so has the file here */
	ES_ROLLOUT_NO_FILE, /* the file here is of no rollout */
};

/* The node's part in a rollout, as it tells the leader. New ones at the end. */
enum es_rollout_state {
	ES_ROLLOUT_NONE = 0, /* nothing was heard of it yet */
	ES_ROLLOUT_READY,    /* it has the file beside the one in force, and would take it */
	ES_ROLLOUT_REFUSED,  /* it would not; why follows */
	ES_ROLLOUT_SWITCHED,
	ES_ROLLOUT_FAILED,     /* it could not switch, and is as before */
	ES_ROLLOUT_TAKEN_BACK, /* it is as before */
	ES_ROLLOUT_STUCK,      /* it has switched, and cannot go back */
	ES_ROLLOUT_BUSY,       /* it takes part in another one */
	ES_ROLLOUT_GONE,       /* it knows nothing of this one, or has given up waiting */
	ES_ROLLOUT_STATE_COUNT,
};

/**
 * struct es_rollout_header - in network byte order; as long as a handover message's, which the datapath reads
 * first
 * @source, @target: nodes; @rollout: the leader's number, @member: the node's, 0 in an offer; the latter in
 * what is asked, too, and in its answer
 */
struct es_rollout_header {
	__be32 magic;
	__u8 version;
	__u8 source;
	__u8 target;
	__u8 kind;
	__be64 rollout;
	__be64 member;
	__be32 total;
	__be16 part;
	__be16 len;
	__u8 state;
	__u8 spare[7];
	__be64 digest;
	__u8 more_spare[8];
	__be64 mac;
};
_Static_assert(sizeof(struct es_rollout_header) == sizeof(struct es_handover), "one size");

struct es_rollout_datagram {
	struct es_rollout_header header;
	char text[ES_ROLLOUT_PART_BYTES];
};
_Static_assert(sizeof(struct es_rollout_datagram) <= ES_DATAGRAM_MAX, "it is received whole");

/*
 * struct es_rollout_message - a datagram's fields, in host byte order; @text: of part and state, @len bytes,
 * and no NUL
 */
struct es_rollout_message {
	unsigned int source;
	unsigned int target;
	enum es_rollout_kind kind;
	enum es_rollout_state state;
	unsigned long long rollout;
	unsigned long long member;
	unsigned long long digest;
	size_t total;
	unsigned int part;
	size_t len;
	const char *text;
};

/* es_rollout_put() - as a datagram; returns its bytes */
size_t es_rollout_put(struct es_rollout_datagram *datagram, const struct es_rollout_message *message,
		      const struct es_sipkey *key);

/**
 * es_rollout_get() - is it an authentic message of another node to this one?
 * @ret_datagram: a copy, which @ret_message->text is in. Returns 0 or -EBADMSG.
 */
int es_rollout_get(const void *data, size_t len, unsigned int self, unsigned int node_count,
		   const struct es_keys *keys, struct es_rollout_datagram *ret_datagram,
		   struct es_rollout_message *ret_message);

#endif
