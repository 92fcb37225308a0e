/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_STREAK_H
#define ES_HEALTH_STREAK_H

/*
 * The verdict of a row of checks on a server: one alone changes nothing, so chance does not move requests
 * about. Where nothing is known yet, the first one decides.
 */

/**
 * struct es_streak - all zeros: nothing is known, which is neither up nor down
 * @is_known: a check has been over, or es_streak_presume(); @is_down: so the last row of checks said
 * @is_presumed: the next check decides alone; @run: checks in a row that said the contrary since
 */
struct es_streak {
	unsigned char is_known;
	unsigned char is_down;
	unsigned char is_presumed;
	unsigned int run;
};

/**
 * es_streak_add() - a check has passed or not
 * @rise, @fall: so many that pass, or fail, change the verdict. Returns whether this one did, or was the
 * first.
 */
int es_streak_add(struct es_streak *verdict, int passed, unsigned int rise, unsigned int fall);

/* es_streak_presume() - it is taken to be so, until the next check says whether it is */
void es_streak_presume(struct es_streak *verdict, int is_down);

#endif
