/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SYSCTL_H
#define ES_SYSCTL_H

/* es_sysctl_read() - the number in @path, a file below /proc/sys. Returns 0 or -errno. */
int es_sysctl_read(const char *path, int *ret_value);

/**
 * es_sysctl_set() - give a sysctl another value, and note which one it had
 * @found: file of the values that were found, so that whoever removes the package can put them back: a line
 *         for each sysctl, "<path below /proc/sys> <tab> <value found> <tab> <value set>". The first note of
 * a sysctl stays, whatever a later daemon finds.
 * @path:  below /proc/sys
 *
 * A sysctl that has the value already is neither written nor noted. Returns 0 or -errno; without a note
 * nothing is changed.
 */
int es_sysctl_set(const char *found, const char *path, int value);

#endif
