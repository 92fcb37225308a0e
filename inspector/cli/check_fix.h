/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CLI_CHECK_FIX_H
#define ES_INSPECTOR_CLI_CHECK_FIX_H

#include "inspector/check/check.h"
#include "inspector/cli/cli.h"

/**
 * es_cli_check_fix() - print the commands that mend what @check has found, where that is safe; run them if
 * @runs
 * Sysctls come first; the first command that fails ends it. The rest is left to people, and printed as
 * comments. Return: ES_CLI_OK if no error is left; ES_CLI_FAILED.
 */
int es_cli_check_fix(const struct es_check *check, int runs);

#endif
