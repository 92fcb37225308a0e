// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/config/config.h: whatever the bytes are, parsing gives either a structure
 * within its bounds or an error text, leaks nothing, and leaves the parser fit for the next file.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/config/config.h"

static const char correct[] =
	"datapath { interface = a cluster_interface = b }\nnode n1 { address = 10.78.0.1 }\n"
	"service web { address = 10.77.0.100 port = 80 }\n";

static void check_list(const struct es_conf_list *list)
{
	unsigned int n = 0;

	FUZZ_CHECK(list->count <= ES_CONF_LIST_MAX && !list->used == !list->count &&
		   !list->text == !list->count);
	for (const char *item = NULL; (item = es_conf_list_next(list, item)); n++)
		FUZZ_CHECK(item + strlen(item) < list->text + list->used);
	FUZZ_CHECK(n == list->count);
}

static void check_rule(const struct es_conf *conf, const struct es_conf_rule *rule)
{
	FUZZ_CHECK(rule->service >= -1 && rule->service < (int)conf->service_count);
	check_list(&rule->methods);
	check_list(&rule->hosts);
	check_list(&rule->paths);
	check_list(&rule->suffixes);
	check_list(&rule->clients);
	check_list(&rule->node_names);
	FUZZ_CHECK((rule->node_names.count == 0) == es_node_set_is_empty(rule->nodes));
	FUZZ_CHECK(rule->name[0] && (!rule->is_location || rule->name[0] == '/'));
}

static void check_conf(const struct es_conf *conf)
{
	unsigned int i;

	FUZZ_CHECK(conf->node_count && conf->node_count <= ES_CONF_NODES_MAX);
	FUZZ_CHECK(conf->service_count && conf->service_count <= ES_CONF_SERVICES_MAX);
	FUZZ_CHECK(conf->cluster.virtual_nodes);
	for (i = 0; i < conf->service_count; i++) {
		FUZZ_CHECK(conf->services[i].port && conf->services[i].port <= 65535);
		FUZZ_CHECK(conf->services[i].policy[0]);
	}
	for (i = 0; i < conf->rule_count; i++)
		check_rule(conf, &conf->rules[i]);
}

/* "f:LINE: ..." names a line that is there; "f: ..." none. */
static void check_error(const char *error, const char *text, size_t size)
{
	unsigned long line, lines = 1;
	char *end;

	FUZZ_CHECK(!strncmp(error, "f:", 2) && !strchr(error, '\n'));
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	line = strtoul(error + 2, &end, 10);
	FUZZ_CHECK(line <= lines);
	FUZZ_CHECK(*end == ':' || end == error + 2);
}

/* Each of them a text as the first one, and no configuration either. */
static void check_all_errors(const char *text, size_t size)
{
	static struct es_conf_errors errors;
	struct es_conf *conf = NULL;

	FUZZ_CHECK(es_conf_parse_all(text, size, "f", &conf, &errors));
	FUZZ_CHECK(!conf);
	FUZZ_CHECK(errors.count && errors.count <= ES_CONF_ERRORS_MAX);
	for (unsigned int i = 0; i < errors.count; i++) {
		FUZZ_CHECK(memchr(errors.error[i].text, 0, sizeof(errors.error[i].text)));
		check_error(errors.error[i].text, text, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct es_conf *conf = NULL;
	struct es_conf_error err;
	int r;

	r = es_conf_parse(text, size, "f", &conf, &err);
	if (r) {
		FUZZ_CHECK(!conf);
		FUZZ_CHECK(memchr(err.text, 0, sizeof(err.text)));
		check_error(err.text, text, size);
		check_all_errors(text, size);
	} else {
		check_conf(conf);
	}
	free(text);
	es_conf_free(&conf);
	FUZZ_CHECK(!es_conf_parse(correct, sizeof(correct) - 1, "f", &conf, &err));
	es_conf_free(&conf);
	return 0;
}
