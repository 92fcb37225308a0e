// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys of a service's tls { }; how to read a line is in keys.h. */
#include "inspector/config/keys.h"

static const struct es_conf_choice versions[] = {
	{"1.2", 0x0303},
	{"1.3", 0x0304},
	{NULL, 0},
};

static const struct es_conf_choice resumes[] = {
	{"home", ES_CONF_RESUME_HOME},
	{"ring", ES_CONF_RESUME_RING},
	{NULL, 0},
};

static const struct es_conf_choice tells[] = {
	{"x-forwarded", ES_CONF_TELL_X_FORWARDED},
	{"forwarded", ES_CONF_TELL_FORWARDED},
	{"proxy", ES_CONF_TELL_PROXY},
	{"nothing", ES_CONF_TELL_NOTHING},
	{NULL, 0},
};

static const struct es_conf_choice ktls[] = {
	{"auto", 1},
	{"off", 0},
	{NULL, 0},
};

/*
 * *tls* { } stands in a *service* section. *earshot-tls* ends the service's TLS on each node and reads the
 * requests, and *inspect*, rules, policy and plugins of the service are about these
 * (/usr/share/doc/earshot/tls.md.gz).
 *
 * It listens on the service's address and port, and asks *server* in plain text. Not with *server_port* and
 * *server_address*. Files are read by *earshot-tls* at its start and at a reload; if one of them is wrong
 * then, what it has stays in force.
 */
const struct es_conf_key es_conf_tls_keys[] = {
	/*
	 * A file with a certificate and its chain, in PEM; or a list of up to 16. The name that the client
	 * asks for (SNI) decides which is shown, and the first is shown for all others.
	 *
	 * Absolute paths, as of all files here. Nodes compare the paths; *earshot check* compares the
	 * certificates.
	 * @example /etc/earshot/tls/www.example.org.pem
	 */
	VALUE(tls, certificate, SHOULD_IN(".files"), REQUIRED, FILES),

	/*
	 * The key of each of these certificates, in PEM, in the same order.
	 *
	 * Readable by root alone: *earshot-tls* reads it before it gives up its rights.
	 * @example /etc/earshot/tls/www.example.org.key
	 */
	VALUE(tls, key, SHOULD_IN(".files"), REQUIRED, FILES),

	/*
	 * For each of these certificates, in the same order, a file with the OCSP answer that is stapled, in
	 * DER. Default: none.
	 * @example /etc/earshot/tls/www.example.org.ocsp
	 */
	VALUE(tls, ocsp, SHOULD_IN(".files"), OPTIONAL, FILES),

	/*
	 * The protocols that clients may ask for (ALPN), the preferred one first: "h2, http/1.1" lets those
	 * that can speak HTTP/2, and the others HTTP/1.1.
	 *
	 * A connection of HTTP/2 is placed by its first request, and stays at that node.
	 */
	VALUE(tls, alpn, SHOULD_IN(""), "http/1.1", ALPN),

	/* The oldest version of TLS that clients may have: 1.2 or 1.3. */
	CHOICE(tls, minimum, SHOULD_IN(""), "1.2", versions),

	/*
	 * The ciphers of TLS 1.2, as OpenSSL names them: ECDHE with AES-GCM or ChaCha20-Poly1305. Default:
	 * those of Mozilla's intermediate recommendation.
	 * @example ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256
	 */
	VALUE(tls, ciphers, SHOULD_IN(""), OPTIONAL, CIPHERS),

	/*
	 * The cipher suites of TLS 1.3, as OpenSSL names them. Default: likewise.
	 * @example TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256
	 */
	VALUE(tls, suites, SHOULD_IN(""), OPTIONAL, CIPHERS),

	/*
	 * A file of certificates in PEM, one of which must have issued a client's certificate. Default:
	 * clients are not asked for any.
	 * @example /etc/earshot/tls/clients.pem
	 */
	VALUE(tls, client_ca, SHOULD_IN(".files"), OPTIONAL, PATH),

	/*
	 * With *client_ca*: _yes_: clients without a certificate are refused. _no_: they are served, and one
	 * that has a certificate must have a right one.
	 */
	CHOICE(tls, client_required, SHOULD_IN(""), "yes", yes_no),

	/*
	 * Where the node's own web server listens for plain HTTP/1.1: ADDRESS:PORT, [ADDRESS]:PORT or
	 * unix:/PATH.
	 *
	 * It is asked for whatever the client asks for, by connections that are used again. It should listen
	 * on a loopback address or on a UNIX socket alone: whoever reaches it, reaches it without TLS.
	 * @example "127.0.0.1:8080"
	 */
	VALUE(tls, server, SHOULD_IN(""), REQUIRED, ENDPOINT),

	/*
	 * How that server is told of the client. _x-forwarded_: by the headers X-Forwarded-For,
	 * X-Forwarded-Proto and X-Forwarded-Port. _forwarded_: by the header Forwarded (RFC 7239).
	 * _proxy_: by the PROXY protocol, version 2, and each client has connections of its own to the
	 * server. _nothing_: not at all.
	 *
	 * Those of these headers that a client sends are taken out, whatever is set here, and so is
	 * X-Real-IP.
	 */
	CHOICE(tls, tell, SHOULD_IN(""), "x-forwarded", tells),

	/*
	 * The records of responses of more than 256 KB: _auto_: the kernel writes them, if its module tls is
	 * loaded (*modprobe tls*) and was seen to work when *earshot-tls* was started or reloaded. That takes
	 * less CPU. _off_: *earshot-tls* does.
	 */
	CHOICE(tls, ktls, OWN, "off", ktls),

	/*
	 * Where a client goes that resumes a session. _home_: to the node that served the session, if that
	 * can take it: its ticket names it, and the daemon reads the first bytes of each connection for that.
	 * _ring_: to the ring's, as each new client. With *inspect* = _never_ or *policy* = _ring_ always so.
	 */
	CHOICE(tls, resume, OWN, "home", resumes),

	/* How many processes do the work. */
	NUMBER(tls, workers, OWN, "0", 1, 256, NULL, "one for each CPU"),

	/*
	 * How many connections of clients a node has of the service at a time; each of the workers has its
	 * part. A stream of HTTP/2 counts as one, too. If there are more, those that have asked nothing make
	 * room, and those that are idle; while all are in use, others wait to be accepted.
	 *
	 * By the memory: half of what the machine has, 128 KB for each, in equal parts for all services with
	 * *tls*; and not more than the half of the files that a worker may have open.
	 */
	NUMBER(tls, max_connections, OWN, "0", 1, 16777216, NULL, "by the memory"),
	{.name = NULL},
};
