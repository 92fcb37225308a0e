// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeping what checks find. It knows no check, and nothing of how findings are shown.
 */
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/check/check.h"

const char *es_check_severity_name(enum es_check_severity severity)
{
	static const char *const names[ES_CHECK_SEVERITIES] = {
		[ES_CHECK_OK] = "ok",
		[ES_CHECK_INFO] = "info",
		[ES_CHECK_UNCHECKED] = "unchecked",
		[ES_CHECK_WARNING] = "warning",
		[ES_CHECK_ERROR] = "error",
	};

	return names[severity];
}

const char *es_check_self_name(const struct es_check *check)
{
	return check->self < 0 ? "(unknown)" : check->conf->nodes[check->self].name;
}

int es_check_is_here(const struct es_check *check, unsigned int service)
{
	return check->self < 0 ||
	       es_conf_service_is_on(&check->conf->services[service], (unsigned int)check->self);
}

static void finding_add(struct es_check *check, enum es_check_severity severity, const char *action,
			const char *found, va_list ap)
{
	struct es_check_finding *f;

	if (check->group->worst && severity > check->group->worst(check))
		severity = check->group->worst(check);
	check->findings = reallocarray(check->findings, check->count + 1, sizeof(*f));
	if (!check->findings)
		err(2, "finding");
	f = &check->findings[check->count++];
	memset(f, 0, sizeof(*f));
	f->group = check->group;
	f->severity = severity;
	f->why = check->item->why;
	snprintf(f->id, sizeof(f->id), "%s.%s", check->group->name, check->item->name);
	if (vasprintf(&f->found, found, ap) < 0)
		err(2, "finding");
	f->action = action && severity > ES_CHECK_UNCHECKED ? strdup(action) : NULL;
	check->totals[severity]++;
}

#define FINDING(severity, action)                                                                            \
	do {                                                                                                 \
		va_list ap;                                                                                  \
		va_start(ap, found);                                                                         \
		finding_add(check, severity, action, found, ap);                                             \
		va_end(ap);                                                                                  \
	} while (0)

void es_check_ok(struct es_check *check, const char *found, ...)
{
	FINDING(ES_CHECK_OK, NULL);
}

void es_check_info(struct es_check *check, const char *found, ...)
{
	FINDING(ES_CHECK_INFO, NULL);
}

void es_check_unchecked(struct es_check *check, const char *found, ...)
{
	FINDING(ES_CHECK_UNCHECKED, NULL);
}

void es_check_warning(struct es_check *check, const char *action, const char *found, ...)
{
	FINDING(ES_CHECK_WARNING, action);
}

void es_check_error(struct es_check *check, const char *action, const char *found, ...)
{
	FINDING(ES_CHECK_ERROR, action);
}

const char *es_check_action(const char *format, ...)
{
	static char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

void es_check_fini(struct es_check *check)
{
	size_t i;

	for (i = 0; i < check->count; i++) {
		free(check->findings[i].found);
		free(check->findings[i].action);
	}
	free(check->findings);
	check->findings = NULL;
	check->count = 0;
}
