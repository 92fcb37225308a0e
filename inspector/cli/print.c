// SPDX-License-Identifier: GPL-2.0-or-later
/* Errors, and replies for programs to read. */
#include <stdarg.h>
#include <stdio.h>

#include "inspector/cli/cli.h"

int es_cli_fail(const char *format, ...)
{
	va_list ap;

	fputs("earshot: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return ES_CLI_FAILED;
}

void es_cli_print_json(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
}
