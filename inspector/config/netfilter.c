// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Refuses a configuration that asks for the netfilter datapath and for something that it does not do; no
 * other place does.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "inspector/config/internal.h"
#include "kmod/core/headers.h"

/**
 * struct lack - something that the netfilter datapath lacks
 * @index: of the service that asks for it, with @key; @text: what the file says, and what would be right
 */
struct lack {
	unsigned int index;
	const char *key;
	char text[ES_CONF_NETFILTER_TEXT];
};

/* The service whose clients connect to just there, or NULL. */
static const struct es_conf_service *service_at(const struct es_conf *conf, const struct es_addr *address,
						unsigned int port)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].port == port && es_conf_service_has(&conf->services[i], address))
			return &conf->services[i];
	return NULL;
}

/* The service before this one whose programs hand over to just there, or NULL. */
static const struct es_conf_service *server_at(const struct es_conf *conf,
					       const struct es_conf_service *service,
					       const struct es_addr *address, unsigned int family)
{
	for (const struct es_conf_service *other = conf->services; other < service; other++) {
		const struct es_addr *server = es_conf_server_of(other, family);

		if (server && es_addr_equal(server, address) && other->server_port == service->server_port)
			return other;
	}
	return NULL;
}

/*
 * Idle connections do not survive there. And a connection that a program hands over has its server's
 * address and port here
 * (netfilter/node/program_name.h). If other connections have both, too, those of clients or those that are
 * handed over for another service, one client can have two connections of the same name. With tls { } it has
 * its client's name, which another one of that client cannot have meanwhile. Returns 1, with @lack; 0 if that
 * cannot happen.
 */
static int service_lacks(const struct es_conf *conf, const struct es_conf_service *service, struct lack *lack)
{
	/* Its kernel goes on with a connection that another node may have, whatever the daemon says. */
	if (service->survive) {
		lack->key = "survive";
		snprintf(lack->text, sizeof(lack->text),
			 "service %s: survive = %u: with the netfilter datapath no idle connection survives: "
			 "expected off",
			 service->name, service->survive);
		return 1;
	}
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
		const struct es_addr *server = es_conf_server_of(service, family);
		const struct es_conf_service *other;
		char text[INET6_ADDRSTRLEN];

		if (!server || es_addr_is_loopback(server) || service->tls.line)
			continue;
		other = service_at(conf, server, service->server_port)
				?: server_at(conf, service, server, family);
		if (!other)
			continue;
		lack->key = "server_address";
		snprintf(lack->text, sizeof(lack->text),
			 "service %s: server_address = %s: service %s has connections to its port %u, too, "
			 "and with "
			 "the netfilter datapath a server behind a program needs an address or a port of its "
			 "own: "
			 "expected another one",
			 service->name, es_conf_addr_text(server, text), other->name, service->server_port);
		return 1;
	}
	return 0;
}

static int find_lack(const struct es_conf *conf, struct lack *lack)
{
	for (lack->index = 0; lack->index < conf->service_count; lack->index++)
		if (service_lacks(conf, &conf->services[lack->index], lack))
			return 1;
	return 0;
}

int es_conf_netfilter_serves(const struct es_conf *conf, char ret_text[ES_CONF_NETFILTER_TEXT])
{
	struct lack lack = {};

	if (!find_lack(conf, &lack))
		return 1;
	snprintf(ret_text, ES_CONF_NETFILTER_TEXT, "%s", lack.text);
	return 0;
}

int es_conf_check_netfilter(struct es_conf_parse *p)
{
	struct lack lack = {};

	if (p->conf->datapath.type != ES_CONF_DATAPATH_NETFILTER || !find_lack(p->conf, &lack))
		return 0;
	return es_conf_fail(p, es_conf_line_of(&p->services[lack.index], ES_CONF_SERVICE, lack.key), "%s",
			    lack.text);
}
