/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVICE_DRAINS_H
#define ES_SERVICE_DRAINS_H

/*
 * The services of which a node is drained, and who wants that, until when and why (`earshot drain NODE
 * --service NAME`). The node keeps them in a file, and tells all of them at once, so that one who was away
 * has what holds. A name stands for the service, since a reload may give it another number.
 */
#include "inspector/config/config.h"
#include "inspector/self/by_hand.h"

/* struct es_service_drain - @by: its value is ES_NODE_DRAINING, or, as a wish, ES_NODE_UP */
struct es_service_drain {
	char service[ES_CONF_NAME_SIZE];
	struct es_wire_by_hand by;
};

struct es_service_drains {
	unsigned int count;
	struct es_service_drain drain[ES_CONF_SERVICES_MAX];
};

#define ES_SERVICE_DRAIN_SIZE  (ES_CONF_NAME_SIZE + ES_WIRE_BY_HAND_SIZE)
#define ES_SERVICE_DRAINS_SIZE (ES_CONF_SERVICES_MAX * ES_SERVICE_DRAIN_SIZE)

/* es_service_drains_find() - that of @service; NULL: the node is not drained of it */
const struct es_service_drain *es_service_drains_find(const struct es_service_drains *drains,
						      const char *service);

/*
 * es_service_drains_set() - begin one, or end it, as @drain wishes. Returns 1 if that changes anything;
 * -ENOSPC.
 */
int es_service_drains_set(struct es_service_drains *drains, const struct es_service_drain *drain);

/*
 * A wish on the bus (ES_WIRE_SERVICE_DRAIN), and all that hold (ES_WIRE_SERVICE_DRAINS), of @by.node each;
 * lengths, 0, -EBADMSG.
 */
size_t es_service_drain_put(void *buf, size_t size, const struct es_service_drain *drain);
int es_service_drain_get(const void *data, size_t len, struct es_service_drain *ret);
size_t es_service_drains_put(void *buf, size_t size, const struct es_service_drains *drains);
int es_service_drains_get(const void *data, size_t len, struct es_service_drains *ret);

/*
 * es_service_drains_read(), _write() - the file at @path; no drain, no file. Returns 0 or -errno, -EBADMSG.
 */
int es_service_drains_read(const char *path, struct es_service_drains *ret);
int es_service_drains_write(const char *path, const struct es_service_drains *drains);

/* es_service_drains_json() - [{"service": …, and what es_by_hand_json() says}] */
struct json_object *es_service_drains_json(const struct es_service_drains *drains);

#endif
