/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_VERDICT_H
#define ES_HEALTH_VERDICT_H

/* What a row of checks says of a server: one alone changes nothing, so chance does not move requests about. */

/**
 * struct es_verdict - all zeros: nothing is known, which is as good as up
 * @is_down: so the last row of checks said; @run: checks in a row that said the contrary since
 */
struct es_verdict {
	int is_down;
	unsigned int run;
};

/**
 * es_verdict_add() - a check has passed or not
 * @rise, @fall: so many that pass, or fail, change the verdict. Returns whether this one did.
 */
int es_verdict_add(struct es_verdict *verdict, int passed, unsigned int rise, unsigned int fall);

#endif
