/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SNAPSHOTS_H
#define ES_SNAPSHOTS_H

/*
 * A node's account of itself when another one asks, for people who look at the whole cluster: a text of some
 * kilobytes (JSON, docs/json.md), in as many datagrams as it takes. They go where loads go, and begin as
 * those do (ES_LOADS_MAGIC); a version that does not know them ignores them. Authentic by SipHash-2-4 under
 * the cluster's handover key, over all of the datagram. An answer is fresh since it has the number of a
 * question that this node asked a moment ago. A part that is lost is asked for again with the next question.
 */
#include <stddef.h>
#include "inspector/base/datagram.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/handover.h"

#define ES_SNAPSHOT_MAX	       8192 /* bytes of a text */
#define ES_SNAPSHOT_PART_BYTES 1024
#define ES_SNAPSHOT_PARTS      (ES_SNAPSHOT_MAX / ES_SNAPSHOT_PART_BYTES)

/* A node that asks more often gets no answer. */
#define ES_SNAPSHOT_ANSWER_NS 250000000ULL

/* A question of ES_SNAPSHOT_ASK_SETTINGS is answered with the node's settings (self/settings.h), unless the
 * asker knows them; only nodes of ES_WIRE_UNDERSTANDS_ROLLOUTS know these two kinds. One of
 * ES_SNAPSHOT_ASK_HISTORY is answered with the node's last ten minutes (daemon/history.h), one of
 * ES_SNAPSHOT_ASK_CRASH with what would become of its connections if it were lost (daemon/crash.h); a version
 * that does not know these four ignores them. */
enum es_snapshot_kind {
	ES_SNAPSHOT_ASK,
	ES_SNAPSHOT_PART,
	ES_SNAPSHOT_ASK_SETTINGS,
	ES_SNAPSHOT_SETTINGS,
	ES_SNAPSHOT_ASK_HISTORY,
	ES_SNAPSHOT_HISTORY,
	ES_SNAPSHOT_ASK_CRASH,
	ES_SNAPSHOT_CRASH,
};
#define ES_SNAPSHOT_TEXT_MAX 12288 /* bytes of settings */
#define ES_SNAPSHOT_HISTORY_MAX                                                                              \
	30720 /* bytes of the longest, a history: fewer parts than an unsigned int has bits */

/**
 * struct es_snapshot_header - in network byte order; as long as a handover message's, which the datapath
 * reads first
 * @source, @target: nodes; @number: the question's, which each answer repeats
 * @total: bytes of the whole text; @len: of this part, which follows the header; @part: which one, from 0
 * @known: of a question for settings, es_snapshot_digest() of those that the asker has
 */
struct es_snapshot_header {
	__be32 magic;
	__u8 version;
	__u8 source;
	__u8 target;
	__u8 kind;
	__be64 number;
	__be16 total;
	__be16 len;
	__u8 part;
	__u8 spare[3];
	__be64 known;
	__u8 spare2[24];
	__be64 mac;
};
_Static_assert(sizeof(struct es_snapshot_header) == sizeof(struct es_handover), "one size");

struct es_snapshot_message {
	struct es_snapshot_header header;
	char text[ES_SNAPSHOT_PART_BYTES];
};
_Static_assert(sizeof(struct es_snapshot_message) <= ES_DATAGRAM_MAX, "it is received whole");

/* es_snapshot_ask() - make a question; returns its bytes */
size_t es_snapshot_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
		       unsigned long long number, const struct es_sipkey *key);

/**
 * es_snapshot_part() - make part @part of the answer to question @number
 * @len: of the whole text, up to ES_SNAPSHOT_MAX. Returns the message's bytes, or 0: there is no such part.
 */
size_t es_snapshot_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			unsigned long long number, const char *text, size_t len, unsigned int part,
			const struct es_sipkey *key);

/*
 * es_snapshot_settings_ask(), es_snapshot_settings_part() - the same of settings, up to ES_SNAPSHOT_TEXT_MAX
 * bytes
 */
size_t es_snapshot_settings_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				unsigned long long number, unsigned long long known,
				const struct es_sipkey *key);
size_t es_snapshot_settings_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				 unsigned long long number, const char *text, size_t len, unsigned int part,
				 const struct es_sipkey *key);

/*
 * es_snapshot_history_ask(), es_snapshot_history_part() - the same of a history, up to
 * ES_SNAPSHOT_HISTORY_MAX bytes
 */
size_t es_snapshot_history_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			       unsigned long long number, const struct es_sipkey *key);
size_t es_snapshot_history_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
				unsigned long long number, const char *text, size_t len, unsigned int part,
				const struct es_sipkey *key);

/* es_snapshot_crash_ask(), es_snapshot_crash_part() - the same of a crash, as long as a history may be */
size_t es_snapshot_crash_ask(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			     unsigned long long number, const struct es_sipkey *key);
size_t es_snapshot_crash_part(struct es_snapshot_message *message, unsigned int self, unsigned int target,
			      unsigned long long number, const char *text, size_t len, unsigned int part,
			      const struct es_sipkey *key);

/* es_snapshot_digest() - tells texts apart */
unsigned long long es_snapshot_digest(const char *text);

/* es_snapshot_read() - is it an authentic message of another node to this one? Returns 0 or -EBADMSG. */
int es_snapshot_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
		     const struct es_keys *keys, struct es_snapshot_message *ret_message);

/**
 * struct es_snapshot_inbox - the answer of one node as far as it is there; all 0 at first
 * @number: the question that is asked now; @total: 0: nothing came yet; @got: a bit for each part
 */
struct es_snapshot_inbox {
	unsigned long long number;
	unsigned int total;
	unsigned int got;
	char text[ES_SNAPSHOT_HISTORY_MAX];
};

/* es_snapshot_expect() - a question with this number has been asked; forgets what came for the one before */
void es_snapshot_expect(struct es_snapshot_inbox *inbox, unsigned long long number);

/*
 * es_snapshot_take() - a part came. Returns 1 if all is there now (once), else 0; -EBADMSG: not asked for, or
 * wrong.
 */
int es_snapshot_take(struct es_snapshot_inbox *inbox, const struct es_snapshot_message *message);

#endif
