// SPDX-License-Identifier: GPL-2.0-or-later
/* When checks in a row change what is held of a server. */
#include "inspector/health/streak.h"

int es_streak_add(struct es_streak *v, int passed, unsigned int rise, unsigned int fall)
{
	int is_first = !v->is_known, is_alone = is_first || v->is_presumed;

	v->is_known = 1;
	v->is_presumed = 0;
	if (passed != v->is_down) {
		v->run = 0;
		return is_first;
	}
	if (++v->run < (v->is_down ? rise : fall) && !is_alone)
		return 0;
	v->is_down = !v->is_down;
	v->run = 0;
	return 1;
}

void es_streak_presume(struct es_streak *v, int is_down)
{
	*v = (struct es_streak){.is_known = 1, .is_down = is_down != 0, .is_presumed = 1};
}
