// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of services whose TLS Earshot ends: whether earshot-tls runs, certificates that it or clients will
 * not take, now or soon, names that none is for, and the server behind.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inspector/base/json.h"
#include "inspector/check/check.h"

#define DAY_S	    86400
#define WARN_DAYS   21
#define OCSP_WARN_S 21600
#define RENEW_OCSP                                                                                           \
	"fetch it anew (openssl ocsp -respout), on all nodes, and reload earshotd and earshot-tls on each"
#define RELOAD "earshot check-config, then systemctl reload-or-restart earshot-tls; its log says more"
#define RENEW  "renew it, copy it to all nodes, and reload earshotd and earshot-tls on each (docs/tls.md)"

static int has_none(struct es_check *check)
{
	if (check->facts->tls.count)
		return 0;
	es_check_ok(check, "Earshot ends no service's TLS on this node");
	return 1;
}

static const struct es_conf_service *service_of(const struct es_check *check,
						const struct es_facts_certificate *c)
{
	return &check->conf->services[c->service];
}

static const char *file_of(const struct es_check *check, const struct es_facts_certificate *c)
{
	return service_of(check, c)->tls.certificate[c->index];
}

static void check_certificate(struct es_check *check)
{
	const struct es_facts_tls *tls = &check->facts->tls;
	size_t wrong = 0;

	if (has_none(check))
		return;
	for (size_t i = 0; i < tls->count; i++) {
		const struct es_facts_certificate *c = &tls->certificate[i];

		if (!c->rc)
			continue;
		wrong++;
		if (c->rc == -EACCES)
			es_check_unchecked(check, "%s is not this user's to read: run it as root",
					   file_of(check, c));
		else
			es_check_error(check,
				       es_check_action("copy %s from another node, or certificate of service "
						       "%s in %s",
						       file_of(check, c), service_of(check, c)->name,
						       check->conf->path),
				       "service %s: %s", service_of(check, c)->name, c->text.text);
	}
	if (!wrong)
		es_check_ok(check, "%zu certificates, all readable", tls->count);
}

static void check_key(struct es_check *check)
{
	const struct es_facts_tls *tls = &check->facts->tls;
	size_t wrong = 0;

	if (has_none(check))
		return;
	for (size_t i = 0; i < tls->count; i++) {
		const struct es_facts_certificate *c = &tls->certificate[i];
		const struct es_conf_service *service = service_of(check, c);
		const char *key = service->tls.key[c->index];

		if (c->rc || !c->key_rc)
			continue;
		wrong++;
		if (c->key_rc == -EACCES)
			es_check_unchecked(check, "%s is not this user's to read: run it as root", key);
		else
			es_check_error(
				check,
				c->key_rc == -EPERM
					? es_check_action("chown root %s; chmod 600 %s", key, key)
					: es_check_action("the key of %s in %s, or key of service %s in %s",
							  file_of(check, c), key, service->name,
							  check->conf->path),
				"service %s: %s", service->name, c->key_text.text);
	}
	if (!wrong)
		es_check_ok(check, "each key is its certificate's, and its owner's only");
}

static void check_expiry(struct es_check *check)
{
	const struct es_facts_tls *tls = &check->facts->tls;
	long long left_s, least_s = 0;
	size_t wrong = 0, seen = 0;

	if (has_none(check))
		return;
	for (size_t i = 0; i < tls->count; i++) {
		const struct es_facts_certificate *c = &tls->certificate[i];
		struct es_conf_error why;

		if (c->rc)
			continue;
		left_s = c->says.until_s - tls->wall_s;
		least_s = !seen++ || left_s < least_s ? left_s : least_s;
		if (es_certificate_judge(&c->says, file_of(check, c), tls->wall_s, &why) == -EKEYEXPIRED)
			es_check_error(check, RENEW, "service %s: %s", service_of(check, c)->name, why.text);
		else if (left_s < WARN_DAYS * DAY_S)
			es_check_warning(check, RENEW, "service %s: %s: the certificate ends in %lld days",
					 service_of(check, c)->name, file_of(check, c), left_s / DAY_S);
		else
			continue;
		wrong++;
	}
	if (!seen)
		es_check_unchecked(check, "no certificate can be read");
	else if (!wrong)
		es_check_ok(check, "the first certificate to end does so in %lld days", least_s / DAY_S);
}

