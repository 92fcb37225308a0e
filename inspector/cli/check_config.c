// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check-config`: parses a configuration file as the daemon would and says what is in it, or what is
 * wrong. It asks no daemon and looks at nothing but the file and the plugins that it names.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inspector/check/facts.h"
#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"
#include "inspector/config/config.h"
#include "inspector/config/keyfile.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host.h"

static void print_nodes(const struct es_conf *conf)
{
	static const char *const headings[] = {"NODE", "ADDRESS", ">WEIGHT", NULL};
	struct es_table *table = es_table_new(headings);
	char text[INET6_ADDRSTRLEN];
	unsigned int i;

	for (i = 0; i < conf->node_count; i++) {
		es_table_cell(table, "%s", conf->nodes[i].name);
		es_table_cell(table, "%s", es_conf_addr_text(&conf->nodes[i].address, text));
		es_table_cell(table, "%u", conf->nodes[i].weight);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_services(const struct es_conf *conf)
{
	static const char *const headings[] = {"SERVICE", "ADDRESS", ">PORT", "POLICY", NULL};
	struct es_table *table = es_table_new(headings);
	char text[ES_CONF_ADDRESSES_SIZE];
	unsigned int i;

	for (i = 0; i < conf->service_count; i++) {
		es_table_cell(table, "%s", conf->services[i].name);
		es_table_cell(table, "%s", es_conf_service_text(&conf->services[i], text));
		es_table_cell(table, "%u", conf->services[i].port);
		es_table_cell(table, "%s", conf->services[i].policy);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_plugins(const struct es_conf *conf, struct es_plugins *plugins)
{
	static const char *const headings[] = {"PLUGIN", "SERVICE", "VERSION", "FAIL", "FILE", NULL};
	struct es_table *table = es_table_new(headings);
	struct es_plugin_report report;

	for (unsigned int i = 0; i < es_plugins_count(plugins); i++) {
		es_plugins_describe(plugins, i, &report);
		es_table_cell(table, "%s", report.name);
		es_table_cell(table, "%s", conf->services[report.service].name);
		es_table_cell(table, "%s", report.is_loaded ? report.version : "-");
		es_table_cell(table, "%s", report.is_closed ? "closed" : "open");
		es_table_cell(
			table, "%s%s", report.file,
			report.is_loaded ? "" : " is not on this machine: its configuration was not checked");
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void warn(struct json_object *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct json_object *warnings, const char *format, ...)
{
	char text[ES_CONF_WARNING_SIZE + ES_CONF_PATH_SIZE];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	json_object_array_add(warnings, json_object_new_string(text));
}

/* A file of a service's tls { }; whether it can be used is for `earshot check`, on a node. */
static void file_look(struct json_object *warnings, const struct es_conf *conf,
		      const struct es_conf_service *service, const char *key, const char *file)
{
	if (file[0] && access(file, F_OK))
		warn(warnings, "%s:%d: service %s: tls: %s = %s: on this machine: %s", conf->path,
		     service->tls.line, service->name, key, file, strerror(errno));
}

static void tls_look(struct json_object *warnings, const struct es_conf *conf,
		     const struct es_conf_service *service)
{
	for (unsigned int i = 0; i < service->tls.certificate_count; i++) {
		file_look(warnings, conf, service, "certificate", service->tls.certificate[i]);
		file_look(warnings, conf, service, "key", service->tls.key[i]);
		file_look(warnings, conf, service, "ocsp", service->tls.ocsp[i]);
	}
	file_look(warnings, conf, service, "client_ca", service->tls.client_ca);
}

/* Warns of what is correct but may not be meant, and of what is missing here, since this need not be a
 * machine of the cluster. */
static struct json_object *warnings_of(const struct es_conf *conf)
{
	struct json_object *warnings = json_object_new_array();
	struct es_conf_error err;

	for (unsigned int i = 0; i < conf->warning_count; i++)
		warn(warnings, "%s", conf->warning[i]);
	if (es_startup_group_is_missing(conf))
		warn(warnings,
		     "%s: inspector: program_group = %s: no such group on this machine: earshotd does not "
		     "start without",
		     conf->path, conf->inspector.program_group);
	for (unsigned int i = 0; i < conf->service_count; i++) {
		int rc = es_startup_root_read(&conf->services[i]);

		if (rc)
			warn(warnings, "%s: service %s: document_root = %s: on this machine: %s", conf->path,
			     conf->services[i].name, conf->services[i].document_root, strerror(-rc));
		if (conf->services[i].check.ca_file[0] && access(conf->services[i].check.ca_file, R_OK))
			warn(warnings, "%s: service %s: check: ca_file = %s: on this machine: %s", conf->path,
			     conf->services[i].name, conf->services[i].check.ca_file, strerror(errno));
		tls_look(warnings, conf, &conf->services[i]);
	}
	if (es_conf_pages_try(conf, &err))
		warn(warnings, "%s, on this machine: earshotd does not start without", err.text);
	return warnings;
}

static void print_summary_json(const struct es_conf *conf, struct es_plugins *plugins,
			       struct json_object *warnings)
{
	struct json_object *summary = json_object_new_object(), *array = json_object_new_array();
	struct es_plugin_report report;

	json_object_object_add(summary, "path", json_object_new_string(conf->path));
	json_object_object_add(summary, "cluster", json_object_new_string(conf->cluster.name));
	json_object_object_add(summary, "nodes", json_object_new_int((int)conf->node_count));
	json_object_object_add(summary, "services", json_object_new_int((int)conf->service_count));
	for (unsigned int i = 0; i < es_plugins_count(plugins); i++) {
		struct json_object *plugin = json_object_new_object();

		es_plugins_describe(plugins, i, &report);
		json_object_object_add(plugin, "service",
				       json_object_new_string(conf->services[report.service].name));
		json_object_object_add(plugin, "name", json_object_new_string(report.name));
		json_object_object_add(plugin, "file", json_object_new_string(report.file));
		json_object_object_add(plugin, "checked", json_object_new_boolean(report.is_loaded));
		json_object_array_add(array, plugin);
	}
	json_object_object_add(summary, "plugins", array);
	json_object_object_add(summary, "warnings", json_object_get(warnings));
	es_cli_print_json(summary);
	json_object_put(summary);
}

/* Prints all errors to standard error; with --json, standard output gets them as an array, too. */
static int fail_all(const struct es_cli *cli, const struct es_conf_errors *errors)
{
	struct json_object *summary = json_object_new_object(), *array = json_object_new_array();

	for (unsigned int i = 0; i < errors->count; i++) {
		es_cli_fail("%s", errors->error[i].text);
		json_object_array_add(array, json_object_new_string(errors->error[i].text));
	}
	if (errors->left_out)
		es_cli_fail("%s: %u more errors", cli->args[0], errors->left_out);
	json_object_object_add(summary, "path", json_object_new_string(cli->args[0]));
	json_object_object_add(summary, "errors", array);
	if (cli->json)
		es_cli_print_json(summary);
	json_object_put(summary);
	return ES_CLI_FAILED;
}

static void add_error(struct es_conf_errors *errors, const struct es_conf_error *err)
{
	if (errors->count < ES_CONF_ERRORS_MAX)
		errors->error[errors->count++] = *err;
	else
		errors->left_out++;
}

/*
 * Look for what a daemon would not find here. On a machine that is one of the nodes that is an error; another
 * one, where files are written and checked, need not have the key and the plugins.
 */
static void look_at_machine(const struct es_conf *conf, struct es_plugins **ret_plugins,
			    struct es_conf_errors *errors)
{
	struct es_conf_error err = {}, named;
	unsigned int self;
	int is_node = !es_conf_find_self(conf, NULL, &self, NULL);
	struct es_keys keys;
	int rc = is_node ? es_keys_read(conf->cluster.key_file, &keys, &err) : 0;

	if (is_node && !rc)
		es_keys_wipe(&keys);
	if (rc && rc != -EACCES) { /* another user than root cannot tell */
		es_conf_error_set(&named, "%s: cluster: key_file: %s", conf->path, err.text);
		add_error(errors, &named);
	}
	memset(&err, 0, sizeof(err));
	if (!es_plugins_new(conf, is_node ? ES_PLUGINS_MISSING_FAILS : ES_PLUGINS_MISSING_SKIPPED,
			    ret_plugins, &err))
		return;
	if (!err.text[0])
		es_conf_error_set(&err, "%s: plugins: out of memory", conf->path);
	add_error(errors, &err);
}

static int run(const struct es_cli *cli)
{
	static struct es_conf_errors errors; /* large */
	struct es_conf *conf = NULL;
	struct es_plugins *plugins = NULL;
	struct json_object *warnings;

	if (es_conf_read_all(cli->args[0], &conf, &errors))
		return fail_all(cli, &errors);
	es_guard_install();
	es_guard_thread();
	look_at_machine(conf, &plugins, &errors);
	if (errors.count) {
		es_plugins_free(&plugins);
		es_conf_free(&conf);
		return fail_all(cli, &errors);
	}
	warnings = warnings_of(conf);
	for (size_t i = 0; i < json_object_array_length(warnings); i++)
		fprintf(stderr, "earshot: warning: %s\n",
			json_object_get_string(json_object_array_get_idx(warnings, i)));
	if (cli->json) {
		print_summary_json(conf, plugins, warnings);
	} else {
		printf("%s: correct, cluster %s\n\n", conf->path, conf->cluster.name);
		print_nodes(conf);
		puts("");
		print_services(conf);
		if (plugins) {
			puts("");
			print_plugins(conf, plugins);
		}
	}
	json_object_put(warnings);
	es_plugins_free(&plugins);
	es_conf_free(&conf);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_check_config = {
	.name = "check-config",
	.args_doc = "FILE",
	.doc = "Check a configuration file as the daemon would; status 1 and all errors if it is wrong.",
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
