/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HELP_H
#define ES_HELP_H

/* For argp: -h is --help, as everywhere else, too. A child of a program's parser. */
#include <argp.h>

static inline error_t es_help_parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'h')
		return ARGP_ERR_UNKNOWN;
	argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
	return 0;
}

static const struct argp_option es_help_options[] = {{NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1}, {0}};
static const struct argp es_help_argp = {.options = es_help_options, .parser = es_help_parse};

#endif
