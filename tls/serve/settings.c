// SPDX-License-Identifier: GPL-2.0-or-later
/* The files of a generation of workers. Nothing here listens, or serves. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/base/wall.h"
#include "tls/handshake/ticket_keys.h"
#include "tls/serve/settings.h"

#define DAY_NS (86400ULL * 1000000000)

_Static_assert(ES_TLS_SEAL_KEYS_MAX == ES_KEYS_MAX && ES_TLS_KEY_BYTES == 32, "of one key file");
_Static_assert((int)ES_TLS_TELL_X_FORWARDED == (int)ES_CONF_TELL_X_FORWARDED &&
		       (int)ES_TLS_TELL_FORWARDED == (int)ES_CONF_TELL_FORWARDED &&
		       (int)ES_TLS_TELL_PROXY == (int)ES_CONF_TELL_PROXY &&
		       (int)ES_TLS_TELL_NOTHING == (int)ES_CONF_TELL_NOTHING,
	       "the same words in the same order");

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* The configuration has judged the words. */
static void read_alpn(const char *text, enum es_tls_alpn ret_alpn[ES_TLS_ALPN_COUNT])
{
	const char *h2 = strstr(text, "h2"), *http1 = strstr(text, "http/1.1");
	unsigned int count = 0;

	if (h2 && (!http1 || h2 < http1))
		ret_alpn[count++] = ES_TLS_ALPN_HTTP2;
	if (http1)
		ret_alpn[count++] = ES_TLS_ALPN_HTTP1;
	if (h2 && http1 && h2 > http1)
		ret_alpn[count++] = ES_TLS_ALPN_HTTP2;
	ret_alpn[count] = ES_TLS_ALPN_NONE;
}

static int make_context(const struct es_conf *conf, const struct es_conf_service *from, int is_lenient,
			struct es_tls_context **ret_context, struct es_conf_error *err)
{
	const struct es_conf_tls *tls = &from->tls;
	struct es_tls_certificate certificates[ES_CONF_CERTIFICATES_MAX];
	struct es_tls_settings settings = {
		.service = from->name,
		.certificates = certificates,
		.certificate_count = tls->certificate_count,
		.minimum = (uint16_t)tls->minimum,
		.ciphers = or_null(tls->ciphers),
		.suites = or_null(tls->suites),
		.client_ca_file = or_null(tls->client_ca),
		.client_must = tls->client_required,
		.is_lenient = is_lenient,
	};
	struct es_conf_error why = {};
	int rc;

	for (unsigned int i = 0; i < tls->certificate_count; i++)
		certificates[i] = (struct es_tls_certificate){.certificate_file = tls->certificate[i],
							      .key_file = tls->key[i],
							      .ocsp_file = or_null(tls->ocsp[i])};
	read_alpn(tls->alpn, settings.alpn);
	rc = es_tls_context_new(&settings, ret_context, &why);
	if (rc)
		es_conf_error_set(err, "%s:%d: service %s: tls: %s", conf->path, tls->line, from->name,
				  why.text[0] ? why.text : strerror(-rc));
	return rc;
}

static int find_server(const struct es_conf *conf, const struct es_conf_service *from,
		       struct es_serve_service *to, struct es_conf_error *err)
{
	struct sockaddr_un *path = (struct sockaddr_un *)&to->server.any;
	struct es_conf_endpoint endpoint;

	if (es_conf_endpoint_parse(from->tls.server, &endpoint) ||
	    strlen(endpoint.path) >= sizeof(path->sun_path)) {
		es_conf_error_set(err, "%s:%d: service %s: server = %s: expected ADDRESS:PORT or unix:PATH",
				  conf->path, from->tls.line, from->name, from->tls.server);
		return -EINVAL;
	}
	if (endpoint.path[0]) {
		path->sun_family = AF_UNIX;
		memcpy(path->sun_path, endpoint.path, strlen(endpoint.path) + 1);
		to->server_len = sizeof(*path);
	} else {
		to->server.ip = es_sockaddr_of(&endpoint.address, endpoint.port);
		to->server_len = es_sockaddr_len(&to->server.ip);
	}
	return 0;
}

static int is_well(const struct es_settings *before, const char *name)
{
	for (unsigned int i = 0; before && i < before->count; i++)
		if (!strcmp(before->service[i].name, name))
			return !before->problem[i].text[0];
	for (unsigned int i = 0; before && i < before->refused_count; i++)
		if (!strcmp(before->refused[i].from->name, name))
			return 0;
	return before != NULL; /* a new service: its operator is there */
}

static int add_service(struct es_settings *s, const struct es_conf_service *from, int is_lenient,
		       struct es_conf_error *err)
{
	struct es_serve_service *to = &s->service[s->count];
	int rc;

