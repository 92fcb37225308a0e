// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on idle connections of a node that is lost, and that nobody knows to be lost yet. Their clients
 * repeat them, at twice the interval each time; so when the lease is over, and another node may go on with
 * the connections (survive.c), the next repetition may be a second away, or three. So the first segment of
 * each that is repeated is kept here, and taken up when the time has come, as if it had come again then.
 *
 * A segment that was heard before proves less than one that is heard then: meanwhile the lost node may have
 * answered, if it was only cut off, and the client would take a second answer for more of its stream. So the
 * client is asked first, by a segment from before the bytes that it awaits, which it must answer with an
 * acknowledgment (RFC 9293, 3.10.7.4). Only one that has sent all of the segment, and got not a byte since,
 * gets an answer; any other is left alone. Whatever it says, a request that was kept may have been executed,
 * and goes on only if it is safe.
 *
 * No client is asked whose node may have a lease yet, or that has said nothing, or of which no other node has
 * told. So nobody outside can have one asked.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/directory.h"
#include "inspector/inspect/internal.h"

#define SLOTS (ES_HELD_SETS * ES_HELD_WAYS)

static void drop(struct es_holds *holds, struct es_held **slot)
{
	if (!*slot)
		return;
	holds->bytes -= (*slot)->record.len;
	holds->count--;
	free(*slot);
	*slot = NULL;
}

/* A worker's flows have some bits in common (es_worker_of()): all of them choose the set. */
static struct es_held **set_of(struct es_holds *holds, __u64 flow_hash)
{
	return &holds->held[(flow_hash * 0x9e3779b97f4a7c15ULL >> 32) % ES_HELD_SETS * ES_HELD_WAYS];
}

/* The slot of the flow, else a free one, else that of which nothing was heard for the longest time. */
static struct es_held **slot_for(struct es_holds *holds, __u64 flow_hash)
{
	struct es_held **set = set_of(holds, flow_hash), **found = &set[0];

	for (unsigned int i = 0; i < ES_HELD_WAYS; i++) {
		if (set[i] && set[i]->record.flow_hash == flow_hash)
			return &set[i];
		if (*found && (!set[i] || set[i]->heard_ns < (*found)->heard_ns))
			found = &set[i];
	}
	return found;
}

static struct es_held **find(struct es_holds *holds, __u64 flow_hash)
{
	struct es_held **slot = slot_for(holds, flow_hash);

	return *slot && (*slot)->record.flow_hash == flow_hash ? slot : NULL;
}

static struct es_held *held_new(const struct es_inspector *in, const struct es_record *record,
				const struct es_ip_packet *packet, const struct es_kept_look *look)
{
	struct es_held *h = malloc(sizeof(*h) + packet->len);

	if (!h)
		return NULL;
	*h = (struct es_held){
		.record = *record,
		.heard_ns = in->now_ns,
		.told_ns = look->orphan_ns ? 0 : look->told_ns, /* it is lost, whatever another keeper told */
		.owner = look->kept.owner,
	};
	h->record.kind = ES_RECORD_STRAY;
	h->record.flow = ES_FLOW_KEPT_DOUBTFUL;
	h->record.len = (__u32)packet->len;
	memcpy(h->packet, packet->bytes, packet->len);
	return h;
}

void es_inspect_hold(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet)
{
	struct es_holds *holds = &in->holds;
	struct es_held **slot, *h, *before;
	struct es_kept_look look;

	if (!in->params->directory || !in->params->asked_until_s ||
	    !in->cluster->conf->services[record->service].survive || !packet->seg.len ||
	    packet->len > ES_RECORD_LARGE || (packet->seg.flags & ES_SURVIVOR_FLAGS_REFUSED) ||
	    !es_directory_look(in->params->directory, record->flow_hash, &look) ||
	    packet->seg.seq != look.kept.seq || packet->seg.ack != look.kept.ack)
		return;
	slot = slot_for(holds, record->flow_hash);
	before = *slot;
	if (holds->bytes - (before ? before->record.len : 0) + packet->len > ES_HELD_BYTES)
		return;
	h = held_new(in, record, packet, &look);
	if (!h)
		return;
	if (before && before->record.flow_hash == record->flow_hash) {
		h->asked = before->asked;
		h->asked_ns = before->asked_ns;
	}
	drop(holds, slot);
	*slot = h;
	holds->count++;
	holds->bytes += packet->len;
	es_inspect_count(in, ES_WORKER_survive_held);
}

