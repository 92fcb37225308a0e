/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_BASE_ERROR_H
#define ES_BASE_ERROR_H

/**
 * struct es_conf_error - why something that a person wrote or started was refused, one line for that person
 * Without a newline at the end; libraries fill it, programs print it.
 */
struct es_conf_error {
	char text[512];
};

/* Formats @err->text; a text that does not fit ends in "...". @err may be NULL. */
void es_conf_error_set(struct es_conf_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
