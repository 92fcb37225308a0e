/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_DOC_EXAMPLES_H
#define ES_TESTS_DOC_EXAMPLES_H

/* The example replies of docs/json.md: the JSON after the line <!-- reply: NAME -->.
 * Include after cmocka.h. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller owns it; NULL when there is none or it is no JSON. */
static inline struct json_object *doc_example(const char *name)
{
	FILE *file = fopen(EARSHOT_SOURCE "/docs/json.md", "r");
	struct json_object *example = NULL;
	char *text = NULL, *at, *end;
	char marker[64];
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, 0, file) < 0) {
		fclose(file);
		free(text);
		return NULL;
	}
	fclose(file);
	snprintf(marker, sizeof(marker), "<!-- reply: %s -->\n```json\n", name);
	at = strstr(text, marker);
	end = at ? strstr(at + strlen(marker), "\n```") : NULL;
	if (end) {
		*end = 0;
		example = json_tokener_parse(at + strlen(marker));
	}
	free(text);
	return example;
}

#endif
