// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks a service's check { } once the section is read: no key is set that would have no effect, and
 * whatever goes into the check's request may stand in one.
 */
#include "inspector/config/internal.h"

static int line_of(const struct es_conf_parse *p, unsigned int i, const char *key)
{
	return es_conf_line_of(&p->checks[i], ES_CONF_CHECK, key);
}

/* The first key of @keys that the file has, or NULL. */
static const char *first_of(const struct es_conf_parse *p, unsigned int i, const char *const *keys)
{
	while (*keys && !es_conf_has(&p->checks[i], ES_CONF_CHECK, *keys))
		keys++;
	return *keys;
}

static const char *type_name(enum es_conf_check_type type)
{
	return type == ES_CONF_CHECK_TCP     ? "tcp"
	       : type == ES_CONF_CHECK_HTTP  ? "http"
	       : type == ES_CONF_CHECK_HTTPS ? "https"
					     : "none";
}

/* Keys that mean something to HTTP or TLS alone are refused with another type, where they have no effect. */
static void check_type(struct es_conf_parse *p, unsigned int i)
{
	static const char *const by_http[] = {"path", "host", "expect", "status", "body", NULL};
	static const char *const by_tls[] = {"ca_file", NULL}, *const by_any[] = {"port", NULL};
	const struct es_conf_check *check = &p->conf->services[i].check;
	const char *key;

	if (!es_conf_check_is_http(check) && (key = first_of(p, i, by_http)))
		es_conf_fail(p, line_of(p, i, key),
			     "check: %s has no effect with type = %s: expected type = http or https besides",
			     key, type_name(check->type));
	if (check->type != ES_CONF_CHECK_HTTPS && (key = first_of(p, i, by_tls)))
		es_conf_fail(p, line_of(p, i, key),
			     "check: %s has no effect with type = %s: expected type = https besides", key,
			     type_name(check->type));
	if (check->type == ES_CONF_CHECK_NONE && (key = first_of(p, i, by_any)))
		es_conf_fail(p, line_of(p, i, key),
			     "check: %s has no effect with type = none: expected type = tcp, http or https",
			     key);
}

static void check_status(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_check *check = &p->conf->services[i].check;
	unsigned int first, last;

	/* After any other status 1xx, the answer that counts follows. */
	if (check->expect && check->expect < 200 && check->expect != 101)
		es_conf_fail(p, line_of(p, i, "expect"),
			     "check: expect = %u: expected 101, or 200..599 (a status)", check->expect);
	if (check->statuses.count && es_conf_has(&p->checks[i], ES_CONF_CHECK, "expect"))
		es_conf_fail(p, line_of(p, i, "status"),
			     "check: status: expect was set on line %d: expected one of them",
			     line_of(p, i, "expect"));
	for (const char *item = NULL; (item = es_conf_list_next(&check->statuses, item));)
		if (!es_conf_statuses_parse(item, &first, &last))
			es_conf_status_add(check, first, last);
	if (check->statuses.count)
		return;
	if (check->expect)
		es_conf_status_add(check, check->expect, check->expect);
	else
		es_conf_status_add(check, 200, 399);
}

static int is_printable(const char *text)
{
	while (*text > ' ' && *text < 0x7f)
		text++;
	return !*text;
}

void es_conf_check_health(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_check *check = &p->conf->services[i].check;

	check_type(p, i);
	check_status(p, i);
	if (!is_printable(check->path))
		es_conf_fail(p, line_of(p, i, "path"),
			     "check: path = %s: expected ASCII without blanks: other characters are %%XX",
			     check->path);
	if (!is_printable(check->host))
		es_conf_fail(p, line_of(p, i, "host"), "check: host = %s: expected a host name, or HOST:PORT",
			     check->host);
	if (check->ca_file[0] && !check->host[0])
		es_conf_fail(
			p, line_of(p, i, "ca_file"),
			"check: ca_file: no name to compare the certificate's with: expected host = NAME "
			"besides");
}
