// SPDX-License-Identifier: GPL-2.0-or-later
/* Services of which a node is drained: the list, its file and its messages. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/json.h"
#include "inspector/self/service_drains.h"
#include "membership/node_state.h"

#define FILE_MAX (ES_CONF_SERVICES_MAX * 1024)

static int index_of(const struct es_service_drains *drains, const char *service)
{
	for (unsigned int i = 0; i < drains->count; i++)
		if (!strcmp(drains->drain[i].service, service))
			return (int)i;
	return -1;
}

const struct es_service_drain *es_service_drains_find(const struct es_service_drains *drains,
						      const char *service)
{
	int i = drains ? index_of(drains, service) : -1;

	return i < 0 ? NULL : &drains->drain[i];
}

int es_service_drains_set(struct es_service_drains *drains, const struct es_service_drain *drain)
{
	int i = index_of(drains, drain->service), begins = drain->by.value == ES_NODE_DRAINING;

	if (!begins && i < 0)
		return 0;
	if (!begins) {
		drains->drain[i] = drains->drain[--drains->count];
		return 1;
	}
	if (i < 0 && drains->count == ES_CONF_SERVICES_MAX)
		return -ENOSPC;
	drains->drain[i < 0 ? (int)drains->count++ : i] = *drain;
	return 1;
}

size_t es_service_drain_put(void *buf, size_t size, const struct es_service_drain *drain)
{
	if (size < ES_SERVICE_DRAIN_SIZE)
		return 0;
	memcpy(buf, drain->service, ES_CONF_NAME_SIZE);
	return es_wire_put_by_hand((char *)buf + ES_CONF_NAME_SIZE, size - ES_CONF_NAME_SIZE, &drain->by) ==
			       ES_WIRE_BY_HAND_SIZE
		       ? ES_SERVICE_DRAIN_SIZE
		       : 0;
}

int es_service_drain_get(const void *data, size_t len, struct es_service_drain *ret)
{
	if (len < ES_SERVICE_DRAIN_SIZE)
		return -EBADMSG;
	memcpy(ret->service, data, ES_CONF_NAME_SIZE);
	if (!ret->service[0] || !memchr(ret->service, 0, ES_CONF_NAME_SIZE))
		return -EBADMSG;
	return es_wire_get_by_hand((const char *)data + ES_CONF_NAME_SIZE, ES_WIRE_BY_HAND_SIZE, &ret->by);
}

size_t es_service_drains_put(void *buf, size_t size, const struct es_service_drains *drains)
{
	size_t used = 0;

	for (unsigned int i = 0; i < drains->count; i++) {
		size_t len = es_service_drain_put((char *)buf + used, size - used, &drains->drain[i]);

		if (!len)
			return 0;
		used += len;
	}
	return used;
}

int es_service_drains_get(const void *data, size_t len, struct es_service_drains *ret)
{
	ret->count = 0;
	if (len % ES_SERVICE_DRAIN_SIZE || len > ES_SERVICE_DRAINS_SIZE)
		return -EBADMSG;
	for (size_t at = 0; at < len; at += ES_SERVICE_DRAIN_SIZE)
		if (es_service_drain_get((const char *)data + at, ES_SERVICE_DRAIN_SIZE,
					 &ret->drain[ret->count++]))
			return -EBADMSG;
	return 0;
}

struct json_object *es_service_drains_json(const struct es_service_drains *drains)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; drains && i < drains->count; i++) {
		struct json_object *object = es_by_hand_json(&drains->drain[i].by);

		json_object_object_add(object, "service", json_object_new_string(drains->drain[i].service));
		json_object_array_add(array, object);
	}
	return array;
}

int es_service_drains_read(const char *path, struct es_service_drains *ret)
{
	struct json_object *array;
	char *text;
	FILE *file;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	text = calloc(1, FILE_MAX);
	if (text)
		(void)!fread(text, 1, FILE_MAX - 1, file);
	fclose(file);
	array = text ? json_tokener_parse(text) : NULL;
	free(text);
	if (!json_object_is_type(array, json_type_array))
		rc = -EBADMSG;
	for (size_t i = 0; !rc && i < json_object_array_length(array); i++) {
		struct json_object *object = json_object_array_get_idx(array, i);
		struct es_service_drain drain = {
			.by = {.what = ES_WIRE_CHANGE_STATE, .value = ES_NODE_DRAINING}};

		rc = es_by_hand_parse(object, &drain.by);
		snprintf(drain.service, sizeof(drain.service), "%s", es_json_string(object, "service"));
		if (!rc && es_service_drains_set(ret, &drain) < 0)
			rc = -EBADMSG;
	}
	json_object_put(array);
	return rc;
}

/* Whole or not at all; a machine that is switched off now comes back as it was set, too. */
static int text_write(const char *path, const char *text)
{
	char directory[256], new_path[280];
	size_t len = strlen(text);
	int fd, rc = 0;

	snprintf(directory, sizeof(directory), "%s", path);
	mkdir(dirname(directory), 0755);
	snprintf(new_path, sizeof(new_path), "%s.new", path);
	fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || fsync(fd))
		rc = errno ? -errno : -EIO;
	close(fd);
	if (!rc && rename(new_path, path))
		rc = -errno;
	if (rc)
		unlink(new_path);
	return rc;
}

int es_service_drains_write(const char *path, const struct es_service_drains *drains)
{
	struct json_object *array;
	int rc;

	if (!drains->count)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	array = es_service_drains_json(drains);
	rc = text_write(path, json_object_to_json_string_ext(array, JSON_C_TO_STRING_PLAIN));
	json_object_put(array);
	return rc;
}
