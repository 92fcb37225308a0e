// SPDX-License-Identifier: GPL-2.0-or-later
/* The way to another node, for all datagrams of the daemon that are not about loads. */
#include <sys/socket.h>
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"

void es_daemon_send(const struct es_daemon *d, unsigned int node, const void *data, size_t len)
{
	const union es_sockaddr *to = &d->cluster->handover_address[node];

	if (d->exchange->way.fd >= 0)
		(void)!sendto(d->exchange->way.fd, data, len, MSG_DONTWAIT, &to->sa, es_sockaddr_len(to));
}
