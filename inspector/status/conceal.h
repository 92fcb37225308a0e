/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONCEAL_H
#define ES_CONCEAL_H

#include <json-c/json.h>

/**
 * es_conceal_queries() - take the query strings out of a view of the cluster (docs/json.md), whichever node
 * told them
 * They may have secrets, and the HTTP server asks nobody for a password. Contents that differ in nothing else
 * become one.
 */
void es_conceal_queries(struct json_object *view);

#endif
