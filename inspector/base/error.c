// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Error texts of the configuration, the key file and the control socket: formats them into the caller's
 * buffer and marks those that had to be cut. It decides nothing about what an error means.
 */
#include "inspector/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void es_conf_error_set(struct es_conf_error *err, const char *format, ...)
{
	va_list ap;
	int len;

	if (!err)
		return;
	va_start(ap, format);
	len = vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	if (len >= (int)sizeof(err->text))
		memcpy(err->text + sizeof(err->text) - 4, "...", 4);
}
