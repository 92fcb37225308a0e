// SPDX-License-Identifier: GPL-2.0-or-later
/* Which drivers there are, and what must look at more than one of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/datapath/internal.h"

static const struct es_datapath_ops *const drivers[ES_DATAPATH_COUNT] = {
	[ES_DATAPATH_BPF] = &es_datapath_bpf,
	[ES_DATAPATH_MODULE] = &es_datapath_module,
	[ES_DATAPATH_NETFILTER] = &es_datapath_netfilter,
};

const char *es_datapath_name(enum es_datapath_kind kind)
{
	return drivers[kind]->name;
}

int es_datapath_takes_mptcp(enum es_datapath_kind kind)
{
	return drivers[kind]->takes_mptcp;
}

int es_datapath_probe(enum es_datapath_kind kind, const struct es_conf *conf, char *err, size_t err_len)
{
	return drivers[kind]->probe(conf, err, err_len);
}

int es_datapath_is_attached(enum es_datapath_kind kind, const struct es_datapath_params *params)
{
	return drivers[kind]->is_attached(params);
}

int es_datapath_check_alone(enum es_datapath_kind kind, const struct es_datapath_params *params, char *err,
			    size_t err_len)
{
	for (int other = 0; other < ES_DATAPATH_COUNT; other++) {
		int rc = other == (int)kind ? 0 : drivers[other]->is_around(params);

		if (!rc)
			continue;
		if (rc > 0)
			snprintf(err, err_len,
				 "%s datapath: the %s datapath is attached in this network namespace, "
				 "and both would handle each packet; end its daemon by \"earshot stop\", "
				 "or take off by \"earshot detach\" what an ended one has left",
				 drivers[kind]->name, drivers[other]->name);
		else
			snprintf(err, err_len, "%s datapath: looking for the %s datapath failed: %s",
				 drivers[kind]->name, drivers[other]->name, strerror(-rc));
		return rc > 0 ? -EBUSY : rc;
	}
	return 0;
}

int es_datapath_detach_all(es_datapath_detached_fn fn, void *ctx)
{
	int rc = 0;

	for (int kind = 0; kind < ES_DATAPATH_COUNT; kind++) {
		int rc2 = drivers[kind]->detach_all(fn, ctx);

		rc = rc ? rc : rc2;
	}
	return rc;
}

int es_datapath_detach(enum es_datapath_kind kind, const struct es_datapath_params *params)
{
	return drivers[kind]->detach(params);
}

int es_datapath_new(enum es_datapath_kind kind, const struct es_datapath_params *params, char *err,
		    size_t err_len, struct es_datapath **ret_datapath)
{
	return es_datapath_make(drivers[kind], params, err, err_len, ret_datapath);
}

static enum es_datapath_kind es_datapath_kind_of(const struct es_datapath *dp)
{
	int kind = 0;

	while (kind < ES_DATAPATH_COUNT - 1 && drivers[kind] != dp->ops)
		kind++;
	return (enum es_datapath_kind)kind;
}

int es_datapath_attach(struct es_datapath *dp, char *err, size_t err_len)
{
	int heard = dp->ops->is_attached(&dp->params) > 0;
	int rc = dp->ops->attach(dp, err, err_len);

	if (rc)
		return rc;
	if (!heard || !dp->state->hears_ns)
		es_datapath_hears_anew(dp);
	/* Afterwards: who looks before may be overtaken, and so may the other. */
	rc = es_datapath_check_alone(es_datapath_kind_of(dp), &dp->params, err, err_len);
	if (rc)
		dp->ops->detach(&dp->params);
	return rc;
}
