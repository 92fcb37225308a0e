// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps unfinished attempts, and looks at them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "netfilter/engine/attempts.h"

#define ES_PATIENCE_NS	 100000000ULL
#define ES_FIRST_LOOK_NS 250000ULL /* between the first two looks; the interval doubles each time */
#define ES_LONGEST_NS	 32000000ULL
#define ES_SWALLOWED_NS	 1000000000ULL

/* A packet that waits. */
struct kept {
	struct kept *next;
	struct es_nf_frame frame;
	__u8 bytes[];
};

/*
 * @packet: a copy of the request; NULL: the place is free; @kept: packets that followed, with @room bytes
 * left
 */
struct place {
	struct es_nf_attempt attempt;
	struct es_nf_making making;
	__u8 *packet;
	struct kept *kept;
	size_t room;
	__u64 since_ns;
	__u64 look_ns;
	__u64 pause_ns;
};

/* A client whose last attempt came to nothing. */
struct client {
	__u64 hash;
	__u64 until_ns;
};

struct es_nf_attempts {
	struct es_nf_rebuild *rebuild;
	es_nf_attempts_fn fn;
	es_nf_attempts_kept_fn kept_fn;
	void *ctx;
	size_t count;
	struct es_sipkey key;
	struct client clients[ES_NF_ATTEMPTS_CLIENT];
	struct place places[ES_NF_ATTEMPTS];
};

int es_nf_attempts_new(struct es_nf_rebuild *rebuild, es_nf_attempts_fn fn, es_nf_attempts_kept_fn kept_fn,
		       void *ctx, struct es_nf_attempts **ret_attempts)
{
	struct es_nf_attempts *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	if (getrandom(&a->key, sizeof(a->key), 0) != sizeof(a->key)) {
		free(a);
		return -EIO;
	}
	a->rebuild = rebuild;
	a->fn = fn;
	a->kept_fn = kept_fn;
	a->ctx = ctx;
	*ret_attempts = a;
	return 0;
}

/* Takes out the first packet, which the caller then owns; NULL: there is none. */
static struct kept *kept_take(struct place *place)
{
	struct kept *first = place->kept;

	if (first)
		place->kept = first->next;
	return first;
}

static void place_free(struct place *place)
{
	struct kept *kept;

	while ((kept = kept_take(place)) != NULL)
		free(kept);
	free(place->packet);
	place->packet = NULL;
}

void es_nf_attempts_free(struct es_nf_attempts **attempts)
{
	if (!*attempts)
		return;
	for (size_t i = 0; i < ES_NF_ATTEMPTS; i++)
		place_free(&(*attempts)->places[i]);
	free(*attempts);
	*attempts = NULL;
}

/* By the client's address; of IPv6 the first half, since clients choose the other. */
static __u64 client_hash(const struct es_nf_attempts *a, const struct es_flow *flow)
{
	struct es_flow client = {.client = flow->client};

	if (!es_addr_is_v4(&client.client))
		memset(client.client.b + 8, 0, 8);
	return es_flow_hash(&a->key, 0, &client);
}

static struct client *client_of(struct es_nf_attempts *a, __u64 hash)
{
	return &a->clients[hash & (ES_NF_ATTEMPTS_CLIENT - 1)];
}

static int is_swallowed(struct es_nf_attempts *a, const struct es_flow *flow, __u64 now_ns)
{
	__u64 hash = client_hash(a, flow);
	const struct client *client = client_of(a, hash);

	return client->hash == hash && now_ns < client->until_ns;
}

/* An attempt that succeeds clears the note, so a client that was only unlucky gets patience again. */
static void note_client(struct es_nf_attempts *a, const struct es_flow *flow, int rc, __u64 now_ns)
{
	__u64 hash = client_hash(a, flow);
	struct client *client = client_of(a, hash);

	if (rc == -ETIMEDOUT)
		*client = (struct client){hash, now_ns + ES_SWALLOWED_NS};
	else if (client->hash == hash)
		*client = (struct client){};
}

int es_nf_attempts_has(const struct es_nf_attempts *attempts, const struct es_flow *flow)
{
	for (size_t i = 0; i < ES_NF_ATTEMPTS && attempts->count; i++) {
		const struct place *place = &attempts->places[i];

		if (place->packet && (es_flow_equal(&place->attempt.request.flow, flow) ||
				      es_flow_equal(&place->attempt.request.socket, flow)))
			return 1;
	}
	return 0;
}

/* By the client's flow; NULL: there is none. */
static struct place *place_of(struct es_nf_attempts *a, const struct es_flow *flow)
{
	for (size_t i = 0; i < ES_NF_ATTEMPTS && a->count; i++)
		if (a->places[i].packet && es_flow_equal(&a->places[i].attempt.request.flow, flow))
			return &a->places[i];
	return NULL;
}

/* Copies the packet into a free place, which must exist. Returns NULL without memory. */
static struct place *place_for(struct es_nf_attempts *a, const struct es_nf_attempt *attempt)
{
	const struct es_nf_request *request = &attempt->request;
	__u8 *packet = malloc(request->len);
	struct place *place = a->places;

	if (!packet)
		return NULL;
	while (place->packet)
		place++;
	memcpy(packet, request->packet, request->len);
	*place = (struct place){.attempt = *attempt, .packet = packet, .room = ES_NF_ATTEMPTS_KEPT};
	place->attempt.request.packet = packet;
	a->count++;
	return place;
}

