// SPDX-License-Identifier: GPL-2.0-or-later
/* A list of all texts that there ever were: as many as an operator has written into the configuration. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/rules/body.h"

struct es_body {
	struct es_body *next;
	char text[];
};

static pthread_mutex_t es_body_lock = PTHREAD_MUTEX_INITIALIZER;
static struct es_body *es_bodies;

static struct es_body *es_body_find(const char *text)
{
	struct es_body *body = es_bodies;

	while (body && strcmp(body->text, text) != 0)
		body = body->next;
	return body;
}

static struct es_body *es_body_add(const char *text)
{
	size_t size = strlen(text) + 1;
	struct es_body *body = malloc(sizeof(*body) + size);

	if (!body)
		return NULL;
	memcpy(body->text, text, size);
	body->next = es_bodies;
	es_bodies = body;
	return body;
}

int es_body_keep(const char *text, const char **ret_kept)
{
	struct es_body *body;

	pthread_mutex_lock(&es_body_lock);
	body = es_body_find(text);
	if (!body)
		body = es_body_add(text);
	pthread_mutex_unlock(&es_body_lock);
	if (!body)
		return -ENOMEM;
	*ret_kept = body->text;
	return 0;
}
