/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_WORKER_H
#define ES_SERVE_WORKER_H

/*
 * A process that serves clients. It has what its parent has read before, may do little, and hears its orders
 * on a socket; when that ends, so does it.
 */
#include "tls/serve/listen.h"

enum es_order_kind {
	ES_ORDER_KEYS,	/* these keys from now on */
	ES_ORDER_DRAIN, /* another generation accepts: serve those that are there until they end */
	ES_ORDER_END,	/* the same, and end those that wait for a further request */
};

/*
 * struct es_order - a message of the parent: SOCK_SEQPACKET; @keys, @day: as es_settings_use_keys() takes
 * them
 */
struct es_order {
	enum es_order_kind kind;
	struct es_tls_keys keys;
	unsigned long long day;
};

/**
 * struct es_worker_params
 * @number: which listeners are its own; @orders: the socket
 * @counters: its place in the ledger; NULL: it counts for itself
 * @ktls_has: the kernel's record layer was seen to do that: es_ktls_probe()
 * @ask, @handover: paths of the daemon's sockets
 */
struct es_worker_params {
	unsigned int number;
	struct es_settings *settings;
	const struct es_listeners *listeners;
	int orders;
	struct es_ledger_block *counters;
	struct es_tls_taken *taken;
	unsigned int ktls_has;
	struct es_peers *peers;
	const char *ask;
	const char *handover;
};

/*
 * es_worker_run() - serve until the last client has gone after ES_ORDER_DRAIN or _END. Returns an exit
 * status.
 */
int es_worker_run(const struct es_worker_params *params);

#endif
