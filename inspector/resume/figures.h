/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RESUME_FIGURES_H
#define ES_RESUME_FIGURES_H

/*
 * Lost nodes' long responses, and what became of them here. `earshot flows`, `earshot counters` and the
 * metrics read it.
 */
#include "inspector/resume/heads.h"

/**
 * struct es_resume_figures - since the daemon's start
 * @told: records that came; @whole: responses that were gone on with to their end; @broken: not to their end
 * @reset: clients that were told at once, by why
 */
struct es_resume_figures {
	unsigned long long told;
	unsigned long long whole;
	unsigned long long broken;
	unsigned long long reset[ES_RESUME_WHY_COUNT];
};

/* By enum es_resume_why: its name, and why in words. */
extern const char *const es_resume_why_name[ES_RESUME_WHY_COUNT];
extern const char *const es_resume_why_text[ES_RESUME_WHY_COUNT];

#endif
