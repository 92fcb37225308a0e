/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PROGRAM_INTERNAL_H
#define ES_PROGRAM_INTERNAL_H

/*
 * Shared by the thread (programs.c) and what it does with one connection (move.c).
 */
#include <pthread.h>
#include "inspector/program/grace.h"
#include "inspector/program/socket.h"
#include "inspector/handover/handover.h"
#include "inspector/handover/raw.h"
#include "inspector/program/programs.h"

#define ES_PROGRAM_MOVES_MAX 1024 /* a power of two: a move's slot is the low bits of its id */

/*
 * CONNECTED: the program has not yet said what it wants. ASKING: we ask the target whether it would take the
 * connection, which is untouched so far. READY: the target would. SETTLING: the target is this node; the
 * connection is frozen, and we wait until nothing comes to it any more. BUILDING: the connection is frozen,
 * and the target has, or may have, the message that makes the socket. CANCELLING: we ask the target to
 * promise not to make it. FOLLOWING: the target has the connection, the rest of the bytes is on the way, and
 * our socket is gone, or will be as soon as nothing comes to it any more.
 */
enum es_program_phase {
	ES_PROGRAM_FREE = 0,
	ES_PROGRAM_CONNECTED,
	ES_PROGRAM_ASKING,
	ES_PROGRAM_READY,
	ES_PROGRAM_SETTLING,
	ES_PROGRAM_BUILDING,
	ES_PROGRAM_CANCELLING,
	ES_PROGRAM_FOLLOWING,
};

/**
 * struct es_program_move - one handover
 * @id: its number in messages; @client_fd: to the program; @since_ns: when the phase began
 * @next_ns: when to send again, after @interval_ns at first, which doubles each time: twice what the target
 * took for its first answer, so that one that is busy does not get more to do
 * @arrived: bytes that the target has; @grace: the grace period after which nothing comes to the frozen
 * socket any more; @error: of a refusal, kept until the move is cancelled
 */
struct es_program_move {
	enum es_program_phase phase;
	int client_fd;
	__u64 id;
	unsigned int service;
	unsigned int target;
	unsigned long long since_ns;
	unsigned long long next_ns;
	unsigned long long interval_ns;
	unsigned int tries;
	size_t arrived;
	__u64 grace;
	int error;
	struct es_program_socket connection;
};

/**
 * struct es_programs - the thread
 * @lock: held while it works, but not while it waits; the control thread takes it to change the cluster
 */
struct es_programs {
	struct es_programs_params params;
	pthread_mutex_t lock;
	pthread_t thread;
	const struct es_cluster *cluster;
	struct es_keys keys;
	struct es_handover_sender *sender;
	unsigned long long now_ns;
	__u64 count;
	int listen_fd;
	int epoll_fd;
	int stop_fd;
	struct es_raw raw; /* for resets */
	struct es_grace grace;
	int is_stopping;
	int is_full; /* accept no program until a slot is free, nor before @reopen_ns */
	unsigned long long reopen_ns;
	unsigned int
		moves_end; /* behind the last slot that is not free: they are looked through for each event */
	struct es_program_move moves[ES_PROGRAM_MOVES_MAX];
};

/* es_program_move_finish() - tell the program, and release everything */
void es_program_move_finish(struct es_program_move *move, int result);

/**
 * es_program_move_begin() - the program has said what it wants
 * @fd: the connection, taken over; @bytes: likewise, never NULL. Finishes the move if it is impossible.
 */
void es_program_move_begin(struct es_programs *programs, struct es_program_move *move, const char *node,
			   int fd, uint8_t *bytes, size_t len);

/* es_program_move_abandon() - give up, because the daemon ends and waits no longer */
void es_program_move_abandon(struct es_programs *programs, struct es_program_move *move);

/* es_program_moves_depart() - freeze all connections that are READY, and send them */
void es_program_moves_depart(struct es_programs *programs);

/* es_program_moves_settled() - a grace period is over: go on with those that have waited for it */
void es_program_moves_settled(struct es_programs *programs);

/* es_program_moves_messages() - handle the targets' answers */
void es_program_moves_messages(struct es_programs *programs);

/* es_program_moves_deadlines() - send again, or give up */
void es_program_moves_deadlines(struct es_programs *programs);

#endif
