// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a TLS connection goes that earshot-tls will end: its ClientHello is all that packets tell. If that
 * has a ticket of this cluster, to the ticket's home, so that the first request is likely to be there
 * already; else where connections go that nobody reads.
 */
#include "inspector/http/tls_hello.h"
#include "inspector/http/tls_home.h"
#include "inspector/inspect/internal.h"

_Static_assert(ES_TLS_TICKET_FRONT == ES_TLS_TICKET_NAME + ES_TLS_TICKET_IV, "all that tells a home");

/* The home in the first ticket that has one, or -1. Clients prefer the ticket that they name first. */
static int es_hello_home(const struct es_keys *keys, const struct es_tls_hello *hello)
{
	for (unsigned int i = 0; i < hello->ticket_count; i++)
		for (unsigned int j = 0; j < keys->count; j++) {
			int home = es_tls_home_get(&keys->key[j].home, hello->ticket[i]);

			if (home >= 0)
				return home;
		}
	return -1;
}

int es_inspect_route_hello(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			   struct es_rejection *ret_rejection)
{
	int is_tls = request->head->result == ES_HTTP_TLS, home = -1, target;
	struct es_tls_hello hello;

	if (is_tls) {
		es_tls_hello_parse(request->text, request->len, &hello);
		if (hello.result == ES_TLS_MORE && !request->truncated) {
			*ret_rejection = (struct es_rejection){.more_bytes = hello.more_bytes};
			return ES_ROUTE_MORE;
		}
		home = es_hello_home(&in->keys, &hello);
	}
	target = es_route_home(&in->router, service, request, home, in->now_ns, NULL);
	es_inspect_count(in, is_tls ? ES_WORKER_tls : ES_WORKER_not_http);
	if (home >= 0)
		es_inspect_count(in, target == home ? ES_WORKER_home_taken : ES_WORKER_home_left);
	return es_inspect_fate_target(in, service, request, target);
}
