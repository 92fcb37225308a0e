// SPDX-License-Identifier: GPL-2.0-or-later
/* Puts names of nodes into the steps of an explanation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/config/explain_text.h"

/* "bad argument #1 to 'reject'" is what Lua says of a script's mistake. */
static int is_argument(const char *text, size_t len)
{
	static const char word[] = "argument ";

	return len >= sizeof(word) - 1 && !memcmp(text + len - (sizeof(word) - 1), word, sizeof(word) - 1);
}

const char *es_explain_text(const struct es_conf *conf, const char *step, char *text)
{
	size_t at = 0;

	while (*step && at + ES_CONF_NAME_SIZE < ES_EXPLAIN_TEXT_SIZE) {
		char *end = (char *)step;
		int is_node = *step == '#' && !is_argument(text, at);
		unsigned long node = is_node ? strtoul(step + 1, &end, 10) : 0;

		if (end > step + 1 && node < conf->node_count) {
			at += (size_t)snprintf(text + at, ES_EXPLAIN_TEXT_SIZE - at, "%s",
					       conf->nodes[node].name);
			step = end;
		} else {
			text[at++] = *step++;
		}
	}
	text[at] = 0;
	return text;
}
