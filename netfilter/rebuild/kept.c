// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps entries in a growing hash table with linear probing, whose hash has a secret key. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "netfilter/kernel/socket.h"
#include "netfilter/rebuild/kept.h"

#define ES_FIRST_PLACES 64
#define ES_TRIES	8  /* to put an entry back between two packets */
#define ES_EMPTY_COST	64 /* to skip this many empty places costs as much as one question to the kernel */

/*
 * A place whose service port is 0 is empty. At most two thirds are taken.
 * @left: places that es_nf_kept_restore_some() has yet to look at; @next: the next one; @is_again: then all
 * once more
 */
struct es_nf_kept {
	struct es_sipkey key;
	size_t most;
	size_t count;
	size_t mask;
	size_t next;
	size_t left;
	int is_again;
	struct es_nf_entry *places;
};

int es_nf_kept_new(size_t most, struct es_nf_kept **ret_kept)
{
	struct es_nf_kept *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->most = most;
	k->mask = ES_FIRST_PLACES - 1;
	k->places = calloc(ES_FIRST_PLACES, sizeof(*k->places));
	if (!k->places || getrandom(&k->key, sizeof(k->key), 0) != sizeof(k->key)) {
		es_nf_kept_free(&k);
		return -ENOMEM;
	}
	*ret_kept = k;
	return 0;
}

void es_nf_kept_free(struct es_nf_kept **kept)
{
	if (*kept)
		free((*kept)->places);
	free(*kept);
	*kept = NULL;
}

size_t es_nf_kept_count(const struct es_nf_kept *kept)
{
	return kept->count;
}

static int is_taken(const struct es_nf_entry *place)
{
	return place->flow.service_port != 0;
}

static size_t home_of(const struct es_nf_kept *k, const struct es_flow *flow)
{
	return es_flow_hash(&k->key, 0, flow) & k->mask;
}

/* The flow's place, or the empty place where it belongs. */
static size_t find(const struct es_nf_kept *k, const struct es_flow *flow)
{
	size_t at = home_of(k, flow);

	while (is_taken(&k->places[at]) && !es_flow_equal(&k->places[at].flow, flow))
		at = (at + 1) & k->mask;
	return at;
}

/*
 * Goes downwards, from the place before an empty one. When an entry is removed, others move down into its
 * place, at which the walk has looked already. No entry moves across the empty place where the walk ends.
 */
static void begin(struct es_nf_kept *k)
{
	size_t at = 0;

	while (is_taken(&k->places[at]))
		at++;
	k->next = (at - 1) & k->mask;
	k->left = k->mask;
	k->is_again = 0;
}

static int grow(struct es_nf_kept *k)
{
	struct es_nf_kept larger = *k;

	larger.mask = k->mask * 2 + 1;
	larger.places = calloc(larger.mask + 1, sizeof(*larger.places));
	if (!larger.places)
		return -ENOMEM;
	for (size_t i = 0; i <= k->mask; i++)
		if (is_taken(&k->places[i]))
			larger.places[find(&larger, &k->places[i].flow)] = k->places[i];
	free(k->places);
	k->places = larger.places;
	k->mask = larger.mask;
	if (k->left)
		begin(k); /* every entry has moved */
	return 0;
}

static int keep(struct es_nf_kept *k, const struct es_nf_entry *entry)
{
	size_t at = find(k, &entry->flow);

	if (!is_taken(&k->places[at])) {
		if (k->count >= k->most)
			return -ENOSPC;
		if ((k->count + 1) * 3 > (k->mask + 1) * 2) {
			if (grow(k))
				return -ENOMEM;
			at = find(k, &entry->flow);
		}
		k->count++;
	}
	k->places[at] = *entry;
	return 0;
}

/* Moves the entries after the hole up, so that no search ends early. */
static void empty(struct es_nf_kept *k, size_t hole)
{
	for (size_t at = (hole + 1) & k->mask; is_taken(&k->places[at]); at = (at + 1) & k->mask) {
		size_t home = home_of(k, &k->places[at].flow);

		if (((at - home) & k->mask) >= ((at - hole) & k->mask)) {
			k->places[hole] = k->places[at];
			hole = at;
		}
	}
	k->places[hole].flow.service_port = 0;
	k->count--;
}

void es_nf_kept_forget(struct es_nf_kept *kept, const struct es_flow *flow)
{
	size_t at = find(kept, flow);

	if (is_taken(&kept->places[at]))
		empty(kept, at);
}

void es_nf_kept_hold(struct es_nf_kept *kept, const struct es_flow *flow, int is_held)
{
	struct es_nf_entry *place = &kept->places[find(kept, flow)];

	if (is_taken(place))
		place->is_held = (__u8)is_held;
}

void es_nf_kept_prove(struct es_nf_kept *kept, const struct es_flow *flow)
{
	struct es_nf_entry *place = &kept->places[find(kept, flow)];

	if (is_taken(place))
		place->is_proven = 1;
}

