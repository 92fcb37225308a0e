/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_FAULTS_H
#define ES_FAULTS_H

/*
 * Allocations that fail, for test_faults.py. Included before every source file of a module that is built for
 * that (make EARSHOT_FAULTS=this file), as Debian's kernels have no fault injection. Each allocation that the
 * module asks for itself may fail; what the kernel's own functions ask for on its behalf does not. Nor do
 * single pages: of those a node takes thousands, and test_memory.py lets them run out for real.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/genetlink.h>
#include <net/inet_sock.h>
#include <net/request_sock.h>

/* Shall this one fail? */
bool es_fault(void);

/* In kernels from 6.10 on some of these are macros already: each gets a function first. */
#define ES_FAULTY(type, name, parameters, arguments)                                                         \
	static inline type es_real_##name parameters                                                         \
	{                                                                                                    \
		return name arguments;                                                                       \
	}                                                                                                    \
	static inline type es_faulty_##name parameters                                                       \
	{                                                                                                    \
		return es_fault() ? 0 : es_real_##name arguments;                                            \
	}

ES_FAULTY(void *, kzalloc, (size_t size, gfp_t gfp), (size, gfp))
ES_FAULTY(void *, kvzalloc, (size_t size, gfp_t gfp), (size, gfp))
ES_FAULTY(void *, kvcalloc, (size_t n, size_t size, gfp_t gfp), (n, size, gfp))
ES_FAULTY(void *, vzalloc, (unsigned long size), (size))
ES_FAULTY(void *, vmap, (struct page * *pages, unsigned int count, unsigned long flags, pgprot_t prot),
	  (pages, count, flags, prot))
ES_FAULTY(void __percpu *, __alloc_percpu, (size_t size, size_t align), (size, align))
ES_FAULTY(struct sk_buff *, alloc_skb, (unsigned int size, gfp_t gfp), (size, gfp))
ES_FAULTY(struct sk_buff *, genlmsg_new, (size_t payload, gfp_t gfp), (payload, gfp))
ES_FAULTY(struct request_sock *, inet_reqsk_alloc,
	  (const struct request_sock_ops *ops, struct sock *listener, bool attach), (ops, listener, attach))

/* These allocate only for a packet that is not in one piece, or not only ours. */
static inline bool es_faulty_pskb_may_pull(struct sk_buff *skb, unsigned int len)
{
	return len > skb_headlen(skb) && es_fault() ? false : pskb_may_pull(skb, len);
}

static inline int es_faulty_skb_ensure_writable(struct sk_buff *skb, unsigned int len)
{
	return (len > skb_headlen(skb) || skb_cloned(skb)) && es_fault() ? -ENOMEM
									 : skb_ensure_writable(skb, len);
}

static inline int es_faulty_skb_unclone(struct sk_buff *skb, gfp_t gfp)
{
	return skb_cloned(skb) && es_fault() ? -ENOMEM : skb_unclone(skb, gfp);
}

static inline int es_faulty_skb_linearize(struct sk_buff *skb)
{
	return skb_is_nonlinear(skb) && es_fault() ? -ENOMEM : skb_linearize(skb);
}

#undef kzalloc
#undef kvzalloc
#undef kvcalloc
#undef vzalloc
#undef vmap
#undef __alloc_percpu
#undef alloc_skb
#undef genlmsg_new
#undef inet_reqsk_alloc
#undef pskb_may_pull
#undef skb_ensure_writable
#undef skb_unclone
#undef skb_linearize
#define kzalloc		    es_faulty_kzalloc
#define kvzalloc	    es_faulty_kvzalloc
#define kvcalloc	    es_faulty_kvcalloc
#define vzalloc		    es_faulty_vzalloc
#define vmap		    es_faulty_vmap
#define __alloc_percpu	    es_faulty___alloc_percpu
#define alloc_skb	    es_faulty_alloc_skb
#define genlmsg_new	    es_faulty_genlmsg_new
#define inet_reqsk_alloc    es_faulty_inet_reqsk_alloc
#define pskb_may_pull	    es_faulty_pskb_may_pull
#define skb_ensure_writable es_faulty_skb_ensure_writable
#define skb_unclone	    es_faulty_skb_unclone
#define skb_linearize	    es_faulty_skb_linearize

#ifdef ES_FAULTS_MAIN
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched.h>

static unsigned int fail_at, fail_one_in, failed;
static pid_t fail_process;

/* Only of the process that asks for it: others go on meanwhile, a daemon, or the network. */
static int es_fail_at_set(const char *text, const struct kernel_param *parameter)
{
	WRITE_ONCE(fail_process, task_tgid_nr(current));
	return param_set_uint(text, parameter);
}

static const struct kernel_param_ops es_fail_at_ops = {.set = es_fail_at_set, .get = param_get_uint};

module_param_cb(fail_at, &es_fail_at_ops, &fail_at, 0644);
MODULE_PARM_DESC(fail_at, "this allocation of the writing process from now on fails; 0 when it has");
module_param(fail_one_in, uint, 0644);
MODULE_PARM_DESC(fail_one_in, "one of so many fails, by chance, whoever asks; 0: none");
module_param(failed, uint, 0644);
MODULE_PARM_DESC(failed, "how many have");

bool es_fault(void)
{
	bool is_asked = in_task() && task_tgid_nr(current) == READ_ONCE(fail_process);
	unsigned int at = is_asked ? READ_ONCE(fail_at) : 0, one_in = READ_ONCE(fail_one_in);

	if (at)
		WRITE_ONCE(fail_at, at - 1);
	if (at != 1 && !(one_in && get_random_u32() % one_in == 0))
		return false;
	WRITE_ONCE(failed, READ_ONCE(failed) + 1);
	return true;
}
#endif

#endif
