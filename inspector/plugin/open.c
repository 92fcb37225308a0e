// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds a plugin's file, opens it beside whatever version of it is open already, judges its descriptor and
 * has it read its configuration. Before its descriptor is accepted, only a plugin's constructors run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/utf8.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host_internal.h"

/* The time that a plugin has to read its configuration, and to release its state. */
#define CONFIGURE_MS 2000

#define CONFIG_MAX_MB	 16
#define CONFIG_MAX_BYTES (CONFIG_MAX_MB * 1024 * 1024)

static const char *const es_plugin_where = EARSHOT_PLUGIN_DIR_DEFAULT;

const char *es_plugins_dir(void)
{
	const char *dir = getenv(ES_PLUGIN_DIR_ENV);

	return dir && *dir ? dir : es_plugin_where;
}

/* "file:line: service web: plugin x: …" in @err; returns -EINVAL */
static int es_load_fail(const struct es_conf *conf, const struct es_conf_plugin *plugin,
			struct es_conf_error *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int es_load_fail(const struct es_conf *conf, const struct es_conf_plugin *plugin,
			struct es_conf_error *err, const char *format, ...)
{
	char what[sizeof(err->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	es_conf_error_set(err, "%s:%d: service %s: plugin %s: %s", conf->path, plugin->line,
			  conf->services[plugin->service].name, plugin->name, what);
	return -EINVAL;
}

static void es_plugin_path(const struct es_conf_plugin *plugin, char *path, size_t size)
{
	const char *file = plugin->file[0] ? plugin->file : plugin->name;
	const char *suffix = plugin->file[0] ? "" : ".so";

	if (file[0] == '/')
		snprintf(path, size, "%s", file);
	else
		snprintf(path, size, "%s/%s%s", es_plugins_dir(), file, suffix);
}

/*
 * A path to the open file that was never used before. For a path that it knows, the loader returns the object
 * that it loaded by that path: the old version of a file that was replaced, or even another plugin, since
 * numbers of descriptors are used again. It compares paths as they are written, and the kernel accepts any
 * number of "./" in one. An unchanged file is still the same object, with one set of static variables.
 */
static void es_plugin_loader_path(int fd, char *path, size_t size)
{
	static unsigned int serial; /* the control thread's */
	size_t used = (size_t)snprintf(path, size, "/proc/self/fd/");

	serial++;
	for (unsigned int bit = 0; bit < 32 && serial >> bit; bit++)
		used += (size_t)snprintf(path + used, size - used, "%s", serial >> bit & 1 ? ".//" : "./");
	snprintf(path + used, size - used, "%d", fd);
}

static int es_plugin_map(struct es_plugin_instance *instance, struct es_conf_error *why)
{
	char path[128];
	struct stat st;

	instance->fd = open(instance->file, O_RDONLY | O_CLOEXEC);
	if (instance->fd < 0 || fstat(instance->fd, &st)) {
		int rc = -errno;

		es_conf_error_set(why, "%s: cannot be opened: %s", instance->file, strerror(-rc));
		return rc;
	}
	if (!S_ISREG(st.st_mode)) {
		es_conf_error_set(why, "%s: is not a regular file: expected a shared object", instance->file);
		return -EINVAL;
	}
	es_plugin_loader_path(instance->fd, path, sizeof(path));
	instance->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!instance->object) {
		const char *text = dlerror();

		/* The loader's text begins with our path, which means nothing to people. */
		if (text && !strncmp(text, path, strlen(path)))
			text += strlen(path) + (text[strlen(path)] == ':' ? 2 : 0);
		es_conf_error_set(why, "%s: cannot be loaded: %s", instance->file, text ? text : "unknown");
		return -EINVAL;
	}
	return 0;
}

/* Judges the descriptor by its header. Reads no more than is there. */
static int es_plugin_judge(struct es_plugin_instance *instance, struct es_conf_error *why)
{
	const struct es_plugin *found = dlsym(instance->object, ES_PLUGIN_SYMBOL);
	struct es_plugin *plugin = &instance->plugin;
	const struct es_plugin_metric *metric;

	if (!found || found->magic != ES_PLUGIN_MAGIC) {
		es_conf_error_set(why, "%s: is not an Earshot plugin: expected the symbol " ES_PLUGIN_SYMBOL,
				  instance->file);
		return -EINVAL;
	}
	if (found->abi_major != ES_PLUGIN_ABI_MAJOR) {
		es_conf_error_set(why,
				  "%s: was built for plugin ABI %u.%u, and this is %d.%d: expected a plugin "
				  "of ABI %d.x",
				  instance->file, found->abi_major, found->abi_minor, ES_PLUGIN_ABI_MAJOR,
				  ES_PLUGIN_ABI_MINOR, ES_PLUGIN_ABI_MAJOR);
		return -EINVAL;
	}
	if (found->size < ES_PLUGIN_SIZE_1_0 || found->answer_size < ES_PLUGIN_ANSWER_SIZE_1_0 ||
	    found->answer_size > ES_PLUGIN_ANSWER_ROOM || found->node_size < ES_PLUGIN_NODE_SIZE_1_0) {
		es_conf_error_set(
			why,
			"%s: its descriptor's sizes (%u, %u, %u) are not those of ABI %d.x: expected what "
			"earshot/plugin.h sets",
			instance->file, found->size, found->answer_size, found->node_size,
			ES_PLUGIN_ABI_MAJOR);
		return -EINVAL;
	}
	memcpy(plugin, found, found->size < sizeof(*plugin) ? found->size : sizeof(*plugin));
	if (!plugin->name || !plugin->version || !plugin->description || !plugin->route) {
		es_conf_error_set(
			why,
			"%s: its descriptor is incomplete: expected name, version, description and route()",
			instance->file);
		return -EINVAL;
	}
	for (metric = plugin->metrics; metric && metric->name; metric++)
		if (++instance->metric_count > ES_PLUGIN_METRICS_MAX) {
			es_conf_error_set(why, "%s: has too many metrics: expected at most %d",
					  instance->file, ES_PLUGIN_METRICS_MAX);
			return -EINVAL;
		}
	return 0;
}

/* Reads a text file without its byte order mark, and adds a NUL; the caller frees it. */
static int es_text_read(const char *path, char **ret_text, size_t *ret_len)
{
	size_t len, mark;
	FILE *file = fopen(path, "re");
	char *text;
	int rc = 0;

	if (!file)
		return -errno;
	text = malloc(CONFIG_MAX_BYTES + 1);
	if (!text) {
		fclose(file);
		return -ENOMEM;
	}
	len = fread(text, 1, CONFIG_MAX_BYTES + 1, file);
	if (ferror(file))
		rc = -EIO;
	else if (len > CONFIG_MAX_BYTES)
		rc = -EFBIG;
	else if (es_utf16_is(text, len))
		rc = -EILSEQ;
	fclose(file);
	if (rc) {
		free(text);
		return rc;
	}
	mark = es_utf8_mark_len(text, len);
	len -= mark;
	memmove(text, text + mark, len);
	text[len] = 0;
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static const char *es_text_error(int rc, char *text, size_t size)
{
	if (rc == -EFBIG)
		snprintf(text, size, "too long: expected at most %d MiB", CONFIG_MAX_MB);
	else
		snprintf(text, size, "%s", rc == -EILSEQ ? "UTF-16: expected UTF-8" : strerror(-rc));
	return text;
}

struct es_configure_call {
	struct es_plugin_instance *instance;
	struct es_plugin_config *config;
	int rc;
};

static void es_configure_call(void *ctx)
{
	struct es_configure_call *call = ctx;
	struct es_plugin_instance *instance = call->instance;

	call->rc = instance->plugin.configure(&es_plugin_host, call->config, &instance->state);
}

static void es_release_call(void *ctx)
{
	struct es_plugin_instance *instance = ctx;

	instance->plugin.release(instance->state);
}

static int es_plugin_configure(const struct es_conf *conf, struct es_plugin_instance *instance,
			       struct es_conf_error *err)
{
	const struct es_conf_plugin *plugin = instance->conf;
	struct es_plugin_config config = {
		.conf = conf,
		.plugin = plugin,
		.file = conf->path,
		.line = (unsigned int)(plugin->config_line ? plugin->config_line : plugin->line),
		.text = plugin->config,
		.len = strlen(plugin->config),
		.err = err,
	};
	struct es_configure_call call = {.instance = instance, .config = &config};
	int rc, signal = 0;
	char *text = NULL, why[64];

	if (plugin->config_file[0]) {
		rc = es_text_read(plugin->config_file, &text, &config.len);
		if (rc)
			return es_load_fail(conf, plugin, err, "config_file = %s: %s", plugin->config_file,
					    es_text_error(rc, why, sizeof(why)));
		config.text = text;
		config.file = plugin->config_file;
		config.line = 1;
	}
	instance->digest = es_content_hash(config.text, config.len);
	if (!instance->plugin.configure) {
		rc = 0;
		if (config.len)
			rc = es_plugin_host.config_fail(&config, config.line, "it takes no configuration");
	} else {
		signal = es_guard_call(CONFIGURE_MS, es_configure_call, &call);
		rc = call.rc;
		if (signal == ES_GUARD_SIGNAL)
			rc = es_load_fail(conf, plugin, err,
					  "configure() did not return within %d ms, and was left",
					  CONFIGURE_MS);
		else if (signal)
			rc = es_load_fail(conf, plugin, err, "configure() crashed: %s",
					  es_guard_signal_name(signal));
		if (rc > 0)
			rc = -EINVAL;
		if (config.failed)
			rc = -EINVAL;
		else if (rc && !signal)
			es_load_fail(conf, plugin, err, "its configuration failed: %s", strerror(-rc));
		instance->is_configured = !rc;
		if (signal)
			instance->object = NULL; /* work that it has begun may go on, and needs its code */
	}
	free(text);
	return rc;
}

int es_plugin_open(const struct es_conf *conf, const struct es_conf_plugin *plugin,
		   enum es_plugins_missing missing, struct es_plugin_instance *instance,
		   struct es_conf_error *err)
{
	struct es_conf_error why = {};
	int rc;

	instance->conf = plugin;
	instance->fd = -1;
	instance->control.instance = instance;
	pthread_mutex_init(&instance->lock, NULL);
	es_plugin_path(plugin, instance->file, sizeof(instance->file));
	rc = es_plugin_map(instance, &why);
	if (rc == -ENOENT && missing == ES_PLUGINS_MISSING_SKIPPED) {
		snprintf(instance->what, sizeof(instance->what), "not there");
		return 0;
	}
	if (!rc)
		rc = es_plugin_judge(instance, &why);
	if (rc)
		return es_load_fail(conf, plugin, err, "%s", why.text);
	return es_plugin_configure(conf, instance, err);
}

void es_plugin_close(struct es_plugin_instance *instance)
{
	if (instance->is_configured && instance->plugin.release &&
	    es_guard_call(CONFIGURE_MS, es_release_call, instance))
		instance->object = NULL; /* as above */
	if (instance->object)
		dlclose(instance->object);
	if (instance->fd >= 0)
		close(instance->fd);
	pthread_mutex_destroy(&instance->lock);
}
