// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands' messages on stderr. */
#include <stdarg.h>
#include <stdio.h>
#include "sim/error.h"

void es_error(const char *format, ...)
{
	va_list arguments;

	fputs("earshot-sim: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}
