/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_MENDER_H
#define ES_NETFILTER_ENGINE_MENDER_H

/*
 * A thread that sets again what operators take away of an attachment's tables. To compare tables takes milliseconds, and as
 * long as another one sets some, nobody else may; packets must not wait for that.
 */
#include "netfilter/engine/attachment.h"

/**
 * struct es_nf_mender
 * @watch: of changes of rules; @stop_fd: readable when the thread is to end
 */
struct es_nf_mender {
	struct es_nf_attachment *attachment;
	struct es_nf_netlink watch;
	pthread_t thread;
	int is_running;
	int stop_fd;
};

/**
 * es_nf_mender_open() - from now on, what happens to @attachment is not missed
 * Returns 0 or -errno; then, too, it is to be closed.
 */
int es_nf_mender_open(struct es_nf_mender *mender, struct es_nf_attachment *attachment);

/* es_nf_mender_start() - Returns 0 or -errno. */
int es_nf_mender_start(struct es_nf_mender *mender);

/* es_nf_mender_close() - ends the thread; may be called again, and for one whose stop_fd is -1 and all else zero */
void es_nf_mender_close(struct es_nf_mender *mender);

#endif
