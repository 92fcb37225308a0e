/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CHECK_CMAP_H
#define ES_CHECK_CMAP_H

/*
 * Corosync's settings and state as text, and the look-ups in it that the checks need. The text is what
 * corosync-cmapctl prints, without the types: "totem.token = 1000", and "quorate = 1" (1, 0) from libquorum.
 */
#include <stddef.h>

#include "kmod/core/types.h"

#define ES_CMAP_NODES_MAX 256
#define ES_CMAP_LINKS_MAX 8

/* The value of @key up to its line's end, copied to @ret_value; "" when there is none. Return: found? */
int es_cmap_string(const char *text, const char *key, char *ret_value, size_t size);
/* The number of @key, or @missing. */
long es_cmap_number(const char *text, const char *key, long missing);
/* A switch of corosync.conf: 1 for yes, on and 1, 0 for others, @missing without it. */
int es_cmap_switch(const char *text, const char *key, int missing);

/* @address: what "ringN_addr" resolves to; all zero when it does not; @names: as it stands there */
struct es_cmap_node {
	long nodeid;
	long votes;
	char name[64];
	unsigned int links;
	char names[ES_CMAP_LINKS_MAX][64];
	struct es_addr address[ES_CMAP_LINKS_MAX];
};

/* The nodelist; the caller frees *@ret_nodes. Return: how many, or -ENOMEM. */
int es_cmap_nodes(const char *text, struct es_cmap_node **ret_nodes);

#endif
