/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_START_SETTINGS_H
#define ES_DAEMON_START_SETTINGS_H

/*
 * The settings that a daemon takes from its configuration when it starts, and not later. Some of them need
 * not be alike on all nodes at any time: a file that changes such settings can be in force, but for these,
 * before the daemon has started anew.
 */
#include <stddef.h>

struct es_conf;
struct es_conf_error;
struct es_daemon;

/* The settings that another start puts in force, as a line of text; "" if there are none. */
#define ES_START_SETTINGS_SIZE 256

/*
 * es_start_settings_fixed() - the first key that differs, and that no start of one node after the other
 * changes; or NULL
 */
const char *es_start_settings_fixed(const struct es_daemon *daemon, const struct es_conf *next);

/* es_start_settings_differ() - the keys that differ, and that a start changes. Returns how many. */
unsigned int es_start_settings_differ(const struct es_conf *now, const struct es_conf *next, char *ret_text,
				      size_t size);

/* es_start_settings_keep() - @next goes on with those of @now */
void es_start_settings_keep(const struct es_conf *now, struct es_conf *next);

/* es_start_settings_tell() - for people, of @waiting; "" if nothing is */
void es_start_settings_tell(const char *waiting, struct es_conf_error *ret_text);

#endif
