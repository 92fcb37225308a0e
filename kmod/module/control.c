// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control protocol of kmod/core/control.h: checks what the daemon says, and does it to the node of its
 * network namespace. Each command holds es_net.lock; those that touch hooks take rtnl before it.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "program.h"
#include "control.h"
#include "hooks.h"
#include "node.h"
#include "walk.h"

static struct genl_family es_family;

#define ES_RING_PART_BYTES (sizeof(struct es_node_ring) / ES_CONTROL_RING_PARTS)

/* An exact length is a signed 16-bit number there, which a part of the ring is just beyond:
 * checked by hand. */
static const struct nla_policy es_policy[ES_ATTR_MAX + 1] = {
	[ES_ATTR_PARAMS] = NLA_POLICY_EXACT_LEN(sizeof(struct es_module_params)),
	[ES_ATTR_CONFIG] = NLA_POLICY_EXACT_LEN(sizeof(struct es_config)),
	[ES_ATTR_RING0] = {.type = NLA_BINARY, .len = ES_RING_PART_BYTES},
	[ES_ATTR_RING1] = {.type = NLA_BINARY, .len = ES_RING_PART_BYTES},
	[ES_ATTR_RING2] = {.type = NLA_BINARY, .len = ES_RING_PART_BYTES},
	[ES_ATTR_RING3] = {.type = NLA_BINARY, .len = ES_RING_PART_BYTES},
	[ES_ATTR_FLOW] = NLA_POLICY_EXACT_LEN(sizeof(struct es_flow)),
};

/* An answer with one attribute, whose @bytes are still to be written to @ret_data. NULL: no memory. */
static struct sk_buff *es_reply_new(struct genl_info *info, int attribute, size_t bytes, void **ret_data)
{
	struct sk_buff *msg = genlmsg_new(nla_total_size((int)bytes), GFP_KERNEL);
	struct nlattr *place = NULL;
	void *head;

	if (!msg)
		return NULL;
	head = genlmsg_put_reply(msg, info, &es_family, 0, info->genlhdr->cmd);
	if (head)
		place = nla_reserve(msg, attribute, (int)bytes);
	if (!place) {
		nlmsg_free(msg);
		return NULL;
	}
	genlmsg_end(msg, head);
	*ret_data = nla_data(place);
	return msg;
}

static int es_reply_attribute(struct genl_info *info, int attribute, const void *data, size_t bytes)
{
	void *place;
	struct sk_buff *msg = es_reply_new(info, attribute, bytes, &place);

	if (!msg)
		return -ENOMEM;
	memcpy(place, data, bytes);
	return genlmsg_reply(msg, info);
}

