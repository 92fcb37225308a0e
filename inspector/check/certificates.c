// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the certificates and keys of services whose TLS Earshot ends, as earshot-tls would, and tries whether
 * the servers behind accept connections. It judges nothing.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/base/sockaddr.h"
#include "inspector/base/wall.h"
#include "inspector/check/facts.h"

#define CONNECT_MS 1000

static void certificate_add(const struct es_conf_tls *tls, unsigned int service, unsigned int index,
			    struct es_facts_tls *facts)
{
	struct es_facts_certificate *all = reallocarray(facts->certificate, facts->count + 1, sizeof(*all));
	struct es_facts_certificate *c;
	struct es_certificate_facts unused;

	if (!all)
		return;
	facts->certificate = all;
	c = &all[facts->count++];
	memset(c, 0, sizeof(*c));
	c->service = service;
	c->index = index;
	c->rc = es_certificate_look(tls->certificate[index], NULL, &c->says, &c->text);
	c->key_rc = es_certificate_look(tls->certificate[index], tls->key[index], &unused, &c->key_text);
	if (!c->key_rc)
		es_certificate_facts_free(&unused);
	if (!c->rc && tls->ocsp[index][0])
		c->ocsp_rc = es_certificate_look_staple(tls->ocsp[index], tls->certificate[index],
							&c->ocsp_until_s, &c->ocsp_text);
}

static int connect_to(const struct sockaddr *address, socklen_t len)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(rc);

	if (fd < 0)
		return -errno;
	if (connect(fd, address, len))
		rc = errno;
	if (rc == EINPROGRESS) {
		rc = poll(&poll_fd, 1, CONNECT_MS) == 1 ? 0 : ETIMEDOUT;
		if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &size))
			rc = errno;
	}
	close(fd);
	return -rc;
}

static int server_try(const char *server)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct es_conf_endpoint endpoint;
	union es_sockaddr to;

	if (es_conf_endpoint_parse(server, &endpoint))
		return -EINVAL;
	if (endpoint.path[0]) {
		_Static_assert(sizeof(un.sun_path) >= sizeof(endpoint.path), "it fits");
		memcpy(un.sun_path, endpoint.path, sizeof(endpoint.path));
		return connect_to((const struct sockaddr *)&un, sizeof(un));
	}
	to = es_sockaddr_of(&endpoint.address, endpoint.port);
	return connect_to(&to.sa, es_sockaddr_len(&to));
}

static int has_ktls(const struct es_facts *facts)
{
	char *text = NULL, *rest, *word;
	int found = 0;

	if (es_facts_file(facts, "/proc/sys/net/ipv4/tcp_available_ulp", &text))
		return 0;
	for (rest = text; !found && (word = strsep(&rest, " \n"));)
		found = !strcmp(word, "tls");
	free(text);
	return found;
}

void es_facts_read_tls(const struct es_conf *conf, int self, struct es_facts *facts)
{
	facts->tls.wall_s = (long long)(es_wall_ns() / 1000000000ULL);
	facts->tls.has_ktls = has_ktls(facts);
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];

		if (!service->tls.line || (self >= 0 && !es_conf_service_is_on(service, (unsigned int)self)))
			continue;
		for (unsigned int k = 0; k < service->tls.certificate_count; k++)
			certificate_add(&service->tls, i, k, &facts->tls);
		facts->tls.server_rc[i] = server_try(service->tls.server);
	}
}

void es_facts_tls_fini(struct es_facts_tls *tls)
{
	for (size_t i = 0; i < tls->count; i++)
		es_certificate_facts_free(&tls->certificate[i].says);
	free(tls->certificate);
	*tls = (struct es_facts_tls){};
}
