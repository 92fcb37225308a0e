/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inspector/config.h: whatever the bytes are, parsing gives either a structure
 * within its bounds or an error text, leaks nothing, and leaves the parser fit for the next file.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/config.h"

static const char correct[] =
	"datapath { interface = a cluster_interface = b }\nnode n1 { address = 10.78.0.1 }\n"
	"service web { address = 10.77.0.100 port = 80 }\n";

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct es_conf *conf = NULL;
	struct es_conf_error err;
	int r;

	r = es_conf_parse(text, size, "f", es_conf_policies, &conf, &err);
	if (r) {
		FUZZ_CHECK(!conf);
		FUZZ_CHECK(memchr(err.text, 0, sizeof(err.text)));
		check_error(err.text, text, size);
	} else {
		check_conf(conf);
	}
	free(text);
	es_conf_free(&conf);
	FUZZ_CHECK(!es_conf_parse(correct, sizeof(correct) - 1, "f", es_conf_policies, &conf, &err));
	es_conf_free(&conf);
	return 0;
}
