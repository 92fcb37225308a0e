/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_PROGRAMS_INTERNAL_H
#define ES_INSPECTOR_PROGRAMS_INTERNAL_H

/*
 * Shared by the thread (programs.c) and what it does with one connection (move.c).
 */
#include <pthread.h>
#include "inspector/program/socket.h"
#include "inspector/handover/handover.h"
#include "inspector/handover/raw.h"
#include "inspector/program/programs.h"

#define ES_PROGRAM_MOVES_MAX 1024 /* a power of two: a move's slot is the low bits of its id */

/*
 * CONNECTED: the program is to say what it wants. ASKING: the target is asked whether it would; nothing has
 * happened to the connection. READY: it would; to be frozen with others. BUILDING: frozen, and the target has
 * got, or may have got, the message that makes the socket. CANCELLING: it shall promise not to make it.
 * FOLLOWING: the target has the connection, our socket is gone, and the rest of the bytes is on the way.
 */
enum es_program_phase {
	ES_PROGRAM_FREE = 0,
	ES_PROGRAM_CONNECTED,
	ES_PROGRAM_ASKING,
	ES_PROGRAM_READY,
	ES_PROGRAM_BUILDING,
	ES_PROGRAM_CANCELLING,
	ES_PROGRAM_FOLLOWING,
};

/**
 * struct es_program_move - one handover
 * @id: in its messages; @client_fd: to the program; @since_ns: when the phase began
 * @next_ns: when something is sent again, each time after twice as long
 * @arrived: bytes that the target has; @error: of a refusal, for when it is cancelled
 */
struct es_program_move {
	enum es_program_phase phase;
	int client_fd;
	__u64 id;
	unsigned int service;
	unsigned int target;
	unsigned long long since_ns;
	unsigned long long next_ns;
	unsigned int tries;
	size_t arrived;
	int error;
	struct es_connection connection;
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
	int is_stopping;
	int is_full; /* nobody is accepted until a slot is free, and before @reopen_ns */
	unsigned long long reopen_ns;
	struct es_program_move moves[ES_PROGRAM_MOVES_MAX];
};

/* es_program_move_finish() - tell the program, and let go of everything */
void es_program_move_finish(struct es_program_move *move, int result);

/**
 * es_program_move_begin() - the program has said what it wants
 * @fd: the connection, taken over; @bytes: likewise, never NULL. Finishes the move if it cannot be.
 */
void es_program_move_begin(struct es_programs *programs, struct es_program_move *move, const char *node,
			   int fd, uint8_t *bytes, size_t len);

/* es_program_move_abandon() - the daemon ends and waits no longer */
void es_program_move_abandon(struct es_program_move *move);

/* es_program_moves_depart() - freeze all that is READY, in one grace period, and send it */
void es_program_moves_depart(struct es_programs *programs);

/* es_program_moves_messages() - what targets have answered */
void es_program_moves_messages(struct es_programs *programs);

/* es_program_moves_deadlines() - send again, or give up */
void es_program_moves_deadlines(struct es_programs *programs);

#endif
