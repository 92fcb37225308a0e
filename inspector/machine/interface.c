// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looks interfaces up by name. The C library's if_nametoindex() finds alternative names too, but no long
 * ones; rtnetlink finds those.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include "inspector/machine/interface.h"

#define ES_ROOM (1 << 15)

static int on_link(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWLINK)
		*(unsigned int *)data = (unsigned int)info->ifi_index;
	return MNL_CB_OK;
}

static unsigned int ask(const char *name)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char buf[ES_ROOM];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	unsigned int index = 0;
	ssize_t got;

	if (!socket)
		return 0;
	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	mnl_attr_put_strz(nlh, IFLA_ALT_IFNAME, name);
	if (!mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) &&
	    mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) > 0) {
		do
			got = mnl_socket_recvfrom(socket, buf, sizeof(buf));
		while (got > 0 && mnl_cb_run(buf, (size_t)got, 1, mnl_socket_get_portid(socket), on_link,
					     &index) > MNL_CB_STOP);
	}
	mnl_socket_close(socket);
	return index;
}

unsigned int es_interface_index(const char *name)
{
	return strlen(name) < IF_NAMESIZE ? if_nametoindex(name) : ask(name);
}

void es_interface_real_name(const char *name, char ret_name[IF_NAMESIZE])
{
	unsigned int index = es_interface_index(name);

	if (!index || !if_indextoname(index, ret_name))
		snprintf(ret_name, IF_NAMESIZE, "%s", name);
}

void es_interfaces_text(char *ret_text, size_t size)
{
	struct if_nameindex *list = if_nameindex();
	size_t used = 0;

	*ret_text = 0;
	for (const struct if_nameindex *i = list; i && i->if_index; i++) {
		int n = snprintf(ret_text + used, size - used, "%s%s", used ? ", " : "", i->if_name);

		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	ret_text[used] = 0;
	if_freenameindex(list);
}
