// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Follows the interfaces by rtnetlink, and attaches the datapath to those that were made anew.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include "inspector/base/log.h"
#include "inspector/daemon/interfaces.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/settings.h"
#include "inspector/machine/interface.h"
#include "inspector/machine/solicited.h"
#include "membership/group.h"

#define ES_RETRY_S 1.0
#define ES_ROOM	   (1 << 15)

/*
 * Notes the trouble that there is from now on, "" for none, and logs it once; with membership, the event of
 * falling silent names it instead.
 */
static void set_wrong(struct es_daemon *d, const char *text)
{
	struct es_daemon_interfaces *n = d->interfaces;
	int is_new = strcmp(n->wrong, text) != 0;

	snprintf(n->wrong, sizeof(n->wrong), "%s", text);
	if (d->membership)
		es_membership_missing(d->membership, text);
	if (is_new && *text && !d->membership)
		es_log(ES_LOG_ERR, "%s", text);
	if (*text)
		ev_timer_again(d->loop, &n->retry);
	else
		ev_timer_stop(d->loop, &n->retry);
}

/* Renews all that names an interface by its index, for the interfaces that are there now. */
static int renew(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_network network;
	int rc = es_network_read(d->conf, &network, err), solicited_fd;

	if (!rc)
		rc = es_network_prepare(d->conf, d->sysctl_path, err);
	if (!rc)
		rc = es_solicited_open(d->conf, network.public_ifindex, &solicited_fd, err);
	if (rc)
		return rc;
	es_solicited_replace(&d->solicited_fd, solicited_fd);
	d->network = network;
	d->datapath_params.public_ifindex = network.public_ifindex;
	d->datapath_params.cluster_ifindex = network.cluster_ifindex;
	es_datapath_move(d->datapath, network.public_ifindex, network.cluster_ifindex);
	rc = es_daemon_configure(d, d->cluster, &d->keys);
	if (rc)
		es_conf_error_set(err, "datapath: its configuration cannot be written: %s", strerror(-rc));
	if (!rc)
		rc = es_datapath_attach(d->datapath, err->text, sizeof(err->text));
	if (!rc && d->membership) {
		rc = es_membership_rebind(d->membership);
		if (rc)
			es_conf_error_set(err, "membership: no socket on the public interface: %s",
					  strerror(-rc));
	}
	return rc;
}

/* Is there anything to be done? @network: as it is now, all zero if an interface is missing. */
static int has_changed(const struct es_daemon *d, const struct es_network *network)
{
	return d->interfaces->is_lost || network->public_ifindex != d->datapath_params.public_ifindex ||
	       network->cluster_ifindex != d->datapath_params.cluster_ifindex ||
	       memcmp(network->public_mac, d->network.public_mac, sizeof(network->public_mac)) != 0;
}

/*
 * Puts another MTU in force as a reload does; the others hear of it, and of this node's settings as they are
 * now.
 */
static void take_mtu(struct es_daemon *d, const struct es_network *network)
{
	if (network->packet_max == d->network.packet_max)
		return;
	d->network.packet_max = network->packet_max;
	d->network.mss = network->mss;
	es_daemon_packet_max_look(d);
	es_daemon_serving_tell(d);
	es_daemon_settings_rebind(d);
	if (d->membership)
		es_membership_reloaded(d->membership);
	es_daemon_serving_look(d);
}

