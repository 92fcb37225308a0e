// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of the server program and of the key file: what stands beside earshotd on a node.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "inspector/check/check.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/headers.h"
#include "netfilter/rules/translation.h"

#define BACKLOG_LEAST 64

static void check_key(struct es_check *check)
{
	const char *path = check->conf->cluster.key_file;
	struct es_conf_error err = {};
	struct es_keys keys;
	int rc = es_keys_read(path, &keys, &err);

	if (!rc) {
		es_keys_wipe(&keys);
		es_check_ok(check, "%s is readable, by its owner only", path);
		return;
	}
	if (rc == -EACCES)
		es_check_unchecked(check, "%s is not this user's to read: run it as root", path);
	else if (rc == -EPERM)
		es_check_error(check, es_check_action("chown root %s; chmod 600 %s", path, path), "%s",
			       err.text);
	else
		es_check_error(check,
			       es_check_action("copy %s from another node (the first: earshot keygen %s)",
					       path, path),
			       "%s", err.text);
}

/*
 * A place where something must listen: a service's own address and port, or where its programs' connections
 * go, of each family.
 */
struct place {
	const char *service;
	int is_tls;
	struct es_addr address;
	unsigned int port;
};

/* The netfilter datapath leads no connection to a loopback address (netfilter/node/program_name.h). */
static const struct es_addr *server_of(const struct es_check *check, unsigned int service,
				       unsigned int family, struct es_addr *own)
{
	const struct es_addr *server = es_conf_server_of(&check->conf->services[service], family);

	if (!server || check->facts->datapath != ES_DATAPATH_NETFILTER || !es_addr_is_loopback(server))
		return server;
	*own = es_nf_translation_address((int)family, service);
	return own;
}

/* Gives the places one after the other by @at, which begins at 0. Returns 0 after the last. */
static int place_next(const struct es_check *check, unsigned int *at, struct place *ret_place)
{
	const struct es_conf *conf = check->conf;
	const unsigned int places = 2 * ES_CONF_FAMILIES;

	while (*at / places < conf->service_count) {
		const struct es_conf_service *service = &conf->services[*at / places];
		unsigned int index = *at / places, which = (*at)++ % places;
		int is_server = which >= ES_CONF_FAMILIES;
		struct es_addr own;
		const struct es_addr *address =
			is_server ? server_of(check, index, which - ES_CONF_FAMILIES, &own)
				  : es_conf_service_of(service, which);

		if (!address || !es_check_is_here(check, index))
			continue;
		*ret_place = (struct place){service->name, service->tls.line, *address,
					    is_server ? service->server_port : service->port};
		if (ret_place->port)
			return 1;
	}
	return 0;
}

typedef int (*listener_test)(const struct es_sock_diag_listener *l);

/* The first socket that listens there and that @test, if any, is true of. */
static const struct es_sock_diag_listener *listener_find(const struct es_check *check,
							 const struct place *place, listener_test test)
{
	size_t i;

	for (i = 0; i < check->facts->listener_count; i++) {
		const struct es_sock_diag_listener *l = &check->facts->listeners[i];

		if (es_sock_diag_takes(l, &place->address, place->port) && (!test || test(l)))
			return l;
	}
	return NULL;
}

static int unread(struct es_check *check)
{
	if (check->facts->listeners_rc)
		es_check_unchecked(check, "listening sockets cannot be read: %s",
				   strerror(-check->facts->listeners_rc));
	return check->facts->listeners_rc;
}

static void check_listen(struct es_check *check)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int at = 0, wrong = 0;
	struct place place;

	if (unread(check))
		return;
	while (place_next(check, &at, &place)) {
		if (listener_find(check, &place, NULL))
			continue;
		wrong++;
		es_conf_addr_text(&place.address, text);
		es_check_error(
			check,
			place.is_tls ? "start earshot-tls, and read in its log why it does not listen"
				     : es_check_action(es_addr_is_v4(&place.address)
							       ? "start the server, listening on %s:%u or on "
								 "all addresses"
							       : "start the server, listening on [%s]:%u or "
								 "on [::]",
						       text, place.port),
			"service %s: nothing listens on %s port %u", place.service, text, place.port);
	}
	if (!wrong)
		es_check_ok(check, "a server listens for each service that is on this node");
}

static int is_mptcp(const struct es_sock_diag_listener *l)
{
	return l->is_mptcp;
}

static void check_mptcp(struct es_check *check)
{
	unsigned int at = 0, wrong = 0;
	struct place place;

	if (es_datapath_takes_mptcp(check->facts->datapath)) {
		es_check_ok(check,
			    "the %s datapath makes connections for servers that listen with MPTCP, too",
			    es_datapath_name(check->facts->datapath));
		return;
	}
	if (unread(check))
		return;
	while (place_next(check, &at, &place)) {
		if (!listener_find(check, &place, is_mptcp))
			continue;
		wrong++;
		es_check_error(check,
			       "turn MPTCP off in the server (Go: GODEBUG=multipathtcp=0) or sysctl -w "
			       "net.mptcp.enabled=0, and restart it",
			       "service %s: the server's socket for port %u is one of MPTCP", place.service,
			       place.port);
	}
	if (!wrong)
		es_check_ok(check, "no server listens with MPTCP");
}

static int is_cramped(const struct es_sock_diag_listener *l)
{
	return l->backlog < BACKLOG_LEAST || l->waiting > l->backlog;
}

static void check_backlog(struct es_check *check)
{
	const struct es_sock_diag_listener *l;
	unsigned int at = 0, wrong = 0;
	struct place place;

	if (unread(check))
		return;
	while (place_next(check, &at, &place)) {
		l = listener_find(check, &place, is_cramped);
		if (!l)
			continue;
		wrong++;
		es_check_warning(check,
				 "a longer backlog in the server (nginx: listen 80 backlog=4096), and "
				 "sysctl -w net.core.somaxconn=4096",
				 "service %s: %u connections wait to be accepted on port %u, of at most %u",
				 place.service, l->waiting, l->port, l->backlog);
	}
	if (!wrong)
		es_check_ok(check, "the servers' accept queues are long enough, and not full");
}

static const struct es_check_item items[] = {
	{"key", "Nodes trust only what is signed with this key, and earshotd does not start without it.",
	 check_key},
	{"listen", "The node refuses what it is given, and other nodes must take it.", check_listen},
	{"mptcp", "The bpf and module datapaths rebuild no connection for such a socket.", check_mptcp},
	{"backlog", "When it is full, connections are refused here and must go to another node.",
	 check_backlog},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_server_group = {.name = "server", .items = items};
