// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line per message, written with one call, so that lines of several threads do not mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/base/log.h"

void es_log(enum es_log_level level, const char *format, ...)
{
	char line[1024];
	size_t len = 0;
	va_list args;
	int n;

	if (getenv("JOURNAL_STREAM"))
		len = (size_t)snprintf(line, sizeof(line), "<%d>", level);
	len += (size_t)snprintf(line + len, sizeof(line) - len, "earshotd: %s",
				level == ES_LOG_ERR	  ? "error: "
				: level == ES_LOG_WARNING ? "warning: "
							  : "");
	va_start(args, format);
	n = vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	len = strlen(line);
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nowhere to say so */
}
