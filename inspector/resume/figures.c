// SPDX-License-Identifier: GPL-2.0-or-later
/* The names of what is counted. */
#include "inspector/resume/figures.h"

const char *const es_resume_why_name[ES_RESUME_WHY_COUNT] = {
#define ES_RESUME_WHY_NAME(name, text) [ES_RESUME_WHY_##name] = #name,
	ES_RESUME_WHYS(ES_RESUME_WHY_NAME)
#undef ES_RESUME_WHY_NAME
};

const char *const es_resume_why_text[ES_RESUME_WHY_COUNT] = {
#define ES_RESUME_WHY_TEXT(name, text) [ES_RESUME_WHY_##name] = (text),
	ES_RESUME_WHYS(ES_RESUME_WHY_TEXT)
#undef ES_RESUME_WHY_TEXT
};
