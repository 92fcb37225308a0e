#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Earshot and nginx under Pacemaker, for pcs: the same as earshot.crm, which tells the reasons. Once, on one node:
#
#     pcs cluster cib earshot.cib
#     sh earshot.pcs.sh earshot.cib
#     pcs cluster cib-push earshot.cib
#
# So it takes effect as a whole or not at all.
set -eu
cib=${1:?usage: earshot.pcs.sh CIB-FILE}

edit() {
	pcs -f "$cib" "$@"
}

edit property set stonith-enabled=false no-quorum-policy=freeze
edit resource defaults update migration-threshold=3 failure-timeout=120s resource-stickiness=100

edit resource create nginx ocf:heartbeat:nginx configfile=/etc/nginx/nginx.conf \
	op start interval=0 timeout=40s \
	op stop interval=0 timeout=60s \
	op monitor interval=10s timeout=30s \
	--no-default-ops
edit resource create earshotd ocf:earshot:earshotd config=/etc/earshot/earshot.conf drain_timeout=75 \
	op start interval=0 timeout=30s \
	op stop interval=0 timeout=90s \
	op monitor interval=5s timeout=20s \
	op monitor interval=11s timeout=20s OCF_CHECK_LEVEL=10 \
	op reload-agent interval=0 timeout=20s \
	--no-default-ops

edit resource clone nginx nginx-clone interleave=true
edit resource clone earshotd earshotd-clone interleave=true notify=false

edit constraint order start nginx-clone 'then' start earshotd-clone kind=Optional symmetrical=true \
	id=nginx-before-earshotd
edit constraint colocation add earshotd-clone with nginx-clone INFINITY id=earshotd-with-nginx
