// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Errors and warnings of a configuration as texts, "path:line: what". The first error is what a daemon says;
 * all of them are what `earshot check-config` shows. A list of values may have one error for each of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/internal.h"

static void errors_add(struct es_conf_errors *errors, const struct es_conf_error *error)
{
	for (unsigned int i = 0; i < errors->count; i++)
		if (!strcmp(errors->error[i].text, error->text))
			return;
	if (errors->count == ES_CONF_ERRORS_MAX)
		errors->left_out++;
	else
		errors->error[errors->count++] = *error;
}

int es_conf_fail(struct es_conf_parse *p, int line, const char *format, ...)
{
	char what[sizeof(p->err->text)];
	struct es_conf_error error;
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (line > 0)
		es_conf_error_set(&error, "%s:%d: %s", p->path, line, what);
	else
		es_conf_error_set(&error, "%s: %s", p->path, what);
	if (!p->failed)
		*p->err = error;
	p->failed = 1;
	if (p->errors)
		errors_add(p->errors, &error);
	return -EINVAL;
}

void es_conf_warn(struct es_conf_parse *p, int line, const char *format, ...)
{
	struct es_conf *conf = p->conf;
	char what[ES_CONF_WARNING_SIZE];
	va_list ap;

	if (!conf->warning)
		conf->warning = calloc(ES_CONF_WARNINGS_MAX, sizeof(*conf->warning));
	if (!conf->warning || conf->warning_count == ES_CONF_WARNINGS_MAX)
		return;
	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	snprintf(conf->warning[conf->warning_count++], sizeof(what), "%.100s:%d: %.256s", p->path, line,
		 what);
}
