// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In each unit test's program: EARSHOT_CASE in the environment names the case that runs alone (tests/one.py
 * -k).
 */
#include "cmocka_all.h"
#include <stdlib.h>

__attribute__((constructor)) static void choose(void)
{
	cmocka_set_test_filter(getenv("EARSHOT_CASE"));
}
