// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that may have been executed: their node was lost before their client heard an answer, and the
 * client repeats them. A safe one is executed again. An unsafe one must not be executed twice, and nobody can
 * say whether it was executed once; so its client gets a RST, as from any server that goes down with a
 * request (docs/failures.md).
 */
#include <string.h>
#include "inspector/inspect/internal.h"

/*
 * Is the method safe (RFC 9110 section 9.2.1)? By the text, since the first segment may not have the whole
 * line.
 */
static int es_method_is_safe(const char *text, size_t len)
{
	static const char *const methods[] = {"GET ", "HEAD ", "OPTIONS ", "TRACE "};

	while (len && (*text == '\r' || *text == '\n')) { /* servers skip those */
		text++;
		len--;
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (len >= strlen(methods[i]) && !memcmp(text, methods[i], strlen(methods[i])))
			return 1;
	return 0;
}

int es_inspect_is_unsafe(const struct es_inspector *in, unsigned int service, const struct es_http_head *head,
			 const char *text, size_t len)
{
	enum es_unsafe setting = in->cluster->conf->services[service].unsafe;

	if (setting == ES_UNSAFE_AGAIN)
		return 0;
	switch (head->result) {
	case ES_HTTP_TLS:
	case ES_HTTP_H2:
	case ES_HTTP_NOT_HTTP:
		return setting == ES_UNSAFE_ALL;
	case ES_HTTP_DONE:
		/* Another request follows a head without a body, and nothing is known of that one. */
		if (head->body == ES_HTTP_BODY_NONE && head->head_len_bytes < len)
			return 1;
		return !es_method_is_safe(text, len);
	default:
		return !es_method_is_safe(text, len);
	}
}

int es_inspect_bytes_are_unsafe(const struct es_inspector *in, unsigned int service, const char *text,
				size_t len)
{
	enum es_unsafe setting = in->cluster->conf->services[service].unsafe;
	const char *end = memmem(text, len, "\r\n\r\n", 4);

	if (setting == ES_UNSAFE_AGAIN)
		return 0;
	if (!len || *text < 'A' || *text > 'z')
		return setting == ES_UNSAFE_ALL;
	return !es_method_is_safe(text, len) || (end && end + 4 < text + len);
}

int es_inspect_packet_is_unsafe(struct es_inspector *in, unsigned int service,
				const struct es_ip_packet *packet)
{
	const char *text = (const char *)es_ip_packet_payload(packet);

	if (es_inspect_is_layer4(in, service))
		return in->cluster->conf->services[service].unsafe == ES_UNSAFE_ALL;
	if (es_inspect_is_poison(in, es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow),
				 packet->bytes, packet->len))
		return es_inspect_bytes_are_unsafe(in, service, text, packet->seg.len);
	es_http_head_init(&in->head);
	es_http_head_scan(&in->head, text, packet->seg.len);
	return es_inspect_is_unsafe(in, service, &in->head, text, packet->seg.len);
}

int es_inspect_was_lost(const struct es_inspector *in, const struct es_record *record,
			const struct es_decided *decided)
{
	unsigned long long lost_ns = es_health_lost_ns(in->params->health, decided->node);

	if (es_health_state(in->params->health, decided->node) == ES_NODE_ABSENT)
		return 1;
	/*
	 * Decided before this node had the flow's slot of the ring: since then another node had it, which may
	 * have given the request to a third one. Had that one a socket, its PROOFS would have put a newer
	 * decision here.
	 */
	if (record->flow == ES_FLOW_DOUBTFUL &&
	    in->now_ns / 1000000 - decided->age_ms < es_cluster_since_ms(in->cluster, record->flow_hash))
		return 1;
	/* A decision of the same millisecond was made before the loss, as it chose a member. */
	return lost_ns && in->now_ns / 1000000 <= lost_ns / 1000000 + decided->age_ms;
}

void es_inspect_doubt(struct es_inspector *in, const uint8_t *bytes, size_t len)
{
	es_inspect_count(in, ES_WORKER_doubtful);
	es_inspect_reset(in, bytes, len);
}
