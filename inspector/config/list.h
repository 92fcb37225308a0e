/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONFIG_LIST_H
#define ES_CONFIG_LIST_H

/* Lists of values in the configuration, and the sizes of its texts. */
#define ES_CONF_LIST_MAX  4096 /* values of a list */
#define ES_CONF_NAME_SIZE 64   /* with the final NUL, as all sizes here */
#define ES_CONF_PATH_SIZE 256

/**
 * struct es_conf_list - { "a", "b" }
 * @count: how many values; 0: the list is not there
 * @used: bytes of @text, which has the values one after the other, each with its NUL; the configuration owns
 * it
 */
struct es_conf_list {
	unsigned int count;
	unsigned int used;
	char *text;
};

/* The next text after @item, from NULL on; NULL after the last. */
static inline const char *es_conf_list_next(const struct es_conf_list *list, const char *item)
{
	if (!list->count)
		return (const char *)0;
	item = item ? item + __builtin_strlen(item) + 1 : list->text;
	return item < list->text + list->used ? item : (const char *)0;
}

#endif
