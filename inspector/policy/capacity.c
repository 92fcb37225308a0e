// SPDX-License-Identifier: GPL-2.0-or-later
/* A node's capacity, from how busy it is with how much. */
#include <math.h>
#include "inspector/policy/capacity.h"

void es_capacity_add(struct es_capacity *c, double seconds, double active, double cpu, double disk)
{
	double busy = fmax(cpu, disk), keep;

	if (!(seconds > 0) || busy < ES_CAPACITY_FROM || busy > ES_CAPACITY_TO)
		return;
	keep = exp(-seconds / ES_CAPACITY_OVER_S);
	c->hand = c->hand * keep + active * seconds;
	c->busy = c->busy * keep + busy * seconds;
	c->seconds = c->seconds * keep + seconds;
}

double es_capacity_get(const struct es_capacity *c)
{
	return c->seconds < ES_CAPACITY_MIN_S ? 0 : c->hand / c->busy;
}
