// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looks for what the configuration names on this machine and the daemon needs to start, or misses later: the
 * group of programs, and document roots. The key file is checked in server.c, and plugins are loaded by the
 * command (cli/check.c).
 */
#include <errno.h>
#include <grp.h>
#include <sys/stat.h>

#include "inspector/check/facts.h"

int es_startup_group_is_missing(const struct es_conf *conf)
{
	return conf->inspector.program_group[0] && !getgrnam(conf->inspector.program_group);
}

int es_startup_root_read(const struct es_conf_service *service)
{
	struct stat st;

	if (!service->document_root[0])
		return 0;
	if (stat(service->document_root, &st))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

void es_facts_read_startup(const struct es_conf *conf, struct es_facts *facts)
{
	facts->startup.no_group = es_startup_group_is_missing(conf);
	for (unsigned int i = 0; i < conf->service_count; i++)
		facts->startup.root_rc[i] = es_startup_root_read(&conf->services[i]);
}
