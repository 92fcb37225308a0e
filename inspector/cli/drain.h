/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLI_DRAIN_H
#define ES_CLI_DRAIN_H

/* What `earshot drain` and `undrain` of a node, and of a service on it, share. */
#include "inspector/cli/cli.h"

/* es_cli_drain_now_s() - a clock that nobody sets */
double es_cli_drain_now_s(void);

/* es_cli_drain_for() - reads a time like "2h" of --for; without one, *@ret_s is 0. Return: an enum es_cli_exit, reported. */
int es_cli_drain_for(const char *text, unsigned long long *ret_s);

/* es_cli_drain_service() - of the service that @cli names; @drains: 0: undrain. With --wait, at most @limit_s. Return: likewise. */
int es_cli_drain_service(const struct es_cli *cli, int drains, double limit_s);

#endif
