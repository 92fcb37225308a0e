// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/load/options.h"

const char *const es_load_ending_names[ES_LOAD_ENDINGS] = {
	[ES_LOAD_SERVER] = "server", [ES_LOAD_CLIENT] = "client", [ES_LOAD_HALF] = "half",
	[ES_LOAD_SERIES] = "series", [ES_LOAD_RESET] = "reset",
};

static const char usage[] =
	"usage: earshot-load --manifest FILE [OPTION...]\n"
	"\n"
	"Fetches random objects over many connections at once and compares every byte with the manifest\n"
	"(make_docroot.py). Exit status 0 if all connections were as they should be.\n"
	"\n"
	"  --host ADDRESS,...  of IPv4 or IPv6, one connection after the other to each in turn; default\n"
	"                      10.77.0.100, the lab's service\n"
	"  --port PORT         default 80\n"
	"  --connections N     in all; default 1000\n"
	"  --parallel N        at a time; default 64\n"
	"  --close LIST        how connections end: server, client, half, series, reset, or mixed (the "
	"first\n"
	"                      four), with commas between; default mixed\n"
	"  --requests N        requests of each series; default 4\n"
	"  --any-node          each request of a series may be served by another node (inspect = every)\n"
	"  --max-bytes N       leave larger objects out\n"
	"  --half-bytes N      leave larger ones out for half; default 16384\n"
	"  --local-ports A-B   one after the other and round again (else the kernel chooses, which takes it\n"
	"                      long with TIME_WAIT on half the range: 32,000 connections a minute that the\n"
	"                      client closed first)\n"
	"  --mss N             maximum segment size of the connections\n"
	"  --timeout-ms N      of each connection; default 20000\n"
	"  --max-seconds N     of the whole run; default 300\n"
	"  --seed N            the same seed, the same requests; default 1\n"
	"  --json              print one JSON object\n";

static void __attribute__((format(printf, 1, 2), noreturn)) refuse(const char *format, ...)
{
	va_list arguments;

	fputs("earshot-load: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs(" (--help)\n", stderr);
	exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < min || value > max)
		refuse("--%s %s: %llu to %llu", name, text, (unsigned long long)min, (unsigned long long)max);
	return value;
}

static unsigned int endings(char *list)
{
	unsigned int bits = 0;

	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		unsigned int i = 0;

		if (!strcmp(word, "mixed")) {
			bits |= ES_LOAD_MIXED;
			continue;
		}
		while (i < ES_LOAD_ENDINGS && strcmp(word, es_load_ending_names[i]) != 0)
			i++;
		if (i == ES_LOAD_ENDINGS)
			refuse("--close %s: server, client, half, series, reset or mixed", word);
		bits |= 1u << i;
	}
	if (!bits)
		refuse("--close: nothing");
	return bits;
}

static void servers(struct es_load_options *options, char *list)
{
	options->server_count = 0;
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		union es_sockaddr server;

		memset(&server, 0, sizeof(server));
		if (inet_pton(AF_INET, word, &server.v4.sin_addr) == 1)
			server.sa.sa_family = AF_INET;
		else if (inet_pton(AF_INET6, word, &server.v6.sin6_addr) == 1)
			server.sa.sa_family = AF_INET6;
		else
			refuse("--host %s: addresses of IPv4 or IPv6, with commas between", word);
		if (options->server_count == ES_LOAD_SERVERS_MAX)
			refuse("--host: up to %d addresses", ES_LOAD_SERVERS_MAX);
		options->servers[options->server_count++] = server;
	}
	if (!options->server_count)
		refuse("--host: nothing");
}

static void ports(struct es_load_options *options, char *range)
{
	char *dash = strchr(range, '-');

	if (!dash)
		refuse("--local-ports %s: FIRST-LAST", range);
	*dash = '\0';
	options->first_port = (unsigned int)number("local-ports", range, 1, 65535);
	options->last_port = (unsigned int)number("local-ports", dash + 1, options->first_port, 65535);
}

