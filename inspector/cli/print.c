// SPDX-License-Identifier: GPL-2.0-or-later
/* Errors, and replies for programs to read. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "inspector/cli/cli.h"

/* Where messages go instead of stderr; NULL: to stderr. */
static char *held;
static size_t held_size;

void es_cli_hold(char *text, size_t size)
{
	held = text;
	held_size = size;
}

static void say(const char *format, va_list ap)
{
	if (held) {
		vsnprintf(held, held_size, format, ap);
		return;
	}
	fputs("earshot: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
}

int es_cli_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(format, ap);
	va_end(ap);
	return ES_CLI_FAILED;
}

int es_cli_usage(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(format, ap);
	va_end(ap);
	return ES_CLI_USAGE;
}

int es_cli_number(const char *what, const char *text, long least, long most, long *ret_number)
{
	char *end = NULL;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	/* strtol() passes over blanks and a sign. */
	if (!isdigit((unsigned char)*text) || *end || errno || number < least || number > most)
		return es_cli_usage("bad %s \"%.80s\": expected %ld..%ld", what, text, least, most);
	*ret_number = number;
	return ES_CLI_OK;
}

void es_cli_print_json(struct json_object *object)
{
	es_json_write(object, stdout); /* main() checks that it could be written */
}
