// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads and prepares the node's network through ioctls and /proc/sys. Runs once, before the datapath is
 * attached.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "kmod/core/handover.h"
#include "inspector/machine/interface.h"
#include "inspector/datapath/network.h"
#include "inspector/machine/sysctl.h"

int es_network_probe_kernel(struct es_conf_error *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int found;

	if (!btf) {
		es_conf_error_set(err, "kernel: no type information in /sys/kernel/btf/vmlinux; "
				       "the bpf datapath needs a kernel with CONFIG_DEBUG_INFO_BTF");
		return -ENOTSUP;
	}
	found = btf__find_by_name_kind(btf, "bpf_sk_assign_tcp_reqsk", BTF_KIND_FUNC);
	btf__free(btf);
	if (found < 0) {
		es_conf_error_set(err, "kernel: no bpf_sk_assign_tcp_reqsk(); "
				       "the bpf datapath needs Linux 6.9 or later with CONFIG_SYN_COOKIES");
		return -ENOTSUP;
	}
	return 0;
}

int es_network_cookies_are_wrong(enum es_datapath_kind kind, const char **ret_why)
{
	int value = 0, rc = es_sysctl_read("/proc/sys/net/ipv4/tcp_syncookies", &value);

	if (kind == ES_DATAPATH_BPF && (rc || !value)) {
		*ret_why = "sysctl net.ipv4.tcp_syncookies is 0, and the kernel then rebuilds no connection";
		return 1;
	}
	if (kind == ES_DATAPATH_NETFILTER && !rc && value == 2) {
		*ret_why = "sysctl net.ipv4.tcp_syncookies is 2, and the netfilter datapath then makes no "
			   "connection: the listening socket forgets each SYN";
		return 1;
	}
	return 0;
}

int es_network_probe(enum es_datapath_kind kind, struct es_conf_error *err)
{
	int value = 0, rc = kind == ES_DATAPATH_BPF ? es_network_probe_kernel(err) : 0;
	const char *why;

	if (rc)
		return rc;
	if (es_network_cookies_are_wrong(kind, &why)) {
		es_conf_error_set(err, "%s; set it to 1", why);
		return -ENOTSUP;
	}
	if (!es_sysctl_read("/proc/sys/net/ipv4/tcp_rfc1337", &value) && value) {
		es_conf_error_set(
			err, "sysctl net.ipv4.tcp_rfc1337 is 1, and clients that reuse a port would wait for "
			     "TIME_WAIT to end; set it to 0");
		return -ENOTSUP;
	}
	return 0;
}

static int es_ioctl(int request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, (unsigned long)request, ifr) ? -errno : 0;
	close(fd);
	return rc;
}

static void es_ifreq(struct ifreq *ifr, const char *name)
{
	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
}

static int es_interface_mtu(const char *name, unsigned int *ret_mtu)
{
	struct ifreq ifr;
	int rc;

	es_ifreq(&ifr, name);
	rc = es_ioctl(SIOCGIFMTU, &ifr);
	if (!rc)
		*ret_mtu = (unsigned int)ifr.ifr_mtu;
	return rc;
}

static int es_sysctl_flag(const char *path)
{
	int value = 0;

	return !es_sysctl_read(path, &value) && value;
}

unsigned int es_network_overhead(const struct es_conf *conf)
{
	return es_handover_overhead(&conf->nodes[0].address);
}

unsigned int es_network_packet_max(const struct es_conf *conf, unsigned int cluster_mtu,
				   unsigned int public_mtu)
{
	unsigned int overhead = es_network_overhead(conf);
	unsigned int max = cluster_mtu > overhead ? cluster_mtu - overhead : 0;

	if (max > public_mtu)
		max = public_mtu;
	return max > ES_HANDOVER_PACKET_MAX ? ES_HANDOVER_PACKET_MAX : max;
}

/* The kernel takes no packet of IPv6 from an interface where it is off. @wanted_for: what would be there */
static int es_network_speaks_ipv6(const char *interface, const char *wanted_for, struct es_conf_error *err)
{
	char path[128];
	int value = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", interface);
	if (!es_sysctl_read(path, &value) && !value)
		return 0;
	es_conf_error_set(err,
			  "datapath: %s, and IPv6 is off on %s: sysctl -w net/ipv6/conf/%s/disable_ipv6=0, "
			  "or leave the address out",
			  wanted_for, interface, interface);
	return -ENOTSUP;
}

/*
 * Is what IPv6 addresses of services and nodes need there? Packets that the node gives to itself come over
 * lo.
 */
