/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SETTINGS_H
#define ES_SETTINGS_H

/*
 * A node's account of its settings when it joins: "name=value\n" lines. Those with '=' before the name must
 * be alike on all nodes (es_group_settings_differ()), those with '~' should be, since the file is the same
 * for all (es_group_settings_each()); the others are for people to compare.
 */
#include <stddef.h>
#include "inspector/config/config.h"
#include "inspector/config/keyfile.h"
#include "inspector/datapath/network.h"
#include "inspector/plugin/host.h"

/*
 * es_settings_text() - @plugins: those of @conf; @size: 4096 at least; returns the length
 * Settings that have no room are left out by whole lines. A last line, "rest.VERSION", says how many they
 * are, which is the first, and a digest of them: it should be alike.
 */
size_t es_settings_text(const struct es_conf *conf, const struct es_keys *keys,
			const struct es_network *network, struct es_plugins *plugins, char *text,
			size_t size);

#endif
