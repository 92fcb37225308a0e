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

/* struct es_settings_refused - a service that is not served, and why; in the configuration as @from */
struct es_settings_refused {
	const struct es_conf_service *from;
	struct es_conf_error why;
};

/**
 * struct es_settings
 * @conf, @self: the configuration, and which of its nodes this machine is
 * @service: those with tls { }, @count of them; worker I listens for those of which @workers is above I
 * @most_workers: the greatest of @workers
 * @problem: what is wrong with each of @service all the same; es_settings_judge() writes it
 * @refused: those with tls { } that are not served, @refused_count of them
 * @keys: the cluster's; @seal: those of sealed states among them
 */
struct es_settings {
	struct es_conf *conf;
	unsigned int self;
	unsigned int count;
	struct es_serve_service service[ES_CONF_SERVICES_MAX];
	unsigned int workers[ES_CONF_SERVICES_MAX];
	unsigned int most_workers;
	struct es_conf_error problem[ES_CONF_SERVICES_MAX];
	unsigned int refused_count;
	struct es_settings_refused refused[ES_CONF_SERVICES_MAX];
	struct es_tls_keys keys;
	struct es_tls_seal_keys seal;
};

/* es_settings_workers() - how many a service has: as it wants; 0: one for each of @cpus, within the bound */
#define ES_SETTINGS_WORKERS_MAX 256
static inline unsigned int es_settings_workers(unsigned int wanted, long cpus)
{
	unsigned int most = cpus < ES_SETTINGS_WORKERS_MAX ? (unsigned int)cpus : ES_SETTINGS_WORKERS_MAX;

	if (wanted)
		return wanted;
	return cpus > 0 ? most : 1;
}

/**
 * es_settings_new() - read it all
 * @node: this machine's name, or NULL
 * @before: what is in force, NULL at a start. A service that is served well there must be served well; of
 * others, those are served that can be, since nobody is better off with nothing.
 * Returns 0 or -errno; @err says which file, line and key are wrong.
 */
int es_settings_new(const char *path, const char *node, const struct es_settings *before,
		    struct es_settings **ret_settings, struct es_conf_error *err);

/*
 * es_settings_judge() - look at certificates and OCSP answers again. Returns 1 if a @problem is another one.
 */
int es_settings_judge(struct es_settings *settings);

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
