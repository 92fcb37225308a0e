/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_HOOKS_H
#define ES_MODULE_HOOKS_H

struct es_node;

/**
 * es_node_attach() - put the hooks where the parameters say; those that are there already stay
 * Under rtnl. Returns 0; -ENODEV, -EINVAL (an interface that is no Ethernet) or -ENOMEM: nothing is attached.
 */
int es_node_attach(struct es_node *node);

#endif