/*
 * Asks its client. Returns 1, 0 if it is not to be asked yet, -1 if the request is not to be kept any longer.
 */
static int ask(struct es_inspector *in, struct es_held *h)
{
	__u32 until_s = es_ns_to_s(in->now_ns) + ES_HELD_ANSWERS_S;
	struct es_ip_packet packet;
	struct es_kept_look look;

	if (es_ip_packet_parse(h->packet, h->record.len, &packet) ||
	    !es_directory_look(in->params->directory, h->record.flow_hash, &look) ||
	    packet.seg.seq != look.kept.seq || packet.seg.ack != look.kept.ack)
		return -1;
	if (!look.orphan_ns || !es_inspect_is_mine(in, h->record.flow_hash))
		return 0;
	/* All workers write it; what one takes back of another's is a moment. */
	__atomic_store_n(in->params->asked_until_s, until_s, __ATOMIC_RELEASE);
	if (!es_directory_ask(in->params->directory, h->record.flow_hash))
		return -1;
	h->asked++;
	h->asked_ns = in->now_ns;
	es_inspect_count(in, ES_WORKER_survive_asked);
	es_inspect_probe(in, &packet);
	return 1;
}

static int is_due(const struct es_inspector *in, const struct es_held *h)
{
	return h->asked < ES_HELD_ASKS && (!h->asked || in->now_ns - h->asked_ns >= ES_HELD_ASK_NS) &&
	       es_health_lost_ns(in->params->health, h->owner) > h->told_ns;
}

void es_inspect_held_due(struct es_inspector *in)
{
	unsigned int asked = 0;
	int rc;

	for (unsigned int i = 0; in->holds.count && i < SLOTS; i++) {
		struct es_held **slot = &in->holds.held[i];

		if (!*slot)
			continue;
		if (in->now_ns - (*slot)->heard_ns >= ES_HELD_LIFE_NS) {
			drop(&in->holds, slot);
			continue;
		}
		if (asked == ES_HELD_ASK_MOST || !is_due(in, *slot))
			continue;
		rc = ask(in, *slot);
		if (rc < 0)
			drop(&in->holds, slot);
		else
			asked += (unsigned int)rc;
	}
}

/*
 * Does it wait? It has sent the whole segment by then, and got nothing behind what it acknowledges there; not
 * even a newer timestamp, which a socket made of this segment could not know.
 */
static int is_waiting(const struct es_ip_packet *request, const struct es_ip_packet *answer)
{
	__u32 sent = answer->seg.seq - request->seg.seq;

	return answer->seg.ack == request->seg.ack && sent >= request->seg.len &&
	       sent <= ES_KEPT_REQUEST_MAX && answer->seg.has_ts == request->seg.has_ts &&
	       (!request->seg.has_ts || answer->seg.tsecr == request->seg.tsecr);
}

struct es_held *es_inspect_held_answer(struct es_inspector *in, __u64 flow_hash,
				       const struct es_ip_packet *answer)
{
	struct es_held **slot = find(&in->holds, flow_hash), *h = NULL;
	struct es_ip_packet request;

	if (!slot || !(*slot)->asked)
		return NULL;
	if (!es_ip_packet_parse((*slot)->packet, (*slot)->record.len, &request) &&
	    is_waiting(&request, answer)) {
		h = *slot;
		in->holds.bytes -= h->record.len;
		in->holds.count--;
		*slot = NULL;
	}
	if (slot)
		drop(&in->holds, slot);
	return h;
}

void es_inspect_held_forget(struct es_inspector *in)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		drop(&in->holds, &in->holds.held[i]);
}
