/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_OBSERVED_H
#define ES_DAEMON_OBSERVED_H

/*
 * What this node learns about the content that it serves: how long responses are. The datapath measures those
 * that an inspector asked for (ES_REQUEST_F_MEASURE), complete ones with status 200 of a known target.
 */
#include "inspector/config.h"
#include "kmod/core/abi.h"

struct es_daemon;

/* struct es_observed_mean - of a service's responses that were measured, since the configuration was read */
struct es_observed_mean {
	unsigned long long count;
	unsigned long long bytes;
};

struct es_daemon_observed {
	struct es_observed_mean mean[ES_CONF_SERVICES_MAX];
};

/* es_observed_response() - an es_datapath_response_fn; @ctx: the daemon */
void es_observed_response(void *ctx, const struct es_response_entry *entry);

/**
 * es_content_observed() - a response of @target was so long, its head included; 4 GB stands for more
 * @target: struct es_request_view's
 */
void es_content_observed(struct es_daemon *daemon, unsigned int service, __u64 target,
			 unsigned long long bytes);

/* es_observed_reset() - services may have other numbers now */
void es_observed_reset(struct es_daemon *daemon);

#endif
