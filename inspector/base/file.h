/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_FILE_H
#define ES_FILE_H

/*
 * es_file_replace() - @text is the file at @path, whole or not at all; makes its directory. Returns 0 or
 * -errno.
 */
int es_file_replace(const char *path, const char *text);

#endif