enum option_name {
	HOST,
	PORT,
	CONNECTIONS,
	PARALLEL,
	CLOSE,
	REQUESTS,
	ANY_NODE,
	MAX_BYTES,
	HALF_BYTES,
	LOCAL_PORTS,
	MSS,
	TIMEOUT_MS,
	MAX_SECONDS,
	SEED,
	MANIFEST,
	JSON,
	HELP,
};

static const struct option names[] = {
	[HOST] = {"host", required_argument, NULL, HOST},
	[PORT] = {"port", required_argument, NULL, PORT},
	[CONNECTIONS] = {"connections", required_argument, NULL, CONNECTIONS},
	[PARALLEL] = {"parallel", required_argument, NULL, PARALLEL},
	[CLOSE] = {"close", required_argument, NULL, CLOSE},
	[REQUESTS] = {"requests", required_argument, NULL, REQUESTS},
	[ANY_NODE] = {"any-node", no_argument, NULL, ANY_NODE},
	[MAX_BYTES] = {"max-bytes", required_argument, NULL, MAX_BYTES},
	[HALF_BYTES] = {"half-bytes", required_argument, NULL, HALF_BYTES},
	[LOCAL_PORTS] = {"local-ports", required_argument, NULL, LOCAL_PORTS},
	[MSS] = {"mss", required_argument, NULL, MSS},
	[TIMEOUT_MS] = {"timeout-ms", required_argument, NULL, TIMEOUT_MS},
	[MAX_SECONDS] = {"max-seconds", required_argument, NULL, MAX_SECONDS},
	[SEED] = {"seed", required_argument, NULL, SEED},
	[MANIFEST] = {"manifest", required_argument, NULL, MANIFEST},
	[JSON] = {"json", no_argument, NULL, JSON},
	[HELP] = {"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

static void apply(struct es_load_options *options, enum option_name name, char *value)
{
	const char *text = names[name].name;

	switch (name) {
	case HOST:
		servers(options, value);
		break;
	case PORT:
		options->port = (unsigned int)number(text, value, 1, 65535);
		break;
	case CONNECTIONS:
		options->connections = (unsigned int)number(text, value, 1, 100000000);
		break;
	case PARALLEL:
		options->parallel = (unsigned int)number(text, value, 1, 10000);
		break;
	case CLOSE:
		options->endings = endings(value);
		break;
	case REQUESTS:
		options->requests = (unsigned int)number(text, value, 1, 1000000);
		break;
	case ANY_NODE:
		options->any_node = 1;
		break;
	case MAX_BYTES:
		options->max_bytes = number(text, value, 0, UINT64_MAX);
		break;
	case HALF_BYTES:
		options->half_bytes = number(text, value, 0, UINT64_MAX);
		break;
	case LOCAL_PORTS:
		ports(options, value);
		break;
	case MSS:
		options->mss = (unsigned int)number(text, value, 88, 65535);
		break;
	case TIMEOUT_MS:
		options->timeout_ms = (unsigned int)number(text, value, 1, 3600000);
		break;
	case MAX_SECONDS:
		options->max_seconds = (unsigned int)number(text, value, 1, 86400);
		break;
	case SEED:
		options->seed = number(text, value, 0, UINT64_MAX);
		break;
	case MANIFEST:
		options->manifest = value;
		break;
	case JSON:
		options->json = 1;
		break;
	case HELP:
		fputs(usage, stdout);
		exit(0);
	}
}

void es_load_options_parse(struct es_load_options *options, int argc, char **argv)
{
	int name;

	*options = (struct es_load_options){
		.servers = {{.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0064)}}},
		.server_count = 1,
		.port = 80,
		.seed = 1,
		.max_bytes = UINT64_MAX,
		.half_bytes = 16384,
		.connections = 1000,
		.parallel = 64,
		.requests = 4,
		.endings = ES_LOAD_MIXED,
		.timeout_ms = 20000,
		.max_seconds = 300,
	};
	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (name == '?')
			exit(2);
		apply(options, (enum option_name)name, optarg);
	}
	for (unsigned int i = 0; i < options->server_count; i++)
		es_sockaddr_port_set(&options->servers[i], options->port);
	if (optind < argc)
		refuse("%s: what is it?", argv[optind]);
	if (!options->manifest)
		refuse("--manifest FILE is missing");
}