static void check_ocsp(struct es_check *check)
{
	const struct es_facts_tls *tls = &check->facts->tls;
	size_t wrong = 0, seen = 0;

	if (has_none(check))
		return;
	for (size_t i = 0; i < tls->count; i++) {
		const struct es_facts_certificate *c = &tls->certificate[i];
		const char *file = service_of(check, c)->tls.ocsp[c->index];
		long long left_s = c->ocsp_until_s - tls->wall_s;

		if (c->rc || !file[0])
			continue;
		seen++;
		if (!c->ocsp_rc && left_s >= OCSP_WARN_S)
			continue;
		wrong++;
		if (c->ocsp_rc == -EACCES)
			es_check_unchecked(check, "%s is not this user's to read: run it as root", file);
		else if (c->ocsp_rc)
			es_check_warning(check, RENEW_OCSP, "service %s: %s", service_of(check, c)->name,
					 c->ocsp_text.text);
		else if (left_s < 0)
			es_check_warning(check, RENEW_OCSP, "service %s: %s: the OCSP answer is over",
					 service_of(check, c)->name, file);
		else
			es_check_warning(check, RENEW_OCSP,
					 "service %s: %s: the OCSP answer is over in %lld hours",
					 service_of(check, c)->name, file, left_s / 3600);
	}
	if (!wrong)
		es_check_ok(check, "%zu OCSP answers, all in time", seen);
}

static void check_strength(struct es_check *check)
{
	const struct es_facts_tls *tls = &check->facts->tls;
	size_t wrong = 0;

	if (has_none(check))
		return;
	for (size_t i = 0; i < tls->count; i++) {
		const struct es_facts_certificate *c = &tls->certificate[i];

		if (c->rc || !c->says.weak)
			continue;
		wrong++;
		es_check_warning(check, "have it issued anew, with a key of RSA 2048, P-256 or more",
				 "service %s: %s is weak: %s", service_of(check, c)->name, file_of(check, c),
				 c->says.weak);
	}
	if (!wrong)
		es_check_ok(check, "no certificate is weak");
}

/* Is one of the service's certificates for @name? One for *.DOMAIN may be asked for as such. */
static int is_covered(const struct es_check *check, unsigned int service, const char *name)
{
	for (size_t i = 0; i < check->facts->tls.count; i++) {
		const struct es_facts_certificate *c = &check->facts->tls.certificate[i];

		/* One that cannot be read is for any name: it is said elsewhere. */
		if (c->service == service &&
		    (c->rc || es_certificate_match(&c->says, name) != ES_CERTIFICATE_OTHER))
			return 1;
	}
	return 0;
}

static unsigned int name_check(struct es_check *check, unsigned int service, const char *name,
			       const char *where)
{
	if (is_covered(check, service, name))
		return 0;
	es_check_warning(check, es_check_action("a certificate for %s, or another name in %s", name, where),
			 "service %s: no certificate is for %s, which %s names",
			 check->conf->services[service].name, name, where);
	return 1;
}

/* "a.example, *.b.example"; cut where there is no room */
static void names_put(const struct es_check *check, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < check->facts->tls.count; i++)
		for (unsigned int k = 0; k < check->facts->tls.certificate[i].says.name_count && used < size;
		     k++)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 check->facts->tls.certificate[i].says.name[k]);
}

/* Names that the configuration says clients use: of rules for this very service, and of its check. */
static void check_names(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	unsigned int wrong = 0;
	char names[512], where[ES_CONF_PATH_SIZE + 16];

	if (has_none(check))
		return;
	for (unsigned int i = 0; i < conf->rule_count; i++) {
		const struct es_conf_rule *rule = &conf->rules[i];

		if (rule->service < 0 || !conf->services[rule->service].tls.line ||
		    !es_check_is_here(check, (unsigned int)rule->service))
			continue;
		snprintf(where, sizeof(where), "rule %s", rule->name);
		for (const char *host = NULL; (host = es_conf_list_next(&rule->hosts, host));)
			wrong += name_check(check, (unsigned int)rule->service, host, where);
	}
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		char host[ES_CONF_PATH_SIZE];

		snprintf(host, sizeof(host), "%.*s", (int)strcspn(service->check.host, ":"),
			 service->check.host);
		if (service->tls.line && service->check.type == ES_CONF_CHECK_HTTPS && host[0] &&
		    es_check_is_here(check, i))
			wrong += name_check(check, i, host, "check { }");
	}
	names_put(check, names, sizeof(names));
	if (!wrong)
		es_check_ok(check, "certificates are for %s", names[0] ? names : "no name");
}