static int look(struct es_daemon *d, struct es_conf_error *err)
{
	const struct es_conf_datapath *dp = &d->conf->datapath;
	const char *missing = !es_interface_index(dp->interface)	   ? dp->interface
			      : !es_interface_index(dp->cluster_interface) ? dp->cluster_interface
									   : NULL;
	struct es_network network;
	char text[ES_GROUP_TEXT_SIZE];
	int rc;

	if (missing) {
		d->interfaces->is_lost = 1;
		snprintf(text, sizeof(text), "the %s interface %.100s is gone",
			 missing == dp->interface ? "public" : "cluster", missing);
		set_wrong(d, text);
		es_conf_error_set(err, "%s", text);
		return -ENODEV;
	}
	rc = es_network_read(d->conf, &network, err);
	if (!rc && !has_changed(d, &network)) {
		take_mtu(d, &network);
		set_wrong(d, "");
		return 0;
	}
	if (!rc)
		rc = renew(d, err);
	if (rc) {
		d->interfaces->is_lost = 1;
		snprintf(text, sizeof(text), "%.200s", err->text);
		set_wrong(d, text);
		return rc;
	}
	d->interfaces->is_lost = 0;
	set_wrong(d, "");
	es_daemon_packet_max_look(d);
	es_daemon_serving_tell(d);
	es_log(ES_LOG_INFO, "attached again to %s and %s, which have changed", dp->interface,
	       dp->cluster_interface);
	return 0;
}

static int is_ours(const struct es_daemon *d, int index)
{
	return (unsigned int)index == d->datapath_params.public_ifindex ||
	       (unsigned int)index == d->datapath_params.cluster_ifindex;
}

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct es_daemon *d = data;

	/*
	 * The next interface may get the same index. A bridge tells of its ports by the same message, in a
	 * family of its own.
	 */
	if (nlh->nlmsg_type == RTM_DELLINK && info->ifi_family == AF_UNSPEC && is_ours(d, info->ifi_index))
		d->interfaces->is_lost = 1;
	return MNL_CB_OK;
}

static void on_readable(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_daemon *d = io->data;
	struct es_conf_error err = {};
	char buf[ES_ROOM];
	ssize_t got;

	(void)loop;
	(void)events;
	do {
		got = mnl_socket_recvfrom(d->interfaces->socket, buf, sizeof(buf));
		if (got > 0)
			mnl_cb_run(buf, (size_t)got, 0, 0, on_message, d);
		else if (got < 0 && errno == ENOBUFS) /* some were lost */
			d->interfaces->is_lost |=
				es_datapath_is_attached(d->datapath_kind, &d->datapath_params) == 0;
	} while (got > 0 || (got < 0 && errno == ENOBUFS));
	look(d, &err);
}

static void on_retry(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_conf_error err = {};

	(void)loop;
	(void)events;
	look(timer->data, &err);
}

int es_daemon_interfaces_start(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_daemon_interfaces *n = d->interfaces;

	n->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!n->socket || mnl_socket_bind(n->socket, RTMGRP_LINK, MNL_SOCKET_AUTOPID)) {
		int rc = -errno;

		es_conf_error_set(err, "interfaces: their changes cannot be followed: %s", strerror(-rc));
		return rc;
	}
	ev_init(&n->retry, on_retry);
	n->retry.repeat = ES_RETRY_S;
	n->retry.data = d;
	ev_io_init(&n->io, on_readable, mnl_socket_get_fd(n->socket), EV_READ);
	n->io.data = d;
	ev_io_start(d->loop, &n->io);
	/* No message has told of changes since the interfaces were looked up. */
	n->is_lost = es_datapath_is_attached(d->datapath_kind, &d->datapath_params) == 0;
	return look(d, err);
}

void es_daemon_interfaces_stop(struct es_daemon *d)
{
	struct es_daemon_interfaces *n = d->interfaces;

	if (!n->socket)
		return;
	if (ev_is_active(&n->io))
		ev_io_stop(d->loop, &n->io);
	if (ev_is_active(&n->retry))
		ev_timer_stop(d->loop, &n->retry);
	mnl_socket_close(n->socket);
	n->socket = NULL;
}

int es_daemon_interfaces_reload(struct es_daemon *d, struct es_conf_error *err)
{
	d->interfaces->is_lost |= es_datapath_is_attached(d->datapath_kind, &d->datapath_params) == 0;
	return look(d, err);
}