	memcpy(to->name, from->name, sizeof(to->name));
	to->address[0] = from->address;
	to->address[1] = from->address6;
	to->port = from->port;
	to->inspect = from->tls.inspect;
	to->tell = (enum es_tls_tell)from->tls.tell;
	to->has_ktls = from->tls.ktls;
	to->places.most = from->tls.max_connections; /* until share_places() */
	rc = find_server(s->conf, from, to, err);
	if (!rc)
		rc = make_context(s->conf, from, is_lenient, &to->context, err);
	if (rc) {
		memset(to, 0, sizeof(*to));
		return rc;
	}
	s->workers[s->count] = es_settings_workers(from->tls.workers, sysconf(_SC_NPROCESSORS_ONLN));
	if (s->workers[s->count] > s->most_workers)
		s->most_workers = s->workers[s->count];
	s->count++;
	return 0;
}

/* How many clients each worker may have; what the machine has is shared out when all services are known. */
static void share_places(struct es_settings *s)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	unsigned long long memory =
		pages > 0 && page > 0 ? (unsigned long long)pages * (unsigned long long)page : 0;
	struct rlimit files = {.rlim_cur = 1024};

	getrlimit(RLIMIT_NOFILE, &files);
	for (unsigned int i = 0; i < s->count; i++)
		s->service[i].places.most = es_places_share(s->service[i].places.most, s->workers[i],
							    s->count, memory, files.rlim_cur);
}

int es_settings_use_keys(struct es_settings *s, const struct es_tls_keys *keys, unsigned long long day)
{
	struct es_tls_ticket_keys tickets;
	int rc = 0;

	s->keys = *keys;
	s->seal.count = keys->count;
	for (unsigned int i = 0; i < keys->count && i < ES_TLS_SEAL_KEYS_MAX; i++) {
		s->seal.id[i] = keys->key[i].id;
		memcpy(s->seal.key[i], keys->key[i].handover, sizeof(s->seal.key[i]));
	}
	for (unsigned int i = 0; !rc && i < s->count; i++) {
		rc = es_tls_ticket_keys_of(keys, s->service[i].name, day, &tickets);
		if (!rc)
			es_tls_context_tickets(s->service[i].context, &tickets, (uint8_t)s->self);
	}
	explicit_bzero(&tickets, sizeof(tickets));
	return rc;
}

unsigned long long es_settings_day(void)
{
	return es_wall_ns() / DAY_NS;
}

static int read_keys(struct es_settings *s, struct es_conf_error *err)
{
	struct es_tls_keys keys;
	int rc = es_tls_keys_read(s->conf->cluster.key_file, &keys, err);

	if (rc)
		return rc;
	rc = es_settings_use_keys(s, &keys, es_settings_day());
	es_tls_keys_wipe(&keys);
	return rc;
}

int es_settings_judge(struct es_settings *s)
{
	long long now_s = (long long)(es_wall_ns() / 1000000000ULL);
	struct es_conf_error problem;
	int changed = 0;

	for (unsigned int i = 0; i < s->count; i++) {
		es_tls_context_problem(s->service[i].context, now_s, &problem);
		changed |= strcmp(problem.text, s->problem[i].text) != 0;
		s->problem[i] = problem;
	}
	return changed;
}

/* Returns 0, also if the service is refused and that is better than nothing at all; or -errno. */
static int take_service(struct es_settings *s, const struct es_conf_service *from,
			const struct es_settings *before, struct es_conf_error *err)
{
	int is_lenient = !is_well(before, from->name), rc = add_service(s, from, is_lenient, err);

	if (!rc || rc == -ENOMEM || !is_lenient)
		return rc;
	s->refused[s->refused_count].from = from;
	s->refused[s->refused_count++].why = *err;
	return 0;
}

int es_settings_new(const char *path, const char *node, const struct es_settings *before,
		    struct es_settings **ret_settings, struct es_conf_error *err)
{
	struct es_settings *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	rc = es_conf_read(path, &s->conf, err);
	if (!rc)
		rc = es_conf_find_self(s->conf, node, &s->self, err);
	for (unsigned int i = 0; !rc && i < s->conf->service_count; i++) {
		const struct es_conf_service *service = &s->conf->services[i];

		if (service->tls.line && es_conf_service_is_on(service, s->self))
			rc = take_service(s, service, before, err);
	}
	if (!rc)
		rc = read_keys(s, err);
	if (rc) {
		es_settings_free(&s);
		return rc;
	}
	share_places(s);
	es_settings_judge(s);
	*ret_settings = s;
	return 0;
}

void es_settings_free(struct es_settings **settings)
{
	struct es_settings *s = *settings;

	if (!s)
		return;
	for (unsigned int i = 0; i < s->count; i++)
		es_tls_context_free(&s->service[i].context);
	es_tls_keys_wipe(&s->keys);
	explicit_bzero(&s->seal, sizeof(s->seal));
	es_conf_free(&s->conf);
	free(s);
	*settings = NULL;
}
