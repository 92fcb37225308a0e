// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks a service's tls { } once the section is read, and says what the datapath makes of such a service:
 * it sees ciphertext, so it gives each connection to the ring's node, or to the home in the client's
 * ticket, where earshot-tls listens on the service's address and port, accepts it and reads its requests.
 * That also is the server to which earshot-tls of another node hands connections over.
 */
#include <stdio.h>
#include <string.h>

#include "inspector/config/ciphers.h"
#include "inspector/config/internal.h"

static int line_of(const struct es_conf_parse *p, unsigned int i, const char *key)
{
	return es_conf_line_of(&p->tls[i], ES_CONF_TLS, key);
}

static unsigned int files_count(char files[ES_CONF_CERTIFICATES_MAX][ES_CONF_PATH_SIZE])
{
	unsigned int count = 0;

	while (count < ES_CONF_CERTIFICATES_MAX && files[count][0])
		count++;
	return count;
}

static void check_twice(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];
	const struct es_conf_tls *tls = &service->tls;

	for (unsigned int k = 1; k < tls->certificate_count; k++)
		for (unsigned int before = 0; before < k; before++)
			if (!strcmp(tls->certificate[k], tls->certificate[before]))
				es_conf_fail(p, line_of(p, i, "certificate"),
					     "service %s: tls: certificate = %s: expected each once",
					     service->name, tls->certificate[k]);
}

static void check_files(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	struct es_conf_tls *tls = &service->tls;
	unsigned int keys = files_count(tls->key), ocsp = files_count(tls->ocsp);

	tls->certificate_count = files_count(tls->certificate);
	check_twice(p, i);
	if (tls->certificate_count && keys && keys != tls->certificate_count)
		es_conf_fail(
			p, line_of(p, i, "key"),
			"service %s: tls: key: %u of them, and certificate has %u: expected the key of each "
			"certificate, in the same order",
			service->name, keys, tls->certificate_count);
	if (tls->certificate_count && ocsp && ocsp != tls->certificate_count)
		es_conf_fail(
			p, line_of(p, i, "ocsp"),
			"service %s: tls: ocsp: %u of them, and certificate has %u: expected the answer for "
			"each certificate, in the same order, or none",
			service->name, ocsp, tls->certificate_count);
	if (!tls->client_ca[0] && es_conf_has(&p->tls[i], ES_CONF_TLS, "client_required"))
		es_conf_fail(p, line_of(p, i, "client_required"),
			     "service %s: tls: client_required has no effect without client_ca: expected "
			     "client_ca = FILE besides",
			     service->name);
	if (tls->minimum == 0x0304 && tls->ciphers[0])
		es_conf_fail(p, line_of(p, i, "ciphers"),
			     "service %s: tls: ciphers are of TLS 1.2, and minimum is 1.3: expected suites",
			     service->name);
}

static void check_list(struct es_conf_parse *p, unsigned int i, const char *key, const char *ciphers,
		       const char *suites)
{
	struct es_conf_error why;

	if (es_ciphers_judge(ciphers, suites, &why))
		es_conf_fail(p, line_of(p, i, key), "service %s: tls: %s", p->conf->services[i].name,
			     why.text);
}

static void check_ciphers(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_tls *tls = &p->conf->services[i].tls;

	if (tls->ciphers[0] && tls->minimum < 0x0304)
		check_list(p, i, "ciphers", tls->ciphers, NULL);
	if (tls->suites[0])
		check_list(p, i, "suites", NULL, tls->suites);
}

/* earshot-tls would ask itself. */
static void check_server(struct es_conf_parse *p, unsigned int i)
{
	const struct es_conf_service *service = &p->conf->services[i];
	struct es_conf_endpoint server;

	if (es_conf_endpoint_parse(service->tls.server, &server) || server.path[0] ||
	    server.port != service->port || !es_conf_service_has(service, &server.address))
		return;
	es_conf_fail(
		p, line_of(p, i, "server"),
		"service %s: tls: server = %s: earshot-tls listens there itself: expected another port or "
		"address, for the server behind it",
		service->name, service->tls.server);
}

/* The server to which connections are handed over is earshot-tls, and no other. */
static void check_by_hand(struct es_conf_parse *p, unsigned int i)
{
	static const char *const keys[] = {"server_port", "server_address"};

	for (unsigned int k = 0; k < 2; k++)
		if (es_conf_has(&p->services[i], ES_CONF_SERVICE, keys[k]))
			es_conf_fail(
				p, es_conf_line_of(&p->services[i], ES_CONF_SERVICE, keys[k]),
				"service %s: %s: with tls { } connections are handed over to earshot-tls: "
				"expected server = ADDRESS:PORT in tls { }, for the server behind it",
				p->conf->services[i].name, keys[k]);
}

void es_conf_check_tls(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	struct es_conf_lines *lines = &p->tls[i];
	char label[ES_CONF_NAME_SIZE + 16];

	if (!lines->open)
		return;
	snprintf(label, sizeof(label), "service %s: tls", service->name);
	if (es_conf_section_complete(p, &es_conf_sections[ES_CONF_TLS], label, lines))
		lines->wrong = 1;
	if (!lines->wrong) {
		check_files(p, i);
		check_ciphers(p, i);
	}
	if (!lines->wrong && !p->services[i].wrong)
		check_server(p, i);
	check_by_hand(p, i);
	service->tls.line = lines->open;
	service->tls.inspect = service->inspect;
	service->inspect = service->tls.resume == ES_CONF_RESUME_HOME && service->inspect != ES_INSPECT_NEVER
				   ? ES_INSPECT_FIRST
				   : ES_INSPECT_NEVER;
	service->server_port = service->port;
	service->server_address = service->address;
	service->server_address6 = service->address6;
}
