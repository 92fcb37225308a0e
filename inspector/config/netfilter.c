// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the netfilter datapath does not do: a configuration that asks for both is refused here, in this one place.
 */
#include <stdio.h>

#include "inspector/config/internal.h"

/**
 * struct lack - what it lacks: the text has what the file says, and what would be right
 * @index: of the service whose key it is
 */
struct lack {
	unsigned int index;
	const char *key;
	char text[ES_CONF_NETFILTER_TEXT];
};

/* The first thing that a service asks for in vain. Returns 1; 0 if there is none. */
static int service_lacks(const struct es_conf_service *service, struct lack *lack)
{
	if (service->server_port) {
		lack->key = "server_port";
		snprintf(lack->text, sizeof(lack->text),
			 "service %s: server_port = %u: with the netfilter datapath no program hands over: "
			 "expected none",
			 service->name, service->server_port);
		return 1;
	}
	return 0;
}

static int find_lack(const struct es_conf *conf, struct lack *lack)
{
	for (lack->index = 0; lack->index < conf->service_count; lack->index++)
		if (service_lacks(&conf->services[lack->index], lack))
			return 1;
	return 0;
}

int es_conf_netfilter_serves(const struct es_conf *conf, char ret_text[ES_CONF_NETFILTER_TEXT])
{
	struct lack lack = {};

	if (!find_lack(conf, &lack))
		return 1;
	snprintf(ret_text, ES_CONF_NETFILTER_TEXT, "%s", lack.text);
	return 0;
}

int es_conf_check_netfilter(struct es_conf_parse *p)
{
	struct lack lack = {};

	if (p->conf->datapath.type != ES_CONF_DATAPATH_NETFILTER || !find_lack(p->conf, &lack))
		return 0;
	return es_conf_fail(p, es_conf_line_of(&p->services[lack.index], ES_CONF_SERVICE, lack.key), "%s",
			    lack.text);
}
