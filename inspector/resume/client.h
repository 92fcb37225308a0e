/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RESUME_CLIENT_H
#define ES_RESUME_CLIENT_H

/*
 * A client whose response has broken off: how much of it has it got? It is sent a segment from before the
 * response, which it must answer with an acknowledgment (RFC 9293, 3.10.7.4); Linux does so twice a second at
 * the most. All that it says is heard by a packet socket, which takes nothing away from anybody: for all
 * protocols, since one for IP alone would hold the stack's packets (docs/troubleshooting.md).
 */
#include "inspector/cluster/downloads.h"
#include "inspector/handover/raw.h"

/* Timestamps of the lost node that are under way yet must not be later than the first of this one, in ms. */
#define ES_RESUME_CLOCK_AHEAD 1000

/* A client is asked so often, and its answer is waited for so long each time. */
#define ES_RESUME_ASKS	 4
#define ES_RESUME_ASK_MS 550

/**
 * struct es_resume_client - what it has said
 * @seq, @ack: of its segment; @window: as in its header; @has_ts, @tsval, @tsecr: its timestamps
 * @has_more: it has a payload, or ends the connection
 */
struct es_resume_client {
	__u32 seq;
	__u32 ack;
	__u32 tsval;
	__u32 tsecr;
	__u16 window;
	__u8 has_ts;
	__u8 has_more;
};

/**
 * es_resume_ask() - returns 0, -ETIMEDOUT if the client does not answer, -ECONNRESET if it says that there is
 * no connection, or another -errno
 */
int es_resume_ask(const struct es_raw *raw, const struct es_download *download,
		  struct es_resume_client *ret_client);

/* es_resume_reset() - tell it that the connection is over: by the number that it expects (RFC 5961, 3.2) */
int es_resume_reset(const struct es_raw *raw, const struct es_download *download, __u32 seq);

#endif
