/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_PINS_H
#define ES_CORE_PINS_H

/*
 * Why a connection is inspected no more and stays on its node until it ends. Counted (pin_*) and shown by
 * these names; the numbers are part of the wire format, so new ones are appended.
 */
#define ES_PINS(X, prefix)                                                                                   \
	X(prefix##pipelined, "a request began before the response to the one before it was complete")        \
	X(prefix##upgrade, "101 Switching Protocols")                                                        \
	X(prefix##connect, "CONNECT: a tunnel")                                                              \
	X(prefix##tls, "TLS")                                                                                \
	X(prefix##http2, "HTTP/2")                                                                           \
	X(prefix##not_http, "not HTTP/1.x")                                                                  \
	X(prefix##ambiguous, "a request whose end servers may see in different places")                      \
	X(prefix##truncated, "a request head longer than what is gathered")                                  \
	X(prefix##chunked, "a chunked request body that did not come with its head")                         \
	X(prefix##length, "a request body too long to be counted in sequence numbers")                       \
	X(prefix##response_unclear, "a response whose end could not be read, or bytes behind it")            \
	X(prefix##until_close, "a response that ends with the connection")                                   \
	X(prefix##overlap, "a segment that holds the end of one request and the start of another")           \
	X(prefix##half_closed, "the client closed its side with a request")                                  \
	X(prefix##uninspected, "a request came while the inspector was not running")                         \
	X(prefix##unknown, "a connection that was made without inspection")                                  \
	X(prefix##program, "a program handed it over")

enum es_pin {
	ES_PIN_none = 0,
#define X(name, description) ES_##name,
	ES_PINS(X, PIN_)
#undef X
		ES_PIN_COUNT
};

#endif
