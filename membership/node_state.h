/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_NODE_STATE_H
#define ES_MEMBERSHIP_NODE_STATE_H

/* What a node says of itself, or the others must make of it. The first four travel on the bus. */
enum es_node_state {
	ES_NODE_UP = 0,
	ES_NODE_DRAINING, /* takes no new requests unless nobody else does; its flows move away */
	ES_NODE_DOWN,	  /* its server does not listen: inspects, is no target */
	ES_NODE_LEFT,	  /* left in order: what it has, it keeps */
	ES_NODE_ABSENT,	  /* no member: what it was given without an answer may be given to another node */
};

#endif
