// SPDX-License-Identifier: GPL-2.0-or-later
/* The text in which a node says its settings: a line for each, with its name and its value. */
#include <string.h>
#include "membership/group_internal.h"

const char *es_group_setting_line(const char *line, size_t *ret_name_len, const char **ret_value,
				  size_t *ret_value_len)
{
	const char *end = strchr(line, '\n');
	const char *equals;

	if (!end)
		return NULL;
	if (end == line) {
		*ret_name_len = *ret_value_len = 0;
		*ret_value = end;
		return end + 1;
	}
	equals = memchr(line + 1, '=', (size_t)(end - line - 1));
	if (!equals)
		equals = end - 1;
	*ret_name_len = (size_t)(equals - line);
	*ret_value = equals + 1;
	*ret_value_len = (size_t)(end - equals - 1);
	return end + 1;
}

int es_group_setting_find(const char *settings, const char *name, size_t name_len, const char **ret_value,
			  size_t *ret_value_len)
{
	const char *line = settings, *next;
	size_t len;

	while (line && *line) {
		next = es_group_setting_line(line, &len, ret_value, ret_value_len);
		if (next && len == name_len && !memcmp(line, name, len))
			return 1;
		line = next;
	}
	*ret_value = "missing";
	*ret_value_len = strlen(*ret_value);
	return 0;
}
