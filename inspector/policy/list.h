/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_POLICY_LIST_H
#define ES_POLICY_LIST_H

/*
 * The policies that are built in, one file each, named as the policy. es_policy_list() has them for everybody
 * else.
 */
#include "inspector/policy/policy.h"

extern const struct es_policy es_policy_cahrd;
extern const struct es_policy es_policy_cap;
extern const struct es_policy es_policy_cawll;
extern const struct es_policy es_policy_ext_lard;
extern const struct es_policy es_policy_hylard;
extern const struct es_policy es_policy_lard;
extern const struct es_policy es_policy_lard_r;
extern const struct es_policy es_policy_ring;
extern const struct es_policy es_policy_uri_hash;
extern const struct es_policy es_policy_ward;
extern const struct es_policy es_policy_wlc;
extern const struct es_policy es_policy_wrr;
extern const struct es_policy es_policy_xlard_r;

#endif
