/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_RULES_WANTED_H
#define ES_NETFILTER_ENGINE_RULES_WANTED_H

#include "netfilter/rules/rules.h"

/* es_nf_rules_of() - the rules that a configuration needs; what it does not say is 0 */
void es_nf_rules_of(const struct es_config *config, struct es_nf_rules *ret_rules);

#endif
