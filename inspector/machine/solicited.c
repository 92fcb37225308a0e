// SPDX-License-Identifier: GPL-2.0-or-later
/* Membership in the solicited-node groups of services: a socket that is in them, and receives nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/machine/solicited.h"

struct es_addr es_solicited_group(const struct es_addr *address)
{
	struct es_addr group = {.b = {0xff, 0x02, [11] = 1, [12] = 0xff}};

	memcpy(group.b + 13, address->b + 13, 3);
	return group;
}

/* Addresses whose last three bytes are alike share a group. */
static int join(int fd, const struct es_addr *address, unsigned int ifindex, struct es_conf_error *err)
{
	const struct es_addr group = es_solicited_group(address);
	struct ipv6_mreq request = {.ipv6mr_interface = ifindex};
	char text[INET6_ADDRSTRLEN];
	int rc;

	memcpy(&request.ipv6mr_multiaddr, &group, sizeof(group));
	if (!setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) || errno == EADDRINUSE)
		return 0;
	rc = -errno;
	es_conf_error_set(err,
			  "datapath: the multicast group %s of neighbours' questions cannot be joined: %s",
			  es_conf_addr_text(&group, text), strerror(-rc));
	return rc;
}

static int has_any(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			return 1;
	return 0;
}

int es_solicited_open(const struct es_conf *conf, unsigned int ifindex, int *ret_fd,
		      struct es_conf_error *err)
{
	int fd = -1, rc = 0;

	if (has_any(conf)) {
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			rc = -errno;
			es_conf_error_set(err, "datapath: no socket of IPv6: %s", strerror(-rc));
			return rc;
		}
	}
	for (unsigned int i = 0; fd >= 0 && !rc && i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			rc = join(fd, &conf->services[i].address6, ifindex, err);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

void es_solicited_replace(int *fd, int next)
{
	if (*fd >= 0)
		close(*fd);
	*fd = next;
}
