// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the datapath, for the daemon and for `earshot check`.
 */
#include <errno.h>
#include <stdio.h>
#include "inspector/datapath/choose.h"
#include "inspector/datapath/network.h"

/* The kind that a configuration names. */
static enum es_datapath_kind es_datapath_named(enum es_conf_datapath_type type)
{
	switch (type) {
	case ES_CONF_DATAPATH_MODULE:
		return ES_DATAPATH_MODULE;
	case ES_CONF_DATAPATH_NETFILTER:
		return ES_DATAPATH_NETFILTER;
	default:
		return ES_DATAPATH_BPF;
	}
}

int es_datapath_is_meant(const struct es_conf *conf, enum es_datapath_kind kind)
{
	return conf->datapath.type == ES_CONF_DATAPATH_AUTO || es_datapath_named(conf->datapath.type) == kind;
}

/* Returns 1, or 0 and why not. */
static int es_datapath_netfilter_does(const struct es_conf *conf, char *err, size_t err_len)
{
	char lack[ES_CONF_NETFILTER_TEXT];

	if (es_conf_netfilter_serves(conf, lack))
		return !es_datapath_probe(ES_DATAPATH_NETFILTER, conf, err, err_len);
	snprintf(err, err_len, "netfilter datapath: %s", lack);
	return 0;
}

int es_datapath_choose(const struct es_conf *conf, enum es_datapath_kind *ret_kind, struct es_conf_error *err)
{
	char module[256] = "", netfilter[ES_CONF_NETFILTER_TEXT + 32] = "";
	struct es_conf_error kernel = {};

	*ret_kind = es_datapath_named(conf->datapath.type);
	if (conf->datapath.type != ES_CONF_DATAPATH_AUTO || !es_network_probe_kernel(&kernel))
		return 0;
	if (!es_datapath_probe(ES_DATAPATH_MODULE, conf, module, sizeof(module))) {
		*ret_kind = ES_DATAPATH_MODULE;
		return 0;
	}
	if (es_datapath_netfilter_does(conf, netfilter, sizeof(netfilter))) {
		*ret_kind = ES_DATAPATH_NETFILTER;
		return 0;
	}
	es_conf_error_set(err, "%s; %s; %s", kernel.text, module, netfilter);
	return -ENOTSUP;
}
