// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sentences that tell people why something could not be done.
 */
#include <stdarg.h>
#include <stdio.h>
#include "netfilter/kernel/why.h"

int es_nf_why(struct es_nf_why *why, int error, const char *format, ...)
{
	va_list args;

	if (!why)
		return error;
	va_start(args, format);
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	return error;
}
