/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_SETTINGS_H
#define ES_SERVE_SETTINGS_H

/*
 * The files, as the parent has read them: the configuration, certificates and keys, the cluster's key.
 * Workers inherit it.
 */
#include "inspector/base/error.h"
#include "inspector/config/tls_keys.h"
#include "tls/serve/serve.h"

/**
 * struct es_settings
 * @conf, @self: the configuration, and which of its nodes this machine is
 * @service: those with tls { }, @count of them; worker I listens for those of which @workers is above I
 * @most_workers: the greatest of @workers
 * @keys: the cluster's; @seal: those of sealed states among them
 */
struct es_settings {
	struct es_conf *conf;
	unsigned int self;
	unsigned int count;
	struct es_serve_service service[ES_CONF_SERVICES_MAX];
	unsigned int workers[ES_CONF_SERVICES_MAX];
	unsigned int most_workers;
	struct es_tls_keys keys;
	struct es_tls_seal_keys seal;
};

/**
 * es_settings_new() - read it all
 * @node: this machine's name, or NULL
 * Returns 0 or -errno; @err says which file, line and key are wrong.
 */
int es_settings_new(const char *path, const char *node, struct es_settings **ret_settings,
		    struct es_conf_error *err);
void es_settings_free(struct es_settings **settings);

/* es_settings_use_keys() - @keys are in force, with tickets of @day (since 1970). Returns 0 or -EIO. */
int es_settings_use_keys(struct es_settings *settings, const struct es_tls_keys *keys,
			 unsigned long long day);

/* es_settings_day() - today */
unsigned long long es_settings_day(void);

static inline const char *es_settings_self(const struct es_settings *settings)
{
	return settings->conf->nodes[settings->self].name;
}

#endif
