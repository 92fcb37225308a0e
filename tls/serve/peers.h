/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_PEERS_H
#define ES_SERVE_PEERS_H

/*
 * Which nodes can read a state with a limit of the client's (struct es_tls_state), as what has come from them
 * lately says: they are upgraded one by one, and one may go back. The workers of a node share it.
 */
#include <stdint.h>

#define ES_PEERS_MAX	  64
#define ES_PEERS_KNOWN_NS 60000000000ULL

struct es_peers {
	uint64_t digest[ES_PEERS_MAX];
	uint64_t seen_ns[ES_PEERS_MAX];
};

/* es_peers_note() - a state of that node has come; @digest: es_tls_node_digest(), 0: it does not say */
void es_peers_note(struct es_peers *peers, uint64_t digest, uint64_t now_ns);

/* es_peers_can() - can it read such a state? */
int es_peers_can(const struct es_peers *peers, uint64_t digest, uint64_t now_ns);

#endif
