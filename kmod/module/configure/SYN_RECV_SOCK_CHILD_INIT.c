// SPDX-License-Identifier: GPL-2.0-only
/* syn_recv_sock() takes a function that finishes the child. */
#include <net/inet_connection_sock.h>

struct sock *probe(const struct inet_connection_sock_af_ops *ops, const struct sock *sk, struct sk_buff *skb,
		   struct request_sock *req, bool *own_req);
struct sock *probe(const struct inet_connection_sock_af_ops *ops, const struct sock *sk, struct sk_buff *skb,
		   struct request_sock *req, bool *own_req)
{
	return ops->syn_recv_sock(sk, skb, req, NULL, NULL, own_req, NULL);
}
