// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Listening sockets: one for each address, port and worker, so that the kernel deals the clients out. They
 * are bound whether the address is there or not, since Pacemaker may bring it later.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tls/serve/listen.h"

#define BACKLOG 4096

static int find(const struct es_listeners *in, const struct es_listener *like)
{
	for (unsigned int i = 0; in && i < in->count; i++) {
		const struct es_listener *each = &in->listener[i];

		if (es_addr_equal(&each->address, &like->address) && each->port == like->port &&
		    each->worker == like->worker)
			return each->fd;
	}
	return -1;
}

static int listen_on(const struct es_listener *listener)
{
	const union es_sockaddr at = es_sockaddr_of(&listener->address, listener->port);
	int fd = socket(at.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, rc = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_IP, IP_FREEBIND, &one, sizeof(one)))
		rc = -errno;
	if (!rc && at.sa.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)))
		rc = -errno;
	if (!rc && (bind(fd, &at.sa, es_sockaddr_len(&at)) || listen(fd, BACKLOG)))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Returns 0 or -errno. */
static int add(struct es_listeners *to, const struct es_listeners *have, struct es_listener listener,
	       const char *service, struct es_conf_error *err)
{
	char text[INET6_ADDRSTRLEN];

	listener.fd = find(have, &listener);
	if (listener.fd < 0)
		listener.fd = listen_on(&listener);
	if (listener.fd < 0) {
		es_conf_error_set(err, "service %s: cannot listen on %s port %u: %s", service,
				  es_conf_addr_text(&listener.address, text), listener.port,
				  strerror(-listener.fd));
		return listener.fd;
	}
	to->listener[to->count++] = listener;
	return 0;
}

int es_listeners_new(const struct es_settings *settings, const struct es_listeners *have,
		     struct es_listeners *ret_listeners, struct es_conf_error *err)
{
	struct es_listeners l = {};
	int rc = 0;

	l.listener = calloc((size_t)settings->count * settings->most_workers * ES_CONF_FAMILIES + 1,
			    sizeof(*l.listener));
	if (!l.listener)
		return -ENOMEM;
	for (unsigned int i = 0; i < settings->count; i++)
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			const struct es_serve_service *service = &settings->service[i];

			if (!es_addr_is_set(&service->address[family]))
				continue;
			for (unsigned int w = 0; !rc && w < settings->workers[i]; w++)
				rc = add(&l, have,
					 (struct es_listener){.address = service->address[family],
							      .port = service->port,
							      .worker = w},
					 service->name, err);
		}
	if (rc) {
		es_listeners_fini(&l, have);
		return rc;
	}
	*ret_listeners = l;
	return 0;
}

/*
 * Whoever is in the queue of a socket that is closed gets a RST, so nobody may come there any more when its
 * last owner looks for the last time: it is bound to an interface that there never is. Linux before 5.7 wants
 * a capability for that, which we have not: there, one that comes at the wrong moment is refused.
 */
static const int no_interface = INT_MAX;

int es_listener_is_over(int fd)
{
	int interface = 0;
	socklen_t len = sizeof(interface);

	return !getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &interface, &len) && interface == no_interface;
}

void es_listeners_fini(struct es_listeners *l, const struct es_listeners *kept)
{
	for (unsigned int i = 0; i < l->count; i++)
		if (find(kept, &l->listener[i]) < 0) {
			setsockopt(l->listener[i].fd, SOL_SOCKET, SO_BINDTOIFINDEX, &no_interface,
				   sizeof(no_interface));
			close(l->listener[i].fd);
		}
	free(l->listener);
	*l = (struct es_listeners){};
}
