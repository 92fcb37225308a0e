/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_TYPES_H
#define ES_CORE_TYPES_H

/*
 * The ground that every header of kmod/core/ builds on. These headers are compiled unchanged into the BPF
 * programs, into earshot.ko and into userspace, so they use nothing but the uapi integer types and the
 * compiler's builtins.
 */
#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/string.h>
#define es_memcpy memcpy
#define es_memset memset
/* A machine of 32 bits does not divide 64 by itself. */
#define es_div64(n, d) div_u64(n, d)
#else
#define es_div64(n, d) ((__u64)(n) / (d))
#define es_memcpy      __builtin_memcpy
#define es_memset      __builtin_memset
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif

/* A function that has its own stack in BPF programs, whose calls together may use 512 bytes. */
#ifdef __bpf__
#define ES_OWN_STACK static __attribute__((noinline))
#else
#define ES_OWN_STACK static __always_inline
#endif

/*
 * Such a function, which the verifier looks at once instead of once for each path to it. It knows nothing of
 * the arguments then, so a pointer is compared with NULL first.
 */
#ifdef __bpf__
#define ES_VERIFIED_ONCE __attribute__((noinline))
#else
#define ES_VERIFIED_ONCE static __always_inline
#endif

#define es_likely(x)   __builtin_expect(!!(x), 1)
#define es_unlikely(x) __builtin_expect(!!(x), 0)

/* The machine's byte order is little endian in BPF objects built with -target bpf on every platform we
 * support; both orders are written out so that a big-endian build is a matter of the compiler, not of this
 * code. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define es_htons(x)    ((__be16)__builtin_bswap16((__u16)(x)))
#define es_htonl(x)    ((__be32)__builtin_bswap32((__u32)(x)))
#define es_cpu_le64(x) ((__u64)(x))
#define es_cpu_be64(x) ((__u64)__builtin_bswap64((__u64)(x)))
#else
#define es_htons(x)    ((__be16)(x))
#define es_htonl(x)    ((__be32)(x))
#define es_cpu_le64(x) ((__u64)__builtin_bswap64((__u64)(x)))
#define es_cpu_be64(x) ((__u64)(x))
#endif
#define es_ntohs(x) ((__u16)es_htons((__u16)(x)))
#define es_ntohl(x) ((__u32)es_htonl((__u32)(x)))

/**
 * struct es_addr - an IP address, always 128 bits wide, network byte order
 * IPv4 addresses are v4-mapped (::ffff:a.b.c.d, RFC 4291 section 2.5.5.2), in every ABI, table and wire
 * format.
 */
struct es_addr {
	union {
		__u8 b[16];
		__be32 w[4];
	};
};
_Static_assert(sizeof(struct es_addr) == 16, "es_addr is 128 bits");

static __always_inline struct es_addr es_addr_from_v4(__be32 v4)
{
	struct es_addr a;

	a.w[0] = 0;
	a.w[1] = 0;
	a.w[2] = es_htonl(0xffff);
	a.w[3] = v4;
	return a;
}

static __always_inline int es_addr_is_v4(const struct es_addr *a)
{
	return !a->w[0] && !a->w[1] && a->w[2] == es_htonl(0xffff);
}

/* es_addr_is_this_v4() - is it this address of IPv4? */
static __always_inline int es_addr_is_this_v4(const struct es_addr *a, __be32 v4)
{
	return a->w[3] == v4 && es_addr_is_v4(a);
}

static __always_inline int es_addr_equal(const struct es_addr *a, const struct es_addr *b)
{
	return a->w[0] == b->w[0] && a->w[1] == b->w[1] && a->w[2] == b->w[2] && a->w[3] == b->w[3];
}

/* Milliseconds of a clock in nanoseconds; they wrap after 49 days. */
static __always_inline __u32 es_ns_to_ms(__u64 ns)
{
	return (__u32)es_div64(ns, 1000000);
}

static __always_inline __u32 es_ns_to_s(__u64 ns)
{
	return (__u32)es_div64(ns, 1000000000);
}

/* Sequence-number comparison modulo 2^32 (RFC 9293 section 3.4). */
static __always_inline int es_seq_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

#endif
