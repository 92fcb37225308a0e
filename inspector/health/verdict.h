/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_VERDICT_H
#define ES_HEALTH_VERDICT_H

/*
 * The verdict of a row of checks on a server: one alone changes nothing, so chance does not move requests
 * about. Where nothing is known yet, the first one decides.
 */

/**
 * struct es_verdict - all zeros: nothing is known, which is neither up nor down
 * @is_known: a check has been over, or es_verdict_presume(); @is_down: so the last row of checks said
 * @is_presumed: the next check decides alone; @run: checks in a row that said the contrary since
 */
struct es_verdict {
	unsigned char is_known;
	unsigned char is_down;
	unsigned char is_presumed;
	unsigned int run;
};

/**
 * es_verdict_add() - a check has passed or not
 * @rise, @fall: so many that pass, or fail, change the verdict. Returns whether this one did, or was the
 * first.
 */
int es_verdict_add(struct es_verdict *verdict, int passed, unsigned int rise, unsigned int fall);

/* es_verdict_presume() - it is taken to be so, until the next check says whether it is */
void es_verdict_presume(struct es_verdict *verdict, int is_down);

#endif