static void check_server(struct es_check *check)
{
	unsigned int wrong = 0;

	if (has_none(check))
		return;
	for (unsigned int i = 0; i < check->conf->service_count; i++) {
		const struct es_conf_service *service = &check->conf->services[i];

		if (!service->tls.line || !es_check_is_here(check, i) || !check->facts->tls.server_rc[i])
			continue;
		wrong++;
		es_check_error(check,
			       es_check_action("start the web server, listening on %s", service->tls.server),
			       "service %s: the server behind, %s: %s", service->name, service->tls.server,
			       check->facts->tls.server_rc[i] == -EAGAIN
				       ? "its accept queue is full"
				       : strerror(-check->facts->tls.server_rc[i]));
	}
	if (!wrong)
		es_check_ok(check, "the servers behind earshot-tls accept connections");
}

/* The service as earshot-tls has it, by the daemon's words, or NULL. */
static struct json_object *told_of(struct json_object *tls, const char *name)
{
	struct json_object *services = es_json_array(tls, "services");

	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		if (!strcmp(es_json_string(service, "name"), name))
			return service;
	}
	return NULL;
}

static unsigned int process_look_for(struct es_check *check, struct json_object *tls, const char *name)
{
	struct json_object *service = told_of(tls, name);

	if (service && es_json_is_true(service, "served"))
		return 0;
	if (service)
		es_check_error(check, RELOAD, "service %s is not served: %s", name,
			       es_json_string(service, "problem"));
	else
		es_check_error(check, RELOAD, "service %s is not known to the earshot-tls that runs", name);
	return 1;
}

static void check_process(struct es_check *check)
{
	struct json_object *tls = es_json_object(check->facts->daemon.status, "tls");
	unsigned int wrong = 0;

	if (has_none(check))
		return;
	if (!json_object_object_length(tls)) {
		es_check_unchecked(check, "no daemon tells whether earshot-tls runs");
		return;
	}
	if (!es_json_is_true(tls, "running")) {
		es_check_error(check, "systemctl enable --now earshot-tls", "earshot-tls does not run");
		return;
	}
	/* One that tells nothing of services is of another version. */
	for (unsigned int i = 0;
	     json_object_array_length(es_json_array(tls, "services")) && i < check->conf->service_count; i++)
		if (check->conf->services[i].tls.line && es_check_is_here(check, i))
			wrong += process_look_for(check, tls, check->conf->services[i].name);
	if (!wrong)
		es_check_ok(check, "earshot-tls runs, with %llu workers", es_json_number(tls, "workers"));
}

static void check_group(struct es_check *check)
{
	if (has_none(check))
		return;
	if (!check->conf->inspector.program_group[0])
		es_check_warning(
			check,
			es_check_action("inspector { program_group = earshot-tls } in %s, and a restart",
					check->conf->path),
			"no program_group: the daemon's sockets are root's only");
	else
		es_check_ok(check, "programs of the group %s may ask the daemon",
			    check->conf->inspector.program_group);
}

static void check_ktls(struct es_check *check)
{
	unsigned int wanted = 0;

	if (has_none(check))
		return;
	for (unsigned int i = 0; i < check->conf->service_count; i++)
		wanted += check->conf->services[i].tls.line && check->conf->services[i].tls.ktls &&
			  es_check_is_here(check, i);
	if (!wanted)
		es_check_ok(check, "earshot-tls writes all records: ktls = off");
	else if (check->facts->tls.has_ktls)
		es_check_ok(check, "the kernel can write the records of long responses");
	else
		es_check_ok(check, "earshot-tls writes all records: the kernel's module tls is not loaded, "
				   "which would take "
				   "less CPU for long responses");
}

static const struct es_check_item items[] = {
	{"process", "Nobody answers clients of services with tls { } on this node.", check_process},
	{"certificate", "earshot-tls cannot serve with it, or goes on with the one before.",
	 check_certificate},
	{"key", "earshot-tls takes no key that others may read, or that is another certificate's.",
	 check_key},
	{"expiry", "Browsers show a warning instead of the site.", check_expiry},
	{"ocsp",
	 "It is not shown, so clients ask the authority themselves, or refuse a certificate that must have "
	 "one.",
	 check_ocsp},
	{"strength", "Clients refuse it.", check_strength},
	{"names", "Clients that ask for such a name are shown a certificate for another one.", check_names},
	{"server", "earshot-tls answers 502 to whatever this node serves.", check_server},
	{"group", "earshot-tls may not ask the daemon then, and serves each request where it arrives.",
	 check_group},
	{"ktls", "Long responses take more CPU.", check_ktls},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_tls_group = {.name = "tls", .items = items};
