/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_MENDER_H
#define ES_NETFILTER_ENGINE_MENDER_H

/*
 * A thread that sets the tables of an attachment again after operators have removed them. Comparing tables
 * takes milliseconds, and no other thread may set tables meanwhile; packets must not wait for that.
 */
#include "netfilter/engine/attachment.h"

/**
 * struct es_nf_mender
 * @watch: reports changes of rules; @stop_fd: readable when the thread is to end
 */
struct es_nf_mender {
	struct es_nf_attachment *attachment;
	struct es_nf_netlink watch;
	pthread_t thread;
	int is_running;
	int stop_fd;
};

/**
 * es_nf_mender_open() - notice changes from now on
 * Returns 0 or -errno; close it in either case.
 */
int es_nf_mender_open(struct es_nf_mender *mender, struct es_nf_attachment *attachment);

/* es_nf_mender_start() - Returns 0 or -errno. */
int es_nf_mender_start(struct es_nf_mender *mender);

/*
 * es_nf_mender_close() - end the thread; may be called again, and on a structure that is zero but for stop_fd
 * = -1
 */
void es_nf_mender_close(struct es_nf_mender *mender);

#endif