static int es_do_get(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_module_status status = {};
	struct sk_buff *msg;
	void *head;

	rtnl_lock();
	mutex_lock(&en->lock);
	if (en->node) {
		struct net_device *const *device = en->node->device;

		status.exists = 1;
		status.public_ifindex = device[ES_HOOK_PUBLIC] ? (u32)device[ES_HOOK_PUBLIC]->ifindex : 0;
		status.cluster_ifindex = device[ES_HOOK_CLUSTER] ? (u32)device[ES_HOOK_CLUSTER]->ifindex : 0;
	}
	mutex_unlock(&en->lock);
	rtnl_unlock();
	msg = genlmsg_new(nla_total_size(sizeof(u32)) + nla_total_size(sizeof(status)), GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	head = genlmsg_put_reply(msg, info, &es_family, 0, info->genlhdr->cmd);
	if (!head || nla_put_u32(msg, ES_ATTR_ABI, ES_ABI_VERSION) ||
	    nla_put(msg, ES_ATTR_STATUS, sizeof(status), &status)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, head);
	return genlmsg_reply(msg, info);
}

static int es_params_check(const struct es_module_params *p)
{
	if (p->abi != ES_ABI_VERSION)
		return -EPROTO;
	if (!p->workers || p->workers > ES_WORKERS_MAX || !is_power_of_2(p->queue_bytes) ||
	    p->queue_bytes < PAGE_SIZE || p->queue_bytes > ES_MODULE_QUEUE_BYTES_MAX ||
	    !is_power_of_2(p->decision_sets) || p->decision_sets > ES_MODULE_DECISION_SETS_MAX)
		return -EINVAL;
	return 0;
}

static int es_do_new(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_node *fresh = NULL;
	struct es_module_params params;
	struct sk_buff *msg;
	u32 adopted = 0;
	void *place;
	int rc;

	if (!info->attrs[ES_ATTR_PARAMS])
		return -EINVAL;
	nla_memcpy(&params, info->attrs[ES_ATTR_PARAMS], sizeof(params));
	rc = es_params_check(&params);
	if (rc)
		return rc;
	/* First, so that nothing has been done if there is no memory for the answer. */
	msg = es_reply_new(info, ES_ATTR_ADOPTED, sizeof(adopted), &place);
	if (!msg)
		return -ENOMEM;
	rtnl_lock();
	mutex_lock(&en->lock);
	if (en->node && en->node->params.decision_sets == params.decision_sets) {
		adopted = 1;
		rc = es_node_renew(en->node, &params);
	} else {
		/*
		 * The old one goes once there is a new one; if there is no memory for that, it goes on
		 * serving.
		 */
		rc = es_node_new(genl_info_net(info), &params, &fresh);
		if (!rc) {
			es_node_free(&en->node);
			en->node = fresh;
		}
	}
	mutex_unlock(&en->lock);
	rtnl_unlock();
	if (rc) {
		nlmsg_free(msg);
		return rc;
	}
	memcpy(place, &adopted, sizeof(adopted));
	return genlmsg_reply(msg, info);
}

/* Checks everything that the packet path takes for granted. */
static int es_config_check(const struct es_config *cfg, const struct es_module_params *params)
{
	if (cfg->abi != ES_ABI_VERSION)
		return -EPROTO;
	if (cfg->service_count > ES_SERVICES_MAX || cfg->workers != params->workers ||
	    cfg->decision_sets != params->decision_sets || cfg->self >= ES_NODES_MAX || !cfg->key_count ||
	    cfg->key_count > 2 || !cfg->slot_s || cfg->rcv_wscale > ES_TCP_WSCALE_MAX)
		return -EINVAL;
	return 0;
}

static int es_do_configure(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_version *version;
	int rc = -EINVAL;

	for (int i = ES_ATTR_CONFIG; i <= ES_ATTR_RING3; i++)
		if (!info->attrs[i] ||
		    (i >= ES_ATTR_RING0 && nla_len(info->attrs[i]) != (int)ES_RING_PART_BYTES))
			return -EINVAL;
	version = es_memory_zalloc(sizeof(*version));
	if (!version)
		return -ENOMEM;
	nla_memcpy(&version->config, info->attrs[ES_ATTR_CONFIG], sizeof(version->config));
	for (int i = 0; i < ES_CONTROL_RING_PARTS; i++)
		nla_memcpy((u8 *)&version->ring + i * ES_RING_PART_BYTES, info->attrs[ES_ATTR_RING0 + i],
			   ES_RING_PART_BYTES);
	mutex_lock(&en->lock);
	rc = en->node ? es_config_check(&version->config, &en->node->params) : -ENOENT;
	if (!rc)
		es_node_configure(en->node, version);
	mutex_unlock(&en->lock);
	if (rc)
		kvfree(version);
	return rc;
}

static int es_version_put(struct sk_buff *msg, const struct es_version *version)
{
	int rc = nla_put(msg, ES_ATTR_CONFIG, sizeof(version->config), &version->config);

	for (int i = 0; !rc && i < ES_CONTROL_RING_PARTS; i++)
		rc = nla_put(msg, ES_ATTR_RING0 + i, ES_RING_PART_BYTES,
			     (const u8 *)&version->ring + i * ES_RING_PART_BYTES);
	return rc;
}

static int es_do_configuration(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	const struct es_version *version = NULL;
	struct sk_buff *msg;
	void *head;
	int rc;

	msg = genlmsg_new(nla_total_size(sizeof(struct es_config)) +
				  ES_CONTROL_RING_PARTS * nla_total_size(ES_RING_PART_BYTES),
			  GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	head = genlmsg_put_reply(msg, info, &es_family, 0, info->genlhdr->cmd);
	mutex_lock(&en->lock);
	if (en->node)
		version = rcu_dereference_protected(en->node->version, lockdep_is_held(&en->lock));
	rc = !version ? -ENOENT : !head ? -EMSGSIZE : es_version_put(msg, version);
	mutex_unlock(&en->lock);
	if (rc) {
		nlmsg_free(msg);
		return rc;
	}
	genlmsg_end(msg, head);
	return genlmsg_reply(msg, info);
}

static int es_do_attach(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_module_params params;
	int rc;

	if (info->attrs[ES_ATTR_PARAMS])
		nla_memcpy(&params, info->attrs[ES_ATTR_PARAMS], sizeof(params));
	rtnl_lock();
	mutex_lock(&en->lock);
	/* An interface that was made anew has another index. */
	if (en->node && info->attrs[ES_ATTR_PARAMS]) {
		en->node->params.public_ifindex = params.public_ifindex;
		en->node->params.cluster_ifindex = params.cluster_ifindex;
	}
	rc = en->node ? es_node_attach(en->node) : -ENOENT;
	mutex_unlock(&en->lock);
	rtnl_unlock();
	return rc;
}

static int es_do_remove(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	int rc;

	rtnl_lock();
	mutex_lock(&en->lock);
	rc = en->node ? 0 : -ENOENT;
	es_node_free(&en->node);
	mutex_unlock(&en->lock);
	rtnl_unlock();
	return rc;
}

static int es_do_counters(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	u64 sums[ES_COUNTER_COUNT] = {};
	int cpu, rc = -ENOENT;

	mutex_lock(&en->lock);
	if (en->node) {
		rc = 0;
		for_each_possible_cpu(cpu)
		{
			const u64 *values = per_cpu_ptr(en->node->counters, cpu);

			for (u32 i = 0; i < ES_COUNTER_COUNT; i++)
				sums[i] += READ_ONCE(values[i]);
		}
	}
	mutex_unlock(&en->lock);
	return rc ? rc : es_reply_attribute(info, ES_ATTR_COUNTERS, sums, sizeof(sums));
}

static int es_do_loads(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_load_sums *sums = kzalloc(sizeof(*sums), GFP_KERNEL);
	int rc = -ENOENT;

	if (!sums)
		return -ENOMEM;
	mutex_lock(&en->lock);
	if (en->node) {
		es_walk_loads(en->node, sums);
		rc = 0;
	}
	mutex_unlock(&en->lock);
	if (!rc)
		rc = es_reply_attribute(info, ES_ATTR_LOADS, sums, sizeof(*sums));
	kfree(sums);
	return rc;
}

static int es_do_end_unproven(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	u32 count = 0;
	int rc = -ENOENT;

	mutex_lock(&en->lock);
	if (en->node) {
		count = es_walk_end_unproven(en->node);
		rc = 0;
	}
	mutex_unlock(&en->lock);
	return rc ? rc : es_reply_attribute(info, ES_ATTR_COUNT, &count, sizeof(count));
}

static int es_do_connection(struct sk_buff *skb, struct genl_info *info)
{
	struct es_net *en = es_net_of(genl_info_net(info));
	struct es_connection_state state = {};
	struct es_flow flow;
	int rc = -ENOENT;

	if (!info->attrs[ES_ATTR_FLOW])
		return -EINVAL;
	nla_memcpy(&flow, info->attrs[ES_ATTR_FLOW], sizeof(flow));
	mutex_lock(&en->lock);
	if (en->node)
		rc = es_connection_state_read(en->node, &flow, &state);
	mutex_unlock(&en->lock);
	return rc ? rc : es_reply_attribute(info, ES_ATTR_SOCKET, &state, sizeof(state));
}

/*
 * One message of a dump: as many entries of @size as fit. cb->args[0..1] are the walk's position.
 * Returns the message's length, 0 at the end, or -errno.
 */
static int es_dump(struct sk_buff *skb, struct netlink_callback *cb, u8 command, size_t size)
{
	struct es_net *en = es_net_of(sock_net(skb->sk));
	unsigned long *at = (unsigned long *)cb->args;
	unsigned int room, count = 0;
	struct nlattr *list;
	void *head;
	int rc = 0;

	head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &es_family, NLM_F_MULTI,
			   command);
	if (!head)
		return -EMSGSIZE;
	room = (unsigned int)skb_tailroom(skb) > NLA_HDRLEN
		       ? ((unsigned int)skb_tailroom(skb) - NLA_HDRLEN) / size
		       : 0;
	list = nla_reserve(skb, ES_ATTR_ENTRIES, (int)(room * size));
	if (!list || !room) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	mutex_lock(&en->lock);
	if (!en->node)
		rc = -ENOENT;
	else if (command == ES_CMD_FLOWS)
		count = es_walk_flows(en->node, at, nla_data(list), room);
	else
		count = es_walk_connections(en->node, at, nla_data(list), room);
	mutex_unlock(&en->lock);
	if (!count) {
		genlmsg_cancel(skb, head);
		return rc;
	}
	/* Give back the room that was not needed. */
	list->nla_len = (u16)nla_attr_size((int)(count * size));
	skb_trim(skb, (unsigned int)((u8 *)list + nla_total_size((int)(count * size)) - skb->data));
	genlmsg_end(skb, head);
	return (int)skb->len;
}

static int es_dump_flows(struct sk_buff *skb, struct netlink_callback *cb)
{
	return es_dump(skb, cb, ES_CMD_FLOWS, sizeof(struct es_track_entry));
}

static int es_dump_connections(struct sk_buff *skb, struct netlink_callback *cb)
{
	return es_dump(skb, cb, ES_CMD_CONNECTIONS, sizeof(struct es_connection_entry));
}

static const struct genl_small_ops es_ops[] = {
	{.cmd = ES_CMD_GET, .doit = es_do_get},
	{.cmd = ES_CMD_NEW, .doit = es_do_new, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_CONFIGURE, .doit = es_do_configure, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_ATTACH, .doit = es_do_attach, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_REMOVE, .doit = es_do_remove, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_COUNTERS, .doit = es_do_counters, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_LOADS, .doit = es_do_loads, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_FLOWS, .dumpit = es_dump_flows, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_CONNECTIONS, .dumpit = es_dump_connections, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_CONFIGURATION, .doit = es_do_configuration, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_END_UNPROVEN, .doit = es_do_end_unproven, .flags = GENL_ADMIN_PERM},
	{.cmd = ES_CMD_CONNECTION, .doit = es_do_connection, .flags = GENL_ADMIN_PERM},
};

static struct genl_family es_family __ro_after_init = {
	.name = ES_CONTROL_FAMILY,
	.version = ES_CONTROL_VERSION,
	.maxattr = ES_ATTR_MAX,
	.policy = es_policy,
	.netnsok = true,
	.module = THIS_MODULE,
	.small_ops = es_ops,
	.n_small_ops = ARRAY_SIZE(es_ops),
};

int es_control_init(void)
{
	return genl_register_family(&es_family);
}

void es_control_fini(void)
{
	genl_unregister_family(&es_family);
}
