// SPDX-License-Identifier: GPL-2.0-or-later
/* Puts messages of the bus into bytes and takes them out again; judges no content. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "membership/wire.h"

#define HEADER 4

/* A cursor that remembers whether anything did not fit. */
struct es_put {
	uint8_t *p;
	size_t left;
	size_t used;
	int failed;
};

struct es_get {
	const uint8_t *p;
	size_t left;
	int failed;
};

static void put(struct es_put *out, const void *data, size_t len)
{
	if (out->failed || len > out->left) {
		out->failed = 1;
		return;
	}
	if (len) /* else @data may be NULL */
		memcpy(out->p, data, len);
	out->p += len;
	out->left -= len;
	out->used += len;
}

static void put16(struct es_put *out, uint16_t value)
{
	value = htobe16(value);
	put(out, &value, sizeof(value));
}

static void put32(struct es_put *out, uint32_t value)
{
	value = htobe32(value);
	put(out, &value, sizeof(value));
}

static void put64(struct es_put *out, uint64_t value)
{
	value = htobe64(value);
	put(out, &value, sizeof(value));
}

static void get(struct es_get *in, void *ret, size_t len)
{
	if (in->failed || len > in->left) {
		in->failed = 1;
		memset(ret, 0, len);
		return;
	}
	memcpy(ret, in->p, len);
	in->p += len;
	in->left -= len;
}

static uint8_t get8(struct es_get *in)
{
	uint8_t value;

	get(in, &value, sizeof(value));
	return value;
}

static uint16_t get16(struct es_get *in)
{
	uint16_t value;

	get(in, &value, sizeof(value));
	return be16toh(value);
}

static uint32_t get32(struct es_get *in)
{
	uint32_t value;

	get(in, &value, sizeof(value));
	return be32toh(value);
}

static uint64_t get64(struct es_get *in)
{
	uint64_t value;

	get(in, &value, sizeof(value));
	return be64toh(value);
}

static size_t put_done(const struct es_put *out)
{
	return out->failed ? 0 : out->used;
}

static int get_done(const struct es_get *in)
{
	return in->failed ? -EBADMSG : 0;
}

size_t es_wire_put_hello(void *buf, size_t size, const struct es_wire_hello *hello)
{
	struct es_put out = {.p = buf, .left = size};
	size_t settings_len = strnlen(hello->settings, sizeof(hello->settings));

	put32(&out, hello->epoch);
	put32(&out, hello->served);
	put(&out, &hello->in_ring, 1);
	put(&out, &hello->state, 1);
	put16(&out, hello->weight);
	put(&out, hello->name, sizeof(hello->name));
	put16(&out, (uint16_t)settings_len);
	put(&out, hello->settings, settings_len);
	return put_done(&out);
}

int es_wire_get_hello(const void *data, size_t len, struct es_wire_hello *ret)
{
	struct es_get in = {.p = data, .left = len};
	size_t settings_len;

	memset(ret, 0, sizeof(*ret));
	ret->epoch = get32(&in);
	ret->served = get32(&in);
	ret->in_ring = get8(&in);
	ret->state = get8(&in);
	ret->weight = get16(&in);
	get(&in, ret->name, sizeof(ret->name));
	settings_len = get16(&in);
	if (in.failed || settings_len >= sizeof(ret->settings) || !memchr(ret->name, 0, sizeof(ret->name)))
		return -EBADMSG;
	get(&in, ret->settings, settings_len);
	return get_done(&in);
}

size_t es_wire_put_proofs(void *buf, size_t size, uint32_t epoch, const struct es_wire_proof *proofs,
			  size_t count)
{
	struct es_put out = {.p = buf, .left = size};

	put32(&out, epoch);
	for (size_t i = 0; i < count; i++) {
		put64(&out, proofs[i].flow_hash);
		put32(&out, proofs[i].cookie);
		put32(&out, proofs[i].first_seq);
	}
	return put_done(&out);
}

int es_wire_get_proofs(const void *data, size_t len, uint32_t *ret_epoch, struct es_wire_proof *ret_proofs,
		       size_t *ret_count)
{
	struct es_get in = {.p = data, .left = len};

	*ret_epoch = get32(&in);
	*ret_count = in.left / sizeof(struct es_wire_proof);
	if (*ret_count > ES_WIRE_PROOFS_MAX || in.left % sizeof(struct es_wire_proof))
		return -EBADMSG;
	for (size_t i = 0; i < *ret_count; i++) {
		ret_proofs[i].flow_hash = get64(&in);
		ret_proofs[i].cookie = get32(&in);
		ret_proofs[i].first_seq = get32(&in);
	}
	return get_done(&in);
}

size_t es_wire_put_stopped(void *buf, size_t size, const struct es_wire_stopped *stopped)
{
	struct es_put out = {.p = buf, .left = size};

	put32(&out, stopped->epoch);
	put32(&out, stopped->hold_ms);
	put32(&out, stopped->doubt_ms);
	return put_done(&out);
}

int es_wire_get_stopped(const void *data, size_t len, struct es_wire_stopped *ret)
{
	struct es_get in = {.p = data, .left = len};

	ret->epoch = get32(&in);
	ret->hold_ms = get32(&in);
	ret->doubt_ms = in.left ? get32(&in) : 0;
	return get_done(&in);
}

