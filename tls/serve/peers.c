// SPDX-License-Identifier: GPL-2.0-or-later
/* Remembers nodes. Workers may write at once: then one of them is known a moment later. */
#include "tls/serve/peers.h"

void es_peers_note(struct es_peers *peers, uint64_t digest, uint64_t now_ns)
{
	unsigned int at = 0;

	if (!digest)
		return;
	for (unsigned int i = 0; i < ES_PEERS_MAX; i++) {
		uint64_t other = __atomic_load_n(&peers->digest[i], __ATOMIC_RELAXED);

		if (other == digest) {
			at = i;
			break;
		}
		if (peers->seen_ns[i] < peers->seen_ns[at])
			at = i;
	}
	__atomic_store_n(&peers->digest[at], digest, __ATOMIC_RELAXED);
	__atomic_store_n(&peers->seen_ns[at], now_ns, __ATOMIC_RELEASE);
}

int es_peers_can(const struct es_peers *peers, uint64_t digest, uint64_t now_ns)
{
	for (unsigned int i = 0; i < ES_PEERS_MAX; i++)
		if (__atomic_load_n(&peers->digest[i], __ATOMIC_RELAXED) == digest)
			return now_ns - __atomic_load_n(&peers->seen_ns[i], __ATOMIC_ACQUIRE) <
			       ES_PEERS_KNOWN_NS;
	return 0;
}
