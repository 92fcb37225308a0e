// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which connections another node may go on with; see also kmod/bpf/tracks.h and strays.h.
 */
#include "kept.h"

int es_kept_table(struct es_node *node, struct es_table **ret_table)
{
	struct es_table *table = node->kept_table;
	int rc;

	if (!table) {
		rc = es_table_new(sizeof(struct es_kept_slot) * ES_KEPT_SLOTS, &table);
		if (rc)
			return rc;
		smp_store_release(&node->kept_table, table);
	}
	*ret_table = table;
	return 0;
}

/* Are other nodes told of the service's connections? */
static int es_kept_is_told(const struct es_node *node, const struct es_config *cfg, u32 service)
{
	return cfg->service[service & (ES_SERVICES_MAX - 1)].survives && READ_ONCE(node->kept_table);
}

int es_note_is_ceded(const struct es_node *node, const struct es_config *cfg, u32 service,
		     const struct es_note *note, const struct sock *sk)
{
	if (!es_kept_is_told(node, cfg, service))
		return 0;
	return !note || note->is_forgotten || es_track_is_ceded(&note->track, READ_ONCE(tcp_sk(sk)->snd_una));
}

int es_socket_is_ceded(const struct es_node *node, const struct es_config *cfg, u32 service, u64 flow_hash,
		       const struct sock *sk)
{
	struct es_note_bucket *bucket;
	int is_ceded;

	/* Most have nothing to do with this: no lock for them. */
	if (!es_kept_is_told(node, cfg, service))
		return 0;
	bucket = es_tracks_lock(node->tracks, flow_hash);
	is_ceded = es_note_is_ceded(node, cfg, service, es_tracks_find(bucket, flow_hash, sk), sk);
	es_tracks_unlock(bucket);
	return is_ceded;
}

int es_socket_cede(const struct es_node *node, const struct es_config *cfg, u32 service, u64 flow_hash,
		   const struct sock *sk)
{
	struct es_track_socket socket;
	struct es_note_bucket *bucket;
	struct es_note *note;
	int is_ceded = 0;

	if (!es_kept_is_told(node, cfg, service) ||
	    !es_lease_is_over(READ_ONCE(node->state->lease_ns), ktime_get_ns()))
		return 0;
	bucket = es_tracks_lock(node->tracks, flow_hash);
	note = es_tracks_find(bucket, flow_hash, sk);
	if (note && es_note_is_ceded(node, cfg, service, note, sk)) {
		es_socket_read(sk, &socket);
		is_ceded = es_track_cede(&note->track, &socket);
	}
	es_tracks_unlock(bucket);
	return is_ceded;
}
