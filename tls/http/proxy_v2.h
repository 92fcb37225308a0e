/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_PROXY_V2_H
#define ES_TLS_PROXY_V2_H

/*
 * The PROXY protocol, version 2 (HAProxy's doc/proxy-protocol.txt, sections 2.2 and 2.2.6): what the server
 * behind is told of a client before its first byte. Besides addresses and ports: TLS version and cipher
 * (PP2_TYPE_SSL), the server's name (PP2_TYPE_AUTHORITY), the protocol (PP2_TYPE_ALPN), and of a client whose
 * certificate was verified the certificate's SHA-256, 32 bytes, as ES_TLS_PROXY_V2_DIGEST.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"
#include "tls/record/state.h"

#define ES_TLS_PROXY_V2_MAX    512
#define ES_TLS_PROXY_V2_DIGEST 0xe0 /* PP2_TYPE_MIN_CUSTOM: of no meaning but between those who have agreed */

/* es_tls_proxy_v2_put() - returns the bytes written */
size_t es_tls_proxy_v2_put(const struct es_flow *flow, const struct es_tls_state *state,
			   uint8_t ret_bytes[ES_TLS_PROXY_V2_MAX]);

#endif
