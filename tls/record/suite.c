// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of cipher suites.
 */
#include "tls/record/suite.h"

#include <stddef.h>
#include "tls/record/state.h"

static const struct es_tls_suite suites[] = {
	{0x1301, ES_TLS_1_3, ES_TLS_AES_128_GCM, 16, 32, 12, 0, ES_TLS_GCM_RECORDS, "TLS_AES_128_GCM_SHA256"},
	{0x1302, ES_TLS_1_3, ES_TLS_AES_256_GCM, 32, 48, 12, 0, ES_TLS_GCM_RECORDS, "TLS_AES_256_GCM_SHA384"},
	{0x1303, ES_TLS_1_3, ES_TLS_CHACHA20_POLY1305, 32, 32, 12, 0, 0, "TLS_CHACHA20_POLY1305_SHA256"},
	{0xc02b, ES_TLS_1_2, ES_TLS_AES_128_GCM, 16, 32, 4, 8, ES_TLS_GCM_RECORDS,
	 "ECDHE-ECDSA-AES128-GCM-SHA256"},
	{0xc02f, ES_TLS_1_2, ES_TLS_AES_128_GCM, 16, 32, 4, 8, ES_TLS_GCM_RECORDS,
	 "ECDHE-RSA-AES128-GCM-SHA256"},
	{0x009e, ES_TLS_1_2, ES_TLS_AES_128_GCM, 16, 32, 4, 8, ES_TLS_GCM_RECORDS,
	 "DHE-RSA-AES128-GCM-SHA256"},
	{0xc02c, ES_TLS_1_2, ES_TLS_AES_256_GCM, 32, 48, 4, 8, ES_TLS_GCM_RECORDS,
	 "ECDHE-ECDSA-AES256-GCM-SHA384"},
	{0xc030, ES_TLS_1_2, ES_TLS_AES_256_GCM, 32, 48, 4, 8, ES_TLS_GCM_RECORDS,
	 "ECDHE-RSA-AES256-GCM-SHA384"},
	{0x009f, ES_TLS_1_2, ES_TLS_AES_256_GCM, 32, 48, 4, 8, ES_TLS_GCM_RECORDS,
	 "DHE-RSA-AES256-GCM-SHA384"},
	{0xcca9, ES_TLS_1_2, ES_TLS_CHACHA20_POLY1305, 32, 32, 12, 0, 0, "ECDHE-ECDSA-CHACHA20-POLY1305"},
	{0xcca8, ES_TLS_1_2, ES_TLS_CHACHA20_POLY1305, 32, 32, 12, 0, 0, "ECDHE-RSA-CHACHA20-POLY1305"},
	{0xccaa, ES_TLS_1_2, ES_TLS_CHACHA20_POLY1305, 32, 32, 12, 0, 0, "DHE-RSA-CHACHA20-POLY1305"},
};

const struct es_tls_suite *es_tls_suite_find(uint16_t version, uint16_t number)
{
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		if (suites[i].version == version && suites[i].number == number)
			return &suites[i];
	return NULL;
}
