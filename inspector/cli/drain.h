/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLI_DRAIN_H
#define ES_CLI_DRAIN_H

/* Shared by `earshot drain` and `undrain` of a node, and of a service on it. */
#include "inspector/cli/cli.h"

/* drain_request.c: es_cli_drain_now_s() - a clock that nobody sets */
double es_cli_drain_now_s(void);

/*
 * es_cli_drain_request() - begins a request: by whom, --for and --reason. NULL if one of these is wrong,
 * reported.
 */
struct json_object *es_cli_drain_request(const struct es_cli *cli, const char *command);

/*
 * drain_service.c: es_cli_drain_service() - of the service that @cli names
 * @drains: 0: undrain. With --wait, at most @limit_s. Returns the command's exit status.
 */
int es_cli_drain_service(const struct es_cli *cli, int drains, double limit_s);

#endif
