/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONFIG_ALIKE_H
#define ES_CONFIG_ALIKE_H

#include "inspector/config/config.h"

/**
 * es_conf_should_each() - the settings in which nodes should be alike, though they may differ
 * @fn: called with the name of each, or of several that are told together, and with the value, which is one
 * word
 * Nodes compare what both tell by the same name (es_group_settings_each()), so a name and its form are for
 * ever.
 */
void es_conf_should_each(const struct es_conf *conf,
			 void (*fn)(void *ctx, const char *name, const char *value), void *ctx);

#endif
