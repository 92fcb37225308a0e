// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For each way in which a value, or the whole, can be wrong the exact message, because the message is what
 * the administrator works with; and the bounds. test_config_syntax.c has wrong texts.
 */
#include "tests/unit/config_text.h"

#define NODES3 NODE "node n2 { address = 10.78.0.2 }\nnode n3 { address = 10.78.0.3 }\n"

static const struct wrong_text errors[] = {
	/* values */
	{DATAPATH NODE "service web {\n address = 10.77.0.100\n port = 70000\n}",
	 "t.conf:5: service web: port = 70000: expected 1..65535"},
	{"service web { port = 0 }", "t.conf:1: service web: port = 0: expected 1..65535"},
	{"service web { port = -1 }", "t.conf:1: service web: port = -1: expected a plain number 1..65535"},
	{"service web { port = 0x50 }",
	 "t.conf:1: service web: port = 0x50: expected a plain number 1..65535"},
	{"service web { port = http }",
	 "t.conf:1: service web: port = http: expected a plain number 1..65535"},
	{"service web { port = '' }", "t.conf:1: service web: port = : expected a plain number 1..65535"},
	{"service web { port = 99999999999999999999 }",
	 "t.conf:1: service web: port = 99999999999999999999: expected 1..65535"},
	{"inspector { gather_timeout_ms = 200ms }",
	 "t.conf:1: inspector: gather_timeout_ms = 200ms: expected a plain number 1..10000 (milliseconds)"},
	{"datapath { cookie_lifetime_s = 60 }",
	 "t.conf:1: datapath: cookie_lifetime_s = 60: expected 120..3600 (seconds)"},
	{"datapath { cookie_lifetime_s = 5m }",
	 "t.conf:1: datapath: cookie_lifetime_s = 5m: expected a plain number 120..3600 (seconds)"},
	{DATAPATH NODE SERVICE "log { to = file }", "t.conf:4: log: to = file: expected file = PATH besides"},
	{DATAPATH NODE SERVICE "log {\n file = /var/log/x }",
	 "t.conf:5: log: file has no effect with to = syslog: expected to = file besides"},
	{DATAPATH NODE SERVICE "log { to = file\n file = /var/log/x\n facility = local1 }",
	 "t.conf:6: log: facility has no effect with to = file: expected to = syslog"},
	{DATAPATH NODE SERVICE "log { service = api }",
	 "t.conf:4: log: service = api: no service of that name: expected web"},
	{"log { format = combined }", "t.conf:1: log: format = combined: expected common | json"},
	{"log { to = file file = x.log }", "t.conf:1: log: file = x.log: expected an absolute path"},
	{"datapath { mtu = 100 }",
	 "t.conf:1: datapath: mtu = 100: expected 0 (ask the interface) or 576..65535 (bytes)"},
	{"datapath { receive_window_scale = 15 }",
	 "t.conf:1: datapath: receive_window_scale = 15: expected 0..14"},
	{"datapath { conntrack_zone = 65536 }",
	 "t.conf:1: datapath: conntrack_zone = 65536: expected 0 (none) or 1..65535"},
	{"datapath { fallback_after_ms = 0 }",
	 "t.conf:1: datapath: fallback_after_ms = 0: expected 100..60000 (milliseconds)"},
	{"inspector { workers = 9 }",
	 "t.conf:1: inspector: workers = 9: expected 0 (one for each two CPUs, at most 8) or 1..8"},
	{"service web { load_bound = 99 }",
	 "t.conf:1: service web: load_bound = 99: expected 0 (none) or 100..1000 (percent)"},
	{"service web { load_bound = 125% }",
	 "t.conf:1: service web: load_bound = 125%: expected a plain number 0 (none) or 100..1000 (percent)"},
	{"node n1 { id = 2147483648 }",
	 "t.conf:1: node n1: id = 2147483648: expected 0..2147483647 (as earshot corosync-conf prints "
	 "it)"},
	{DATAPATH SERVICE "node n1 { address = 10.78.0.1 id = 7 }\nnode n2 { address = 10.78.0.2\n id = 7 }",
	 "t.conf:5: node n2: id = 7: also of node n1: expected one of its own; the next one is 8"},
	{DATAPATH SERVICE "node n1 { address = 10.78.0.1 }\nnode n2 { address = 10.78.0.2\n id = 4 }",
	 "t.conf:3: node n1: id is missing, which other nodes have: expected one of its own; the next one is "
	 "5"},
	{"node n1 { weight = 1001 }", "t.conf:1: node n1: weight = 1001: expected 0..1000"},
	{"cluster { virtual_nodes = 0 }",
	 "t.conf:1: cluster: virtual_nodes = 0: expected 1..1024 (for a node with weight 100)"},
	{"cluster { membership = zookeeper }",
	 "t.conf:1: cluster: membership = zookeeper: expected static | corosync"},
	{"cluster { catch_up = maybe }", "t.conf:1: cluster: catch_up = maybe: expected yes | no"},
	{"cluster { ring_hash = md5 }", "t.conf:1: cluster: ring_hash = md5: expected siphash | jhash"},
	{"datapath { type = xdp }",
	 "t.conf:1: datapath: type = xdp: expected auto | bpf | module | netfilter"},
	{"datapath { type = netfilter interface = e cluster_interface = f }\n" NODE
	 "\nservice web {\n address = 10.77.0.100\n port = 80\n}\n"
	 "service reports {\n address = 10.77.0.100\n port = 81\n server_port = 80\n server_address = "
	 "10.77.0.100\n}",
	 "t.conf:12: service reports: server_address = 10.77.0.100: service web has connections to its port "
	 "80, too, "
	 "and with the netfilter datapath a server behind a program needs an address or a port of its own: "
	 "expected another one"},
	{"datapath { type = netfilter interface = e cluster_interface = f }\n" NODE
	 "\nservice a {\n address = 10.77.0.100\n port = 80\n server_port = 82\n server_address = "
	 "10.0.0.1\n}\n"
	 "service b {\n address = 10.77.0.100\n port = 81\n server_port = 82\n server_address = 10.0.0.1\n}",
	 "t.conf:14: service b: server_address = 10.0.0.1: service a has connections to its port 82, too, "
	 "and with the netfilter datapath a server behind a program needs an address or a port of its own: "
	 "expected another one"},
	{"datapath { mac_mode = broadcast }",
	 "t.conf:1: datapath: mac_mode = broadcast: expected multicast | unicast"},
	{"service web { handover_cost = 1001 }",
	 "t.conf:1: service web: handover_cost = 1001: expected 0..1000 (requests)"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\nserver_port = 80 server_address = 10.77.0.100 }",
	 "t.conf:4: service web: server_port = 80: the program listens there itself: expected "
	 "another port, or server_address, for the server behind it"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80 inspect = every server_port = 81 }",
	 "t.conf:3: service web: server_port = 81: with inspect = every no program hands over: expected "
	 "inspect = "
	 "first or never"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\nsurvive = 1 }",
	 "t.conf:4: service web: survive = 1: with inspect = first nobody knows where a request ends: "
	 "expected off, or inspect = every"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80 inspect = never survive = 2 }",
	 "t.conf:3: service web: survive = 2: with inspect = never nobody knows where a request ends: "
	 "expected off, or inspect = every"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80 inspect = every\nresume = on }",
	 "t.conf:4: service web: resume = on: with survive = off no other node knows its connections: "
	 "expected off, or survive = 1 or 2"},
	{"service web { resume = 1 }", "t.conf:1: service web: resume = 1: expected off | on"},
	{"service web { survive = 3 }", "t.conf:1: service web: survive = 3: expected off | 1 | 2"},
	{"cluster { membership = corosync }\ndatapath { type = netfilter interface = e cluster_interface = f "
	 "}\n" NODE "\nservice web {\n address = 10.77.0.100\n port = 80\n inspect = every\n survive = 1\n}",
	 "t.conf:9: service web: survive = 1: with the netfilter datapath no idle connection survives: "
	 "expected off"},
	{"service web { check { type = udp } }",
	 "t.conf:1: check: type = udp: expected tcp | http | https | none"},
	{"service web { check { slow_start_s = 1m } }",
	 "t.conf:1: check: slow_start_s = 1m: expected a plain number 0 (the whole share at once) or "
	 "1..86400 (seconds)"},
	{"service web { check { fall = 0 } }", "t.conf:1: check: fall = 0: expected 1..100 (checks)"},
	{"service web {\ncheck { rise = 1 }\ncheck { fall = 1 } }",
	 "t.conf:3: service web: check: first defined on line 2: expected one"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck {\npath = \"/health\" } }",
	 "t.conf:5: check: path has no effect with type = tcp: expected type = http or https besides"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { type = tcp\nexpect = 200 } }",
	 "t.conf:5: check: expect has no effect with type = tcp: expected type = http or https besides"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { host = a.example type = none } }",
	 "t.conf:4: check: host has no effect with type = none: expected type = http or https besides"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\nbackup = n9 }",
	 "t.conf:4: service web: backup = n9: no node of that name: expected n1"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\nbackup = n1 }",
	 "t.conf:4: service web: backup: all nodes: expected one that comes first"},
	{DATAPATH NODE "node n2 { address = 10.78.0.2 }\nservice web { address = 10.77.0.100 port = 80\n"
		       "nodes = n1\nbackup = n2 }",
	 "t.conf:6: service web: backup = n2: it is not one of nodes: expected one of them"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\notherwise { status = 302 } }",
	 "t.conf:4: otherwise: status = 302: expected 400..599"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\notherwise { file = sorry.html } }",
	 "t.conf:4: otherwise: file = sorry.html: expected an absolute path"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\notherwise { body = a\nfile = \"/b\" } }",
	 "t.conf:5: otherwise: file: body was set on line 4: expected one of them"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ninspect = never\notherwise { body = a } }",
	 "t.conf:5: service web: otherwise: with inspect = never nobody is answered: expected inspect = "
	 "first or every"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\n} rule a { backup = n1 }",
	 "t.conf:4: rule a: backup: there are no nodes that come first: expected nodes = {...} besides"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\n} rule a { nodes = n1 backup = n1 }",
	 "t.conf:4: rule a: backup = n1: it is one of nodes: expected another one"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\n} rule a { nodes = n1 backup = n2 }",
	 "t.conf:4: rule a: backup = n2: no node of that name: expected n1"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { type = none port = 81 } }",
	 "t.conf:4: check: port has no effect with type = none: expected type = tcp, http or https"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { port = 70000 } }",
	 "t.conf:4: check: port = 70000: expected 0 (the service's) or 1..65535"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http ca_file = \"/a\" host = a } }",
	 "t.conf:4: check: ca_file has no effect with type = http: expected type = https besides"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = https ca_file = \"/a\" } }",
	 "t.conf:4: check: ca_file: no name to compare the certificate's with: expected host = NAME besides"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = https ca_file = ca.pem } }",
	 "t.conf:4: check: ca_file = ca.pem: expected an absolute path"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { body = ok } }",
	 "t.conf:4: check: body has no effect with type = tcp: expected type = http or https besides"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { type = http expect = "
		       "200\nstatus = {\"204\"} } }",
	 "t.conf:5: check: status: expect was set on line 4: expected one of them"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http status = {\"299..200\"} } }",
	 "t.conf:4: check: status = 299..200: expected 101, or one of 200..599, or some of them like "
	 "200..299"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http status = {\"103\"} } }",
	 "t.conf:4: check: status = 103: expected 101, or one of 200..599, or some of them like 200..299"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http status = {\"2xx\"} } }",
	 "t.conf:4: check: status = 2xx: expected 101, or one of 200..599, or some of them like 200..299"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http status = {\"200..600\"} } }",
	 "t.conf:4: check: status = 200..600: expected 101, or one of 200..599, or some of them like "
	 "200..299"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\ncheck { type = http expect = 103 } }",
	 "t.conf:4: check: expect = 103: expected 101, or 200..599 (a status)"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80\ncheck { type = http path = \"/a b\" } }",
	 "t.conf:4: check: path = /a b: expected ASCII without blanks: other characters are %XX"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80\nnodes = {n1, n9} }",
	 "t.conf:4: service web: nodes = n9: no node of that name: expected n1"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80 nodes = {n1, \"a b\"} }",
	 "t.conf:3: service web: nodes = a b: expected the name of a node"},
	{DATAPATH NODE
	 "node n2 { address = 10.0.0.2 }\nservice web { address = 10.77.0.100 port = 80 nodes = {n2} }\n"
	 "rule r {\nservice = web\nnodes = {n2, n1} }",
	 "t.conf:7: rule r: nodes = n1: service web is not on that node: expected n2"},
	{DATAPATH NODE
	 "node n2 { address = 10.0.0.2 }\nservice web { address = 10.77.0.100 port = 80 nodes = n2\n"
	 "outlier {\nmax_out = 1 } }",
	 "t.conf:6: outlier: max_out = 1: of 1 nodes: expected fewer, so that one serves"},
	{"service web { outlier { max_errors = 100 } }",
	 "t.conf:1: outlier: max_errors = 100: expected 0 (errors put nobody out) or 1..99 (percent of "
	 "responses)"},
	{"service web {\noutlier { out_s = 1 }\noutlier { out_s = 1 } }",
	 "t.conf:3: service web: outlier: first defined on line 2: expected one"},
	{DATAPATH NODES3
	 "service web { address = 10.77.0.100 port = 80 inspect = every\noutlier { out_s = 5 } }",
	 "t.conf:6: service web: outlier: no limit: expected max_errors = PERCENT, max_slow = "
	 "PERCENT, or "
	 "both; or max_out = NODES for other reasons to be out"},
	{DATAPATH NODES3 "service web { address = 10.77.0.100 port = 80\noutlier { max_out = 3 } }",
	 "t.conf:6: outlier: max_out = 3: of 3 nodes: expected fewer, so that one serves"},
	{DATAPATH NODES3 "service web { address = 10.77.0.100 port = 80\noutlier { max_errors = 50 } }",
	 "t.conf:6: service web: outlier: with inspect = first no responses are read: expected inspect = "
	 "every"},
	{DATAPATH NODES3 "service web { address = 10.77.0.100 port = 80 inspect = every\noutlier "
			 "{\nmax_errors = 50\nmax_out = 3\n} }",
	 "t.conf:8: outlier: max_out = 3: of 3 nodes: expected fewer, so that one serves"},
	{DATAPATH NODE
	 "service web { address = 10.77.0.100 port = 80 inspect = every\noutlier { max_slow = 50 } }",
	 "t.conf:4: outlier: max_out = 1: of 1 nodes: expected fewer, so that one serves"},
	{DATAPATH NODES3 "service web { address = 10.77.0.100 port = 80 inspect = every\noutlier "
			 "{\nmax_slow = 50\nout_s = 301\n} }",
	 "t.conf:6: outlier: out_max_s = 300: less than out_s: expected at least 301"},
	{"service web { server_address = 0.0.0.0 }",
	 "t.conf:1: service web: server_address = 0.0.0.0: expected a unicast IPv4 address of a network"},
	{"service web { inspect = yes }",
	 "t.conf:1: service web: inspect = yes: expected first | every | never"},
	{"service web { policy = round-robin }", "t.conf:1: service web: policy = round-robin: expected ring "
						 "| wrr | wlc | cap | uri-hash | ward | lard | "
						 "lard-r | ext-lard | hylard | cawll | xlard-r | cahrd"},
	{"service web { address = 10.77.0 }",
	 "t.conf:1: service web: address = 10.77.0: expected an IP address"},
	{"service web { address = www.example.org }",
	 "t.conf:1: service web: address = www.example.org: expected an IP address"},
	{"service web { address = ' ' }", "t.conf:1: service web: address =  : expected an IP address"},
	{"service web { address = ::ffff:10.77.0.100 }",
	 "t.conf:1: service web: address = ::ffff:10.77.0.100: expected a unicast IPv6 address of a network, "
	 "and not "
	 "of a link"},
	{"service web { address = 10.77.0.100, fe80::1 }",
	 "t.conf:1: service web: address = fe80::1: expected a unicast IPv6 address of a network, and not "
	 "of a link"},
	{"node n1 { address = ff02::1 }", "t.conf:1: node n1: address = ff02::1: expected a unicast IPv6 "
					  "address of a network, and not of a link"},
	{"node n1 { address = ::1 }", "t.conf:1: node n1: address = ::1: expected a unicast IPv6 address of "
				      "a network, and not of a link"},
	{"service web { address = 10.77.0.100, 10.77.0.101 }",
	 "t.conf:1: service web: address = 10.77.0.100, 10.77.0.101: two of one family: expected one of "
	 "each, or "
	 "another service"},
	{"service web { address = 2001:db8::1 ,2001:db8::2 }",
	 "t.conf:1: service web: address = 2001:db8::1 ,2001:db8::2: two of one family: expected one of "
	 "each, or "
	 "another service"},
	{"status { address = ff02::1 }",
	 "t.conf:1: status: address = ff02::1: expected a unicast IPv6 address of a network, and not of a "
	 "link"},
	{"status { address = moon }", "t.conf:1: status: address = moon: expected an IP address"},
	{"service web { server_address = fe80::1 }",
	 "t.conf:1: service web: server_address = fe80::1: expected a unicast IPv6 address of a network, and "
	 "not of a link"},
	{"service web { server_address = \"127.0.0.1, moon\" }",
	 "t.conf:1: service web: server_address = moon: expected an IP address"},
	{"service web { server_address = ::1, 2001:db8::1 }",
	 "t.conf:1: service web: server_address = ::1, 2001:db8::1: two of one family: expected one of each"},
	{DATAPATH NODE "service web { address = 2001:db8::1 port = 80 server_port = 80\n"
		       "server_address = 127.0.0.1 }",
	 "t.conf:4: service web: server_address: of another family than address: expected one of IPv6"},
	{DATAPATH NODE "service web { address = 10.77.0.100 port = 80 server_port = 80\n"
		       "server_address = ::1 }",
	 "t.conf:4: service web: server_address: of another family than address: expected one of IPv4"},
	{DATAPATH NODE "service web { address = 10.77.0.100, 2001:db8::1 port = 80\n"
		       "server_port = 80 server_address = 127.0.0.1, 2001:db8::1 }",
	 "t.conf:4: service web: server_port = 80: the program listens there itself: expected "
	 "another port, or server_address, for the server behind it"},
	{"node n1 { address = 10.78.0.1, 2001:db8::1 }",
	 "t.conf:1: node n1: address = 10.78.0.1, 2001:db8::1: expected an IP address"},
	{"service web { port = 80, 81 }",
	 "t.conf:1: service web: port = 80, 81: expected a plain number 1..65535"},
	{"service web { port = 80, }",
	 "t.conf:1: unexpected \",\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{DATAPATH SERVICE "node n1 { address = 10.78.0.1 }\nnode n2 { address = 2001:db8::2 }",
	 "t.conf:4: node n2: address = 2001:db8::2: of another family than node n1's: expected a cluster "
	 "network of "
	 "one family"},
	{DATAPATH NODE
	 "service a { address = 10.77.0.100, 2001:db8::1 port = 80 }\nservice b { address = 10.77.0.101, "
	 "2001:db8::1 port = 80 }",
	 "t.conf:4: service b: address = 2001:db8::1 and port = 80: also of service a: expected another "
	 "address or "
	 "port"},
	{"service web { address = 127.0.0.1 }",
	 "t.conf:1: service web: address = 127.0.0.1: expected a unicast IPv4 address of a network"},
	{"node n1 { address = 0.0.0.0 }",
	 "t.conf:1: node n1: address = 0.0.0.0: expected a unicast IPv4 address of a network"},
	{"node n1 { address = 224.0.0.1 }",
	 "t.conf:1: node n1: address = 224.0.0.1: expected a unicast IPv4 address of a network"},
	{"datapath { cluster_mac = 03:bf:0a:4d:00 }",
	 "t.conf:1: datapath: cluster_mac = 03:bf:0a:4d:00: expected a MAC address like 03:bf:0a:4d:00:64"},
	{"datapath { cluster_mac = 03-bf-0a-4d-00-64 }",
	 "t.conf:1: datapath: cluster_mac = 03-bf-0a-4d-00-64: expected a MAC address like "
	 "03:bf:0a:4d:00:64"},
	{"datapath { cluster_mac = 03:bf:0a:4d:00:64:00 }",
	 "t.conf:1: datapath: cluster_mac = 03:bf:0a:4d:00:64:00: expected a MAC address like "
	 "03:bf:0a:4d:00:64"},
	{"datapath { interface = \"eth 0\" }", "t.conf:1: datapath: interface = eth 0: expected the name of "
					       "a network interface, 1..127 characters"},
	{"datapath { interface = a/b }",
	 "t.conf:1: datapath: interface = a/b: expected the name of a network interface, 1..127 characters"},
	{"cluster { key_file = cluster.key }",
	 "t.conf:1: cluster: key_file = cluster.key: expected an absolute path"},
	{"cluster { name = \"\" }", "t.conf:1: cluster: name = : expected 1..63 characters"},
	{"cluster { name = 0123456789012345678901234567890123456789012345678901234567890123 }",
	 "t.conf:1: cluster: name = 0123456789012345678901234567890123456789012345678901234567890123: "
	 "expected 1..63 "
	 "characters"},
	{"status { port = 70000 }", "t.conf:1: status: port = 70000: expected 0 (nowhere) or 1..65535"},
	{"status { address = 0.0.0.0 }",
	 "t.conf:1: status: address = 0.0.0.0: expected a unicast IPv4 address of a network"},
	{"status { allow = {\"10.0.0.1/8\"} }",
	 "t.conf:1: status: allow = 10.0.0.1/8: expected an IP address, or a network like 192.0.2.0/24 "
	 "or 2001:db8::/32 "
	 "without bits after its prefix"},
	{"status { host = x }",
	 "t.conf:1: status: unknown key \"host\": expected address | port | allow | names"},
	{"status { names = {\"http://status.example/\"} }",
	 "t.conf:1: status: names = http://status.example/: expected a host name alone, without http://"},
	{"status { names = {\"10.78.0.1:7351\"} }",
	 "t.conf:1: status: names = 10.78.0.1:7351: expected a host name without port, or *.DOMAIN: any port "
	 "matches"},
	{"status { }\nstatus { }", "t.conf:2: status: first defined on line 1: expected one status section"},
	{MINIMAL "status { address = 10.77.0.100 }", "t.conf:4: status: address = 10.77.0.100: also of "
						     "service web: expected 127.0.0.1, or no address, "
						     "which means the node's own"},

	/* the whole */
	{"", "t.conf: datapath: interface is missing: expected interface = VALUE"},
	{"# nothing\n", "t.conf: datapath: interface is missing: expected interface = VALUE"},
	{NODE SERVICE "\ndatapath {\n interface = eth0\n}",
	 "t.conf:4: datapath: cluster_interface is missing: expected cluster_interface = VALUE"},
	{DATAPATH SERVICE, "t.conf: no node: expected node NAME { address = ADDRESS } for each node"},
	{DATAPATH NODE, "t.conf: no service: expected service NAME { address = ADDRESS  port = PORT }"},
	{MINIMAL "node n2 {\n address = 10.78.0.1\n}",
	 "t.conf:5: node n2: address = 10.78.0.1: also of node n1: expected one of its own"},
	{MINIMAL "node n2 { address = 10.77.0.100 }",
	 "t.conf:4: node n2: address = 10.77.0.100: also of service web: expected the node's address on the "
	 "private "
	 "network"},
	{MINIMAL "service b {\n address = 10.77.0.100\n port = 80\n}",
	 "t.conf:6: service b: address = 10.77.0.100 and port = 80: also of service web: expected another "
	 "address or "
	 "port"},
	{DATAPATH NODE
	 "service web {\n address = 10.77.0.100\n port = 80\n inspect = never\n policy = lard\n}",
	 "t.conf:7: service web: policy = lard: with inspect = never expected ring"},
	{DATAPATH SERVICE "node n1 { address = 10.78.0.1\n weight = 0 }\n",
	 "t.conf:4: node n1: weight = 0, as of all other nodes: expected a weight above 0 for one of them"},
	{NODE SERVICE "datapath { interface = a cluster_interface = b\n cluster_mac = 02:bf:0a:4d:00:64 }",
	 "t.conf:4: datapath: cluster_mac: with mac_mode = multicast expected a group address (first byte "
	 "odd)"},
	{NODE SERVICE "datapath { interface = a cluster_interface = b mac_mode = unicast\n cluster_mac = "
		      "03:bf:0a:4d:00:64 }",
	 "t.conf:4: datapath: cluster_mac: with mac_mode = unicast expected a station address (first byte "
	 "even)"},
	{NODE SERVICE "datapath { interface = a cluster_interface = b mac_mode = unicast\n cluster_mac = "
		      "00:00:00:00:00:00 }",
	 "t.conf:4: datapath: cluster_mac: expected an address other than 0"},
};

static void test_errors(void **state)
{
	(void)state;
	check_errors(errors, sizeof(errors) / sizeof(errors[0]));
}

/* All that is wrong with a file, and nothing that only follows from it. */
static void test_all_errors(void **state)
{
	static const struct {
		const char *text;
		const char *expected[8];
	} files[] = {
		{MINIMAL, {NULL}},
		{"cluster {\n handover_port = 0\n nmae = x\n virtual_nodes = 0\n}\n" MINIMAL,
		 {"t.conf:2: cluster: handover_port = 0: expected 1..65535",
		  "t.conf:3: cluster: unknown key \"nmae\": expected ",
		  "t.conf:4: cluster: virtual_nodes = 0: expected 1..1024"}},
		{DATAPATH "node n1 { address = 10.78.0 }\nnode n2 { address = 10.78 wieght = { 1, 2 } }\n"
			  "service web { address = 10.77.0.100 polcy = ring }\n"
			  "rule r { nodes = n7 }\n",
		 {"t.conf:2: node n1: address = 10.78.0: expected",
		  "t.conf:3: node n2: address = 10.78: expected", "t.conf:3: node n2: unknown key \"wieght\"",
		  "t.conf:4: service web: unknown key \"polcy\"", "t.conf:4: service web: port is missing",
		  "t.conf:5: rule r: nodes = n7: no node of that name: expected n1 | n2"}},
		{NODE
		 "service a { address = 10.77.0.100 port = 80 policy = lard inspect = never }\n"
		 "service b { address = 10.77.0.100 port = 80 }\nservice c {\n address = 10.77.0.100\n"
		 " port = 81\n port = 82\n plugin x { budget = 1 }\n}\nrule r { cost = 1 affinity = yes }\n",
		 {"t.conf:7: service c: port = 82: first set on line 6",
		  "t.conf:8: plugin x: unknown key \"budget\"", "t.conf: datapath: interface is missing",
		  "t.conf: datapath: cluster_interface is missing",
		  "t.conf:2: service a: policy = lard: with inspect = never expected ring",
		  "t.conf:3: service b: address = 10.77.0.100 and port = 80: also of service a",
		  "t.conf:10: rule r: affinity = yes: expected either cookie or header besides"}},
		/* after an error of syntax nothing is read */
		{"inspector {\n workers = 9\n frob }\n",
		 {"t.conf:2: inspector: workers = 9: ", "t.conf:3: "}},
		{"frob { }\n" MINIMAL, {"t.conf:1: unknown section \"frob\": expected cluster"}},
		{"cluster {", {"t.conf:1: \"{\" without \"}\""}},
	};
	static struct es_conf_errors found;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct es_conf *conf = NULL;
		unsigned int k = 0;
		int rc = es_conf_parse_all(files[i].text, strlen(files[i].text), "t.conf", &conf, &found);

		for (; files[i].expected[k]; k++)
			if (k >= found.count || !strstr(found.error[k].text, files[i].expected[k]))
				fail_msg("in: %s\nexpected: %s\n     got: %s", files[i].text,
					 files[i].expected[k], found.error[k].text);
		if (found.count != k)
			fail_msg("in: %s\nbesides: %s", files[i].text, found.error[k].text);
		assert_int_equal(rc, k ? -EINVAL : 0);
		es_conf_free(&conf);
	}
}

/* If there are more errors than room, their number is still known. */
static void test_many_errors(void **state)
{
	static struct es_conf_errors found;
	char *text = many(DATAPATH SERVICE, 100, "node n%u { weight = 9999 address = 10.78.1.%u }\n");
	struct es_conf *conf = NULL;

	(void)state;
	assert_int_equal(es_conf_parse_all(text, strlen(text), "t.conf", &conf, &found), -EINVAL);
	assert_int_equal(found.count, ES_CONF_ERRORS_MAX);
	assert_int_equal(found.count + found.left_out, 100);
	free(text);
}

static void test_bounds(void **state)
{
	static const char node[] = "node n%u { address = 10.78.1.%u }\n";
	static const char service[] = "service s%u { address = 10.77.0.100 port = %u }\n";
	struct es_conf *conf;
	char *text;

	(void)state;
	text = many(DATAPATH SERVICE, 127, node);
	conf = parse_ok(text);
	assert_int_equal(conf->node_count, 127);
	assert_string_equal(conf->nodes[126].name, "n127");
	es_conf_free(&conf);
	free(text);
	text = many(DATAPATH SERVICE "cluster {\n virtual_nodes = 129\n}\n", 127, node);
	conf = parse_ok(text);
	es_conf_free(&conf);
	free(text);
	text = many(DATAPATH SERVICE "cluster {\n virtual_nodes = 130\n}\n", 127, node);
	check_error(text, strlen(text),
		    "t.conf:4: cluster: virtual_nodes = 130: with the nodes' weights 16510 points on the "
		    "ring: expected "
		    "at most 16384");
	free(text);
	text = many(DATAPATH SERVICE, 128, node);
	check_error(text, strlen(text), "t.conf:130: node n128: too many nodes: expected at most 127");
	free(text);
	text = many(DATAPATH NODE, 64, service);
	conf = parse_ok(text);
	assert_int_equal(conf->service_count, 64);
	es_conf_free(&conf);
	free(text);
	text = many(DATAPATH NODE, 65, service);
	check_error(text, strlen(text), "t.conf:67: service s65: too many services: expected at most 64");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_all_errors),
		cmocka_unit_test(test_many_errors),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("config_errors", tests, NULL, NULL);
}
