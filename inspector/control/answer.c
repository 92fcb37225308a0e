// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From one request line to one reply line: parses the JSON, finds the command's handler, wraps what it
 * returns. It knows nothing about sockets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/control/internal.h"

#define JSON_DEPTH 16

/* @reply as a line with its newline; takes over @reply, which may be NULL. */
static char *to_line(struct json_object *reply, size_t *ret_len)
{
	const char *text;
	char *line = NULL;
	size_t len = 0;

	text = reply ? json_object_to_json_string_length(
			       reply, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len)
		     : NULL;
	if (text && len < ES_CONTROL_REPLY_MAX)
		line = malloc(len + 1);
	if (line) {
		memcpy(line, text, len);
		line[len] = '\n';
		*ret_len = len + 1;
	}
	json_object_put(reply);
	if (!line && text && len >= ES_CONTROL_REPLY_MAX)
		return es_control_error_line("reply too long", ret_len);
	return line;
}

char *es_control_error_line(const char *text, size_t *ret_len)
{
	struct json_object *reply = json_object_new_object();

	if (!reply)
		return NULL;
	json_object_object_add(reply, "ok", json_object_new_boolean(0));
	json_object_object_add(reply, "error", json_object_new_string(text));
	return to_line(reply, ret_len);
}

static char *result_line(struct json_object *result, size_t *ret_len)
{
	struct json_object *reply = json_object_new_object();

	if (!reply) {
		json_object_put(result);
		return NULL;
	}
	json_object_object_add(reply, "ok", json_object_new_boolean(1));
	json_object_object_add(reply, "result", result ? result : json_object_new_object());
	return to_line(reply, ret_len);
}

/* The request as an object; NULL with the reason in @ret_why. */
static struct json_object *parse(const char *line, size_t len, const char **ret_why)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *request;
	enum json_tokener_error error;
	size_t end;

	*ret_why = "out of memory";
	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	request = json_tokener_parse_ex(tokener, line, (int)len);
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	*ret_why = "bad request, expected one JSON object with a \"command\" on each line";
	if (error == json_tokener_success && end == len && json_object_is_type(request, json_type_object))
		return request;
	json_object_put(request);
	return NULL;
}

static char *unknown_command(const struct es_control *control, const char *name, size_t *ret_len)
{
	struct es_conf_error text;
	char known[256] = "";
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < control->command_count && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? " | " : "",
					 control->commands[i].name);
	es_conf_error_set(&text, "unknown command \"%.80s\", expected %s", name, known);
	return es_control_error_line(text.text, ret_len);
}

static char *run(const struct es_control_command *command, struct json_object *request, size_t *ret_len)
{
	struct es_conf_error err = {.text = ""};
	struct json_object *result = NULL;
	int r;

	r = command->fn(command->ctx, request, &result, &err);
	if (!r)
		return result_line(result, ret_len);
	return es_control_error_line(err.text[0] ? err.text : strerror(-r), ret_len);
}

char *es_control_answer(struct es_control *control, const char *line, size_t len, size_t *ret_len)
{
	struct json_object *request, *command = NULL;
	const char *name, *why;
	char *reply = NULL;
	unsigned int i;

	if (len && line[len - 1] == '\r')
		len--;
	request = parse(line, len, &why);
	if (!request)
		return es_control_error_line(why, ret_len);
	if (!json_object_object_get_ex(request, "command", &command) ||
	    !json_object_is_type(command, json_type_string)) {
		json_object_put(request);
		return es_control_error_line(why, ret_len);
	}
	name = json_object_get_string(command);
	for (i = 0; i < control->command_count; i++)
		if (strlen(name) == (size_t)json_object_get_string_len(command) &&
		    !strcmp(control->commands[i].name, name))
			break;
	if (i < control->command_count)
		reply = run(&control->commands[i], request, ret_len);
	else
		reply = unknown_command(control, name, ret_len);
	json_object_put(request);
	return reply;
}
