// SPDX-License-Identifier: GPL-2.0-or-later
/* The groups of checks, in the order in which they run. */
#include "inspector/check/check.h"

static const struct es_check_group *const groups[] = {
	&es_check_cluster_group, &es_check_kernel_group, &es_check_network_group,  &es_check_neighbours_group,
	&es_check_server_group,	 &es_check_tls_group,	 &es_check_corosync_group, &es_check_members_group,
};

void es_check_run_group(struct es_check *check, const struct es_check_group *group)
{
	check->group = group;
	if (group->enter && group->enter(check))
		return;
	for (check->item = group->items; check->item->name; check->item++) {
		size_t before = check->count;

		check->item->run(check);
		if (check->count == before) /* a check that says nothing would be skipped in silence */
			es_check_unchecked(check, "the check came to no result");
	}
}

void es_check_run(struct es_check *check)
{
	size_t i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		es_check_run_group(check, groups[i]);
}
