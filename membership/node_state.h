/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_NODE_STATE_H
#define ES_MEMBERSHIP_NODE_STATE_H

/* The state of a node, as it says itself or as the others must conclude. The first four travel on the bus. */
enum es_node_state {
	ES_NODE_UP = 0,
	ES_NODE_DRAINING, /* takes no new requests unless nobody else does; its flows move away */
	ES_NODE_DOWN,	  /* cannot serve (enum es_trouble): inspects, is no target */
	ES_NODE_LEFT,	  /* left in order: what it has, it keeps */
	ES_NODE_ABSENT,	  /* no member: what it was given without an answer may be given to another node */
};

/* Why a node cannot serve, or not every service; what it says of itself. Numbers travel, so only append. */
enum es_trouble {
	ES_TROUBLE_NONE = 0,
	ES_TROUBLE_NO_SERVER,  /* nothing listens */
	ES_TROUBLE_MPTCP,      /* the server's socket is one of MPTCP */
	ES_TROUBLE_ADDRESS,    /* a service address is none of this machine's */
	ES_TROUBLE_SYNCOOKIES, /* the kernel makes no connection */
	ES_TROUBLE_RP_FILTER,  /* or drops what comes from another node */
	ES_TROUBLE_MTU,	       /* or cannot receive it */
	ES_TROUBLE_VANISHING,  /* connections that are made here are never heard of again */
	ES_TROUBLE_CHECK,      /* the server fails its check */
	ES_TROUBLE_OUTLIER,    /* what the server answers is wrong too often, or late */
	ES_TROUBLE_CUT_OFF,    /* it hears nobody on its cluster interface */
	ES_TROUBLE_KEPT,       /* it serves though its server fails its check (health/place.h) */
};

#endif
