// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes the tun device. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "netfilter/kernel/netlink.h"
#include "netfilter/kernel/source.h"
#include "netfilter/kernel/tun.h"

/*
 * With rp_filter 2, a device without an address drops every packet. No other machine can ask for this address
 * by ARP, and nothing is sent from it.
 */
#define ES_ADDRESS "127.254.254.1"

/* Call this before the device is up: it keeps the kernel from sending router solicitations by it. */
static int configure(struct es_nf_netlink *nl, unsigned int index)
{
	char buf[512];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, RTM_NEWLINK, NLM_F_ACK);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(nlh, sizeof(*link));
	struct nlattr *spec, *family, *conf;
	int has_v6 = !access("/proc/sys/net/ipv6", F_OK);

	link->ifi_index = (int)index;
	spec = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	family = mnl_attr_nest_start(nlh, AF_INET);
	conf = mnl_attr_nest_start(nlh, IFLA_INET_CONF);
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_RP_FILTER, 0);
	mnl_attr_put_u32(nlh, IPV4_DEVCONF_SRC_VMARK, 1);
	mnl_attr_nest_end(nlh, conf);
	mnl_attr_nest_end(nlh, family);
	if (has_v6) {
		family = mnl_attr_nest_start(nlh, AF_INET6);
		mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
		mnl_attr_nest_end(nlh, family);
	}
	mnl_attr_nest_end(nlh, spec);
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

/*
 * Lets the device take IPv6 even if disable_ipv6 is the default for new devices. It is ours alone and has no
 * IPv6 address, so that does no harm. If it fails, nothing more can be done.
 */
static void allow_v6(const struct es_nf_tun *tun)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", tun->name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	close(fd);
}

static int switch_on(struct es_nf_netlink *nl, unsigned int index)
{
	char buf[128];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, RTM_NEWLINK, NLM_F_ACK);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(nlh, sizeof(*link));

	link->ifi_index = (int)index;
	link->ifi_flags = link->ifi_change = IFF_UP;
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

static int add_address(struct es_nf_netlink *nl, unsigned int index)
{
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE);
	struct ifaddrmsg *address = mnl_nlmsg_put_extra_header(nlh, sizeof(*address));

	address->ifa_family = AF_INET;
	address->ifa_prefixlen = 32;
	address->ifa_scope = RT_SCOPE_HOST;
	address->ifa_index = index;
	mnl_attr_put_u32(nlh, IFA_LOCAL, inet_addr(ES_ADDRESS));
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

static int set_up(struct es_nf_tun *tun, struct es_nf_why *why)
{
	struct es_nf_netlink nl;
	int rc;

	tun->index = if_nametoindex(tun->name);
	rc = tun->index ? es_nf_netlink_open(&nl, NETLINK_ROUTE) : -errno;
	if (rc)
		return es_nf_why(why, rc, "%s: %s", tun->name, strerror(-rc));
	rc = configure(&nl, tun->index);
	allow_v6(tun);
	if (!rc)
		rc = switch_on(&nl, tun->index);
	if (!rc)
		rc = add_address(&nl, tun->index);
	es_nf_netlink_close(&nl);
	if (rc)
		return es_nf_why(why, rc, "%s cannot be set up: %s", tun->name, strerror(-rc));
	rc = es_nf_source_is_strict();
	if (rc <= 0)
		return 0; /* without the sysctl, there is no check */
	tun->is_marked = 1;
	return es_nf_source_set(tun, why);
}

int es_nf_tun_open(struct es_nf_tun *tun, const char *name, struct es_nf_why *why)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int rc;

	*tun = (struct es_nf_tun){.fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK)};
	if (tun->fd < 0)
		return es_nf_why(why, -errno, "/dev/net/tun (CONFIG_TUN): %m");
	if (strlen(name) >= sizeof(tun->name)) {
		es_nf_tun_close(tun);
		return es_nf_why(why, -ENAMETOOLONG, "%s: an interface's name has at most %d characters",
				 name, IF_NAMESIZE - 1);
	}
	memcpy(request.ifr_name, name, strlen(name));
	memcpy(tun->name, name, strlen(name));
	if (ioctl(tun->fd, TUNSETIFF, &request)) {
		rc = es_nf_why(why, -errno, "tun device %s: %m", name);
		es_nf_tun_close(tun);
		return rc;
	}
	rc = set_up(tun, why);
	if (rc)
		es_nf_tun_close(tun);
	return rc;
}

void es_nf_tun_close(struct es_nf_tun *tun)
{
	if (tun->fd < 0)
		return;
	if (tun->is_marked)
		es_nf_source_clear();
	close(tun->fd);
	tun->fd = -1;
}

int es_nf_tun_write_parts(const struct es_nf_tun *tun, const struct iovec *parts, int n)
{
	ssize_t written;

	do
		written = writev(tun->fd, parts, n);
	while (written < 0 && errno == EINTR);
	return written < 0 ? -errno : 0;
}

int es_nf_tun_write(const struct es_nf_tun *tun, const void *packet, size_t len)
{
	struct iovec whole = {.iov_base = (void *)packet, .iov_len = len};

	return es_nf_tun_write_parts(tun, &whole, 1);
}