/* The attempt is over. The callbacks may begin another one in its place. */
static void end(struct es_nf_attempts *a, struct place *place, int rc)
{
	struct place over = *place;
	struct kept *kept;

	place->packet = NULL;
	place->kept = NULL;
	a->count--;
	a->fn(a->ctx, &over.attempt.request, &over.making, rc);
	while ((kept = kept_take(&over)) != NULL) {
		if (rc >= 0)
			a->kept_fn(a->ctx, &kept->frame);
		else
			es_nf_count(over.making.node, ES_COUNT_drop_no_flow);
		free(kept);
	}
	place_free(&over);
}

/* Does the segment continue the request? It must acknowledge the same number, which only the client knows. */
static int is_behind(const struct es_nf_request *request, const struct es_segment *seg)
{
	const __u32 all = request->seg.seq + request->seg.len,
		    end = seg->seq + seg->len + !!(seg->flags & ES_TCP_FIN);

	return (seg->flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) == ES_TCP_ACK &&
	       seg->ack == request->seg.ack && es_seq_before(all, end);
}

int es_nf_attempts_keep(struct es_nf_attempts *attempts, const struct es_flow *flow,
			const struct es_segment *seg, const struct es_nf_frame *frame)
{
	struct place *place = place_of(attempts, flow);
	struct kept **at, *kept;

	if (!place || frame->full_len > frame->len || frame->len > place->room ||
	    !is_behind(&place->attempt.request, seg))
		return 0;
	kept = malloc(sizeof(*kept) + frame->len);
	if (!kept)
		return 0;
	kept->next = NULL;
	kept->frame = *frame;
	kept->frame.bytes = memcpy(kept->bytes, frame->bytes, frame->len);
	place->room -= frame->len;
	for (at = &place->kept; *at; at = &(*at)->next)
		;
	*at = kept;
	return 1;
}

int es_nf_attempts_begin(struct es_nf_attempts *attempts, const struct es_nf_request *request,
			 const struct es_nf_making *making, __u64 now_ns)
{
	int is_patient = attempts->count < ES_NF_ATTEMPTS && !is_swallowed(attempts, &request->flow, now_ns);
	struct es_nf_attempt attempt;
	struct place *place;
	int rc;

	if (es_nf_attempts_has(attempts, &request->flow))
		return -ENOBUFS;
	rc = es_nf_rebuild_begin(attempts->rebuild, request, now_ns, is_patient, &attempt);
	if (rc != -EINPROGRESS)
		return rc;
	place = place_for(attempts, &attempt);
	if (!place)
		return es_nf_rebuild_give_up(attempts->rebuild, &attempt);
	place->making = *making;
	place->since_ns = now_ns;
	place->pause_ns = ES_FIRST_LOOK_NS;
	place->look_ns = now_ns + place->pause_ns;
	return rc;
}

/* Not if the lease has ended since: the request may go to another node. */
static int may_go_on(const struct place *place, __u64 now_ns)
{
	const struct es_state *state = place->making.node->memory.state;

	return !es_lease_refuses(es_nf_read64(&state->lease_ns), es_nf_read32(&state->attached), now_ns);
}

static void look(struct es_nf_attempts *a, struct place *place, __u64 now_ns)
{
	int is_patient = now_ns - place->since_ns < ES_PATIENCE_NS, rc;

	if (!may_go_on(place, now_ns)) {
		end(a, place, es_nf_rebuild_give_up(a->rebuild, &place->attempt));
		return;
	}
	rc = es_nf_rebuild_go_on(a->rebuild, &place->attempt, is_patient);
	if (rc != -EINPROGRESS) {
		note_client(a, &place->attempt.request.flow, rc, now_ns);
		end(a, place, rc);
		return;
	}
	if (place->pause_ns < ES_LONGEST_NS)
		place->pause_ns *= 2;
	place->look_ns = now_ns + place->pause_ns;
}

void es_nf_attempts_go_on(struct es_nf_attempts *attempts, __u64 now_ns)
{
	for (size_t i = 0; i < ES_NF_ATTEMPTS && attempts->count; i++)
		if (attempts->places[i].packet && now_ns >= attempts->places[i].look_ns)
			look(attempts, &attempts->places[i], now_ns);
}

void es_nf_attempts_give_up(struct es_nf_attempts *attempts, const struct es_flow *flow)
{
	for (size_t i = 0; i < ES_NF_ATTEMPTS && attempts->count; i++) {
		struct place *place = &attempts->places[i];

		if (place->packet && (!flow || es_flow_equal(&place->attempt.request.flow, flow)))
			end(attempts, place, es_nf_rebuild_give_up(attempts->rebuild, &place->attempt));
	}
}

int es_nf_attempts_wait_ms(const struct es_nf_attempts *attempts, __u64 now_ns)
{
	__u64 next_ns = ~0ULL;

	for (size_t i = 0; i < ES_NF_ATTEMPTS && attempts->count; i++)
		if (attempts->places[i].packet && attempts->places[i].look_ns < next_ns)
			next_ns = attempts->places[i].look_ns;
	if (next_ns == ~0ULL)
		return -1;
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns + 999999) / 1000000);
}
