// SPDX-License-Identifier: GPL-2.0-or-later
/* When checks in a row change what is held of a server. */
#include "inspector/health/verdict.h"

int es_verdict_add(struct es_verdict *v, int passed, unsigned int rise, unsigned int fall)
{
	if (passed != v->is_down) {
		v->run = 0;
		return 0;
	}
	if (++v->run < (v->is_down ? rise : fall))
		return 0;
	v->is_down = !v->is_down;
	v->run = 0;
	return 1;
}
