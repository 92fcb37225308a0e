/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PAGE_H
#define ES_PAGE_H

/*
 * The status page: the whole cluster as one HTML document that needs nothing else, from what `cluster`
 * answers (docs/json.md). It is whole without JavaScript; a script in it only gets the next one and puts it
 * in its place.
 */
#include <json-c/json.h>
#include <stdio.h>

#define ES_PAGE_NONCE_SIZE 33 /* of the policy that lets only the page's own style and script run */

/**
 * es_page_html() - the document
 * @view: what `cluster` answers, from which nodes that are removed are taken; @nonce: of this answer;
 * @ret_html: the caller frees it. Returns 0 or -ENOMEM.
 */
int es_page_html(struct json_object *view, const char *nonce, char **ret_html, size_t *ret_len);

/* page_cell.c: how a node is, and a service on it */
enum es_page_cell_kind { ES_PAGE_UP, ES_PAGE_DEGRADED, ES_PAGE_DOWN, ES_PAGE_AWAY, ES_PAGE_ELSEWHERE };

/*
 * struct es_page_cell - @text: in a word, @why: why, "" if nothing is to be said; both live as long as the
 * view
 */
struct es_page_cell {
	enum es_page_cell_kind kind;
	const char *text;
	const char *why;
};

struct es_page_cell es_page_cell(struct json_object *node, const char *service);

/*
 * es_page_service_on() - what the node says of the service; an empty object if it does not answer, or tells
 * nothing of it
 */
struct json_object *es_page_service_on(struct json_object *node, const char *service);

/* es_page_word() - what the node says of itself now; an empty object if it does not answer */
struct json_object *es_page_word(struct json_object *node);

const char *es_page_state(struct json_object *node);
int es_page_is_well(struct json_object *node);

/* es_page_trouble() - what is wrong with the node, "" for nothing */
const char *es_page_trouble(struct json_object *node, struct json_object *view);

/* page_health.c: how all is; never ES_PAGE_OK while a node, or a service on one, is not up */
enum es_page_health { ES_PAGE_OK, ES_PAGE_WARN, ES_PAGE_BAD };
enum es_page_health es_page_health_of(struct json_object *view);

/* es_page_colour() - the class of what is drawn for a node */
#define ES_PAGE_COLOURS 8
void es_page_colour(FILE *file, size_t node);

/* es_page_matrix(), es_page_charts(), es_page_nodes() (page_matrix.c and so on) - their sections */
void es_page_health(FILE *file, struct json_object *view);
void es_page_matrix(FILE *file, struct json_object *view);
void es_page_charts(FILE *file, struct json_object *view);
void es_page_nodes(FILE *file, struct json_object *view);
void es_page_ring(FILE *file, struct json_object *view);
void es_page_reasons(FILE *file, struct json_object *view);
void es_page_hot(FILE *file, struct json_object *view);
void es_page_events(FILE *file, struct json_object *view);
void es_page_problems(FILE *file, struct json_object *view);

/*
 * page_table.c: es_page_section(), es_page_table() - begin one; the caller closes with </section>,
 * es_page_table_end()
 * @class: "stack" for one whose cells stand below each other where there is little room, "" for none
 */
void es_page_section(FILE *file, const char *id, const char *heading);
void es_page_table(FILE *file, const char *class, const char *caption, const char *const *headings);
void es_page_table_end(FILE *file);

#endif
