/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PROGRAM_NOTES_H
#define ES_NETFILTER_NODE_PROGRAM_NOTES_H

/*
 * Notes of each handover by a program (kmod/core/program.h): this node has made the socket, or has promised
 * not to. They lie in the memory's file, since messages may arrive before and after a daemon's end. Each flow
 * hash has a set of eight. A note stays until no message about it can be under way any more.
 */
#include "kmod/core/types.h"

#define ES_NF_PROGRAM_NOTE_SETS 8192 /* a power of two; 2 MB, used pages only */
#define ES_NF_PROGRAM_NOTE_WAYS 8
#define ES_NF_PROGRAM_NOTE_MS	60000

/**
 * struct es_nf_program_note - zero: empty
 * @id: the handover's; @seq: its first byte; @at_ms: monotonic, when it was noted; @source: the node that
 * hands over
 * @is_unsure: the kernel was to make the socket, and has not been seen to: it may be tried again, or may
 * still appear
 */
struct es_nf_program_note {
	__u64 flow_hash;
	__u64 id;
	__u32 seq;
	__u32 at_ms;
	__u16 source;
	__u8 is_cancelled;
	__u8 is_unsure;
	__u32 pad;
};
_Static_assert(sizeof(struct es_nf_program_note) == 32, "no padding: it lies in a file");

struct es_nf_program_note_set {
	struct es_nf_program_note way[ES_NF_PROGRAM_NOTE_WAYS];
};

static inline struct es_nf_program_note_set *es_nf_program_note_set(struct es_nf_program_note_set *sets,
								    __u64 flow_hash)
{
	return &sets[(__u32)(flow_hash >> 20) & (ES_NF_PROGRAM_NOTE_SETS - 1)];
}

/* es_nf_program_note_find() - the note of the newest handover of these bytes, or NULL */
static inline struct es_nf_program_note *es_nf_program_note_find(struct es_nf_program_note_set *sets,
								 __u64 flow_hash, __u32 seq, __u32 now_ms)
{
	struct es_nf_program_note_set *set = es_nf_program_note_set(sets, flow_hash);

	for (int i = 0; i < ES_NF_PROGRAM_NOTE_WAYS; i++) {
		struct es_nf_program_note *note = &set->way[i];

		if (note->id && note->flow_hash == flow_hash && note->seq == seq &&
		    now_ms - note->at_ms < ES_NF_PROGRAM_NOTE_MS)
			return note;
	}
	return (struct es_nf_program_note *)0;
}

/* es_nf_program_note_has_room() - could another one of this flow hash be noted? */
static inline int es_nf_program_note_has_room(struct es_nf_program_note_set *sets, __u64 flow_hash,
					      __u32 now_ms)
{
	const struct es_nf_program_note_set *set = es_nf_program_note_set(sets, flow_hash);

	for (int i = 0; i < ES_NF_PROGRAM_NOTE_WAYS; i++)
		if (!set->way[i].id || now_ms - set->way[i].at_ms >= ES_NF_PROGRAM_NOTE_MS)
			return 1;
	return 0;
}

/**
 * es_nf_program_note_put() - note a handover, in place of an older one of the same bytes
 * Returns its place; NULL: there is no room, so neither may a socket be made nor a promise be given.
 */
static inline struct es_nf_program_note *es_nf_program_note_put(struct es_nf_program_note_set *sets,
								const struct es_nf_program_note *wanted)
{
	struct es_nf_program_note_set *set = es_nf_program_note_set(sets, wanted->flow_hash);
	struct es_nf_program_note *place =
		es_nf_program_note_find(sets, wanted->flow_hash, wanted->seq, wanted->at_ms);

	for (int i = 0; !place && i < ES_NF_PROGRAM_NOTE_WAYS; i++)
		if (!set->way[i].id || wanted->at_ms - set->way[i].at_ms >= ES_NF_PROGRAM_NOTE_MS)
			place = &set->way[i];
	if (place)
		*place = *wanted;
	return place;
}

#endif
