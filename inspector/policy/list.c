// SPDX-License-Identifier: GPL-2.0-or-later
/* The list of policies. policy.c has what they stand on. */
#include <string.h>
#include "inspector/policy/list.h"

static const struct es_policy *const es_policies[] = {
	&es_policy_ring,     &es_policy_wrr,
	&es_policy_wlc,	     &es_policy_cap,
	&es_policy_uri_hash, &es_policy_ward,
	&es_policy_lard,     &es_policy_lard_r,
	&es_policy_ext_lard, &es_policy_hylard,
	&es_policy_cawll,    &es_policy_xlard_r,
	&es_policy_cahrd,    NULL,
};

const struct es_policy *const *es_policy_list(void)
{
	return es_policies;
}

const struct es_policy *es_policy_find(const char *name)
{
	for (const struct es_policy *const *p = es_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}
