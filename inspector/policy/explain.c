// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes down the reasons of a decision. */
#include <stdarg.h>
#include <stdio.h>
#include "inspector/policy/explain.h"

void es_explain_add(struct es_explain *explain, const char *format, ...)
{
	va_list arguments;

	if (explain->count == ES_EXPLAIN_STEPS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(explain->step[explain->count++], ES_EXPLAIN_STEP_SIZE, format, arguments);
	va_end(arguments);
}
