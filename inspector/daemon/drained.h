/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DRAINED_H
#define ES_DRAINED_H

/*
 * A node that was drained stays so when its daemon, or the machine, starts again: there is an empty file for as
 * long. The other nodes could tell it, but not when all are restarted.
 */
#define ES_STATE_DIRECTORY "/var/lib/earshot"

/* es_drained_is() - is the file there? */
int es_drained_is(const char *path);

/* es_drained_set() - make the file, and its directory, or remove it. Returns 0 or -errno. */
int es_drained_set(const char *path, int is_drained);

#endif
