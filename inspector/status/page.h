/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PAGE_H
#define ES_PAGE_H

/*
 * The status page: the whole cluster as one HTML document that needs nothing else, from what `cluster` answers
 * (docs/json.md). It is whole without JavaScript; a script in it only gets the next one and puts it in its place.
 */
#include <json-c/json.h>
#include <stdio.h>

#define ES_PAGE_NONCE_SIZE 33 /* of the policy that lets only the page's own style and script run */

/**
 * es_page_html() - the document
 * @view: what `cluster` answers; @nonce: of this answer; @ret_html: the caller frees it. Returns 0 or -ENOMEM.
 */
int es_page_html(struct json_object *view, const char *nonce, char **ret_html, size_t *ret_len);

/* es_page_nodes(), es_page_requests(), es_page_events(), es_page_problems() (page_nodes.c and so on) - their sections */
void es_page_health(FILE *file, struct json_object *view);
void es_page_nodes(FILE *file, struct json_object *view);
void es_page_ring(FILE *file, struct json_object *view);
void es_page_requests(FILE *file, struct json_object *view);
void es_page_reasons(FILE *file, struct json_object *view);
void es_page_hot(FILE *file, struct json_object *view);
void es_page_events(FILE *file, struct json_object *view);
void es_page_problems(FILE *file, struct json_object *view);

/* es_page_section(), es_page_table() - begin one; the caller closes with </section>, es_page_table_end() */
void es_page_section(FILE *file, const char *id, const char *heading);
void es_page_table(FILE *file, const char *caption, const char *const *headings);
void es_page_table_end(FILE *file);

#endif
