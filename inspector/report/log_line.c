// SPDX-License-Identifier: GPL-2.0-or-later
/* Lines of the request log. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "inspector/report/log_line.h"
#include "inspector/report/trace.h"

#define NS_PER_S 1000000000ULL

/* As Apache and nginx do: what would end the field or the line, and all that is no ASCII, is \xNN. */
static size_t put_escaped(const char *text, size_t len, char *to)
{
	char *begin = to;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\')
			*to++ = (char)c;
		else
			to += sprintf(to, "\\x%02X", c);
	}
	return (size_t)(to - begin);
}

/* A value that is not known is "-". */
static void number(char *text, size_t size, unsigned long long value, int is_known)
{
	if (is_known)
		snprintf(text, size, "%llu", value);
	else
		snprintf(text, size, "-");
}

static size_t common(const struct es_trace_entry *entry, time_t at_s, char *line)
{
	char address[INET6_ADDRSTRLEN], when[40] = "", status[8], bytes[16];
	struct tm tm;
	size_t used;

	if (entry->decision == ES_TALLY_again)
		return 0;
	if (localtime_r(&at_s, &tm))
		strftime(when, sizeof(when), "%d/%b/%Y:%H:%M:%S %z", &tm);
	used = (size_t)snprintf(line, ES_LOG_LINE_SIZE, "%s - - [%s] \"",
				es_conf_addr_text(&entry->client, address), when);
	if (entry->text_len)
		used += put_escaped(entry->text, entry->text_len, line + used);
	else
		line[used++] = '-';
	if (entry->text_len && entry->minor >= 0)
		used += (size_t)snprintf(line + used, ES_LOG_LINE_SIZE - used, " HTTP/1.%d", entry->minor);
	number(status, sizeof(status), entry->status, entry->status != 0);
	number(bytes, sizeof(bytes), entry->bytes, entry->status != 0);
	return used + (size_t)snprintf(line + used, ES_LOG_LINE_SIZE - used, "\" %s %s\n", status, bytes);
}

static void add_number(struct json_object *object, const char *key, unsigned long long value, int is_known)
{
	json_object_object_add(object, key, is_known ? json_object_new_int64((int64_t)value) : NULL);
}

static size_t json(const struct es_trace_entry *entry, const char *node, unsigned long long to_wall_ns,
		   char *line)
{
	struct json_object *object = es_report_trace(entry, to_wall_ns);
	int len;

	json_object_object_add(object, "node", json_object_new_string(node));
	add_number(object, "status", entry->status, entry->status != 0);
	add_number(object, "bytes", entry->bytes, entry->status != 0);
	len = snprintf(line, ES_LOG_LINE_SIZE, "%s\n",
		       json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
								      JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
	return len > 0 && len < ES_LOG_LINE_SIZE ? (size_t)len : 0;
}

size_t es_report_log_line(const struct es_trace_entry *entry, enum es_conf_log_format format,
			  const char *node, unsigned long long to_wall_ns, char line[ES_LOG_LINE_SIZE])
{
	if (format == ES_CONF_LOG_JSON)
		return json(entry, node, to_wall_ns, line);
	return common(entry, (time_t)((entry->at_ns + to_wall_ns) / NS_PER_S), line);
}
