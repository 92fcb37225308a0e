/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RESUME_TRANSFER_H
#define ES_RESUME_TRANSFER_H

/*
 * Goes on with one response of a lost node, or tells its client that it is over: a thread for each, since all
 * of it is waiting, and there are few. The steps: ask the client how much it has; ask this node's server for
 * the rest; make the socket; send the rest; when the client has acknowledged all of it, put the connection
 * into the flow directory as an idle one of the lost node's, and let go of the socket. The client's next
 * request is then decided and given to a node as on any such connection (inspect/survive.c).
 *
 * Until the socket is there, nothing but a segment from before was sent. From then on the client gets bytes
 * of the same content at the same places, whoever sends them: if two nodes should go on, they say the same. A
 * RST is sent only under a lease.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "inspector/cluster/directory.h"
#include "inspector/cluster/downloads.h"
#include "inspector/handover/raw.h"
#include "inspector/resume/client.h"
#include "inspector/resume/heads.h"

/* So many may be gone on with at a time; further clients are told that theirs is over. */
#define ES_RESUMES_MAX 64

/* A server must answer within this time; one that says nothing for so long later on, or a client, is lost. */
#define ES_RESUME_SERVER_MS 1500
#define ES_RESUME_STALL_MS  60000

enum es_resume_result {
	ES_RESUME_UNDER_WAY,
	ES_RESUME_ASKED,  /* there was nothing to be done: the client has all, or is gone, or says nothing */
	ES_RESUME_WHOLE,  /* it has all now */
	ES_RESUME_BROKEN, /* it has a part more, and was told that the rest does not come, or has left */
	ES_RESUME_RESET,  /* it was told that the rest does not come */
	ES_RESUME_WAITS,  /* with @only_asks: it has sent nothing since its request */
};

/**
 * struct es_resume_params - the same for all
 * @lease_ns: the datapath's; @sending: how many there are that send; @stop: all are to end
 */
struct es_resume_params {
	struct es_raw raw;
	struct es_directory *directory;
	const __u64 *lease_ns;
	atomic_uint sending;
	atomic_int stop;
};

/**
 * struct es_resume - one of them
 * @started_ns: when this began: @download.tsval is of that moment
 * @only_asks: nobody can go on with it: ask the client for its numbers, no more; then they are in @client
 * @is_sending: it has begun to send; @result: an enum es_resume_result, ES_RESUME_UNDER_WAY until the thread
 * is about to end
 * @why: valid with the result
 */
struct es_resume {
	struct es_resume_params *params;
	struct es_download download;
	__u64 flow_hash;
	unsigned long long started_ns;
	pthread_t thread;
	int only_asks;
	struct es_resume_client client;
	atomic_int is_sending;
	atomic_int result;
	enum es_resume_why why;
};

/* es_resume_start() - with all but @thread filled in, and zeros. Returns 0 or -errno. */
int es_resume_start(struct es_resume *resume);

/* es_resume_end() - wait for its thread, which has a result, or is stopped, and free it */
void es_resume_end(struct es_resume **resume);

#endif
