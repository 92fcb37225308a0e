/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_GATHERED_H
#define ES_INSPECT_GATHERED_H

/*
 * Requests that arrive in several segments: what is kept of them (keep.c), for how long (waited.c), and what
 * becomes of them (gathered.c).
 */
#include "inspector/inspect/gather.h"
#include "inspector/packet/packet.h"
#include "kmod/core/abi.h"

struct es_inspector;
struct es_known;

/**
 * es_inspect_gather_begin() - begin to gather a request, as @known's
 * A full table forgets another flow for it. Returns 0 or -ENOMEM.
 */
int es_inspect_gather_begin(struct es_inspector *in, __u64 flow_hash, struct es_known *known);

/* es_inspect_keep() - keep a segment with @known's, cut into pieces that fit into messages */
enum es_gather_result es_inspect_keep(struct es_inspector *in, const struct es_record *record,
				      const struct es_ip_packet *packet, const struct es_known *known,
				      int is_first);

/* es_inspect_gather() - keep a segment of an incomplete request, and decide it if it is complete now */
void es_inspect_gather(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known, int is_first);

/**
 * es_inspect_is_unfinished() - might a rule refuse the request once the rest of its head is here? Only if the
 * head has no end yet, and the client can send more. A client that pauses there gets past no rule.
 */
int es_inspect_is_unfinished(struct es_inspector *in, const struct es_gather *g);

/* es_inspect_is_waited_for() - the usual time is over: does it get more, since it is unfinished? */
int es_inspect_is_waited_for(struct es_inspector *in, struct es_gather *g);

/* es_inspect_is_waited_on() - its client has repeated @packet: the same, and the client is helped to go on */
int es_inspect_is_waited_on(struct es_inspector *in, struct es_gather *g, const struct es_ip_packet *packet);

/**
 * es_inspect_given() - it was given to its node
 * That is its end, unless the client was told that parts of it are here: then it is kept, and given again.
 */
void es_inspect_given(struct es_inspector *in, struct es_gather *g);

/* es_inspect_forsake() - it is not served: a client that will not send all of it again is told so */
void es_inspect_forsake(struct es_inspector *in, const struct es_gather *g);

/* es_inspect_deadline() - until when, from now on, the rest of a request is waited for */
double es_inspect_deadline(const struct es_inspector *in);

/**
 * es_inspect_gathers_due() - decide those that have waited long enough with what is here of them, or forget
 * them
 */
void es_inspect_gathers_due(struct es_inspector *in);
void es_inspect_gathers_forget(struct es_inspector *in);

#endif
