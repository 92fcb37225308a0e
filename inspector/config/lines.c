// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds where a key stands in the file, and which nodes a list of names has, for whatever is checked once the
 * file is read.
 */
#include <string.h>

#include "inspector/config/internal.h"

int es_conf_line_of(const struct es_conf_lines *lines, enum es_conf_section_id section, const char *key)
{
	int index = es_conf_key_index(&es_conf_sections[section], key);

	return index >= 0 && lines->key[index] ? lines->key[index] : lines->open;
}

int es_conf_has(const struct es_conf_lines *lines, enum es_conf_section_id section, const char *key)
{
	int index = es_conf_key_index(&es_conf_sections[section], key);

	return index >= 0 && lines->key[index];
}

const char *es_conf_nodes_of(const struct es_conf *conf, const struct es_conf_list *list,
			     struct es_node_set *ret_nodes, char *ret_known, size_t size)
{
	int alternatives = 0;

	ret_known[0] = 0;
	for (const char *name = NULL; (name = es_conf_list_next(list, name));) {
		unsigned int i = 0;

		while (i < conf->node_count && strcmp(conf->nodes[i].name, name) != 0)
			i++;
		if (i < conf->node_count) {
			es_node_set_add(ret_nodes, i);
			continue;
		}
		for (i = 0; i < conf->node_count; i++)
			es_conf_alternative(ret_known, size, &alternatives, conf->nodes[i].name);
		return name;
	}
	return NULL;
}
