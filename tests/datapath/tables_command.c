// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshotd with one command more on its control socket, which tests use: the netfilter datapath has what is
 * in force in the daemon's own memory, where nobody else can read or write it
 * (tests/lib/packets/tables_netfilter.py). The rest is earshotd, object for object; the linker leads two of
 * its calls through here.
 *
 *	{"command":"tables","do":"get"}				{"config":HEX,"ring":HEX}
 *	{"command":"tables","do":"put","config":HEX,"ring":HEX}	both are in force
 *	{"command":"tables","do":"connections"}	{"entries":HEX}, each a struct es_connection_entry
 *	{"command":"tables","do":"end_unproven"}		{"count":N}
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>
#include "inspector/base/hex.h"
#include "inspector/control/control.h"
#include "inspector/datapath/datapath.h"

#define ENTRIES_MAX 4096

/* As the linker names what was wrapped. */
int __wrap_es_datapath_configure(struct es_datapath *dp, const struct es_config *config,
				 const struct es_node_ring *ring);
int __real_es_datapath_configure(struct es_datapath *dp, const struct es_config *config,
				 const struct es_node_ring *ring);
int __wrap_es_control_new(struct ev_loop *loop, const char *path, struct es_control **ret_control,
			  struct es_conf_error *err);
int __real_es_control_new(struct ev_loop *loop, const char *path, struct es_control **ret_control,
			  struct es_conf_error *err);

/* The configuration that the control thread, the only one here, has put in force last. */
static struct {
	struct es_datapath *datapath;
	struct es_config config;
	struct es_node_ring ring;
} in_force;

struct entries {
	struct es_connection_entry entry[ENTRIES_MAX];
	unsigned int count;
};

static int configure(const struct es_config *config, const struct es_node_ring *ring)
{
	int rc = __real_es_datapath_configure(in_force.datapath, config, ring);

	if (rc)
		return rc;
	in_force.config = *config;
	in_force.ring = *ring;
	return 0;
}

int __wrap_es_datapath_configure(struct es_datapath *dp, const struct es_config *config,
				 const struct es_node_ring *ring)
{
	in_force.datapath = dp;
	return configure(config, ring);
}

static struct json_object *hex_of(const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = bytes;
	struct json_object *object;
	char *text = malloc(2 * len + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[at[i] >> 4];
		text[2 * i + 1] = digits[at[i] & 15];
	}
	object = json_object_new_string_len(text, (int)(2 * len));
	free(text);
	return object;
}

/* Exactly @len bytes. Returns 0 or -EINVAL. */
static int hex_read(struct json_object *request, const char *name, void *ret_bytes, size_t len)
{
	unsigned char *bytes = ret_bytes;
	struct json_object *object;
	const char *text;

	if (!json_object_object_get_ex(request, name, &object) ||
	    json_object_get_string_len(object) != (int)(2 * len))
		return -EINVAL;
	text = json_object_get_string(object);
	for (size_t i = 0; i < len; i++) {
		int high = es_hex_digit(text[2 * i]), low = es_hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		bytes[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

static int get(struct json_object *result)
{
	json_object_object_add(result, "config", hex_of(&in_force.config, sizeof(in_force.config)));
	json_object_object_add(result, "ring", hex_of(&in_force.ring, sizeof(in_force.ring)));
	return 0;
}

static int put(struct json_object *request)
{
	static struct es_node_ring ring;
	struct es_config config;

	if (hex_read(request, "config", &config, sizeof(config)) ||
	    hex_read(request, "ring", &ring, sizeof(ring)))
		return -EINVAL;
	return configure(&config, &ring);
}

static void on_entry(void *ctx, const void *entry)
{
	struct entries *entries = ctx;

	if (entries->count < ENTRIES_MAX)
		entries->entry[entries->count++] = *(const struct es_connection_entry *)entry;
}

static int connections(struct json_object *result)
{
	static struct entries entries;
	int rc;

	entries.count = 0;
	rc = es_datapath_connections(in_force.datapath, on_entry, &entries);
	json_object_object_add(result, "entries",
			       hex_of(entries.entry, entries.count * sizeof(entries.entry[0])));
	return rc;
}

static int end_unproven(struct json_object *result)
{
	unsigned int count = 0;
	int rc = es_datapath_end_unproven(in_force.datapath, &count);

	json_object_object_add(result, "count", json_object_new_int((int)count));
	return rc;
}

static int on_tables(void *ctx, struct json_object *request, struct json_object **ret_result,
		     struct es_conf_error *err)
{
	struct json_object *result = json_object_new_object(), *what;
	const char *text =
		json_object_object_get_ex(request, "do", &what) ? json_object_get_string(what) : "";
	int rc = -EINVAL;

	(void)ctx;
	(void)err;
	if (!in_force.datapath)
		rc = -EAGAIN;
	else if (!strcmp(text, "get"))
		rc = get(result);
	else if (!strcmp(text, "put"))
		rc = put(request);
	else if (!strcmp(text, "connections"))
		rc = connections(result);
	else if (!strcmp(text, "end_unproven"))
		rc = end_unproven(result);
	*ret_result = result;
	return rc;
}

int __wrap_es_control_new(struct ev_loop *loop, const char *path, struct es_control **ret_control,
			  struct es_conf_error *err)
{
	int rc = __real_es_control_new(loop, path, ret_control, err);

	return rc ? rc : es_control_register(*ret_control, "tables", on_tables, NULL);
}
