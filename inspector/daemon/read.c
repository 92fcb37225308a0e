// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads what a daemon starts with, or goes on with after a reload: the configuration, which node this is, and
 * the keys.
 */
#include "inspector/base/log.h"
#include "inspector/daemon/internal.h"

static int parse(const struct es_daemon_options *options, const struct es_daemon_text *text,
		 struct es_conf **ret_conf, struct es_conf_error *err)
{
	if (!text)
		return es_conf_read(options->config_path, ret_conf, err);
	return es_conf_parse(text->text, text->len, text->name, ret_conf, err);
}

int es_daemon_read(const struct es_daemon_options *options, const struct es_daemon_text *text,
		   struct es_keys *ret_keys, struct es_conf **ret_conf, unsigned int *ret_self,
		   struct es_conf_error *err)
{
	struct es_conf *conf = NULL;
	int rc;

	rc = parse(options, text, &conf, err);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < conf->warning_count; i++)
		es_log(ES_LOG_WARNING, "%s", conf->warning[i]);
	rc = es_conf_find_self(conf, options->node, ret_self, err);
	if (!rc)
		es_conf_use_node(conf, *ret_self);
	if (!rc)
		rc = es_conf_pages_try(conf, err);
	if (!rc)
		rc = es_keys_read(conf->cluster.key_file, ret_keys, err);
	if (!rc && conf->cluster.ring_hash == ES_CONF_RING_SIPHASH)
		ret_keys->ring_seed = 0;
	if (rc)
		es_conf_free(&conf);
	*ret_conf = conf;
	return rc;
}