static int es_network_speaks(const struct es_conf *conf, const char *public, const char *cluster,
			     struct es_conf_error *err)
{
	const char *wanted_for =
		es_addr_is_v4(&conf->nodes[0].address) ? NULL : "the nodes' addresses are of IPv6";
	const char *clients = NULL;
	int rc = 0;

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			clients = "a service has an IPv6 address";
	if (clients)
		rc = es_network_speaks_ipv6(public, clients, err);
	wanted_for = clients ? clients : wanted_for;
	if (!rc && wanted_for)
		rc = es_network_speaks_ipv6(cluster, wanted_for, err);
	return !rc && wanted_for ? es_network_speaks_ipv6("lo", wanted_for, err) : rc;
}

int es_network_read(const struct es_conf *conf, struct es_network *ret, struct es_conf_error *err)
{
	const struct es_conf_datapath *dp = &conf->datapath;
	char public[IF_NAMESIZE], cluster[IF_NAMESIZE];
	unsigned int public_mtu = 0, cluster_mtu = 0;
	struct ifreq ifr;
	int value = 0, rc;

	memset(ret, 0, sizeof(*ret));
	ret->public_ifindex = es_interface_index(dp->interface);
	ret->cluster_ifindex = es_interface_index(dp->cluster_interface);
	if (!ret->public_ifindex || !ret->cluster_ifindex) {
		char there[256];

		es_interfaces_text(there, sizeof(there));
		es_conf_error_set(err, "datapath: no interface %s on this node: expected one of %s",
				  ret->public_ifindex ? dp->cluster_interface : dp->interface, there);
		return -ENODEV;
	}
	es_interface_real_name(dp->interface, public);
	es_interface_real_name(dp->cluster_interface, cluster);
	rc = es_network_speaks(conf, public, cluster, err);
	if (rc)
		return rc;
	es_ifreq(&ifr, public);
	if (es_ioctl(SIOCGIFHWADDR, &ifr) || es_interface_mtu(public, &public_mtu) ||
	    es_interface_mtu(cluster, &cluster_mtu)) {
		es_conf_error_set(err, "datapath: cannot read hardware address or MTU of %s or %s",
				  dp->interface, dp->cluster_interface);
		return -EIO;
	}
	memcpy(ret->public_mac, ifr.ifr_hwaddr.sa_data, sizeof(ret->public_mac));
	if (dp->mtu)
		cluster_mtu = dp->mtu;
	ret->packet_max = es_network_packet_max(conf, cluster_mtu, public_mtu);
	if (ret->packet_max < ES_NETWORK_PACKET_MIN) {
		es_conf_error_set(err,
				  "datapath: an MTU of %u on %s leaves no room for a handover message; "
				  "expected a larger one, or the key mtu",
				  cluster_mtu, dp->cluster_interface);
		return -EINVAL;
	}
	ret->mss = es_network_mss(ret->packet_max);
	/* Never promise what the rebuilt socket may not keep. */
	ret->wscale = es_sysctl_flag("/proc/sys/net/ipv4/tcp_window_scaling");
	ret->sack = es_sysctl_flag("/proc/sys/net/ipv4/tcp_sack");
	ret->timestamps = es_sysctl_flag("/proc/sys/net/ipv4/tcp_timestamps");
	ret->ecn = !es_sysctl_read("/proc/sys/net/ipv4/tcp_ecn", &value) && value;
	return 0;
}

/* @or_else says what happens without it. */
static int es_prepare_sysctl(const char *found, const char *path, int value, const char *or_else,
			     struct es_conf_error *err)
{
	int rc = es_sysctl_set(found, path, value);

	if (rc)
		es_conf_error_set(
			err,
			"%s: cannot be set to %d, or what it was cannot be noted in %s: %s; without it, %s",
			path, value, found, strerror(-rc), or_else);
	return rc;
}

/*
 * Strict rp_filter drops a client's packet that came in a handover message: the way back is another
 * interface. The kernel takes the larger of "all" and the interface's own, so 2, loose, holds whatever
 * somebody writes to "all" later.
 */
static int es_prepare_rp_filter(const char *found, const char *interface, struct es_conf_error *err)
{
	int was_strict = es_network_rp_filter(interface) == 1, rc;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", interface);
	rc = es_prepare_sysctl(found, path, 2, "strict reverse-path filtering drops handovers", err);
	return was_strict ? rc : 0;
}

static int es_prepare_arp(const char *found, const char *interface, struct es_conf_error *err)
{
	const struct {
		const char *name;
		int value;
	} setting[] = {{"arp_ignore", 1}, {"arp_announce", 2}};
	char path[128];
	int rc = 0;

	for (size_t i = 0; i < sizeof(setting) / sizeof(setting[0]) && !rc; i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", interface, setting[i].name);
		rc = es_prepare_sysctl(found, path, setting[i].value,
				       "the node answers ARP for the service address with its own MAC", err);
	}
	return rc;
}

