// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits for a network that is late, before anything of the daemon is there. The configuration is read each
 * time: whoever waits for a wrong name can correct it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "inspector/base/log.h"
#include "inspector/daemon/wait.h"
#include "inspector/machine/interface.h"

/* The things that are not there yet, as text; "" if all are. */
static void find_missing(const struct es_daemon_options *options, char *ret_text, size_t size)
{
	struct es_conf_error err = {};
	struct es_conf *conf = NULL;
	const char *interface = NULL;
	char there[256], address[64];
	unsigned int self = 0;
	int rc;

	*ret_text = 0;
	if (es_conf_read(options->config_path, &conf, &err))
		return;
	rc = es_conf_find_self(conf, options->node, &self, &err);
	if (rc == -ENOENT && !options->node)
		snprintf(ret_text, size, "an address of a node: %s", err.text);
	if (!rc) {
		es_conf_use_node(conf, self);
		if (!es_interface_index(conf->datapath.interface))
			interface = conf->datapath.interface;
		else if (!es_interface_index(conf->datapath.cluster_interface))
			interface = conf->datapath.cluster_interface;
	}
	if (interface) {
		es_interfaces_text(there, sizeof(there));
		snprintf(ret_text, size, "the interface %s of %s: here are %s", interface, conf->path, there);
	} else if (!rc && !es_network_has_address(&conf->nodes[self].address)) {
		snprintf(ret_text, size, "the address %s of node %s: no interface here has it",
			 es_conf_addr_text(&conf->nodes[self].address, address), conf->nodes[self].name);
	}
	es_conf_free(&conf);
}

void es_daemon_wait(const struct es_daemon_options *options)
{
	char missing[1024], said[sizeof(missing)] = "";

	signal(SIGHUP, SIG_IGN); /* it reads the file again anyway */
	for (;;) {
		find_missing(options, missing, sizeof(missing));
		if (!*missing)
			break;
		if (strcmp(missing, said) != 0)
			es_log(ES_LOG_WARNING, "waiting for %s", missing);
		memcpy(said, missing, sizeof(said));
		sleep(1);
	}
	signal(SIGHUP, SIG_DFL);
}
