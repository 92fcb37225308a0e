// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rings between the workers, which decide, and the control thread, which shows decisions: one writer and
 * one reader each. Writes a request's method and target into an entry, too.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "inspector/inspect/trace.h"

int es_trace_put(struct es_trace_ring *ring, const struct es_trace_entry *entry)
{
	unsigned int written = atomic_load_explicit(&ring->written, memory_order_relaxed);

	if (!es_trace_admits(&ring->filter, entry))
		return 0;
	if (written - atomic_load_explicit(&ring->taken, memory_order_acquire) == ES_TRACE_ENTRIES) {
		atomic_store_explicit(&ring->left_out,
				      atomic_load_explicit(&ring->left_out, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		return -ENOBUFS;
	}
	memcpy(&ring->entry[written & (ES_TRACE_ENTRIES - 1)], entry,
	       offsetof(struct es_trace_entry, text) + entry->text_len);
	atomic_store_explicit(&ring->written, written + 1, memory_order_release);
	return 1;
}

int es_trace_take(struct es_trace_ring *ring, struct es_trace_entry *ret_entry)
{
	unsigned int taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	const struct es_trace_entry *from;

	if (taken == atomic_load_explicit(&ring->written, memory_order_acquire))
		return 0;
	from = &ring->entry[taken & (ES_TRACE_ENTRIES - 1)];
	memcpy(ret_entry, from, offsetof(struct es_trace_entry, text) + from->text_len);
	atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
	return 1;
}

/*
 * A method is letters, - and _: RFC 9110 section 9.1 would allow more, but nobody has registered a method
 * with them.
 */
static size_t method_len(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && ((text[n] >= 'A' && text[n] <= 'Z') || text[n] == '-' || text[n] == '_'))
		n++;
	return n;
}

/* Where the path begins: in a target in absolute form, after "http://host". */
static size_t path_of(const char *text, size_t at, size_t len)
{
	const char *scheme;
	const char *slash;

	if (at >= len || text[at] == '/')
		return at;
	scheme = memmem(text + at, len - at, "://", 3);
	if (!scheme)
		return at;
	scheme += 3;
	slash = memchr(scheme, '/', len - (size_t)(scheme - text));
	return slash ? (size_t)(slash - text) : len;
}

void es_trace_request(struct es_trace_entry *entry, const char *text, size_t len)
{
	size_t method, end;

	entry->text_len = entry->path_at = 0;
	entry->is_cut = 0;
	entry->minor = -1;
	while (len && (*text == '\r' || *text == '\n')) {
		text++;
		len--;
	}
	method = method_len(text, len);
	if (!method || (method < len && text[method] != ' '))
		return;
	end = method + 1;
	while (end < len && text[end] != ' ' && text[end] != '\r' && text[end] != '\n')
		end++;
	entry->is_cut = end >= len || end > ES_TRACE_TEXT;
	if (len - end >= sizeof(" HTTP/1.x") - 1 && !memcmp(text + end, " HTTP/1.", 8) &&
	    (text[end + 8] == '0' || text[end + 8] == '1'))
		entry->minor = (int8_t)(text[end + 8] - '0');
	if (end > len)
		end = len;
	if (end > ES_TRACE_TEXT)
		end = ES_TRACE_TEXT;
	memcpy(entry->text, text, end);
	entry->text_len = (uint16_t)end;
	entry->path_at = (uint16_t)path_of(entry->text, method < end ? method + 1 : end, end);
}