/* A NACK to this node itself comes over lo as a copy without a route; its source is local,
 * and must be taken. */
static int es_prepare_lo(const char *found, struct es_conf_error *err)
{
	return es_prepare_sysctl(found, "/proc/sys/net/ipv4/conf/lo/accept_local", 1,
				 "this node cannot tell itself to try again", err);
}

static int es_prepare_mac(const struct es_conf_datapath *dp, const char *interface, struct es_conf_error *err)
{
	struct ifreq ifr;
	int rc;

	es_ifreq(&ifr, interface);
	if (dp->mac_mode == ES_CONF_MAC_MULTICAST) {
		ifr.ifr_hwaddr.sa_family = AF_UNSPEC;
		memcpy(ifr.ifr_hwaddr.sa_data, dp->cluster_mac, sizeof(dp->cluster_mac));
		rc = es_ioctl(SIOCADDMULTI, &ifr);
	} else {
		/* The frames are addressed to a MAC that is nobody's own. */
		rc = es_ioctl(SIOCGIFFLAGS, &ifr);
		if (!rc && !(ifr.ifr_flags & IFF_PROMISC)) {
			ifr.ifr_flags |= IFF_PROMISC;
			rc = es_ioctl(SIOCSIFFLAGS, &ifr);
		}
	}
	if (rc && rc != -EEXIST) {
		es_conf_error_set(err, "datapath: %s cannot be made to take frames for the cluster MAC: %s",
				  dp->interface, strerror(-rc));
		return rc;
	}
	return 0;
}

int es_network_prepare(const struct es_conf *conf, const char *found, struct es_conf_error *err)
{
	const struct es_conf_datapath *dp = &conf->datapath;
	char public[IF_NAMESIZE], cluster[IF_NAMESIZE];
	int rc;

	es_interface_real_name(dp->interface, public);
	es_interface_real_name(dp->cluster_interface, cluster);
	rc = es_prepare_mac(dp, public, err);
	if (!rc)
		rc = es_prepare_arp(found, public, err);
	if (!rc)
		rc = es_prepare_rp_filter(found, cluster, err);
	if (!rc)
		rc = es_prepare_rp_filter(found, "lo", err);
	if (!rc)
		rc = es_prepare_lo(found, err);
	return rc;
}

static int es_on_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWROUTE && mnl_nlmsg_get_payload_len(nlh) >= sizeof(*route))
		*(int *)data = route->rtm_type == RTN_LOCAL;
	return MNL_CB_OK;
}

/*
 * By the route there: an address of an interface has a local one, and so has what `ip route add local` says.
 */
int es_network_has_address(const struct es_addr *address)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char buf[4096];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	int is_local = 0;
	struct rtmsg *route;
	ssize_t got = -1;

	if (!socket)
		return 1;
	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = 1;
	route = mnl_nlmsg_put_extra_header(nlh, sizeof(*route));
	if (es_addr_is_v4(address)) {
		route->rtm_family = AF_INET;
		route->rtm_dst_len = 32;
		mnl_attr_put_u32(nlh, RTA_DST, address->w[3]);
	} else {
		route->rtm_family = AF_INET6;
		route->rtm_dst_len = 128;
		mnl_attr_put(nlh, RTA_DST, sizeof(*address), address);
	}
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) >= 0 &&
	    mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) >= 0)
		got = mnl_socket_recvfrom(socket, buf, sizeof(buf));
	/* An error is an answer, too: there is no route. */
	if (got < 0)
		is_local = 1;
	else
		mnl_cb_run(buf, (size_t)got, 1, mnl_socket_get_portid(socket), es_on_route, &is_local);
	mnl_socket_close(socket);
	return is_local;
}

int es_network_rp_filter(const char *interface)
{
	char path[128];
	int all = 0, own = 0;

	es_sysctl_read("/proc/sys/net/ipv4/conf/all/rp_filter", &all);
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", interface);
	es_sysctl_read(path, &own);
	return all > own ? all : own;
}

int es_network_mtu_is_enough(const char *cluster_interface, unsigned int bytes)
{
	unsigned int mtu = 0;

	return es_interface_mtu(cluster_interface, &mtu) || mtu >= bytes;
}

int es_network_has_carrier(const char *interface)
{
	struct ifreq request = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return 1;
	es_interface_real_name(interface, request.ifr_name);
	rc = ioctl(fd, SIOCGIFFLAGS, &request);
	if (rc)
		rc = -errno;
	close(fd);
	return rc ? rc != -ENODEV : (request.ifr_flags & IFF_RUNNING) != 0;
}
