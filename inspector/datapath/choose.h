/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAPATH_CHOOSE_H
#define ES_DATAPATH_CHOOSE_H

#include "inspector/base/error.h"
#include "inspector/config/config.h"
#include "inspector/datapath/datapath.h"

/**
 * es_datapath_choose() - which datapath a configuration means on this machine
 * That which it names; with auto, bpf where the kernel has what that needs, else the module if there is one,
 * else netfilter if the kernel and the configuration allow. Changes nothing, but may load the module. Returns
 * 0; or -ENOTSUP with @err, which says why each is refused.
 */
int es_datapath_choose(const struct es_conf *conf, enum es_datapath_kind *ret_kind,
		       struct es_conf_error *err);

/*
 * es_datapath_is_meant() - may a daemon with that datapath go on with this configuration? auto: whichever it
 * is.
 */
int es_datapath_is_meant(const struct es_conf *conf, enum es_datapath_kind kind);

#endif
