/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_OBSERVED_H
#define ES_DAEMON_OBSERVED_H

/*
 * The nodes' knowledge about the content that they serve: how long responses are. The datapath of the node
 * that serves measures the responses that an inspector asked for (ES_REQUEST_F_MEASURE), complete ones with
 * status 200; all nodes hear of them over the bus, since any may inspect the next request. Content is named
 * by es_url_key(), whose secret the nodes share. For most responses only the status counts
 * (ES_REQUEST_F_STATUS): it stays on this node (health/responses.h).
 *
 * ES_WIRE_SIZES: the service's tag (es_content_sync_tag()), 4 bytes, then 16 for each response: key and
 * bytes.
 */
#include <stddef.h>
#include "inspector/config/config.h"
#include "inspector/health/responses.h"
#include "kmod/core/abi.h"

struct es_url_table;

#define ES_OBSERVED_MAX 256

/* struct es_observed_mean - of a service's responses that were measured here, since the configuration was
 * read */
struct es_observed_mean {
	unsigned long long count;
	unsigned long long bytes;
};

/* struct es_observed_service - what is counted over reloads, of the service of that name */
struct es_observed_service {
	char name[ES_CONF_NAME_SIZE];
	struct es_responses responses;
	struct es_durations_lately lately;
};

/*
 * struct es_observed_ops - @took: a response of @service took so long, 0: not known; @tell: an ES_WIRE_SIZES,
 * to all nodes
 */
struct es_observed_ops {
	void (*took)(void *ctx, unsigned int service, unsigned long long took_ns);
	void (*tell)(void *ctx, const void *payload, size_t len);
};

/* struct es_daemon_observed - @services: how many there are; @lately: how long responses took, of all
 * services, and of each; @count: what is to be told of @service yet, in @payload behind room for the tag */
struct es_daemon_observed {
	const struct es_observed_ops *ops;
	void *ctx;
	unsigned int services;
	struct es_observed_service of[ES_CONF_SERVICES_MAX];
	struct es_observed_mean mean[ES_CONF_SERVICES_MAX];
	struct es_durations_lately lately;
	unsigned int service;
	size_t count;
	__u8 payload[4 + ES_OBSERVED_MAX * 16];
};

/* es_observed_init() - with nothing in it; @ops are called with @ctx */
void es_observed_init(struct es_daemon_observed *observed, const struct es_observed_ops *ops, void *ctx);

/* es_observed_rebind() - at the start, and when services may have other numbers */
void es_observed_rebind(struct es_daemon_observed *observed, const struct es_conf *conf);

/* es_observed_response() - an es_datapath_response_fn; @observed: struct es_daemon_observed */
void es_observed_response(void *observed, const struct es_response_entry *entry);

/* es_observed_flush() - tell what is to be told yet */
void es_observed_flush(struct es_daemon_observed *observed);

/* es_observed_message() - an ES_WIRE_SIZES, own ones too, for the services' tables; one may be NULL */
void es_observed_message(const struct es_daemon_observed *observed, struct es_url_table *const *urls,
			 const void *payload, size_t len);

#endif
