/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_LOOK_H
#define ES_CORE_LOOK_H

/*
 * The daemon's question to the BPF datapath about one connection, where it must walk the sockets itself. It
 * is no part of the datapath's tables, so it may change with each version.
 */
#include "abi.h"
#include "track.h"

enum es_look_step {
	ES_LOOK_READ,  /* tell of the flow's socket */
	ES_LOOK_ENDED, /* @connection has been ended unheard: ES_SETTLED_END */
	ES_LOOK_LATE,  /* a socket that should have ended has been: count it */
};

/**
 * struct es_look - of one connection
 * @flow: in; @step: in, an enum es_look_step
 * @is_found: there is a socket of a service, and the rest is valid; @has_track: so is @track
 * @is_unacknowledged, @tsval: as in struct es_track_entry
 */
struct es_look {
	struct es_flow flow;
	__u32 step;
	struct es_connection_entry connection;
	struct es_track track;
	struct es_socket_load load;
	__u8 is_found;
	__u8 has_track;
	__u8 is_unacknowledged;
	__u8 pad;
	__u32 tsval;
};
_Static_assert(sizeof(struct es_look) == 152, "es_look has no hidden padding");

#endif