int es_nf_kept_may_have(const struct es_nf_kept *kept, const struct es_flow *flow)
{
	return kept->count >= kept->most || is_taken(&kept->places[find(kept, flow)]);
}

__u32 es_nf_kept_client_ts(const struct es_nf_kept *kept, const struct es_flow *flow)
{
	const struct es_nf_entry *place = &kept->places[find(kept, flow)];

	return is_taken(place) ? place->client_ts : 0;
}

int es_nf_kept_look(struct es_nf_kept *kept, struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	const struct es_nf_entry *before = &kept->places[find(kept, flow)];
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(ct, flow, &entry);

	if (rc)
		return rc;
	if (is_taken(before) && before->offsets.isn == entry.offsets.isn)
		entry.client_ts = before->client_ts;
	return es_nf_conntrack_is_ours(ct, &entry) ? keep(kept, &entry) : -ENOENT;
}

int es_nf_kept_keep(struct es_nf_kept *kept, const struct es_nf_conntrack *ct,
		    const struct es_nf_entry *entry)
{
	struct es_nf_entry established = *entry;

	if (!es_nf_conntrack_is_ours(ct, entry))
		return -ENOENT;
	established.timeout_s = ct->established_s;
	return keep(kept, &established);
}

struct look {
	struct es_nf_kept *kept;
	int rc;
};

static void on_entry(void *ctx, const struct es_nf_entry *entry)
{
	struct look *look = ctx;
	int rc = look->rc ? 0 : keep(look->kept, entry);

	if (rc != -ENOSPC) /* too many: the price of the limit, as for connections that are made later */
		look->rc = look->rc ? look->rc : rc;
}

int es_nf_kept_look_all(struct es_nf_kept *kept, struct es_nf_conntrack *ct)
{
	struct look look = {.kept = kept};
	int rc;

	do
		rc = es_nf_conntrack_walk(ct, on_entry, &look);
	while (rc == -EINTR && !look.rc);
	return rc ? rc : look.rc;
}

/*
 * An entry in this one's place goes first. If a packet of the connection arrives right after that, the kernel
 * makes another one there, which translates nothing; nobody would look again.
 */
static int put_back(struct es_nf_conntrack *ct, const struct es_nf_entry *kept)
{
	int rc = -EEXIST;

	for (int i = 0; i < ES_TRIES && rc == -EEXIST; i++)
		rc = es_nf_conntrack_restore(ct, kept);
	return rc;
}

/*
 * Usually, an entry goes some time after its connection is over; then the first question settles it. Returns
 * 1: restored; 0: the entry exists; -ENOENT: the connection is over; or -errno.
 */
static int restore(struct es_nf_conntrack *ct, struct es_nf_netlink *diag, const struct es_nf_entry *kept)
{
	struct es_nf_socket socket;
	struct es_nf_entry now;
	int rc = es_nf_socket_look(diag, &kept->socket, &socket);

	/* A half connection is just being made: the lost entry was an older one. */
	if (!rc && (socket.state == ES_NF_TCP_SYN_RECV || socket.state == ES_NF_TCP_NEW_SYN_RECV))
		return 0;
	if (!rc && !es_nf_socket_is_connection(&socket))
		rc = -ENOENT;
	if (rc)
		return rc;
	rc = es_nf_conntrack_get(ct, &kept->flow, &now);
	if (!rc && es_nf_conntrack_is_ours(ct, &now))
		return 0;
	if (rc && rc != -ENOENT)
		return rc;
	return put_back(ct, kept) ?: 1;
}

int es_nf_kept_restore(struct es_nf_kept *kept, struct es_nf_conntrack *ct, struct es_nf_netlink *diag,
		       const struct es_flow *flow)
{
	size_t at = find(kept, flow);
	int rc;

	if (!is_taken(&kept->places[at]))
		return 0;
	rc = restore(ct, diag, &kept->places[at]);
	if (rc != -ENOENT)
		return rc;
	empty(kept, at);
	return 0;
}

void es_nf_kept_restore_begin(struct es_nf_kept *kept)
{
	if (kept->left)
		kept->is_again = 1;
	else
		begin(kept);
}

int es_nf_kept_is_restoring(const struct es_nf_kept *kept)
{
	return kept->left != 0;
}

size_t es_nf_kept_restore_some(struct es_nf_kept *kept, struct es_nf_conntrack *ct,
			       struct es_nf_netlink *diag, size_t most)
{
	size_t restored = 0;

	for (size_t cost = 0; kept->left && cost < most * ES_EMPTY_COST; kept->left--) {
		size_t at = kept->next;

		kept->next = (at - 1) & kept->mask;
		cost += is_taken(&kept->places[at]) ? ES_EMPTY_COST : 1;
		if (is_taken(&kept->places[at])) {
			int rc = restore(ct, diag, &kept->places[at]);

			restored += rc == 1;
			if (rc == -ENOENT)
				empty(kept, at);
		}
	}
	if (!kept->left && kept->is_again)
		begin(kept);
	return restored;
}
