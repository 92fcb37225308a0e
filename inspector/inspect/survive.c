// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Idle connections of nodes that are lost (cluster/directory.h). The client's next request is a stray here
 * (stray.c): no node takes it. If it begins just where the lost node's record says, and acknowledges just the
 * last byte that was sent, it is gathered and decided like a first request, and its node makes the
 * connection of it, as of one that moves. A connection that has gone on since it was told has other
 * numbers.
 *
 * The lost node may have been cut off, and still hear the client. Without a lease it lets nothing into or out
 * of a connection that another one may go on with (es_track_is_ceded()), so nothing is done before that is
 * over; and other nodes, which may have been given the request, are asked first.
 *
 * Was the request sent before the lease was over, the lost node may have executed it, and its answer be
 * lost. So it goes on only if it is safe. One that was heard afterwards for the first time cannot have been
 * executed; this node knows that if it hears all, and has known the connection for long enough
 * (es_is_first_heard()).
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/directory.h"
#include "inspector/inspect/internal.h"

/* Did nobody hear the request while the lost node might take it? */
static int es_is_first_heard(const struct es_inspector *in, const struct es_kept_look *look)
{
	__u64 hears_ns = in->params->hears_ns ? __atomic_load_n(in->params->hears_ns, __ATOMIC_ACQUIRE) : 0;

	return look->orphan_ns && in->now_ns >= look->orphan_ns + ES_DIRECTORY_MISSED_NS &&
	       look->is_unheard && look->is_settled && hears_ns &&
	       hears_ns + ES_DIRECTORY_SETTLES_NS <= look->since_ns;
}

static void es_survivor_known(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
			      struct es_known *ret)
{
	ret->cookie = packet->seg.ack - 1;
	ret->gather = es_gather_lookup(in->gathers, flow_hash, ret->cookie);
	es_decision_table_look(&in->decisions, flow_hash, ret->cookie, packet->seg.seq - 1,
			       es_inspect_now_ms(in), &ret->decided);
}

/*
 * Puts a segment with the rest of its request, which is decided when its head is whole. Returns 0 or
 * -ENOMEM.
 */
static int es_survivor_gather(struct es_inspector *in, const struct es_record *record,
			      const struct es_ip_packet *packet, const struct es_kept_look *look,
			      int is_first)
{
	struct es_record first = *record;
	struct es_known known;
	int rc;

	es_survivor_known(in, record->flow_hash, packet, &known);
	rc = known.gather ? 0 : es_inspect_gather_begin(in, record->flow_hash, &known);
	if (rc)
		return rc;
	first.kind = ES_RECORD_FIRST;
	/* One that was held (held.c) was heard while the lost node might take it. */
	first.flow = record->flow != ES_FLOW_KEPT_DOUBTFUL && es_is_first_heard(in, look)
			     ? ES_FLOW_KEPT
			     : ES_FLOW_KEPT_DOUBTFUL;
	first.options = look->kept.options;
	first.requests = look->kept.requests;
	first.moves = look->kept.moves;
	es_inspect_gather(in, &first, packet, &known, is_first);
	return 0;
}

static struct es_survivor *es_survivor_new(const struct es_record *record, const struct es_ip_packet *packet)
{
	struct es_survivor *s = malloc(sizeof(*s) + packet->len);

	if (!s)
		return NULL;
	s->record = *record;
	s->record.len = packet->len;
	memcpy(s->packet, packet->bytes, packet->len);
	return s;
}

enum es_survives es_inspect_survivor(struct es_inspector *in, const struct es_record *record,
				     const struct es_ip_packet *packet, struct es_survivor **ret_survivor)
{
	struct es_kept_look look;
	struct es_known known;
	int is_first;

	if (!in->params->directory || !in->cluster->conf->services[record->service].survive ||
	    !packet->seg.len || (packet->seg.flags & ES_SURVIVOR_FLAGS_REFUSED) ||
	    !es_directory_look(in->params->directory, record->flow_hash, &look) ||
	    packet->seg.ack != look.kept.ack || packet->seg.seq - look.kept.seq >= ES_KEPT_REQUEST_MAX)
		return ES_SURVIVES_NOT;
	if (!look.orphan_ns) {
		es_inspect_hold(in, record, packet);
		return es_health_lost_ns(in->params->health, look.kept.owner) > look.told_ns
			       ? ES_SURVIVES_LATER
			       : ES_SURVIVES_OWNED;
	}
	es_survivor_known(in, record->flow_hash, packet, &known);
	is_first = packet->seg.seq == look.kept.seq;
	if (!is_first || (known.gather && known.gather->has_first)) {
		es_survivor_gather(in, record, packet, &look, is_first);
		return ES_SURVIVES_LATER;
	}
	*ret_survivor = es_survivor_new(record, packet);
	return *ret_survivor ? ES_SURVIVES : ES_SURVIVES_LATER;
}

void es_inspect_survive(struct es_inspector *in, const struct es_survivor *survivor)
{
	const struct es_record *record = &survivor->record;
	struct es_kept_look look;
	struct es_ip_packet packet;

	if (es_ip_packet_parse(survivor->packet, record->len, &packet))
		return;
	in->began_ns = in->now_ns;
	if (es_inspect_is_poison(in, record->flow_hash, packet.bytes, packet.len)) {
		es_inspect_refuse(in, packet.bytes, packet.len);
		return;
	}
	es_mark_set(in->params->mark, record->flow_hash, record->service, packet.bytes, packet.len);
	/* Its node may be back, and have taken its word back. */
	if (!es_directory_look(in->params->directory, record->flow_hash, &look) ||
	    packet.seg.seq != look.kept.seq || packet.seg.ack != look.kept.ack ||
	    es_survivor_gather(in, record, &packet, &look, 1))
		es_inspect_reset(in, packet.bytes, packet.len);
	es_mark_clear(in->params->mark);
}

void es_inspect_lives(struct es_inspector *in, __u64 flow_hash)
{
	if (in->params->directory)
		es_directory_unwatch(in->params->directory, flow_hash);
}
