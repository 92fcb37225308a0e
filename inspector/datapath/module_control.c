// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Commands to earshot.ko. The kernel answers a command before send() returns, so nothing here waits.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/datapath/module_control.h"

#define ES_REQUEST_ROOM (sizeof(struct es_config) + sizeof(struct es_node_ring) + 4096)
#define ES_ANSWER_ROOM	(1 << 17)

struct es_module_control {
	struct mnl_socket *socket;
	unsigned int portid;
	unsigned int sequence;
	uint16_t family;
	uint8_t version;
	char request[ES_REQUEST_ROOM];
	char answer[ES_ANSWER_ROOM];
};

struct answer {
	es_module_answer_fn fn;
	void *ctx;
};

static int on_attribute(const struct nlattr *attr, void *data)
{
	const struct answer *a = data;

	a->fn(a->ctx, mnl_attr_get_type(attr), mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	const struct answer *a = data;

	return a->fn ? mnl_attr_parse(nlh, sizeof(struct genlmsghdr), on_attribute, data) : MNL_CB_OK;
}

static struct nlmsghdr *begin(struct es_module_control *c, uint16_t type, uint8_t command, uint8_t version,
			      int dump)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(c->request);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK));
	nlh->nlmsg_seq = ++c->sequence;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = command;
	genl->version = version;
	return nlh;
}

/* Send it, and read what comes back until its end: the ACK, an error, or the last message of a dump. */
static int transact(struct es_module_control *c, const struct nlmsghdr *nlh, struct answer *a)
{
	ssize_t got;
	int rc;

	if (mnl_socket_sendto(c->socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		got = mnl_socket_recvfrom(c->socket, c->answer, sizeof(c->answer));
		if (got < 0)
			return -errno;
		rc = mnl_cb_run(c->answer, (size_t)got, c->sequence, c->portid, on_message, a);
	} while (rc > MNL_CB_STOP);
	return rc < 0 ? -errno : 0;
}

static void on_family(void *ctx, int type, const void *data, size_t size)
{
	struct es_module_control *c = ctx;
	uint32_t version;

	if (type == CTRL_ATTR_FAMILY_ID && size == sizeof(c->family))
		memcpy(&c->family, data, sizeof(c->family));
	if (type == CTRL_ATTR_VERSION && size == sizeof(version)) {
		memcpy(&version, data, sizeof(version));
		c->version = (uint8_t)version;
	}
}

static int find_family(struct es_module_control *c)
{
	struct nlmsghdr *nlh = begin(c, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);
	struct answer a = {.fn = on_family, .ctx = c};
	int rc;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, ES_CONTROL_FAMILY);
	rc = transact(c, nlh, &a);
	if (rc)
		return rc;
	if (!c->family)
		return -ENOENT;
	return c->version == ES_CONTROL_VERSION ? 0 : -EPROTO;
}

int es_module_control_new(struct es_module_control **ret_control)
{
	struct es_module_control *c = calloc(1, sizeof(*c));
	int rc, room = 1 << 19, on = 1;

	if (!c)
		return -ENOMEM;
	c->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!c->socket || mnl_socket_bind(c->socket, 0, MNL_SOCKET_AUTOPID)) {
		rc = -errno;
		goto err_free;
	}
	c->portid = mnl_socket_get_portid(c->socket);
	/* A ring is sent in one message. */
	if (setsockopt(mnl_socket_get_fd(c->socket), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		setsockopt(mnl_socket_get_fd(c->socket), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	/* Or an error brings the whole request back. */
	if (mnl_socket_setsockopt(c->socket, NETLINK_CAP_ACK, &on, sizeof(on))) {
		rc = -errno;
		goto err_free;
	}
	rc = find_family(c);
	if (rc)
		goto err_free;
	*ret_control = c;
	return 0;

err_free:
	es_module_control_free(&c);
	return rc;
}

void es_module_control_free(struct es_module_control **control)
{
	struct es_module_control *c = *control;

	if (!c)
		return;
	if (c->socket)
		mnl_socket_close(c->socket);
	free(c);
	*control = NULL;
}

int es_module_command(struct es_module_control *c, enum es_command command,
		      const struct es_module_attribute *attributes, int dump, es_module_answer_fn fn,
		      void *ctx)
{
	struct nlmsghdr *nlh = begin(c, c->family, (uint8_t)command, ES_CONTROL_VERSION, dump);
	struct answer a = {.fn = fn, .ctx = ctx};

	for (; attributes && attributes->type; attributes++)
		if (!mnl_attr_put_check(nlh, sizeof(c->request), (uint16_t)attributes->type, attributes->size,
					attributes->data))
			return -EMSGSIZE;
	return transact(c, nlh, &a);
}