size_t es_wire_put_change(void *buf, size_t size, const struct es_wire_change *change)
{
	struct es_put out = {.p = buf, .left = size};

	put16(&out, change->node);
	put(&out, &change->what, 1);
	put16(&out, change->value);
	return put_done(&out);
}

int es_wire_get_change(const void *data, size_t len, struct es_wire_change *ret)
{
	struct es_get in = {.p = data, .left = len};

	ret->node = get16(&in);
	ret->what = get8(&in);
	ret->value = get16(&in);
	return get_done(&in);
}

size_t es_wire_put_by_hand(void *buf, size_t size, const struct es_wire_by_hand *by_hand)
{
	struct es_put out = {.p = buf, .left = size};

	put16(&out, by_hand->node);
	put(&out, &by_hand->what, 1);
	put(&out, &by_hand->until_restart, 1);
	put16(&out, by_hand->value);
	put32(&out, by_hand->for_s);
	put64(&out, by_hand->set_ms);
	put64(&out, by_hand->until_ms);
	put(&out, by_hand->who, sizeof(by_hand->who));
	put(&out, by_hand->why, sizeof(by_hand->why));
	return put_done(&out);
}

int es_wire_get_by_hand(const void *data, size_t len, struct es_wire_by_hand *ret)
{
	struct es_get in = {.p = data, .left = len};

	memset(ret, 0, sizeof(*ret));
	ret->node = get16(&in);
	ret->what = get8(&in);
	ret->until_restart = get8(&in);
	ret->value = get16(&in);
	ret->for_s = get32(&in);
	ret->set_ms = get64(&in);
	ret->until_ms = get64(&in);
	get(&in, ret->who, sizeof(ret->who));
	get(&in, ret->why, sizeof(ret->why));
	if (!memchr(ret->who, 0, sizeof(ret->who)) || !memchr(ret->why, 0, sizeof(ret->why)))
		return -EBADMSG;
	return get_done(&in);
}

size_t es_wire_put_load(void *buf, size_t size, const struct es_wire_load *load)
{
	struct es_put out = {.p = buf, .left = size};

	put64(&out, load->sent_ns);
	put32(&out, load->connections);
	put16(&out, load->cpu);
	put16(&out, load->queue);
	put(&out, &load->state, 1);
	if (!load->has_requests)
		return put_done(&out);
	put(&out, &load->is_new, 1);
	put32(&out, load->active);
	put32(&out, load->load);
	put32(&out, load->mean_us);
	put16(&out, load->disk);
	if (load->understands || load->trouble || load->failing)
		put(&out, &load->understands, 1);
	if (load->trouble || load->failing)
		put(&out, &load->trouble, 1);
	if (load->failing) {
		put16(&out, (uint16_t)(load->failing >> 32));
		put32(&out, (uint32_t)load->failing);
	}
	return put_done(&out);
}

int es_wire_get_load(const void *data, size_t len, struct es_wire_load *ret)
{
	struct es_get in = {.p = data, .left = len};
	struct es_wire_load load = {};

	load.sent_ns = get64(&in);
	load.connections = get32(&in);
	load.cpu = get16(&in);
	load.queue = get16(&in);
	load.state = get8(&in);
	load.has_requests = in.left > 0;
	if (load.has_requests) {
		load.is_new = get8(&in);
		load.active = get32(&in);
		load.load = get32(&in);
		load.mean_us = get32(&in);
		load.disk = get16(&in);
		load.understands = in.left > 0 ? get8(&in) : 0;
		load.trouble = in.left > 0 ? get8(&in) : 0;
		if (in.left > 0) {
			load.failing = (uint64_t)get16(&in) << 32;
			load.failing |= get32(&in);
		}
	}
	if (in.failed)
		return -EBADMSG;
	*ret = load;
	return 0;
}

size_t es_wire_put_suspect(void *buf, size_t size, const struct es_wire_suspect *suspect)
{
	struct es_put out = {.p = buf, .left = size};

	put32(&out, suspect->nodeid);
	put32(&out, suspect->pid);
	return put_done(&out);
}

int es_wire_get_suspect(const void *data, size_t len, struct es_wire_suspect *ret)
{
	struct es_get in = {.p = data, .left = len};

	ret->nodeid = get32(&in);
	ret->pid = get32(&in);
	return get_done(&in);
}

size_t es_wire_append(void *datagram, size_t size, size_t len, enum es_wire_type type, const void *payload,
		      size_t payload_len)
{
	struct es_put out = {.p = (uint8_t *)datagram + len, .left = size - len};
	uint8_t head[2] = {(uint8_t)type, 0};

	if (payload_len > UINT16_MAX)
		return 0;
	put(&out, head, sizeof(head));
	put16(&out, (uint16_t)payload_len);
	put(&out, payload, payload_len);
	return out.failed ? 0 : len + out.used;
}

int es_wire_next(const void *datagram, size_t len, size_t *at, uint8_t *ret_type, const void **ret_payload,
		 size_t *ret_payload_len)
{
	struct es_get in = {.p = (const uint8_t *)datagram + *at, .left = len - *at};

	if (!in.left)
		return 0;
	*ret_type = get8(&in);
	get8(&in);
	*ret_payload_len = get16(&in);
	if (in.failed || *ret_payload_len > in.left)
		return -EBADMSG;
	*ret_payload = in.p;
	*at += HEADER + *ret_payload_len;
	return 1;
}
