/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CHECK_NETLINK_H
#define ES_CHECK_NETLINK_H

/* One netlink request and its answers, as the readers of facts need it. */
#include <linux/netlink.h>
#include <stddef.h>

/* Called for each answer; @data, @len: what follows the netlink header */
typedef void (*es_netlink_fn)(void *ctx, const void *data, size_t len);

/**
 * es_netlink_ask() - send one request to the kernel and take all answers
 * @type, @flags: of the message, NLM_F_REQUEST is added; @body: what follows the header
 * Return: 0, or -errno, the kernel's included.
 */
int es_netlink_ask(int protocol, int type, int flags, const void *body, size_t len, es_netlink_fn fn,
		   void *ctx);

/* The attribute @type in @data, or NULL; its payload's length in @ret_len */
const void *es_netlink_attribute(const void *data, size_t len, int type, size_t *ret_len);

#endif
